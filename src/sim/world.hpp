// The clock and the order of everything that happens in a simulation, from one seed.
//
// Nothing runs but by an event: the one with the earliest time, of several the one that was asked for first.
// There is no other clock and no other chance than this one's. What happens is folded into a hash, so that
// two runs can be compared. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "links/link_end.hpp"
#include "sim/history.hpp"

namespace omnibus::sim {

using Task = std::move_only_function<void()>;
using Nanos = std::chrono::nanoseconds;
// Whoever holds it is alive; what was asked for by somebody who is gone does not happen.
using Life = std::shared_ptr<char>;
[[nodiscard]] inline Life begin_life() { return std::make_shared<char>(); }

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] Random& random() { return random_; }
  // True once in `n`, never for 0.
  [[nodiscard]] bool one_in(std::uint64_t n) { return n != 0 && random_.below(n) == 0; }
  [[nodiscard]] std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + random_.below(high - low + 1);
  }
  [[nodiscard]] Nanos between(Nanos low, Nanos high) {
    return Nanos{static_cast<std::int64_t>(
        between(static_cast<std::uint64_t>(low.count()), static_cast<std::uint64_t>(high.count())))};
  }

  [[nodiscard]] Tick tick() const { return tick_; }
  [[nodiscard]] Instant wall() const {
    return start_ + jumped_ + std::chrono::floor<std::chrono::milliseconds>(tick_.time_since_epoch());
  }
  [[nodiscard]] links::Now now() const { return {tick_, wall()}; }
  // As histories have it. It does not go back when the wall clock does.
  [[nodiscard]] Moment moment() {
    latest_ = std::max(latest_, as_moment(wall()));
    return latest_;
  }
  [[nodiscard]] static Moment as_moment(Instant at) { return at.time_since_epoch().count() * 1000; }
  // The wall clock is set; timers that count go on as they were.
  void jump(std::chrono::milliseconds by) {
    jumped_ += by;
    (by.count() < 0 ? back_ : ahead_) += std::abs(by.count()) * 1000;
  }
  // In all.
  [[nodiscard]] Moment went_back() const { return back_; }
  [[nodiscard]] Moment went_ahead() const { return ahead_; }

  void at(Tick due, const Life& life, Task task);
  void after(Nanos wait, const Life& life, Task task) { at(tick_ + wait, life, std::move(task)); }
  // After what is asked for already at this moment.
  void post(const Life& life, Task task) { at(tick_, life, std::move(task)); }

  // Runs what is due up to `end`, which is then now.
  void run_until(Tick end);
  // The same, but ends as soon as `done`. False: it was not done by then.
  bool run_until(Tick end, const std::function<bool()>& done);

  void trace(Bytes bytes);
  void trace(std::string_view text) { trace(as_bytes(text)); }
  [[nodiscard]] std::uint64_t hash() const { return hash_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }

 private:
  struct Event {
    Tick due;
    std::uint64_t number = 0;
    std::weak_ptr<char> life;
    Task task;
  };
  static bool is_later(const Event& a, const Event& b) {
    return a.due != b.due ? a.due > b.due : a.number > b.number;
  }
  bool step(Tick end);

  Random random_;
  Tick tick_{};
  Instant start_{std::chrono::sys_days{std::chrono::year{2026} / 1 / 15}};
  std::chrono::milliseconds jumped_{0};
  Moment latest_ = 0;
  Moment back_ = 0;
  Moment ahead_ = 0;
  std::vector<Event> queue_;  // a heap
  std::uint64_t asked_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace omnibus::sim
