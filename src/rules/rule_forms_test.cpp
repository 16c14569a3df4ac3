// Rules on the wire of $management and in the catalogue [contract SB 6.12, 6.13, 0.3; SQL §10].
#include <gtest/gtest.h>

#include "rules/rule_forms.hpp"

namespace omnibus::rules {
namespace {

using amqp::Value;

const Instant now{std::chrono::milliseconds{1'700'000'000'000}};

Value request(std::vector<std::pair<Value, Value>> description, Value name = Value{"r"}) {
  return Value::map({{Value{"rule-name"}, std::move(name)},
                     {Value{"rule-description"}, Value::map(std::move(description))}});
}
Value expression(std::string_view text) { return Value::map({{Value{"expression"}, Value{text}}}); }

TEST(RuleForms, AddRuleWithSqlAndAction) {
  const auto rule = rule_from_request(
      request({{"sql-filter", expression("a = 1")}, {"sql-rule-action", expression("SET b = 2")}}), now);
  ASSERT_TRUE(rule);
  EXPECT_EQ(*rule, (Rule{.name = "r",
                         .filter = SqlFilter{.expression = "a = 1"},
                         .action = SqlAction{.expression = "SET b = 2"},
                         .created = now}));
}

TEST(RuleForms, TrueAndFalseComeAsSql) {
  const auto of = [](std::string_view text) {
    return rule_from_request(request({{"sql-filter", expression(text)}, {"sql-rule-action", Value{}}}), now)
        ->filter;
  };
  EXPECT_EQ(of("1=1"), Filter{TrueFilter{}});
  EXPECT_EQ(of("1=0"), Filter{FalseFilter{}});
  EXPECT_EQ(of("1 = 1"), (Filter{SqlFilter{.expression = "1 = 1"}}));
}

TEST(RuleForms, AddRuleWithCorrelation) {
  const auto rule = rule_from_request(
      request({{"correlation-filter", Value::map({{"correlation-id", Value{"c"}},
                                                  {"message-id", Value{"m"}},
                                                  {"to", Value{"t"}},
                                                  {"reply-to", Value{"r"}},
                                                  {"label", Value{"l"}},
                                                  {"session-id", Value{"s"}},
                                                  {"reply-to-session-id", Value{"rs"}},
                                                  {"content-type", Value{}},
                                                  {"properties", Value::map({{"n", Value{2}}})}})}}),
      now);
  ASSERT_TRUE(rule);
  EXPECT_EQ(rule->filter, (Filter{CorrelationFilter{.correlation_id = "c",
                                                    .message_id = "m",
                                                    .to = "t",
                                                    .reply_to = "r",
                                                    .label = "l",
                                                    .session_id = "s",
                                                    .reply_to_session_id = "rs",
                                                    .properties = {{"n", Value{2}}}}}));
  EXPECT_FALSE(rule->action);
}

TEST(RuleForms, RefusedRequests) {
  const auto error = [](const Value& body) {
    const auto rule = rule_from_request(body, now);
    EXPECT_TRUE(rule || rule.error().code == Errc::argument_error);
    return rule ? "" : rule.error().detail;
  };
  EXPECT_EQ(error(Value{}), "'rule-description' is missing or no map");
  EXPECT_EQ(error(Value::map({{"rule-description", Value{1}}})), "'rule-description' is missing or no map");
  EXPECT_EQ(error(request({{"sql-filter", expression("1=1")}}, Value{})),
            "'rule-name' is missing or no string");
  EXPECT_EQ(error(request({{"sql-filter", expression("1=1")}}, Value::symbol("a symbol"))),
            "'rule-name' is missing or no string");
  EXPECT_EQ(error(request({{"sql-filter", expression("1=1")}, {"rule-name", Value{"inside"}}}, Value{})), "");
  EXPECT_EQ(error(request({})), "exactly one of 'sql-filter' and 'correlation-filter' is needed");
  EXPECT_EQ(error(request({{"sql-filter", expression("1=1")}, {"correlation-filter", Value::map({})}})),
            "exactly one of 'sql-filter' and 'correlation-filter' is needed");
  EXPECT_EQ(error(request({{"sql-filter", Value{"1=1"}}})), "'expression' is missing or no string");
  EXPECT_EQ(error(request({{"correlation-filter", Value{1}}})), "'correlation-filter' is no map");
  EXPECT_EQ(error(request({{"correlation-filter", Value::map({{"label", Value{1}}})}})),
            "'label' is missing or no string");
  EXPECT_EQ(error(request({{"correlation-filter", Value::map({{"properties", Value{1}}})}})),
            "'properties' is no map");
  EXPECT_EQ(error(request(
                {{"correlation-filter", Value::map({{"properties", Value::map({{Value{1}, Value{1}}})}})}})),
            "'properties' has a key that is no string");
  EXPECT_EQ(error(request({{"sql-filter", expression("1=1")}, {"sql-rule-action", Value{"x"}}})),
            "'expression' is missing or no string");
}

TEST(RuleForms, OtherRequests) {
  EXPECT_EQ(*rule_name_from_request(Value::map({{"rule-name", Value{"r"}}})), "r");
  EXPECT_FALSE(rule_name_from_request(Value::map({})));
  EXPECT_FALSE(rule_name_from_request(Value::map({{"rule-name", Value::symbol("r")}})));
  const auto page = rule_page_from_request(Value::map({{"top", Value{5}}, {"skip", Value{std::int64_t{7}}}}));
  ASSERT_TRUE(page);
  EXPECT_EQ(page->top, 5u);
  EXPECT_EQ(page->skip, 7u);
  EXPECT_EQ(rule_page_from_request(Value::map({}))->top, 100u);
  EXPECT_FALSE(rule_page_from_request(Value::map({{"top", Value{-1}}})));
  EXPECT_FALSE(rule_page_from_request(Value::map({{"skip", Value{"x"}}})));
}

std::vector<Rule> some_rules() {
  return {
      {.name = "$Default", .created = now},
      {.name = "f", .filter = FalseFilter{}, .created = now},
      {.name = "s",
       .filter =
           SqlFilter{.expression = "a = @p", .parameters = {{"@p", Value{5}}}, .compatibility_level = 21},
       .action = SqlAction{.expression = "SET x = @q", .parameters = {{"q", Value{"y"}}}},
       .created = now},
      {.name = "c",
       .filter = CorrelationFilter{.label = "l", .properties = {{"n", Value{2}}, {"m", Value{"2"}}}},
       .created = now},
  };
}

// Numbers, order and widths as the clients read them: the action is never null, the properties never absent.
TEST(RuleForms, DescriptionsOnTheWire) {
  const auto rules = some_rules();
  EXPECT_EQ(amqp::to_text(rule_description(rules[0])),
            "@ulong:1335734829060 [@ulong:83483426823 [], @ulong:1335734829061 [], string:\"$Default\", "
            "timestamp:1700000000000]");
  EXPECT_EQ(amqp::to_text(rule_description(rules[1])).substr(0, 47),
            "@ulong:1335734829060 [@ulong:83483426824 [], @u");
  EXPECT_EQ(amqp::to_text(rule_description(rules[2])),
            "@ulong:1335734829060 [@ulong:83483426822 [string:\"a = @p\", int:21], @ulong:1335734829062 "
            "[string:\"SET x = @q\", int:20], string:\"s\", timestamp:1700000000000]");
  EXPECT_EQ(
      amqp::to_text(rule_description(rules[3])),
      "@ulong:1335734829060 [@ulong:83483426825 [null, null, null, null, string:\"l\", null, null, null, "
      "{string:\"n\": int:2, string:\"m\": string:\"2\"}], @ulong:1335734829061 [], string:\"c\", "
      "timestamp:1700000000000]");
  const auto bytes = amqp::encode(rule_description(rules[0]));
  EXPECT_EQ(bytes[0], amqp::code::described);
  EXPECT_EQ(bytes[1], amqp::code::ulong);

  const Rule* both[] = {&rules[0], &rules[1]};
  const Value answer = enumerate_answer(both);
  ASSERT_EQ(answer.find("rules")->items().size(), 2u);
  EXPECT_EQ(*answer.find("rules")->items()[1].find("rule-description"), rule_description(rules[1]));
}

TEST(RuleForms, WhatIsStoredReadsBackEqual) {
  for (const Rule& rule : some_rules()) {
    const auto bytes = amqp::encode(stored_rule(rule));
    const auto back = rule_from_stored(*amqp::decode_value({Bytes{bytes}}));
    ASSERT_TRUE(back) << back.error().detail;
    EXPECT_EQ(*back, rule);
  }
  // A description has no place for parameters; the rest comes back.
  Rule sql = some_rules()[2];
  const auto back = rule_from_description(rule_description(sql));
  ASSERT_TRUE(back);
  std::get<SqlFilter>(sql.filter).parameters.clear();
  sql.action->parameters.clear();
  EXPECT_EQ(*back, sql);
}

TEST(RuleForms, DamagedDescriptionsAreRefused) {
  const auto described = [](std::uint64_t number, std::vector<Value> fields) {
    return Value::described(Value{number}, Value::list(std::move(fields)));
  };
  const Value filter = described(rule_descriptor::true_filter, {});
  const Value name{"r"};
  const Value time{amqp::Timestamp{1}};
  const auto rule = [&](Value f, Value a, Value n, Value t) {
    return described(rule_descriptor::rule_description,
                     {std::move(f), std::move(a), std::move(n), std::move(t)});
  };
  EXPECT_TRUE(rule_from_description(rule(filter, Value{}, name, time)));
  for (const Value& bad : {
           Value{},
           Value{1},
           described(1, {}),
           described(rule_descriptor::rule_description, {}),
           Value::described(Value{rule_descriptor::rule_description}, Value{1}),
           rule(Value{}, Value{}, name, time),
           rule(filter, Value{1}, name, time),
           rule(filter, filter, name, time),
           rule(filter, described(rule_descriptor::sql_rule_action, {}), name, time),
           rule(filter, Value{}, Value{}, time),
           rule(filter, Value{}, name, Value{}),
           rule(described(rule_descriptor::sql_filter, {}), Value{}, name, time),
           rule(described(rule_descriptor::sql_filter, {Value{"x"}, Value{"y"}}), Value{}, name, time),
           rule(described(rule_descriptor::correlation_filter, {Value{1}}), Value{}, name, time),
           rule(described(rule_descriptor::correlation_filter,
                          {Value{}, Value{}, Value{}, Value{}, Value{}, Value{}, Value{}, Value{}, Value{1}}),
                Value{}, name, time),
       })
    EXPECT_FALSE(rule_from_description(bad)) << amqp::to_text(bad);
  EXPECT_FALSE(rule_from_stored(Value{}));
  EXPECT_FALSE(rule_from_stored(Value::list({Value{}, Value{}, Value{}})));
  EXPECT_FALSE(rule_from_stored(Value::list({rule_description(some_rules()[2]), Value{1}, Value{}})));
}

}  // namespace
}  // namespace omnibus::rules
