#include "broker/deadline_queue.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/random.hpp"

namespace omnibus::broker {
namespace {

struct Thing {
  std::int64_t due = 0;
  std::uint32_t place = 0;
};
using Things = std::vector<Thing>;
using Deadlines = DeadlineQueue<Things, &Thing::due, &Thing::place>;

struct Rig {
  explicit Rig(std::size_t count) : things(count) {}
  void add(std::uint32_t index, std::int64_t due) {
    things[index].due = due;
    deadlines.add(index);
  }
  std::vector<std::uint32_t> all_in_order() {
    std::vector<std::uint32_t> order;
    while (!deadlines.empty()) {
      order.push_back(deadlines.first());
      deadlines.remove(order.back());
    }
    return order;
  }
  Things things;
  Deadlines deadlines{things};
};

TEST(DeadlineQueue, ThoseWhoComeInOrderLeaveInOrder) {
  Rig rig{4};
  for (std::uint32_t i = 0; i < 4; ++i) rig.add(i, 10);
  EXPECT_EQ(rig.all_in_order(), (std::vector<std::uint32_t>{0, 1, 2, 3})) << "equal ones too";
}

TEST(DeadlineQueue, WhoIsDueBeforeTheLastIsFoundAllTheSame) {
  Rig rig{5};
  const std::int64_t due[] = {50, 20, 60, 10, 55};
  for (std::uint32_t i = 0; i < 5; ++i) rig.add(i, due[i]);
  EXPECT_EQ(rig.deadlines.first_due(), 10);
  EXPECT_EQ(rig.all_in_order(), (std::vector<std::uint32_t>{3, 1, 0, 4, 2}));
}

TEST(DeadlineQueue, WhoIsPutOffGoesBehindTheOthers) {
  Rig rig{3};
  for (std::uint32_t i = 0; i < 3; ++i) rig.add(i, 10 + i);
  rig.things[0].due = 100;
  rig.deadlines.moved_in_time(0);
  rig.things[2].due = 1;
  rig.deadlines.moved_in_time(2);
  EXPECT_EQ(rig.all_in_order(), (std::vector<std::uint32_t>{2, 1, 0}));
}

// One that stays holds its place in the line, but not the room of all who came and went behind it.
TEST(DeadlineQueue, OneThatStaysDoesNotMakeTheLineGrow) {
  Rig rig{100};
  rig.add(0, 1);
  rig.add(1, 2);
  for (std::int64_t i = 0; i < 100'000; ++i) {
    const auto index = static_cast<std::uint32_t>(2 + i % 98);
    const auto before = static_cast<std::uint32_t>(2 + (i + 49) % 98);
    rig.add(index, 3 + i);
    if (i >= 49) rig.deadlines.remove(before);
  }
  EXPECT_EQ(rig.deadlines.first(), 0u);
  EXPECT_LE(rig.deadlines.bytes(), 256 * sizeof(std::uint32_t));
}

// Against a sorted set, with times that mostly rise.
TEST(DeadlineQueue, ManyHistoriesAgreeWithASortedSet) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random{seed};
    const std::size_t count = 1 + random.next() % 200;
    Rig rig{count};
    std::set<std::pair<std::int64_t, std::uint32_t>> model;
    std::vector<bool> is_there(count);
    for (std::int64_t step = 0; step < 2'000; ++step) {
      const auto index = static_cast<std::uint32_t>(random.next() % count);
      const std::int64_t due =
          random.next() % 5 == 0 ? static_cast<std::int64_t>(random.next() % 4'000) : step + 500;
      if (!is_there[index]) {
        rig.add(index, due);
        model.emplace(due, index);
        is_there[index] = true;
      } else {
        ASSERT_EQ(model.erase({rig.things[index].due, index}), 1u);
        if (random.next() % 3 == 0) {
          rig.things[index].due = due;
          rig.deadlines.moved_in_time(index);
          model.emplace(due, index);
        } else {
          rig.deadlines.remove(index);
          is_there[index] = false;
        }
      }
      ASSERT_EQ(rig.deadlines.size(), model.size()) << "seed " << seed;
      ASSERT_EQ(rig.deadlines.empty(), model.empty());
      if (model.empty()) continue;
      ASSERT_EQ(rig.deadlines.first_due(), model.begin()->first) << "seed " << seed << ", step " << step;
      ASSERT_TRUE(is_there[rig.deadlines.first()]);
      ASSERT_EQ(rig.things[rig.deadlines.first()].due, model.begin()->first);
    }
  }
}

}  // namespace
}  // namespace omnibus::broker
