// Small things that all machines of the broker need.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "broker/ids.hpp"

namespace omnibus::broker {

inline constexpr std::int64_t never_ms = std::numeric_limits<std::int64_t>::max();
[[nodiscard]] inline std::int64_t to_ms(Instant at) { return at.time_since_epoch().count(); }
[[nodiscard]] inline Instant to_instant(std::int64_t ms) { return Instant{std::chrono::milliseconds{ms}}; }

// Of a message without a session id that comes where one is required [contract 9.2].
inline constexpr std::string_view no_session_reason = "Session ID is null.";
inline constexpr std::string_view no_session_description =
    "Session enabled entity doesn't allow a message whose session identifier is null.";

// Numbers that one ReserveNumbers takes at most, whatever the settings of links allow.
inline constexpr std::uint32_t reserved_max = 1'000'000;

// Merges an encoded map of properties into another; values that are null stay, they delete at delivery.
[[nodiscard]] Result<std::vector<std::uint8_t>> merge_properties(Bytes into, Bytes more);
// At most `chars_max` characters, never half of one.
[[nodiscard]] std::string truncated(std::string text, std::size_t chars_max);

}  // namespace omnibus::broker
