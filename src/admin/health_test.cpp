#include "admin/health.hpp"

#include <gtest/gtest.h>

namespace omnibus::admin {
namespace {

TEST(Health, APlaneSaysWhyItDoesNotServe) {
  Health health;
  auto& store = health.add("store 0");
  store.fails("recovering");
  EXPECT_EQ(health.trouble(Tick{}), "store 0: recovering");
  store.serves(true);
  EXPECT_TRUE(health.healthy(Tick{}));
  store.fails("full");
  EXPECT_FALSE(health.healthy(Tick{}));
  EXPECT_EQ(health.trouble(Tick{}), "store 0: full");
  store.serves(false);
  EXPECT_EQ(health.trouble(Tick{}), "store 0") << "an old reason does not stay";
}

}  // namespace
}  // namespace omnibus::admin
