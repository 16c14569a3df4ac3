#include "node/change_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace omnibus::node {
namespace {

TEST(ChangeQueue, OneAfterTheOther) {
  ChangeQueue queue;
  std::vector<int> begun;
  for (int i = 0; i < 3; ++i) queue.add([&begun, i] { begun.push_back(i); });
  EXPECT_EQ(begun, std::vector({0}));
  queue.next();
  queue.next();
  EXPECT_EQ(begun, std::vector({0, 1, 2}));
  queue.next();
  queue.add([&begun] { begun.push_back(3); });
  EXPECT_EQ(begun.back(), 3) << "nothing was under way";
}

// One is under way and a thousand wait.
TEST(ChangeQueue, IsFullAtAThousandAndHasRoomWhenOneBegins) {
  ChangeQueue queue;
  std::size_t begun = 0;
  for (std::size_t i = 0; i < 1 + 1000; ++i) {
    ASSERT_FALSE(queue.is_full()) << i;
    queue.add([&begun] { ++begun; });
  }
  EXPECT_EQ(begun, 1u);
  EXPECT_TRUE(queue.is_full());
  queue.next();
  EXPECT_FALSE(queue.is_full());
  for (int i = 0; i < 1000; ++i) queue.next();
  EXPECT_EQ(begun, 1001u);
}

// A change that ends before it returns lets the next begin.
TEST(ChangeQueue, AChangeMayEndAtOnce) {
  ChangeQueue queue;
  int begun = 0;
  queue.add([&] { ++begun; });
  for (int i = 0; i < 5; ++i)
    queue.add([&] {
      ++begun;
      queue.next();
    });
  queue.next();
  EXPECT_EQ(begun, 6);
}

}  // namespace
}  // namespace omnibus::node
