// The time that messages live by: the wall clock, or ahead of it where a test has moved it.
//
// Locks, times to live, schedules, windows of duplicates and idle entities go by it. Tokens, certificates and
// time-outs of connections do not. It only ever goes forward. Any thread.
#pragma once

#include <atomic>
#include <chrono>

#include "base/clock.hpp"

namespace omnibus::node {

class Clock {
 public:
  [[nodiscard]] Instant now() const { return wall_now() + ahead(); }
  [[nodiscard]] std::chrono::milliseconds ahead() const {
    return std::chrono::milliseconds{ahead_ms_.load(std::memory_order_relaxed)};
  }
  // `by` is not negative. Stores learn of it by StoreHost::catch_up().
  void advance(std::chrono::milliseconds by) { ahead_ms_.fetch_add(by.count(), std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> ahead_ms_{0};
};

}  // namespace omnibus::node
