#include "rest/header_values.hpp"

#include <gtest/gtest.h>

namespace omnibus::rest {
namespace {

using amqp::Value;

const Instant sunday{std::chrono::milliseconds{784'111'777'000}};

TEST(HeaderValues, TheLookDecidesTheType) {
  EXPECT_EQ(value_from_header("\"text\""), Value{"text"});
  EXPECT_EQ(value_from_header(R"("say \"hi\" \\ C:\dir")"), Value{R"(say "hi" \ C:\dir)"});
  EXPECT_EQ(value_from_header(R"("gr\u00fcn")"), Value{"gr\u00fcn"});
  EXPECT_EQ(value_from_header("17"), Value{std::int64_t{17}});
  EXPECT_EQ(value_from_header("-17"), Value{std::int64_t{-17}});
  EXPECT_EQ(value_from_header("1.5"), Value{1.5});
  EXPECT_EQ(value_from_header("9223372036854775808"), Value{9223372036854775808.0}) << "past an integer";
  EXPECT_EQ(value_from_header("true"), Value{true});
  EXPECT_EQ(value_from_header("false"), Value{false});
  EXPECT_EQ(value_from_header("\"Sun, 06 Nov 1994 08:49:37 GMT\""), Value{amqp::Timestamp{784'111'777'000}});
  EXPECT_EQ(value_from_header("\"2026-01-01\""), Value{"2026-01-01"});
  for (const char* word :
       {"", "\"", "nan", "inf", "1x", "True", "plain text", "Sun, 06 Nov 1994 08:49:37 GMT"})
    EXPECT_EQ(value_from_header(word), Value{word});
}

TEST(HeaderValues, TheyComeBackAsTheyWent) {
  for (const Value& value :
       {Value{"text"}, Value{R"(a "b" \ c)"}, Value{"gr\u00fcn \U0001F600"}, Value{true},
        Value{std::int64_t{-5}}, Value{2.0}, Value{1e300}, Value{amqp::Timestamp{784'111'777'000}}}) {
    const auto text = header_from_value(value);
    ASSERT_TRUE(text);
    for (const char c : *text) EXPECT_TRUE(c >= ' ' && c < 0x7f) << *text;
    EXPECT_EQ(value_from_header(*text), value) << *text;
  }
}

TEST(HeaderValues, OtherTypesAreReadable) {
  EXPECT_EQ(header_from_value(Value{std::uint8_t{200}}), "200");
  EXPECT_EQ(header_from_value(Value{std::uint64_t{18446744073709551615u}}), "18446744073709551615");
  EXPECT_EQ(header_from_value(Value::symbol("s")), "\"s\"");
  EXPECT_EQ(header_from_value(Value{U'\u00fc'}), "\"\\u00fc\"");
  EXPECT_EQ(header_from_value(Value{std::string_view{"a\x7f"}}), "\"a\\u007f\"") << "no byte of a header";
  EXPECT_EQ(header_from_value(Value::binary(as_bytes("\xff"))), "\"/w==\"");
  EXPECT_EQ(header_from_value(Value{}), std::nullopt);
  EXPECT_EQ(header_from_value(Value::list({})), std::nullopt);
}

TEST(HeaderValues, DatesAreThoseOfHttp) {
  EXPECT_EQ(to_http_date(sunday), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(from_http_date("Xxx, 06 Nov 1994 08:49:37 GMT"), sunday) << "nobody needs the day of the week";
  EXPECT_EQ(from_http_date("1994-11-06T08:49:37Z"), sunday);
  for (const char* bad :
       {"", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 0000 08:49:37 GMT", "Sun, +6 Nov 1994 08:49:37 GMT"})
    EXPECT_EQ(from_http_date(bad), std::nullopt) << bad;
  EXPECT_EQ(to_http_date(Instant::max()).substr(12, 4), "9999");
  EXPECT_EQ(to_http_date(Instant::min()).substr(12, 4), "0001");
}

}  // namespace
}  // namespace omnibus::rest
