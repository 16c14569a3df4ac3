#include "amqp/codec/value.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "amqp/codec/random_value.hpp"
#include "base/random.hpp"
#include "base/text.hpp"

namespace omnibus::amqp {
namespace {

std::string encoded(const Value& value) { return hex(encode(value)); }

TEST(Value, TakesTheShortestForm) {
  EXPECT_EQ(encoded(Value{}), "40");
  EXPECT_EQ(encoded(Value{true}), "41");
  EXPECT_EQ(encoded(Value{std::uint32_t{0}}), "43");
  EXPECT_EQ(encoded(Value{std::uint32_t{255}}), "52ff");
  EXPECT_EQ(encoded(Value{std::uint32_t{256}}), "7000000100");
  EXPECT_EQ(encoded(Value{std::uint64_t{0}}), "44");
  EXPECT_EQ(encoded(Value{std::uint64_t{0x1370000009}}), "800000001370000009");
  EXPECT_EQ(encoded(Value{202}), "71000000ca");
  EXPECT_EQ(encoded(Value{-128}), "5480");
  EXPECT_EQ(encoded(Value{std::int64_t{127}}), "557f");
  EXPECT_EQ(encoded(Value{std::int64_t{128}}), "810000000000000080");
  EXPECT_EQ(encoded(Value{"hi"}), "a1026869");
  EXPECT_EQ(encoded(Value::symbol("hi")), "a3026869");
  EXPECT_EQ(encoded(Value{std::string(256, 'x')}).substr(0, 10), "b100000100");
  EXPECT_EQ(encoded(Value::list({})), "45");
  EXPECT_EQ(encoded(Value::map({})), "c10100");
  EXPECT_EQ(encoded(Value::array(code::symbol8, {})), "e00200a3");
  EXPECT_EQ(encoded(Value::list({true, false})), "c003024142");
  EXPECT_EQ(encoded(Value::described(std::uint64_t{0x24}, Value::list({}))), "00532445");
}

// 255 bytes of size or 255 elements are the last that fit the short form.
TEST(Value, ListsGrowWideByBytesAndByCount) {
  const auto list_of = [](std::size_t bytes) { return Value::list({Value{std::string(bytes, 'x')}}); };
  EXPECT_EQ(encoded(list_of(252)).substr(0, 6), "c0ff01");
  EXPECT_EQ(encoded(list_of(253)).substr(0, 18), "d00000010300000001");
  EXPECT_EQ(encoded(Value::list(std::vector<Value>(254))).substr(0, 6), "c0fffe");
  EXPECT_EQ(encoded(Value::list(std::vector<Value>(255))).substr(0, 18), "d000000103000000ff");
  const auto zero_width = [](std::size_t count) {
    return Value::array(code::true_, std::vector<Value>(count, Value{true}));
  };
  EXPECT_EQ(encoded(zero_width(255)), "e002ff41");
  EXPECT_EQ(encoded(zero_width(256)), "f0000000050000010041");
}

TEST(Value, ArraysKeepTheirConstructor) {
  for (const char* form : {"e00402520102",
                           "e00a027000000001"
                           "00000002",
                           "e00702c00100020141", "e0020045",
                           "e0090100530770"
                           "00000001",
                           "e00601e003015001"}) {
    const auto bytes = unhex(form);
    ASSERT_TRUE(bytes) << form;
    const auto value = decode_value({as_bytes(*bytes)});
    ASSERT_TRUE(value) << form << " " << value.error().detail;
    EXPECT_EQ(encoded(*value), form);
  }
  EXPECT_EQ(encoded(Value::array(code::long_, {std::int64_t{1}})), "e00a01810000000000000001");
  EXPECT_EQ(encoded(Value::array(code::smalllong, {std::int64_t{1}})), "e003015501");
  EXPECT_NE(Value::array(code::long_, {}), Value::array(code::smalllong, {}));
}

TEST(ValueDeathTest, AnArrayElementOfAnotherTypeIsOurMistake) {
  EXPECT_DEATH(static_cast<void>(encode(Value::array(code::long_, {Value{1}}))), "another type");
  EXPECT_DEATH(static_cast<void>(encode(Value::array(code::smallulong, {Value{std::uint64_t{256}}}))),
               "cannot hold");
  EXPECT_DEATH(static_cast<void>(encode(Value::array(code::string8, {Value{std::string(256, 'x')}}))),
               "cannot hold");
}

TEST(EncoderDeathTest, AScopeLeftOpenIsOurMistake) {
  EXPECT_DEATH(
      {
        Encoder out;
        const auto list = out.begin_list();
        (void)out.take();
      },
      "still open");
  EXPECT_DEATH(
      {
        Encoder out;
        auto outer = out.begin_list();
        const auto inner = out.begin_list();
        outer.end();
      },
      "innermost first");
  EXPECT_DEATH(
      {
        Encoder out;
        const auto map = out.begin_map();
        out.put_string("key");
      },
      "waits for its value");
  EXPECT_DEATH(
      {
        Encoder out;
        out.put_descriptor(std::uint64_t{0x24});
        (void)out.take();
      },
      "waits for its value");
}

TEST(Encoder, DescribedValuesCountOnce) {
  Encoder out;
  {
    const auto list = out.begin_list();
    out.put_descriptor(std::uint64_t{0x24});
    {
      const auto accepted = out.begin_list();
    }
    out.put_descriptor("com.microsoft:timespan");
    out.put_long(5);
    out.put_raw({});
  }
  EXPECT_EQ(out.count(), 1u);
  const auto value = decode_value({out.bytes()});
  ASSERT_TRUE(value) << value.error().detail;
  EXPECT_EQ(to_text(*value), "[@ulong:36 [], @symbol:\"com.microsoft:timespan\" long:5, null]");
}

TEST(Value, EqualKeysAreRefused) {
  const auto keys = [](std::size_t count, bool repeat) {
    std::vector<std::pair<Value, Value>> entries;
    for (std::size_t i = 0; i < count; ++i) entries.emplace_back(std::uint64_t{i}, true);
    if (repeat) entries.back().first = std::uint64_t{0};
    return encode(Value::map(std::move(entries)));
  };
  for (const std::size_t count : {2, 16, 17, 5000}) {
    EXPECT_TRUE(decode_value({keys(count, false)})) << count;
    const auto refused = decode_value({keys(count, true)});
    ASSERT_FALSE(refused) << count;
    EXPECT_EQ(refused.error().code, Errc::decode_error);
  }
  // The same number in two widths is one key; a symbol and a string of one text are two.
  const auto same = unhex(
      "c10e04"
      "530140"
      "800000000000000001"
      "40");
  EXPECT_FALSE(decode_value({as_bytes(*same)}));
  const auto two = unhex(
      "c10904"
      "a1016140"
      "a3016140");
  EXPECT_TRUE(decode_value({as_bytes(*two)}));
  // Also deep inside.
  const auto inside = Value::list({Value::map({{"a", true}, {"a", false}})});
  EXPECT_FALSE(decode_value({encode(inside)}));
}

TEST(Value, FindTakesStringAndSymbolKeys) {
  const Value map = Value::map({{"a", 1}, {Value::symbol("b"), 2}, {std::uint64_t{3}, 3}});
  EXPECT_EQ(map.find("a")->as_integer(), 1);
  EXPECT_EQ(map.find("b")->as_integer(), 2);
  EXPECT_EQ(map.find("c"), nullptr);
  EXPECT_EQ(map.get_if<Map>()->find_exact(Value{std::uint64_t{3}})->as_integer(), 3);
  EXPECT_EQ(Value{1}.find("a"), nullptr);
  Map changed = *map.get_if<Map>();
  changed.set("a", 9);
  changed.set("d", 4);
  EXPECT_EQ(changed.find("a")->as_integer(), 9);
  EXPECT_EQ(changed.entries.size(), 4u);
}

TEST(Value, AnswersWhatItMeans) {
  EXPECT_EQ(Value{"x"}.as_text(), "x");
  EXPECT_EQ(Value::symbol("x").as_text(), "x");
  EXPECT_FALSE(Value::binary(as_bytes("x")).as_text());
  for (const Value& seven :
       {Value{std::uint8_t{7}}, Value{std::uint16_t{7}}, Value{std::uint32_t{7}}, Value{std::uint64_t{7}},
        Value{std::int8_t{7}}, Value{std::int16_t{7}}, Value{7}, Value{std::int64_t{7}}}) {
    EXPECT_EQ(seven.as_integer(), 7);
    EXPECT_EQ(seven.as_unsigned(), 7u);
    EXPECT_EQ(seven.as_timestamp(), 7);
    EXPECT_FALSE(seven.as_text());
  }
  EXPECT_FALSE(Value{std::numeric_limits<std::uint64_t>::max()}.as_integer());
  EXPECT_EQ(Value{std::numeric_limits<std::uint64_t>::max()}.as_unsigned(), UINT64_MAX);
  EXPECT_FALSE(Value{-1}.as_unsigned());
  EXPECT_FALSE(Value{true}.as_integer());
  EXPECT_FALSE(Value{U'a'}.as_integer());
  EXPECT_EQ(Value{true}.as_bool(), true);
  EXPECT_FALSE(Value{1}.as_bool());
  EXPECT_EQ(Value{Timestamp{5}}.as_timestamp(), 5);
  EXPECT_FALSE(Value{Timestamp{5}}.as_integer());
  EXPECT_EQ(Value{Uuid{}}.as_uuid(), Uuid{});
  EXPECT_EQ(as_text(*Value::binary(as_bytes("x")).as_binary()), "x");
  EXPECT_EQ(Value::list({1, 2}).items().size(), 2u);
  EXPECT_EQ(Value::array(code::int_, {1, 2}).items().size(), 2u);
}

TEST(Value, EqualityIsByTypeAndBits) {
  EXPECT_NE(Value{1}, Value{std::int64_t{1}});
  EXPECT_NE(Value{"a"}, Value::symbol("a"));
  EXPECT_NE(Value{0.0}, Value{-0.0});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Value{nan}, Value{nan});
}

TEST(Value, TextIsBounded) {
  const Value large = Value::list(std::vector<Value>(1000, Value{std::string(1000, 'x')}));
  EXPECT_EQ(to_text(large, 50).size(), 53u);
  EXPECT_TRUE(to_text(large, 50).ends_with("..."));
  EXPECT_EQ(to_text(Value{true}, 4), "true");
  EXPECT_EQ(to_text(Value{true}, 3), "tru...");
  // Half a character is not left behind, and bytes that are no text show as such.
  for (std::size_t length = 0; length < 20; ++length)
    EXPECT_TRUE(is_utf8(to_text(Value{"żółć żółć"}, length))) << length;
  EXPECT_EQ(to_text(Value{"\xff\"\\\n"}), "string:\"\\xff\\\"\\\\\\u000a\"");
}

// What was encoded decodes to an equal value, cut anywhere it is refused, and flipped bytes are refused or
// read as something else that in turn round-trips; never a crash. A failure names its seed.
TEST(Value, RandomValuesRoundTrip) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random{seed};
    const Value value = random_value(random, 4);
    auto bytes = encode(value);
    const auto again = decode_value({bytes});
    ASSERT_TRUE(again) << again.error().detail << " " << to_text(value);
    ASSERT_EQ(*again, value);
    ASSERT_EQ(encode(*again), bytes);
    ASSERT_EQ(to_text(*again), to_text(value));

    const std::vector<std::uint8_t> cut(
        bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(random.below(bytes.size())));
    ASSERT_EQ(decode_value({cut}).has_value(), cut.empty());

    for (int flips = 0; flips < 4; ++flips) {
      bytes[random.below(bytes.size())] = static_cast<std::uint8_t>(random.next());
      const auto mutated = decode_value({bytes});
      if (!mutated) continue;
      const auto encoded_again = encode(*mutated);
      const auto decoded_again = decode_value({encoded_again});
      ASSERT_TRUE(decoded_again) << decoded_again.error().detail;
      ASSERT_EQ(*decoded_again, *mutated);
    }
  }
}

}  // namespace
}  // namespace omnibus::amqp
