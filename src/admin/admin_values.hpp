// How the management API writes times, spans and states [admin contract 8]. Pure; any core.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "broker/queue_settings.hpp"

namespace omnibus::admin {

// Canonical: days, hours, minutes, seconds without those that are zero; PT0S. `broker::unlimited` and more is
// the longest span that clients know.
[[nodiscard]] std::string to_iso_duration(std::chrono::milliseconds span);
// At least 0, at most `broker::unlimited`; nothing when it is no span.
[[nodiscard]] std::optional<std::chrono::milliseconds> from_iso_duration(std::string_view text);

// 2026-01-02T03:04:05.1230000Z, seven digits as clients are used to. The beginning of 1970 stands for
// never: 0001-01-01T00:00:00Z.
[[nodiscard]] std::string to_date(Instant time);
// yyyy-MM-ddTHH:mm:ss with an optional fraction and zone (none: UTC); what is finer than a millisecond is cut
// off.
[[nodiscard]] std::optional<Instant> from_date(std::string_view text);

[[nodiscard]] std::string_view name_of(broker::EntityStatus status);
[[nodiscard]] std::optional<broker::EntityStatus> status_named(std::string_view name);

}  // namespace omnibus::admin
