// What is refused when a rule is made, with the place and the reason [contract SQL §3, §4, §7].
#include <gtest/gtest.h>

#include "rules/sql_program.hpp"
#include "rules/sql_tokens.hpp"

namespace omnibus::rules {
namespace {

std::string filter_error(std::string_view expression) {
  const auto program = compile_filter(expression);
  if (program) return "";
  EXPECT_EQ(program.error().code, Errc::argument_error);
  return program.error().detail;
}
std::string action_error(std::string_view expression) {
  const auto program = compile_action(expression);
  if (program) return "";
  EXPECT_EQ(program.error().code, Errc::argument_error);
  return program.error().detail;
}

TEST(SqlSyntax, RefusedFiltersNamePlaceAndReason) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
      {"", "the filter is empty"},
      {"   ", "filter at character 4: expected a value, found the end"},
      {"color =", "filter at character 8: expected a value, found the end"},
      {"sys.Nope = 1", "filter at character 1: there is no system property 'Nope'"},
      {"other.x = 1", "filter at character 1: there is no scope 'other', only sys and user"},
      {"[sys].Label = 1", "filter at character 1: there is no scope 'sys', only sys and user"},
      {"sys.1 = 1", "filter at character 4: expected the end, AND or OR, found 0.1"},
      {"sys.'x' = 1", "filter at character 5: expected a property after '.', found a string"},
      {"1 < 2 < 3", "filter at character 7: expected the end, AND or OR, found '<'"},
      {"a = 1 b = 2", "filter at character 7: expected the end, AND or OR, found 'b'"},
      {"a = 1;", "filter at character 6: expected the end, AND or OR, found ';'"},
      {"(a = 1", "filter at character 7: expected ')', found the end"},
      {"a = 1)", "filter at character 6: expected the end, AND or OR, found ')'"},
      {"a AND", "filter at character 6: expected a value, found the end"},
      {"AND a", "filter at character 1: expected a value, found AND"},
      {"a IS 1", "filter at character 6: expected NULL after IS, found 1"},
      {"1 IS NULL", "filter at character 1: IS NULL is about a property, and this is none"},
      {"a + 1 IS NULL", "filter at character 1: IS NULL is about a property, and this is none"},
      {"EXISTS(1)", "filter at character 8: EXISTS is about a property, and this is none"},
      {"EXISTS a", "filter at character 8: expected '(' after EXISTS, found 'a'"},
      {"EXISTS(a", "filter at character 9: expected ')', found the end"},
      {"a NOT 1", "filter at character 7: expected IN or LIKE after NOT, found 1"},
      {"a IN ()", "filter at character 7: expected a value, found ')'"},
      {"a IN 1", "filter at character 6: expected '(' after IN, found 1"},
      {"a IN (1 2)", "filter at character 9: expected ',' or ')', found 2"},
      {"a LIKE 1", "filter at character 8: the pattern of LIKE must be a string"},
      {"a LIKE 'x' ESCAPE 1", "filter at character 19: ESCAPE must be a string"},
      {"a LIKE 'x' ESCAPE 'ab'", "filter at character 19: ESCAPE must be exactly one character"},
      {"a LIKE 'x' ESCAPE ''", "filter at character 19: ESCAPE must be exactly one character"},
      {"a LIKE 'x!' ESCAPE '!'", "filter at character 8: the pattern ends with the escape character"},
      {"1", "filter at character 1: this is a value, not a condition"},
      {"'x'", "filter at character 1: this is a value, not a condition"},
      {"a + 1", "filter at character 1: this is a value, not a condition"},
      {"-a", "filter at character 1: this is a value, not a condition"},
      {"newid()", "filter at character 1: this is a value, not a condition"},
      {"a = 1 AND 2", "filter at character 11: this is a value, not a condition"},
      {"1 OR a = 1", "filter at character 1: this is a value, not a condition"},
      {"NOT (1 + 1)", "filter at character 5: this is a value, not a condition"},
      {"nosuch(1) = 1", "filter at character 1: there is no function 'nosuch'"},
      {"newid(1) = 1", "filter at character 7: expected ')': newid takes no argument, found 1"},
      {"p() = 1", "filter at character 3: expected a value, found ')'"},
      {"p('a', 'b') = 1", "filter at character 6: expected ')': p takes one argument, found ','"},
      {"a = 9223372036854775808", "filter at character 5: 9223372036854775808 is out of range"},
      {"a = 99999999999999999999", "filter at character 5: 99999999999999999999 is out of range"},
      {"a = 1E999", "filter at character 5: 1E999 is out of range"},
      {"a = 0x", "filter at character 5: 0x without digits"},
      {"a = 0x12345678901234567", "filter at character 5: a hexadecimal number has at most 16 digits"},
      {"a = 1b", "filter at character 6: a letter follows a number"},
      {"a = 0x1g", "filter at character 8: a letter follows a number"},
      {"a = 2E", "filter at character 6: a letter follows a number"},
      {"a = 'x", "filter at character 5: the string is not closed with '"},
      {"[a = 1", "filter at character 1: the delimited identifier is not closed with ]"},
      {"\"a = 1", "filter at character 1: the quoted identifier is not closed with \""},
      {"[] = 1", "filter at character 1: a name is empty"},
      {"a = @ 1", "filter at character 5: a name must follow '@'"},
      {"a ! 1", "filter at character 3: '!' stands only in front of '='"},
      {"a = 1 & b", "filter at character 7: the character U+0026 has no meaning here"},
      {"a = 1 /* x */", "filter at character 8: expected a value, found '*'"},
      {"\xC3\xA9 = 1 & b", "filter at character 7: the character U+0026 has no meaning here"},
      {"a = '\xff'", "the filter is not UTF-8"},
      {"SET = 1", "filter at character 1: expected a value, found SET"},
  };
  for (const auto& [expression, error] : cases) EXPECT_EQ(filter_error(expression), error) << expression;
}

