#include "base/text.hpp"

#include <gtest/gtest.h>

namespace omnibus {
namespace {

TEST(Text, PercentDecodeRefusesBrokenEscapes) {
  EXPECT_EQ(percent_decode("a%2Fb%20c"), "a/b c");
  EXPECT_EQ(percent_decode("a+b", true), "a b");
  EXPECT_EQ(percent_decode("a+b"), "a+b");
  EXPECT_EQ(percent_decode("%4"), std::nullopt);
  EXPECT_EQ(percent_decode("%zz"), std::nullopt);
}

TEST(Text, Base64GoesRoundAndTakesBothAlphabets) {
  for (const std::string text : {"", "f", "fo", "foo", "foob", "fooba", "foobar"})
    EXPECT_EQ(base64_decode(base64_encode(as_bytes(text))), text);
  EXPECT_EQ(base64_encode(as_bytes("foob")), "Zm9vYg==");
  EXPECT_EQ(base64_decode("-_-_"), base64_decode("+/+/"));
  EXPECT_EQ(base64_decode("a"), std::nullopt);
  EXPECT_EQ(base64_decode("ab!d"), std::nullopt);
}

TEST(Text, HexGoesRound) {
  EXPECT_EQ(hex(as_bytes("\x01\xfe")), "01fe");
  EXPECT_EQ(unhex("01FE"), "\x01\xfe");
  EXPECT_EQ(unhex("1"), std::nullopt);
  EXPECT_EQ(unhex("zz"), std::nullopt);
}

TEST(Text, CaseIsIgnoredForAsciiOnly) {
  EXPECT_TRUE(equals_ignoring_case("$CBS", "$cbs"));
  EXPECT_FALSE(equals_ignoring_case("\xc3\x84", "\xc3\xa4"));
  EXPECT_TRUE(starts_with_ignoring_case("SharedAccessSignature x", "sharedaccess"));
}

TEST(Text, Utf8RefusesOverlongSurrogateAndCutSequences) {
  EXPECT_TRUE(is_utf8("zażółć \xf0\x9f\x9a\x8c"));
  EXPECT_FALSE(is_utf8("\xc0\xaf"));
  EXPECT_FALSE(is_utf8("\xed\xa0\x80"));
  EXPECT_FALSE(is_utf8("\xf4\x90\x80\x80"));
  EXPECT_FALSE(is_utf8("\xe2\x82"));
}

}  // namespace
}  // namespace omnibus
