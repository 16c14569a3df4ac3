// Whether every part of the broker serves: what /health tells.
//
// Each plane (listeners, a shard, a store) has a name and reports for itself; the broker is healthy
// when all do. A plane that must show signs of life is unhealthy when the last one is too long ago. Planes
// are added before the shards run; reports and questions may come from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace omnibus::admin {

class Health {
 public:
  class Plane {
   public:
    explicit Plane(std::string name, std::chrono::milliseconds pulse_max)
        : name_(std::move(name)), pulse_max_(pulse_max) {}
    void serves(bool yes) {
      why_not_.store("", std::memory_order_relaxed);
      serves_.store(yes, std::memory_order_relaxed);
    }
    // Serves no more, and why in a word or two; a literal.
    void fails(const char* why_not) {
      why_not_.store(why_not, std::memory_order_relaxed);
      serves_.store(false, std::memory_order_relaxed);
    }
    [[nodiscard]] std::string_view why_not() const { return why_not_.load(std::memory_order_relaxed); }
    // A sign of life.
    void pulse(Tick now) { pulse_.store(now.time_since_epoch().count(), std::memory_order_relaxed); }
    [[nodiscard]] bool healthy(Tick now) const;
    [[nodiscard]] const std::string& name() const { return name_; }

   private:
    std::string name_;
    std::chrono::milliseconds pulse_max_;  // 0: no pulse expected
    std::atomic<bool> serves_{false};
    std::atomic<const char*> why_not_{""};
    std::atomic<Tick::rep> pulse_{0};
  };

  // The plane lives as long as the Health.
  Plane& add(std::string name, std::chrono::milliseconds pulse_max = {});
  [[nodiscard]] bool healthy(Tick now) const;
  // The first plane that does not serve, with what it says about it ("store 0: full"); empty when all do.
  [[nodiscard]] std::string trouble(Tick now) const;

 private:
  std::deque<Plane> planes_;
};

}  // namespace omnibus::admin
