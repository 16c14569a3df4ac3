// What a purge takes for its own: by numbers and the broker's times, one partition at a time.
#include "cli/purging.hpp"

#include <gtest/gtest.h>

namespace omnibus::cli {
namespace {

using namespace std::chrono_literals;

constexpr Instant noon{std::chrono::sys_days{std::chrono::year{2026} / 1 / 15} + 12h};

client::Message message(std::int64_t partition, std::int64_t number) {
  client::Message out;
  out.told.sequence_number = (partition << Extent::partition_bits) + number;
  return out;
}

// Another partition may have a lot that is older when the first message that is newer comes.
TEST(Extent, IsPassedWhenEveryPartitionIs) {
  Extent extent;
  for (const std::int64_t partition : {0, 3})
    extent.newest[partition] = *message(partition, 7).told.sequence_number;
  EXPECT_FALSE(extent.pass(message(0, 6)));
  EXPECT_EQ(extent.newest.size(), 2u);
  EXPECT_TRUE(extent.pass(message(0, 9)));
  EXPECT_TRUE(extent.pass(message(0, 10)));
  EXPECT_TRUE(extent.pass(message(1, 99))) << "it had nothing at the beginning";
  EXPECT_EQ(extent.newest.size(), 1u) << "partition 3 has given nothing yet";
  EXPECT_FALSE(extent.pass(message(3, 7)));
  EXPECT_FALSE(extent.newest.empty()) << "dead letters come in another order than that of their numbers";
  EXPECT_TRUE(extent.pass(message(3, 8)));
  EXPECT_TRUE(extent.newest.empty());
}

TEST(Extent, ScheduledMessagesSayNothingOfTimes) {
  Extent extent;
  auto one = message(0, 1);
  one.told.enqueued = noon;
  extent.reach(one);
  EXPECT_EQ(extent.before, noon + 1ms);
  one.told.enqueued = noon + 24h;
  one.told.state = "scheduled";
  extent.reach(one);
  EXPECT_EQ(extent.before, noon + 1ms) << "what comes until then is not ours";
  one.told.enqueued = noon + 1s;
  one.told.state = "deferred";
  extent.reach(one);
  EXPECT_EQ(extent.before, noon + 1001ms);
}

}  // namespace
}  // namespace omnibus::cli
