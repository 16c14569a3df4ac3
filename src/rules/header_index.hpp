// Routing by headers [contract EX 2.4]: each pair of each binding is a test, found by name and value.
//
// A message's headers are looked up once each; a binding counts how many of its tests were hit. So a message
// costs its headers and the hits, not the number of bindings. One core.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rules/message_fields.hpp"
#include "rules/routing.hpp"

namespace omnibus::rules {

// A header's value in the one form in which JSON and AMQP can be compared: the same text, number or boolean
// has the same form. `none` equals nothing.
struct HeaderForm {
  enum class Kind : std::uint8_t { none, text, boolean, natural, negative, real };
  Kind kind = Kind::none;
  std::uint64_t bits = 0;  // a magnitude, a boolean, or the bits of a double that is no integer
  std::string_view text{};
  friend bool operator==(const HeaderForm&, const HeaderForm&) = default;
};
[[nodiscard]] HeaderForm header_form(const HeaderValue& value);
// A char becomes a text, which `arena` takes.
[[nodiscard]] HeaderForm header_form(const amqp::RawValue& raw, TextArena& arena);

class HeaderIndex {
 public:
  using Id = std::uint32_t;

  // The headers were judged by check_routing().
  void add(Id id, const RoutingHeaders& headers);
  void remove(Id id);
  // Appends the ids of all bindings that match, each once, in no special order. Fails with `decode_error`.
  [[nodiscard]] Result<void> match(MessageFields& fields, std::vector<Id>& out);

 private:
  struct Key {
    std::string_view name;
    bool presence;
    HeaderForm form;
  };
  struct OwnedKey {
    std::string name;
    bool presence = false;
    HeaderForm form{};  // its text is `text`
    std::string text{};
    operator Key() const;
  };
  struct KeyHash {
    using is_transparent = void;
    std::size_t operator()(const Key& key) const;
  };
  struct KeyEqual {
    using is_transparent = void;
    bool operator()(const Key& a, const Key& b) const {
      return a.name == b.name && a.presence == b.presence && a.form == b.form;
    }
  };
  struct Test {
    std::vector<Id> bindings{};
    std::uint64_t hit = 0;  // the match that hit it last
  };
  struct BoundTo {
    bool any = false;
    std::vector<OwnedKey> tests{};
    std::size_t hits = 0;
    std::uint64_t counted = 0;  // the match that `hits` belongs to
  };

  void hit(const Key& key, std::vector<Id>& out);
  void header(std::string_view name, const amqp::RawValue& raw, MessageFields& fields, std::vector<Id>& out);

  std::unordered_map<OwnedKey, Test, KeyHash, KeyEqual> tests_;
  std::unordered_map<Id, BoundTo> bindings_;
  std::vector<Id> always_;
  std::size_t with_x_ = 0;  // bindings for which annotations matter
  std::uint64_t round_ = 0;
};

}  // namespace omnibus::rules
