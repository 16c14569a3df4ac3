#include "base/spread.hpp"

#include <gtest/gtest.h>

namespace omnibus {
namespace {

TEST(Spread, AValueOnAStepBelongsToIt) {
  Spread one;
  for (const std::uint64_t value : {0u, 1u, 2u, 3u, 4u, 5u, 1024u, 1025u}) one.add(value);
  EXPECT_EQ(one.up_to(0), 2u) << "0 and 1";
  EXPECT_EQ(one.up_to(1), 3u) << "and 2";
  EXPECT_EQ(one.up_to(2), 5u) << "and 3, 4";
  EXPECT_EQ(one.up_to(3), 6u);
  EXPECT_EQ(one.up_to(10), 7u);
  EXPECT_EQ(one.up_to(11), 8u);
  EXPECT_EQ(one.count(), 8u);
  EXPECT_EQ(one.sum(), 15u + 2049u);
}

TEST(Spread, TheLastStepTakesWhatIsLarger) {
  Spread one;
  one.add(std::uint64_t{1} << 60);
  EXPECT_EQ(one.up_to(Spread::steps - 2), 0u);
  EXPECT_EQ(one.count(), 1u);
  Spread two;
  two.add(7);
  two.add(one);
  EXPECT_EQ(two.count(), 2u);
}

}  // namespace
}  // namespace omnibus
