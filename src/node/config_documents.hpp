// What the documents of exchanges, their subscriptions and scripts share [EX 2.3, Part 4]. Private to the
// config files. Names and values are exact, and findings have codes.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "node/config_entities.hpp"
#include "node/config_reader.hpp"
#include "rules/routing.hpp"

namespace omnibus::node {

// Of UTF-8 text; unlike read_text() with any characters.
void read_characters(const Place& at, std::size_t min, std::size_t max);
// With code `id.invalid`, and `id.duplicate` when another document of the namespace has it.
void read_document_id(const Place& at);

template <class Draft>
void read_id(const Place& at, Draft&) {
  read_document_id(at);
}
template <std::size_t max, class Draft>
void read_note(const Place& at, Draft&) {
  read_characters(at, 0, max);
}
inline constexpr std::size_t caption_chars_max = 1024;
inline constexpr std::size_t description_chars_max = 4096;

// An integer that is only kept.
template <std::int64_t min, std::int64_t max, class Draft>
void check_integer(const Place& at, Draft&) {
  (void)read_integer(at, min, max);
}

// A document to be kept: members in this order, as they are written or with their default.
struct KeptMember {
  std::string_view name;
  // std::monostate: left out when it is not there.
  std::variant<std::monostate, std::int64_t, std::string_view> standard{};
};
[[nodiscard]] JsonValue::Object keep(const Members& members, std::span<const KeptMember> kept);

// Handler, and whether what it refers to is there: `later` asks.
void read_handler(const Place& at, std::vector<LaterCheck>& later);
[[nodiscard]] std::vector<KnownObject> script_objects();

struct SubscriptionDocument {
  SubscriptionEntry entry{};
  std::string name{};
  rules::Binding binding{};
  std::vector<LaterCheck> later{};
  Members broker{};
  Members limits{};
};
// What can be said without the exchange; nothing when it has no name that could be read. The entry is not
// complete yet.
[[nodiscard]] std::optional<SubscriptionDocument> read_subscription_document(const Place& at);
[[nodiscard]] std::vector<KnownObject> subscription_document_objects();

// One document by itself, added to the topics of the namespace or the subscriptions of its exchange when it
// is good. What concerns others waits in Reading::later.
void read_exchange_document(const Place& at, NamespaceSettings& into);
void read_document_of_subscription(const Place& at, TopicEntry& exchange);

// `document` with the members of `kept` that it does not have, where they have a default; in their order.
[[nodiscard]] JsonValue::Object with_defaults(const JsonValue* document, std::span<const KeptMember> kept);
// What a subscription's document keeps, in the order of the schema; of its Broker and Limits too.
[[nodiscard]] std::span<const KeptMember> kept_of_subscription();
[[nodiscard]] std::span<const KeptMember> kept_of_broker();
[[nodiscard]] std::span<const KeptMember> kept_of_limits();

}  // namespace omnibus::node
