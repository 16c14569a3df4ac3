#include "transfer/inventory.hpp"

#include <gtest/gtest.h>

#include "transfer/rule_json.hpp"
#include "transfer/source_file.hpp"

namespace omnibus::transfer {
namespace {

TEST(Inventory, SpansOfPythonAreSpans) {
  EXPECT_EQ(iso_span("0:01:30"), "P0DT0H1M30S");
  EXPECT_EQ(iso_span("1 day, 2:03:04.5"), "P1DT2H3M4.5S");
  EXPECT_EQ(iso_span("7 days"), "P7DT0H0M0S");
  for (const auto* other : {"PT1M", "", "soon", "1:2", "1:2:3:4", "1:-2:3", "0:00:01.x"})
    EXPECT_EQ(iso_span(other), other);
}

TEST(Inventory, NotesHaveABound) {
  Notes notes;
  for (std::size_t i = 0; i < notes_max; ++i) notes.warn("p", "w");
  EXPECT_EQ(notes.all().size(), notes_max);
  EXPECT_FALSE(notes.has_errors());
  for (int i = 0; i < 5; ++i) notes.error("p", "e");
  EXPECT_EQ(notes.all().size(), notes_max + 1);
  EXPECT_TRUE(notes.has_errors());
  EXPECT_TRUE(notes.all().back().is_error);
}

TEST(Inventory, ARuleIsReadAsItWasWritten) {
  rules::Rule rule;
  rule.name = "r";
  rules::CorrelationFilter filter;
  filter.label = "l";
  filter.properties = {
      {"i", amqp::Value{std::int32_t{7}}}, {"d", amqp::Value{1.5}}, {"b", amqp::Value{true}}};
  rule.filter = filter;
  rule.action = rules::SqlAction{.expression = "SET a = 1"};
  Inventory inventory;
  Notes notes;
  auto& subscription = inventory.subscription("t", "s");
  subscription.is_said = true;
  subscription.rules.push_back(rule_json(rule, "", notes));
  EXPECT_TRUE(notes.all().empty());
  const auto source = read_source(pretty_json(inventory.config(true)), {});
  ASSERT_TRUE(source.config);
  const auto& read = source.config->namespaces.at(0).topics.at(0).subscriptions.at(0).rules.at(0);
  EXPECT_TRUE(says_the_same(rule, read)) << "the width of a number is no difference";
  rule.action->expression = "SET a = 2";
  EXPECT_FALSE(says_the_same(rule, read));
}

TEST(Inventory, PrettyJsonIsTheSameJson) {
  const auto json =
      node::parse_located_json(R"({"a": [1, 2], "b": [{"c": "x\n"}], "d": {}, "e": [], "f": null})");
  EXPECT_EQ(pretty_json(*json),
            "{\n  \"a\": [ 1, 2 ],\n  \"b\": [\n    {\n      \"c\": \"x\\n\"\n    }\n  ],\n  \"d\": {},\n  "
            "\"e\": [],\n"
            "  \"f\": null\n}\n");
  EXPECT_EQ(to_json(*node::parse_located_json(pretty_json(*json))), to_json(*json));
}

}  // namespace
}  // namespace omnibus::transfer
