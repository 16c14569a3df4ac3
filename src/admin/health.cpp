#include "admin/health.hpp"

namespace omnibus::admin {

bool Health::Plane::healthy(Tick now) const {
  if (!serves_.load(std::memory_order_relaxed)) return false;
  if (pulse_max_.count() == 0) return true;
  const Tick last{Tick::duration{pulse_.load(std::memory_order_relaxed)}};
  return now - last <= pulse_max_;
}

Health::Plane& Health::add(std::string name, std::chrono::milliseconds pulse_max) {
  return planes_.emplace_back(std::move(name), pulse_max);
}

bool Health::healthy(Tick now) const { return trouble(now).empty(); }

std::string Health::trouble(Tick now) const {
  if (planes_.empty()) return "nothing";
  for (const Plane& plane : planes_)
    if (!plane.healthy(now)) {
      const auto why = plane.why_not();
      return why.empty() ? plane.name() : plane.name() + ": " + std::string(why);
    }
  return "";
}

}  // namespace omnibus::admin
