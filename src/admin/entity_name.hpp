// What a queue, topic, exchange or subscription may be called [admin contract 13].
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace omnibus::admin {

inline constexpr std::size_t entity_name_bytes_max = 260;

// `argument_error` says which rule the name breaks; the name itself is not quoted.
[[nodiscard]] Result<void> check_entity_name(std::string_view name);

inline constexpr std::size_t subscription_name_bytes_max = 50;
[[nodiscard]] Result<void> check_subscription_name(std::string_view name);

// The entity that a forwarding value names: a bare name, or the path of an absolute URI of any scheme and
// host [admin contract 12]. `argument_error` when it names none.
[[nodiscard]] Result<std::string> forward_target(std::string_view text);

}  // namespace omnibus::admin
