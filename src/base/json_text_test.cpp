#include "base/json_text.hpp"

#include <gtest/gtest.h>

namespace omnibus {
namespace {

TEST(JsonText, EveryByteHasItsForm) {
  EXPECT_EQ(json_text("plain / text"), R"("plain / text")");
  EXPECT_EQ(json_text("a\"b\\c\nd\te\x7f"), R"("a\"b\\c\nd\u0009e\u007f")");
  EXPECT_EQ(json_text(std::string_view{"\0", 1}), R"("\u0000")");
  EXPECT_EQ(json_text(""), R"("")");
}

TEST(JsonText, WhatIsNoUtf8IsReplaced) {
  EXPECT_EQ(json_text("ż€😀"), "\"ż€😀\"");
  EXPECT_EQ(json_text("\xff|\x80|\xc3"), "\"\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbd\"");
  EXPECT_EQ(json_text("\xe2\x82|"), "\"\xef\xbf\xbd\xef\xbf\xbd|\"");
}

}  // namespace
}  // namespace omnibus
