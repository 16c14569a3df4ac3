// Durations and times as people type them. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace omnibus::cli {

// "250ms", "30s", "5m", "1h", "7d", "PT30S"; "unlimited" is the longest there is.
[[nodiscard]] std::optional<std::chrono::milliseconds> duration_of(std::string_view text);
// The same as ISO 8601, as the management API has it.
[[nodiscard]] std::optional<std::string> iso_duration_of(std::string_view text);
// "2026-01-02T03:04:05Z", or a duration from `now` on: "10m".
[[nodiscard]] std::optional<Instant> time_of(std::string_view text, Instant now);

}  // namespace omnibus::cli
