#include "admin/rule_descriptions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "admin/descriptions.hpp"

namespace omnibus::admin {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr Instant now{1'767'323'045'000ms};

Result<rules::Rule> read(std::string_view inner) {
  const auto root = parse_xml(
      fmt::format("<RuleDescription xmlns=\"{}\" xmlns:p4=\"{}\" xmlns:l28=\"{}\">{}</RuleDescription>",
                  description_namespace, instance_namespace, schema_namespace, inner));
  if (!root) return fail(root.error());
  return read_rule(*root, now);
}
std::string written(const rules::Rule& rule) {
  XmlWriter out;
  write_rule(out, rule, description_attributes());
  return out.take();
}

TEST(RuleDescriptions, ATrueFilterIsWrittenWithAllItsParts) {
  EXPECT_EQ(written({.name = "$Default", .created = now}),
            "<RuleDescription xmlns=\"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect\" "
            "xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\"><Filter i:type=\"TrueFilter\">"
            "<SqlExpression>1=1</SqlExpression><CompatibilityLevel>20</CompatibilityLevel><Parameters/>"
            "</Filter><Action i:type=\"EmptyRuleAction\"/><CreatedAt>2026-01-02T03:04:05.0000000Z</CreatedAt>"
            "<Name>$Default</Name></RuleDescription>");
}

TEST(RuleDescriptions, ASqlRuleReadsBack) {
  const auto rule = read(
      "<Name>r</Name><Action p4:type=\"SqlRuleAction\"><SqlExpression>SET a = 1</SqlExpression></Action>"
      "<Filter p4:type=\"SqlFilter\"><SqlExpression>p &gt; @x</SqlExpression><Parameters>"
      "<KeyValueOfstringanyType><Key>@x</Key><Value p4:type=\"l28:int\">5</Value></KeyValueOfstringanyType>"
      "</Parameters></Filter>");
  ASSERT_TRUE(rule) << rule.error().detail;
  EXPECT_EQ(rule->name, "r");
  const auto again = parse_xml(written(*rule));
  ASSERT_TRUE(again);
  const auto back = read_rule(*again, now);
  ASSERT_TRUE(back) << back.error().detail;
  EXPECT_EQ(*back, *rule);
}

// One client cuts five characters off the type, others know only these types.
TEST(RuleDescriptions, ValuesKeepTheirTypes) {
  const auto value = [](std::string_view type, std::string_view text) {
    const auto rule = read(
        fmt::format("<Filter p4:type=\"CorrelationFilter\"><Properties><KeyValueOfstringanyType><Key>k</Key>"
                    "<Value p4:type=\"l28:{}\">{}</Value></KeyValueOfstringanyType></Properties></Filter>",
                    type, text));
    return rule ? written(*rule) : rule.error().detail;
  };
  const std::string of_schema = "xmlns:d6p1=\"http://www.w3.org/2001/XMLSchema\">";
  EXPECT_THAT(value("string", "red"), HasSubstr("<Value i:type=\"d6p1:string\" " + of_schema + "red<"));
  EXPECT_THAT(value("int", "-5"), HasSubstr("i:type=\"d6p1:int\" " + of_schema + "-5<"));
  EXPECT_THAT(value("long", "5"), HasSubstr("i:type=\"d6p1:int\" " + of_schema + "5<"));
  EXPECT_THAT(value("long", "5000000000"), HasSubstr("i:type=\"d6p1:long\" " + of_schema + "5000000000<"));
  EXPECT_THAT(value("double", "1.5"), HasSubstr("i:type=\"d6p1:double\" " + of_schema + "1.5<"));
  EXPECT_THAT(value("boolean", "true"), HasSubstr("i:type=\"d6p1:boolean\" " + of_schema + "true<"));
  EXPECT_THAT(value("dateTime", "2026-01-02T03:04:05Z"),
              HasSubstr("i:type=\"d6p1:dateTime\" " + of_schema + "2026-01-02T03:04:05.0000000Z<"));
  EXPECT_THAT(value("duration", "PT90S"),
              HasSubstr("i:type=\"d6p1:duration\" "
                        "xmlns:d6p1=\"http://schemas.microsoft.com/2003/10/Serialization/\">PT1M30S<"));
  EXPECT_THAT(value("int", "five"), HasSubstr("no such number"));
  EXPECT_THAT(value("hexBinary", "00"), HasSubstr("not supported"));
}

TEST(RuleDescriptions, CorrelationFieldsThatAreNotSetAreLeftOut) {
  const auto rule = read(
      "<Filter p4:type=\"CorrelationFilter\"><Label>l</Label><To/><CorrelationId p4:nil=\"true\"/></Filter>");
  ASSERT_TRUE(rule);
  EXPECT_THAT(written(*rule),
              HasSubstr("<Filter i:type=\"CorrelationFilter\"><Label>l</Label><Properties/>"));
}

TEST(RuleDescriptions, WhatClientsLeaveOutIsTrueAndDoesNothing) {
  const auto nothing = read("");
  ASSERT_TRUE(nothing);
  EXPECT_TRUE(std::holds_alternative<rules::TrueFilter>(nothing->filter));
  EXPECT_FALSE(nothing->action);
  const auto python = read("<Filter p4:type=\"FalseFilter\"><SqlExpression>1>1</SqlExpression></Filter>");
  ASSERT_TRUE(python);
  EXPECT_TRUE(std::holds_alternative<rules::FalseFilter>(python->filter));
  EXPECT_FALSE(read("<Filter p4:type=\"OtherFilter\"/>"));
  EXPECT_FALSE(read("<Action p4:type=\"OtherAction\"/>"));
}

}  // namespace
}  // namespace omnibus::admin
