#include "admin/exact_json.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <limits>

#include "base/random.hpp"

namespace omnibus::admin {
namespace {

std::optional<double> read_double(std::string_view text) {
  const auto value = parse_exact_json(text, 8);
  if (!value || !value->is_double()) return std::nullopt;
  return value->as_double();
}

TEST(ExactJson, ADoubleIsTheNearestOneToItsText) {
  EXPECT_EQ(read_double("1E23"), 1e23);
  EXPECT_EQ(read_double("0.1"), 0.1);
  EXPECT_EQ(read_double("8.988465674311580e307"), 8.988465674311580e307);
  EXPECT_EQ(read_double("18446744073709551616"), 18446744073709551616.0);
  EXPECT_EQ(read_double("5E-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_TRUE(std::signbit(read_double("-0E0").value()));
}

TEST(ExactJson, WhatIsWrittenIsReadBackToTheLastBit) {
  Random random{17};
  for (int i = 0; i < 20'000; ++i) {
    const auto sent = std::bit_cast<double>(random.next());
    if (!std::isfinite(sent)) continue;
    const std::string text = boost::json::serialize(boost::json::value(sent));
    const auto read = read_double(text);
    ASSERT_TRUE(read) << text;
    ASSERT_EQ(std::bit_cast<std::uint64_t>(*read), std::bit_cast<std::uint64_t>(sent)) << text;
  }
}

TEST(ExactJson, TooSmallIsZeroAndTooLargeIsRefused) {
  EXPECT_EQ(read_double("1e-400"), 0.0);
  EXPECT_TRUE(std::signbit(read_double("-1e-400").value()));
  for (const auto* text : {"1e400", "-1e400", "[1e99999]"})
    EXPECT_EQ(parse_exact_json(text, 8).error().code, Errc::argument_error) << text;
}

TEST(ExactJson, EverythingElseIsAsBoostReadsIt) {
  for (const auto* text :
       {"null", "[]", "{}", R"({"a":[1,-2,18446744073709551615,true,false,null,"\u00e9x"],"b":{"c":""}})",
        R"({"a":1,"a":2})", R"(" long text with \n and \"quotes\" ")"}) {
    const auto value = parse_exact_json(text, 8);
    ASSERT_TRUE(value) << text << ": " << value.error().detail;
    EXPECT_EQ(*value, boost::json::parse(text)) << text;
  }
}

TEST(ExactJson, WhatIsNoJsonIsRefused) {
  for (const auto* text : {"", " ", "{", "[1", "1.", "tru", "{}x", "\"a", "[1,]", "{\"a\"}", "01", "NaN"})
    EXPECT_EQ(parse_exact_json(text, 8).error().code, Errc::argument_error) << text;
  EXPECT_TRUE(parse_exact_json("[[[[[[[[]]]]]]]]", 8));
  EXPECT_FALSE(parse_exact_json("[[[[[[[[[]]]]]]]]]", 8));
}

}  // namespace
}  // namespace omnibus::admin