TEST(SqlSyntax, WhiteSpaceOfUnicodeSeparates) {
  EXPECT_EQ(filter_error("a\t=\r\n1\xC2\xA0"
                         "AND\xE3\x80\x80"
                         "b=2"),
            "");
}

TEST(SqlSyntax, LengthIsCountedInCharacters) {
  const auto of = [](std::size_t characters) {
    std::string text = "a='";
    for (std::size_t i = 0; i < characters - 4; ++i) text += "\xF0\x9F\x98\x80";
    return text + "'";
  };
  EXPECT_EQ(filter_error(of(expression_chars_max)), "");
  EXPECT_EQ(filter_error(of(expression_chars_max + 1)), "the filter is longer than 1024 characters");
  EXPECT_EQ(filter_error(std::string(100'000, '(')), "the filter is longer than 1024 characters");
  EXPECT_EQ(action_error(std::string(100'000, '(')), "the action is longer than 1024 characters");
}

// What nests is bounded, what stands in a row is not.
TEST(SqlSyntax, NestingIsBounded) {
  const auto nested = [](int depth, std::string_view open, std::string_view middle, std::string_view close) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += open;
    text += middle;
    for (int i = 0; i < depth; ++i) text += close;
    return text;
  };
  constexpr std::string_view deep = "the expression nests deeper than 64";
  EXPECT_EQ(filter_error(nested(64, "(", "a", ")")), "");
  EXPECT_NE(filter_error(nested(65, "(", "a", ")")).find(deep), std::string::npos);
  EXPECT_EQ(filter_error(nested(64, "NOT ", "a", "")), "");
  EXPECT_NE(filter_error(nested(65, "NOT ", "a", "")).find(deep), std::string::npos);
  EXPECT_EQ(filter_error("b = " + nested(64, "-", "a", "")), "");
  EXPECT_NE(filter_error("b = " + nested(65, "-", "a", "")).find(deep), std::string::npos);
  EXPECT_EQ(filter_error(nested(64, "p(", "a", ")")), "");
  EXPECT_NE(filter_error(nested(65, "p(", "a", ")")).find(deep), std::string::npos);
  EXPECT_EQ(filter_error(nested(200, "a OR ", "a", "")), "");
  EXPECT_EQ(filter_error("a = " + nested(500, "1+", "1", "")), "");
}

TEST(SqlSyntax, RefusedActionsNamePlaceAndReason) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
      {"", "the action is empty"},
      {"a = 1", "action at character 1: expected SET or REMOVE, found 'a'"},
      {"SET a", "action at character 6: expected '=', found the end"},
      {"SET a = ", "action at character 9: expected a value, found the end"},
      {"SET 1 = 1", "action at character 5: expected a property, found 1"},
      {"SET p('a') = 1", "action at character 6: expected '=', found '('"},
      {"SET a = 1 SET b = 2", "action at character 11: expected ';' or the end, found SET"},
      {"SET a = 1,", "action at character 10: expected ';' or the end, found ','"},
      {"SET a = 1;;", "action at character 11: expected SET or REMOVE, found ';'"},
      {"SET sys.SequenceNumber = 1",
       "action at character 5: the system property 'SequenceNumber' cannot be changed"},
      {"SET sys.Nope = 1", "action at character 5: there is no system property 'Nope'"},
      {"REMOVE sys.Nope", "action at character 8: there is no system property 'Nope'"},
      {"REMOVE sys.enqueuedTimeUtc",
       "action at character 8: the system property 'EnqueuedTimeUtc' cannot be changed"},
      {"REMOVE", "action at character 7: expected a property, found the end"},
      {"REMOVE a = 1", "action at character 10: expected ';' or the end, found '='"},
      {"SET a = @x", "action at character 9: the parameter '@x' is not bound"},
  };
  for (const auto& [expression, error] : cases) EXPECT_EQ(action_error(expression), error) << expression;
}

TEST(SqlSyntax, ActionsHaveAtMost32Statements) {
  const auto of = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "SET a=1;";
    return text;
  };
  EXPECT_EQ(action_error(of(32)), "");
  EXPECT_EQ(action_error(of(33)), "action at character 257: more than 32 statements");
  EXPECT_EQ(action_error("SET a=1, REMOVE b, SET c=2"), "");
}

}  // namespace
}  // namespace omnibus::rules
