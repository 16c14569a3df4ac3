// What a management API says about entities, read and written as it came.
//
// A Description keeps the whole XML of an entity: what this program does not know is sent back unchanged when
// the entity is updated. Elements that are set take the place that the service's schema gives them, since it
// skips those out of order. Reading is bounded by the limits below. Pure; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "rules/rule.hpp"

namespace pugi {
class xml_document;
class xml_node;
}  // namespace pugi

namespace omnibus::client {

enum class EntityKind : std::uint8_t { queue, topic, subscription, rule };
[[nodiscard]] std::string_view name_of(EntityKind kind);

inline constexpr std::size_t answer_depth_max = 64;
inline constexpr std::size_t answer_nodes_max = 2'000'000;

struct EntityCounts {
  std::uint64_t active = 0;
  std::uint64_t dead_letter = 0;
  std::uint64_t scheduled = 0;
  std::uint64_t transfer = 0;
  std::uint64_t transfer_dead_letter = 0;
  std::uint64_t size_bytes = 0;
};

class Description {
 public:
  // An empty one: what is not set has its default.
  explicit Description(EntityKind kind, std::string name = {});
  static Description of_rule(const rules::Rule& rule);
  Description(const Description& other);
  Description& operator=(const Description& other);
  Description(Description&&) noexcept;
  Description& operator=(Description&&) noexcept;
  ~Description();

  [[nodiscard]] EntityKind kind() const { return kind_; }
  // Without its parents: of orders/Subscriptions/audit this is audit.
  [[nodiscard]] const std::string& name() const { return name_; }

  // The text of an element, e.g. "LockDuration"; nothing when it is not there.
  [[nodiscard]] std::optional<std::string> get(std::string_view element) const;
  void set(std::string_view element, std::string_view text);
  void unset(std::string_view element);
  // Elements that hold text alone, in their order.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> elements() const;
  [[nodiscard]] EntityCounts counts() const;
  // Of a rule. Fails with `argument_error` when the filter is of a kind that nobody knows.
  [[nodiscard]] Result<rules::Rule> rule() const;

  // The description alone, and as the body of a request.
  [[nodiscard]] std::string xml() const;
  [[nodiscard]] std::string entry() const;
  // All of it as JSON text: elements by their names, numbers and booleans as such, `Name` first.
  [[nodiscard]] std::string json() const;

  // Elements that can be set, in the order of the schema; empty for rules.
  [[nodiscard]] static std::vector<std::string_view> settable(EntityKind kind);

 private:
  friend struct AtomReader;
  Description() = default;
  [[nodiscard]] pugi::xml_node root() const;

  EntityKind kind_ = EntityKind::queue;
  std::string name_;
  std::unique_ptr<pugi::xml_document> document_;
};

// One page of a list.
struct DescriptionPage {
  std::vector<Description> items{};
  bool more = false;
};

// A feed, or one entry alone: a page of one. A feed without entries is what the service says of a queue or
// topic that is not there. Entries that hold something else (an event hub) are left out. Fails with
// `decode_error`.
[[nodiscard]] Result<DescriptionPage> read_answer(std::string_view body);

// `<Error><Detail>` without sub-code and tracking id, the message of a JSON error, or the beginning of
// another text; in one line.
[[nodiscard]] std::string read_error_detail(std::string_view body);

// What GET /$namespaceinfo says, by element. Fails with `decode_error`.
[[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> read_namespace(std::string_view body);

}  // namespace omnibus::client
