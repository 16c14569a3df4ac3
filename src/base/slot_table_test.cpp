#include "base/slot_table.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace omnibus {
namespace {

TEST(SlotTable, PlacesAreUsedAgain) {
  SlotTable<std::string> table;
  EXPECT_EQ(table.add("a"), 0u);
  EXPECT_EQ(table.add("b"), 1u);
  EXPECT_EQ(table.take(0), "a");
  EXPECT_EQ(table[0], "") << "an empty place holds nothing";
  EXPECT_EQ(table.add("c"), 0u);
  EXPECT_EQ(table[0], "c");
  EXPECT_EQ(table[1], "b");
  EXPECT_EQ(table.size(), 2u);
}

TEST(SlotTable, GrowsNoFurtherThanTheMostAtOnce) {
  SlotTable<int> table;
  for (int round = 0; round < 100; ++round) {
    const auto a = table.add(round);
    const auto b = table.add(-round);
    EXPECT_NE(a, b);
    EXPECT_EQ(table.take(a), round);
    EXPECT_EQ(table.take(b), -round);
  }
  EXPECT_EQ(table.capacity(), 2u);
  EXPECT_EQ(table.size(), 0u);
  EXPECT_TRUE(table.knows(1));
  EXPECT_FALSE(table.knows(2));
}

TEST(SlotTable, HoldsWhatOnlyMoves) {
  SlotTable<std::unique_ptr<int>> table;
  const auto place = table.add(std::make_unique<int>(7));
  EXPECT_EQ(*table.take(place), 7);
  EXPECT_EQ(table[place], nullptr);
}

TEST(SlotTableDeathTest, WhatWasNeverGivenOutCannotBeTaken) {
  SlotTable<int> table;
  EXPECT_DEATH((void)table.take(0), "given out");
}

}  // namespace
}  // namespace omnibus
