#include "base/histogram.hpp"

#include <gtest/gtest.h>

namespace omnibus {
namespace {

using namespace std::chrono_literals;

TEST(Histogram, PercentilesAreCloseAndNeverBelow) {
  Histogram seen;
  for (int i = 1; i <= 1000; ++i) seen.add(i * 1us);
  EXPECT_EQ(seen.total(), 1000u);
  for (const double share : {0.5, 0.9, 0.99}) {
    EXPECT_GE(seen.percentile(share), share);
    EXPECT_LE(seen.percentile(share), share * 1.02 + 0.001);
  }
  EXPECT_EQ(Histogram{}.percentile(0.5), 0);
}

TEST(Histogram, OneIsAddedToAnother) {
  Histogram a;
  Histogram b;
  a.add(1ms);
  b.add(3ms);
  b.add(-1ms);  // a clock that went back
  a.add(b);
  EXPECT_EQ(a.total(), 3u);
  EXPECT_GE(a.percentile(1), 3);
}

}  // namespace
}  // namespace omnibus
