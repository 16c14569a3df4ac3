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

TEST(Text, DurationsAreRead) {
  using namespace std::chrono_literals;
  EXPECT_EQ(parse_iso_duration("PT1M"), 1min);
  EXPECT_EQ(parse_iso_duration("P1D"), 24h);
  EXPECT_EQ(parse_iso_duration("PT0S"), 0ms);
  EXPECT_EQ(parse_iso_duration("P1Y2M3DT4H5M6.789S"), (365 + 60 + 3) * 24h + 4h + 5min + 6789ms);
  EXPECT_EQ(parse_iso_duration("PT90M"), 90min);
  EXPECT_EQ(parse_iso_duration("PT0.0019999S"), 1ms);
  EXPECT_EQ(parse_iso_duration("-PT1.5S"), -1500ms);
}

// The spellings of "unlimited" that clients send: whole, cut to milliseconds, rounded up.
TEST(Text, TheLongestDurationIsWhereTheyStop) {
  using namespace std::chrono_literals;
  for (const auto* text : {"P10675199DT2H48M5.4775807S", "P10675199DT2H48M5.477S",
                           "P10675199DT2H48M5.477581S", "P10675200D", "P99999999999999999999999999Y",
                           "PT99999999999999999999S", "P29247Y1M9DT99H99999999999999999999M99.9S"})
    EXPECT_EQ(parse_iso_duration(text), iso_duration_max) << text;
  EXPECT_EQ(parse_iso_duration("P10675199DT2H48M5.476S"), iso_duration_max - 1ms);
  EXPECT_EQ(parse_iso_duration("-P10675200D"), -iso_duration_max);
}

TEST(Text, OtherTextsAreNoDurations) {
  for (const auto* text :
       {"",     "P",    "-",     "-P",     "PT",     "P1DT",     "1D",      "P1",    "P1X",
        "P1H",  "PT1D", "P1D1Y", "PT1S1M", "PT1S1S", "P1.5D",    "PT1.S",   "PT.5S", "P-1D",
        "P+1D", "P1D ", " P1D",  "p1d",    "P1W",    "00:01:00", "PT1MT1S", "PTT1S", "--P1D"})
    EXPECT_EQ(parse_iso_duration(text), std::nullopt) << text;
}

}  // namespace
}  // namespace omnibus
