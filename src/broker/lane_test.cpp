#include "broker/lane.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace omnibus::broker {
namespace {

struct LaneRig {
  EntryTable entries;
  Lane lane{entries};

  std::uint32_t add(SequenceNumber sequence, bool is_available) {
    const std::uint32_t slot = entries.add();
    entries[slot].sequence = sequence;
    lane.insert(slot);
    lane.set_available(slot, is_available);
    return slot;
  }
  // How many a walk finds.
  [[nodiscard]] std::uint32_t walk() const {
    std::uint32_t count = 0;
    std::uint32_t slot = lane.first_available();
    while (slot != no_slot) {
      ++count;
      slot = lane.available_at_or_after(entries[slot].sequence + 1);
    }
    return count;
  }
};

TEST(Lane, WhatIsRemovedIsNoLongerCounted) {
  LaneRig rig;
  const std::uint32_t first = rig.add(1, true);
  const std::uint32_t second = rig.add(2, true);
  const std::uint32_t third = rig.add(3, true);
  EXPECT_EQ(rig.lane.available(), 3u);
  rig.lane.remove(second);
  EXPECT_EQ(rig.lane.available(), 2u) << "it could be taken until then";
  rig.lane.set_available(first, false);
  rig.lane.remove(first);
  EXPECT_EQ(rig.lane.available(), 1u) << "it counted no longer, and goes once";
  EXPECT_EQ(rig.lane.first_available(), third);
  rig.lane.remove(third);
  EXPECT_EQ(rig.lane.available(), 0u);
  EXPECT_FALSE(rig.lane.has_available());
  EXPECT_TRUE(rig.lane.empty());
}

// Late numbers part the chunks that they fall into, removals join those that became thin.
TEST(Lane, TheCountIsWhatAWalkFindsHoweverTheChunksLie) {
  LaneRig rig;
  std::vector<std::uint32_t> slots;
  for (SequenceNumber number = 2; number <= 400; number += 2)
    slots.push_back(rig.add(number, number % 3 != 0));
  for (SequenceNumber number = 1; number <= 400; number += 2)
    slots.push_back(rig.add(number, number % 3 != 0));
  EXPECT_EQ(rig.lane.available(), 267u);
  EXPECT_EQ(rig.walk(), 267u);
  while (!slots.empty()) {
    const std::size_t at = slots.size() / 3;
    rig.lane.remove(slots[at]);
    slots.erase(slots.begin() + static_cast<std::ptrdiff_t>(at));
    ASSERT_EQ(rig.lane.available(), rig.walk()) << slots.size() << " are left";
  }
  EXPECT_EQ(rig.lane.available(), 0u);
  EXPECT_TRUE(rig.lane.empty());
}

}  // namespace
}  // namespace omnibus::broker
