// One run from one seed: the scenario, its faults, its end, and what the checker says.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "sim/checker.hpp"
#include "sim/history.hpp"
#include "sim/scenario.hpp"

namespace omnibus::sim {

struct Report {
  std::uint64_t seed = 0;
  std::vector<std::string> violations{};
  // Of all bytes on wires and disks, all states of stores and the whole history: the same for the same seed.
  std::uint64_t hash = 0;
  std::uint64_t events = 0;
  Judgement judgement{};
  // Bits changed on the disk. What it cost is excused in the entities whose store has told that something is
  // wrong, as long as nothing comes of it that nobody sent.
  bool has_flipped = false;
  std::set<std::string> excused{};
  History history{};
  std::string scenario{};
};

// Changes what the seed chose, for tests that break things on purpose.
using Adjust = std::function<void(Scenario&)>;
[[nodiscard]] Report simulate(std::uint64_t seed, const Adjust& adjust = {});

}  // namespace omnibus::sim
