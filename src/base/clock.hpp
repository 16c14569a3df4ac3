// Time is an argument. Two kinds that cannot be mixed up: Instant is the wall clock (expiry of tokens
// and messages, it can jump), Tick is monotonic (idle time-outs, deadlines, it cannot).
#pragma once

#include <chrono>

namespace omnibus {

using Instant = std::chrono::sys_time<std::chrono::milliseconds>;
using Tick = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// The real clocks; only node and bench call them.
[[nodiscard]] inline Instant wall_now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}
[[nodiscard]] inline Tick tick_now() {
  return std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now());
}

}  // namespace omnibus
