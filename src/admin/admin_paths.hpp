// What a request is about: its path and query, taken apart [admin contract 3].
//
// Names of entities may have slashes, plain or as %2F, so the words that mean something (Subscriptions,
// Rules, $Resources) are looked for from the right, in any letter case. Pure; any core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace omnibus::admin {

inline constexpr std::size_t target_bytes_max = 8192;
inline constexpr std::uint32_t page_entries_max = 100;

struct AdminPath {
  enum class Kind : std::uint8_t {
    root,
    namespace_info,
    queues,  // feeds
    topics,
    exchanges,
    subscriptions,  // of `entity`
    rules,          // of `entity` and `subscription`
    entity,         // a queue or topic
    subscription,
    rule,
    scripts,  // all of them, or one
    unknown,  // below $Resources, or another word with a dollar sign
  };
  Kind kind = Kind::root;
  std::string entity{};  // as written, decoded
  std::string subscription{};
  std::string rule{};
  // Of the query.
  std::string api_version{};  // empty: not given, which means the newest
  std::uint32_t skip = 0;
  std::uint32_t top = page_entries_max;

  // "orders/Subscriptions/audit", or the entity alone.
  [[nodiscard]] std::string whole_name() const;
};

// `target` as HTTP has it: "/orders%2Feu/Subscriptions/audit?api-version=2021-05". Fails with
// `argument_error`: a broken escape, no UTF-8, a control character, `$skip` or `$top` that is no number.
[[nodiscard]] Result<AdminPath> parse_admin_path(std::string_view target);

// Whether an answer for this version has elements that came with `since`. Versions sort as texts do.
[[nodiscard]] bool knows(std::string_view api_version, std::string_view since);

// "orders/Subscriptions/audit"
[[nodiscard]] std::string subscription_name(std::string_view topic, std::string_view subscription);
// The topic and the subscription of such a name; nothing when it is no subscription's.
struct SubscriptionName {
  std::string_view topic;
  std::string_view subscription;
};
[[nodiscard]] std::optional<SubscriptionName> split_subscription(std::string_view name);

}  // namespace omnibus::admin
