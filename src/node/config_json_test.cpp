#include "node/config_json.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace omnibus::node {
namespace {

TEST(LocatedJson, EveryKeyAndValueKnowsItsLine) {
  const auto tree =
      parse_located_json("// first\n{ \"a\":\n  1, /* two\nlines */ \"b\": [\n true,\n null ] }\n");
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->line, 2u);
  const auto& members = *tree->if_object();
  EXPECT_EQ(members[0].line, 2u);
  EXPECT_EQ(members[0].value.line, 3u);
  EXPECT_EQ(members[1].name, "b");
  EXPECT_EQ(members[1].line, 4u);
  const auto& items = *members[1].value.if_array();
  EXPECT_EQ(items[0].line, 5u);
  EXPECT_EQ(items[1].line, 6u);
}

TEST(LocatedJson, TakesAByteOrderMarkAndWritesPlainJson) {
  const auto tree =
      parse_located_json("\xEF\xBB\xBF{\"a\": [1, -2.5, \"\\u00e9\", null, false], // end\n\"b\": {}}");
  ASSERT_TRUE(tree);
  EXPECT_EQ(to_json(*tree), "{\"a\":[1,-2.5,\"\xC3\xA9\",null,false],\"b\":{}}");
}

TEST(LocatedJson, IntegersAreNumbersAndTheRestStaysAsWritten) {
  const auto tree =
      parse_located_json("[9223372036854775807, -9223372036854775808, 9223372036854775808, 0e113, -2.50]");
  ASSERT_TRUE(tree);
  const auto& items = *tree->if_array();
  EXPECT_EQ(std::get<std::int64_t>(items[0].value), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(std::get<std::int64_t>(items[1].value), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(std::get<JsonNumber>(items[2].value).text, "9223372036854775808");
  EXPECT_EQ(std::get<JsonNumber>(items[3].value).text, "0e113");
  EXPECT_EQ(std::get<JsonNumber>(items[4].value).text, "-2.50");
}

TEST(LocatedJson, TwinsStayForTheReaderToJudge) {
  const auto tree = parse_located_json(R"({"a": 1, "a": 2})");
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->if_object()->size(), 2u);
}

TEST(LocatedJson, AMistakeHasItsLineAndColumn) {
  const auto tree = parse_located_json("{\n  \"a\": 1\n  \"b\": 2\n}");
  ASSERT_FALSE(tree);
  EXPECT_EQ(tree.error().line, 3u);
  EXPECT_NE(tree.error().text.find("column 3"), std::string::npos) << tree.error().text;
}

TEST(LocatedJson, RefusesWhatIsNotUnicodeOrHasAZeroByte) {
  for (const std::string_view text : {"[\"\xFF\"]", "[\"\\udc00\"]", "[\"\\ud800\"]", "{\"\\udc00\": 1}"}) {
    EXPECT_FALSE(parse_located_json(text)) << text;
  }
  using namespace std::string_view_literals;
  const auto cut = parse_located_json("{}\n\0 garbage"sv);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().line, 2u);
}

TEST(LocatedJson, RefusesWhatIsNoJson) {
  for (const std::string_view text :
       {"", "// only", "{", "[1,]", "{} {}", "{} /* open", "{'a': 1}", "NaN", "/"})
    EXPECT_FALSE(parse_located_json(text)) << text;
}

TEST(LocatedJson, DepthIsBounded) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse_located_json(nested(json_depth_max)));
  const auto deeper = parse_located_json("\n" + nested(json_depth_max + 1));
  ASSERT_FALSE(deeper);
  EXPECT_EQ(deeper.error().line, 2u);
  EXPECT_EQ(deeper.error().text, "nested deeper than 64 levels");
}

TEST(LocatedJson, SizeIsBounded) {
  std::string text = "{}";
  text.resize(json_bytes_max, ' ');
  EXPECT_TRUE(parse_located_json(text));
  text += ' ';
  const auto longer = parse_located_json(text);
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().line, 0u);
}

TEST(LocatedJson, NumberOfValuesIsBounded) {
  std::string text = "[";
  for (std::size_t i = 2; i < json_values_max; ++i) text += "0,";
  EXPECT_TRUE(parse_located_json(text + "0]"));
  const auto more = parse_located_json(text + "0,0]");
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().text, "the file holds more than 1000000 values");
}

}  // namespace
}  // namespace omnibus::node
