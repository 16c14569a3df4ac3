#include "amqp/codec/decoder.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "amqp/codec/descriptors.hpp"
#include "amqp/codec/value.hpp"
#include "base/text.hpp"

namespace omnibus::amqp {
namespace {

std::string from_hex(std::string_view text) {
  std::string compact;
  for (const char c : text)
    if (c != ' ') compact += c;
  auto bytes = unhex(compact);
  EXPECT_TRUE(bytes) << text;
  return bytes.value_or("");
}

// One encoding of every format code of the spec and what it means.
struct Form {
  const char* encoded;
  const char* meaning;
};
const Form forms[] = {
    {"40", "null"},
    {"41", "true"},
    {"42", "false"},
    {"5601", "true"},
    {"5600", "false"},
    {"50ff", "ubyte:255"},
    {"60ffff", "ushort:65535"},
    {"43", "uint:0"},
    {"52ff", "uint:255"},
    {"70ffffffff", "uint:4294967295"},
    {"44", "ulong:0"},
    {"53ff", "ulong:255"},
    {"80ffffffffffffffff", "ulong:18446744073709551615"},
    {"5180", "byte:-128"},
    {"618000", "short:-32768"},
    {"5480", "int:-128"},
    {"7180000000", "int:-2147483648"},
    {"5580", "long:-128"},
    {"818000000000000000", "long:-9223372036854775808"},
    {"723f800000", "float:0x3f800000"},
    {"823ff0000000000000", "double:0x3ff0000000000000"},
    {"7422500001", "decimal32:0x22500001"},
    {"842238000000000001", "decimal64:0x2238000000000001"},
    {"9422080000000000000000000000000001", "decimal128:0x22080000000000000000000000000001"},
    {"730001f600", "char:0x1f600"},
    {"83ffffffffffffffff", "timestamp:-1"},
    {"9800112233445566778899aabbccddeeff", "uuid:00112233-4455-6677-8899-aabbccddeeff"},
    {"a00200ff", "binary:00ff"},
    {"b00000000200ff", "binary:00ff"},
    {"a1026869", "string:\"hi\""},
    {"b1000000026869", "string:\"hi\""},
    {"a3026869", "symbol:\"hi\""},
    {"b3000000026869", "symbol:\"hi\""},
    {"45", "[]"},
    {"c0030241 42", "[true, false]"},
    {"d000000006000000024142", "[true, false]"},
    {"c105 02 a1016140", "{string:\"a\": null}"},
    {"d100000008 00000002 a1016140", "{string:\"a\": null}"},
    {"e004 02 52 0102", "array(uint)[uint:1, uint:2]"},
    {"f000000007 00000002 52 0102", "array(uint)[uint:1, uint:2]"},
    {"00 5324 45", "@ulong:36 []"},
    {"00 a30161 5401", "@symbol:\"a\" int:1"},
    {"e00a 02 00 5305 a1 0161 02 6262", "array(@ulong:5 string)[string:\"a\", string:\"bb\"]"},
};

TEST(Decoder, ReadsEveryFormatCodeWhole) {
  for (const Form& form : forms) {
    const std::string bytes = from_hex(form.encoded);
    const auto value = decode_value({as_bytes(bytes)});
    ASSERT_TRUE(value) << form.encoded << " " << value.error().detail;
    EXPECT_EQ(to_text(*value), form.meaning) << form.encoded;
    Decoder skipping{as_bytes(bytes)};
    EXPECT_EQ(skipping.skip_value().bytes.size(), bytes.size()) << form.encoded;
    Decoder reading{as_bytes(bytes)};
    EXPECT_EQ(reading.read_value().bytes.size(), bytes.size()) << form.encoded;
  }
}

// Wherever the input ends early, every way to read says so and none reads on.
TEST(Decoder, CutAtEveryByteIsRefused) {
  for (const Form& form : forms) {
    const std::string whole = from_hex(form.encoded);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      // A copy of its own size, so that the sanitizer sees a step beyond it.
      const std::vector<std::uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      Decoder skipping{cut};
      skipping.skip_value();
      EXPECT_FALSE(skipping.ok()) << form.encoded << " cut to " << length;
      Decoder reading{cut};
      EXPECT_TRUE(reading.read_value().bytes.empty());
      EXPECT_FALSE(reading.ok());
      EXPECT_EQ(decode_value({cut}).has_value(), length == 0);
      Decoder integer{cut};
      EXPECT_FALSE(integer.read_unsigned(UINT64_MAX).has_value() && !integer.ok());
    }
  }
}

TEST(Decoder, EmptyInputIsRefusedByEveryRead) {
  const auto refused = [](auto read) {
    Decoder in{Bytes{}};
    read(in);
    EXPECT_FALSE(in.ok());
    EXPECT_STREQ(in.problem(), "value is cut off");
  };
  refused([](Decoder& in) { EXPECT_FALSE(in.read_bool()); });
  refused([](Decoder& in) { EXPECT_FALSE(in.read_unsigned(UINT64_MAX)); });
  refused([](Decoder& in) { EXPECT_FALSE(in.read_signed()); });
  refused([](Decoder& in) { EXPECT_FALSE(in.read_timestamp()); });
  refused([](Decoder& in) { EXPECT_FALSE(in.read_uuid()); });
  refused([](Decoder& in) { EXPECT_FALSE(in.read_list()); });
  refused([](Decoder& in) { EXPECT_FALSE(in.read_map()); });
  refused([](Decoder& in) { EXPECT_FALSE(in.read_array()); });
  refused([](Decoder& in) { EXPECT_FALSE(in.read_descriptor()); });
  refused([](Decoder& in) { in.skip_value(); });
  refused([](Decoder& in) { in.read_value(); });
  Decoder in{Bytes{}};
  EXPECT_FALSE(in.read_text());
  EXPECT_FALSE(in.read_binary());
  EXPECT_FALSE(in.ok());
}

// After the first error nothing is read any more, not even what would be sound.
TEST(Decoder, ErrorsStick) {
  const std::string bytes = from_hex("a105 68 41 5207");
  Decoder in{as_bytes(bytes)};
  EXPECT_FALSE(in.read_text());
  EXPECT_STREQ(in.problem(), "value is cut off");
  EXPECT_FALSE(in.read_bool());
  EXPECT_FALSE(in.read_unsigned(255));
  EXPECT_STREQ(in.problem(), "value is cut off");
}

TEST(Decoder, TakesAnIntegerOfAnyWidthAndSignThatFits) {
  for (const char* seven : {"5007", "600007", "5207", "7000000007", "5307", "800000000000000007", "5107",
                            "610007", "5407", "7100000007", "5507", "810000000000000007"}) {
    const std::string bytes = from_hex(seven);
    Decoder as_unsigned{as_bytes(bytes)};
    EXPECT_EQ(as_unsigned.read_unsigned(7), 7u) << seven;
    Decoder as_signed{as_bytes(bytes)};
    EXPECT_EQ(as_signed.read_signed(), 7) << seven;
    Decoder too_small{as_bytes(bytes)};
    EXPECT_FALSE(too_small.read_unsigned(6)) << seven;
    EXPECT_STREQ(too_small.problem(), "integer out of range");
  }
  const std::string negative = from_hex("54ff");
  Decoder in{as_bytes(negative)};
  EXPECT_FALSE(in.read_unsigned(UINT64_MAX));
  const std::string least = from_hex("818000000000000000");
  EXPECT_EQ(Decoder{as_bytes(least)}.read_signed(), INT64_MIN);
  const std::string most = from_hex("80ffffffffffffffff");
  EXPECT_EQ(Decoder{as_bytes(most)}.read_unsigned(UINT64_MAX), UINT64_MAX);
  EXPECT_FALSE(Decoder{as_bytes(most)}.read_signed());
}

TEST(Decoder, TimestampMayComeAsLong) {
  const std::string timestamp = from_hex("830000000000000009");
  const std::string as_long = from_hex("5509");
  EXPECT_EQ(Decoder{as_bytes(timestamp)}.read_timestamp(), 9);
  EXPECT_EQ(Decoder{as_bytes(as_long)}.read_timestamp(), 9);
}

TEST(Decoder, DescriptorsAreKnownByNumberAndName) {
  const std::string number = from_hex("005324 45");
  EXPECT_EQ(Decoder{as_bytes(number)}.read_descriptor(), descriptor::accepted);
  const std::string large = from_hex("00800000001370000009 45");
  EXPECT_EQ(Decoder{as_bytes(large)}.read_descriptor(), 0x1370000009u);
  const std::string name = from_hex("00a312") + "amqp:accepted:list" + from_hex("45");
  Decoder by_name{as_bytes(name)};
  EXPECT_EQ(by_name.read_descriptor(), descriptor::accepted);
  EXPECT_EQ(by_name.left(), 1u);
  // A descriptor that nobody knows is no error: the value is left as it was.
  const std::string unknown = from_hex("00a30178 45");
  Decoder other{as_bytes(unknown)};
  EXPECT_FALSE(other.read_descriptor());
  EXPECT_TRUE(other.ok());
  EXPECT_EQ(other.left(), unknown.size());
}

bool sound(const std::string& bytes) {
  Decoder in{as_bytes(bytes)};
  in.read_value();
  return in.ok() && in.at_end();
}

TEST(Decoder, SizesThatLieAreRefused) {
  EXPECT_FALSE(sound(from_hex("c000")));                   // no room for the count
  EXPECT_FALSE(sound(from_hex("d000000003000000")));       // the same, wide
  EXPECT_FALSE(sound(from_hex("c00103")));                 // three elements in no bytes
  EXPECT_FALSE(sound(from_hex("c0030141 42")));            // more bytes than elements
  EXPECT_FALSE(sound(from_hex("c0020252")));               // an element beyond the list
  EXPECT_FALSE(sound(from_hex("c0040152ff41")));           // a byte nobody owns
  EXPECT_FALSE(sound(from_hex("c1030341 42")));            // a key without value
  EXPECT_FALSE(sound(from_hex("c1020140")));               // the same
  EXPECT_FALSE(sound(from_hex("d0ffffffff00000000")));     // size beyond the input
  EXPECT_FALSE(sound(from_hex("b1ffffffff41")));           // text beyond the input
  EXPECT_FALSE(sound(from_hex("d000000004ffffffff")));     // count without bytes
  EXPECT_FALSE(sound(from_hex("e003 01 41 42")));          // a byte after elements of width zero
  EXPECT_FALSE(sound(from_hex("e001 00")));                // an array without constructor
  EXPECT_FALSE(sound(from_hex("e002 01 99")));             // with one that is none
  EXPECT_FALSE(sound(from_hex("e004 01 c1 01 01")));       // an odd map inside an array
  EXPECT_FALSE(sound(from_hex("5602")));                   // a boolean is 0 or 1
  EXPECT_FALSE(sound(from_hex("e004 02 56 0102")));        // also in an array
  EXPECT_FALSE(sound(from_hex("3f")));                     // no format code at all
  EXPECT_FALSE(sound(from_hex("00 5324")));                // a descriptor without value
  EXPECT_TRUE(sound(from_hex("e002 00 a3")));              // an empty array is fine
  EXPECT_TRUE(sound(from_hex("e007 02 c0 0100 020141")));  // lists in an array
}

std::string nested_lists(int depth) {
  std::string value = from_hex("41");
  for (int i = 0; i < depth; ++i) {
    std::string list = from_hex("d0");
    const auto size = static_cast<std::uint32_t>(value.size() + 4);
    for (const int shift : {24, 16, 8, 0}) list += static_cast<char>(size >> shift);
    list += from_hex("00000001") + value;
    value = std::move(list);
  }
  return value;
}

TEST(Decoder, NestingIsBounded) {
  EXPECT_TRUE(sound(nested_lists(nesting_depth_max)));
  EXPECT_FALSE(sound(nested_lists(nesting_depth_max + 1)));
  EXPECT_FALSE(sound(nested_lists(1000)));

  const auto described = [](int depth) {
    std::string value;
    for (int i = 0; i < depth; ++i) value += from_hex("005324");
    return value + from_hex("41");
  };
  EXPECT_TRUE(sound(described(nesting_depth_max)));
  EXPECT_FALSE(sound(described(nesting_depth_max + 1)));
  EXPECT_FALSE(sound(described(100000)));
  EXPECT_FALSE(sound(std::string(100000, '\0')));

  // Arrays of arrays: every level repeats the constructor inside.
  const auto arrays = [](int depth) {
    std::string body = from_hex("01 50 07");  // count, ubyte, 7
    for (int i = 1; i < depth; ++i) body = from_hex("01 e0") + static_cast<char>(body.size()) + body;
    return from_hex("e0") + static_cast<char>(body.size()) + body;
  };
  EXPECT_TRUE(sound(arrays(nesting_depth_max)));
  EXPECT_FALSE(sound(arrays(nesting_depth_max + 3)));
}

std::string list_of_nulls(std::uint32_t count) {
  std::string list = from_hex("d0");
  for (const int shift : {24, 16, 8, 0}) list += static_cast<char>((count + 4) >> shift);
  for (const int shift : {24, 16, 8, 0}) list += static_cast<char>(count >> shift);
  return list + std::string(count, '\x40');
}

// The list itself is an element of the tree too.
TEST(Decoder, ElementsAreBounded) {
  EXPECT_TRUE(sound(list_of_nulls(tree_elements_max - 1)));
  EXPECT_FALSE(sound(list_of_nulls(tree_elements_max)));
  EXPECT_FALSE(sound(list_of_nulls(tree_elements_max + 1)));
}

// Elements of width zero cost no bytes, so their count must be bounded by itself.
TEST(Decoder, ZeroWidthArrayElementsAreBounded) {
  const auto array_of_true = [](std::uint32_t count) {
    std::string array = from_hex("f000000005");
    for (const int shift : {24, 16, 8, 0}) array += static_cast<char>(count >> shift);
    return array + from_hex("41");
  };
  EXPECT_TRUE(sound(array_of_true(tree_elements_max - 1)));
  EXPECT_FALSE(sound(array_of_true(tree_elements_max)));
  EXPECT_FALSE(sound(array_of_true(UINT32_MAX)));
  const std::string many = array_of_true(tree_elements_max - 1);
  const auto value = decode_value({as_bytes(many)});
  ASSERT_TRUE(value);
  EXPECT_EQ(value->items().size(), tree_elements_max - 1);
}

}  // namespace
}  // namespace omnibus::amqp
