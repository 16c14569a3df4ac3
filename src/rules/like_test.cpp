// LIKE against its definition, over random texts and patterns of few characters.
#include "rules/like.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"

namespace omnibus::rules {
namespace {

// One character at a time, every way: for texts of single bytes.
bool by_definition(std::string_view text, std::string_view pattern, std::string_view escape) {
  if (pattern.empty()) return text.empty();
  if (!escape.empty() && pattern.starts_with(escape))
    return !text.empty() && text[0] == pattern[1] && by_definition(text.substr(1), pattern.substr(2), escape);
  if (pattern[0] == '%')
    return by_definition(text, pattern.substr(1), escape) ||
           (!text.empty() && by_definition(text.substr(1), pattern, escape));
  return !text.empty() && (pattern[0] == '_' || pattern[0] == text[0]) &&
         by_definition(text.substr(1), pattern.substr(1), escape);
}

TEST(Like, AgreesWithItsDefinition) {
  Random random{1};
  const auto letters = [&](std::string_view from, std::size_t max) {
    std::string text(random.below(max + 1), ' ');
    for (char& c : text) c = from[random.below(from.size())];
    return text;
  };
  int matched = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = letters("ab%", 8);
    const std::string pattern = letters("aab%%_!", 7);
    const std::string_view escape = random.below(2) == 0 ? "!" : "";
    if (!is_like_pattern(pattern, escape)) continue;
    const bool expected = by_definition(text, pattern, escape);
    ASSERT_EQ(is_like(text, pattern, escape), expected)
        << text << " LIKE " << pattern << " ESCAPE " << escape;
    matched += expected;
  }
  EXPECT_GT(matched, 1000);
}

TEST(Like, CharactersAreCodePoints) {
  EXPECT_TRUE(is_like("\xC3\xA9\xF0\x9F\x98\x80", "__"));
  EXPECT_TRUE(is_like("a\xC3\xA9z", "%\xC3\xA9_"));
  EXPECT_FALSE(is_like("\xC3\xA9", "__"));
  EXPECT_TRUE(is_like("\xff\xff", "__"));  // no UTF-8: a byte is a character
  EXPECT_TRUE(is_like("\xC3", "_"));
  EXPECT_TRUE(is_one_character("\xF0\x9F\x98\x80"));
  EXPECT_FALSE(is_one_character("ab"));
  EXPECT_FALSE(is_one_character(""));
}

}  // namespace
}  // namespace omnibus::rules
