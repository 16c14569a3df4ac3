// What goes wrong in a simulation, and when: faults come one after the other, chosen by weight, until they
// are turned off.
#pragma once

#include <set>

#include "sim/scenario.hpp"
#include "sim/sim_broker.hpp"

namespace omnibus::sim {

class Faults {
 public:
  Faults(World& world, const Scenario& scenario, SimBroker& broker, History& history);

  void start();
  // Everything is repaired, and the broker is started if it is down.
  void end();
  // Stores whose disks were changed behind their backs.
  [[nodiscard]] const std::set<std::uint16_t>& flipped() const { return flipped_; }

 private:
  void flip();
  void next();
  void strike();
  void on_stopped();
  void start_broker();
  SimStore& any_store();
  // `undo` comes after a while, or with end().
  void for_a_while(Nanos longest, Task undo);
  void say(const char* what, std::string note = {});

  World& world_;
  const Scenario& scenario_;
  SimBroker& broker_;
  History& history_;
  Life life_ = begin_life();
  Life restart_;
  std::set<std::uint16_t> flipped_;
};

}  // namespace omnibus::sim
