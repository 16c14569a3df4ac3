#include "base/boxed.hpp"

#include <gtest/gtest.h>

#include <string>

namespace omnibus {
namespace {

TEST(Boxed, IsCopiedAndComparedAsItsValue) {
  Boxed<std::string> one{"one"};
  Boxed<std::string> copy = one;
  EXPECT_EQ(copy, one);
  EXPECT_NE(&*copy, &*one);
  copy->append(" more");
  EXPECT_EQ(*one, "one");
  one = copy;
  EXPECT_EQ(*one, "one more");
  const std::string* place = &*one;
  const Boxed<std::string> moved = std::move(one);
  EXPECT_EQ(&*moved, place) << "moving moves the box, not the value";
}

}  // namespace
}  // namespace omnibus
