// Which copies a message becomes [contract SQL §5.6, §8, §11].
#include <gtest/gtest.h>

#include <cmath>

#include "rules/rules_rig.hpp"

namespace omnibus::rules {
namespace {

using amqp::Value;

class RuleSetRig {
 public:
  explicit RuleSetRig(RuleLimits limits = {}) : rules(limits) {}

  Result<void> add(SubscriptionId subscription, Rule rule) {
    auto compiled = compile(std::move(rule));
    if (!compiled) return fail(compiled.error());
    return rules.add(subscription, std::move(*compiled));
  }
  void add_sql(SubscriptionId subscription, std::string_view name, std::string_view expression,
               std::string_view action = {}) {
    const auto added = add(subscription, sql_rule(name, expression, action));
    ASSERT_TRUE(added) << added.error().detail;
  }

  // "1" for an unchanged copy, "1:rule" for one made by an action, "1!rule" for a failure.
  std::string match(const MessageRig& rig) {
    ReadMessage message{rig};
    const auto done = rules.match(message.fields(), random, matches);
    if (!done) return done.error().detail;
    std::string text;
    for (const auto& copy : matches.copies) {
      text += fmt::format("{}{} ", copy.subscription, copy.rule ? ":" + copy.rule->name : "");
    }
    for (const auto& failure : matches.failures)
      text += fmt::format("{}!{} ", failure.subscription, failure.rule);
    if (!text.empty()) text.pop_back();
    return text;
  }

  RuleSet rules;
  Random random{1};
  Matches matches;
};

Rule correlation(std::string_view name, CorrelationFilter filter) {
  return {.name = std::string{name}, .filter = std::move(filter)};
}

// The example of §11: five rules match, two of them have actions, so there are three messages.
TEST(RuleSet, OneUnchangedCopyAndOnePerAction) {
  RuleSetRig rig;
  rig.add_sql(7, "b", "1=1");
  rig.add_sql(7, "a", "color = 'red'");
  rig.add_sql(7, "c", "EXISTS(color)");
  rig.add_sql(7, "z", "1=1", "SET x = 1");
  rig.add_sql(7, "Y", "color = 'red'", "REMOVE color");
  rig.add_sql(7, "n", "color = 'blue'", "SET x = 2");
  EXPECT_EQ(rig.match(MessageRig{}.property("color", "red")), "7 7:Y 7:z");
  EXPECT_TRUE(rig.matches.copies[0].edits.empty());
  EXPECT_EQ(rig.matches.copies[1].edits.user,
            (std::vector<MessageEdits::User>{{"color", std::nullopt}, {"RuleName", Value{"Y"}}}));
  EXPECT_EQ(rig.matches.copies[2].edits.user,
            (std::vector<MessageEdits::User>{{"x", Value{std::int64_t{1}}}, {"RuleName", Value{"z"}}}));
  EXPECT_EQ(rig.match(MessageRig{}), "7 7:z");
}

TEST(RuleSet, SubscriptionWithoutRulesReceivesNothing) {
  RuleSetRig rig;
  EXPECT_EQ(rig.match(MessageRig{}), "");
  ASSERT_TRUE(rig.add(1, {.name = "$Default"}));
  EXPECT_EQ(rig.match(MessageRig{}), "1");
  ASSERT_TRUE(rig.rules.remove(1, "$DEFAULT"));
  EXPECT_EQ(rig.match(MessageRig{}), "");
  ASSERT_TRUE(rig.add(1, {.name = "$Default", .filter = FalseFilter{}}));
  EXPECT_EQ(rig.match(MessageRig{}), "");
}

TEST(RuleSet, CorrelationFields) {
  RuleSetRig rig;
  ASSERT_TRUE(rig.add(1, correlation("r", {.correlation_id = "c"})));
  ASSERT_TRUE(rig.add(2, correlation("r", {.message_id = "m"})));
  ASSERT_TRUE(rig.add(3, correlation("r", {.to = "t"})));
  ASSERT_TRUE(rig.add(4, correlation("r", {.reply_to = "r"})));
  ASSERT_TRUE(rig.add(5, correlation("r", {.label = "l"})));
  ASSERT_TRUE(rig.add(6, correlation("r", {.session_id = "s"})));
  ASSERT_TRUE(rig.add(7, correlation("r", {.reply_to_session_id = "rs"})));
  ASSERT_TRUE(rig.add(8, correlation("r", {.content_type = "ct"})));
  ASSERT_TRUE(rig.add(9, correlation("r", {.correlation_id = "c", .label = "l"})));
  ASSERT_TRUE(rig.add(10, correlation("r", {.label = "l", .properties = {{"a", Value{1}}}})));
  EXPECT_EQ(rig.match(MessageRig{}.correlation_id("c")), "1");
  EXPECT_EQ(rig.match(MessageRig{}.correlation_id("C")), "");
  EXPECT_EQ(rig.match(MessageRig{}.message_id("m")), "2");
  EXPECT_EQ(rig.match(MessageRig{}.to("t")), "3");
  EXPECT_EQ(rig.match(MessageRig{}.reply_to("r")), "4");
  EXPECT_EQ(rig.match(MessageRig{}.label("l")), "5");
  EXPECT_EQ(rig.match(MessageRig{}.session("s")), "6");
  EXPECT_EQ(rig.match(MessageRig{}.reply_to_session("rs")), "7");
  EXPECT_EQ(rig.match(MessageRig{}.content_type("ct")), "8");
  EXPECT_EQ(rig.match(MessageRig{}.correlation_id("c").label("l")), "1 5 9");
  EXPECT_EQ(rig.match(MessageRig{}.label("l").property("A", Value{1})), "5 10");
  EXPECT_EQ(rig.match(MessageRig{}.property("a", Value{1})), "");
}

// Typed equality: a number is no text, widths do not matter.
TEST(RuleSet, CorrelationPropertiesAreTyped) {
  RuleSetRig rig;
  ASSERT_TRUE(rig.add(1, correlation("r", {.properties = {{"n", Value{2}}}})));
  ASSERT_TRUE(rig.add(2, correlation("r", {.properties = {{"n", Value{"2"}}}})));
  ASSERT_TRUE(rig.add(3, correlation("r", {.properties = {{"n", Value{2.0}}, {"unset", Value{}}}})));
  ASSERT_TRUE(rig.add(4, correlation("r", {.properties = {{"n", Value{true}}}})));
  EXPECT_EQ(rig.match(MessageRig{}.property("n", Value{std::int64_t{2}})), "1 3");
  EXPECT_EQ(rig.match(MessageRig{}.property("n", Value{2.0f})), "1 3");
  EXPECT_EQ(rig.match(MessageRig{}.property("N", "2")), "2");
  EXPECT_EQ(rig.match(MessageRig{}.property("n", Value::symbol("2"))), "2");
  EXPECT_EQ(rig.match(MessageRig{}.property("n", Value{true})), "4");
  EXPECT_EQ(rig.match(MessageRig{}.property("n", Value{})), "");
  EXPECT_EQ(rig.match(MessageRig{}.property("n", Value::list({}))), "");
  // As doubles these two are one, as integers they are not; and nothing equals NaN.
  ASSERT_TRUE(rig.add(5, correlation("r", {.properties = {{"n", Value{std::int64_t{9007199254740993}}}}})));
  ASSERT_TRUE(rig.add(6, correlation("r", {.properties = {{"n", Value{NAN}}}})));
  EXPECT_EQ(rig.match(MessageRig{}.property("n", Value{std::int64_t{9007199254740993}})), "5");
  EXPECT_EQ(rig.match(MessageRig{}.property("n", Value{std::int64_t{9007199254740992}})), "");
  EXPECT_EQ(rig.match(MessageRig{}.property("n", Value{NAN})), "");
}

TEST(RuleSet, CorrelationFiltersThatAreRefused) {
  const auto code = [](CorrelationFilter filter) {
    const auto compiled = compile(correlation("r", std::move(filter)));
    return compiled ? "" : compiled.error().detail;
  };
  EXPECT_EQ(code({}), "the correlation filter gives nothing to compare");
  EXPECT_EQ(code({.properties = {{"a", Value{}}}}), "the correlation filter gives nothing to compare");
  EXPECT_EQ(code({.properties = {{"a", Value::list({})}}}),
            "the property 'a' of the correlation filter has no simple value");
  EXPECT_EQ(code({.properties = {{"a", Value{1}}, {"a", Value{2}}}}),
            "the correlation filter names the property 'a' twice");
  CorrelationFilter many;
  for (std::size_t i = 0; i < correlation_properties_max; ++i)
    many.properties.emplace_back(std::to_string(i), Value{1});
  EXPECT_EQ(code(many), "");
  many.properties.emplace_back("one more", Value{1});
  EXPECT_EQ(code(many), "the correlation filter has 257 properties, 256 are allowed");
}

TEST(RuleSet, ErrorsAreToldOncePerSubscriptionAndOtherRulesCount) {
  RuleSetRig rig;
  rig.add_sql(1, "b", "1/0 = 1");
  rig.add_sql(1, "a", "1 % 0 = 1");
  rig.add_sql(1, "c", "TRUE", "SET x = 1/0");
  rig.add_sql(1, "d", "TRUE", "SET x = 1");
  rig.add_sql(1, "e", "TRUE");
  rig.add_sql(2, "f", "TRUE", "SET sys.Label = n");
  rig.add_sql(3, "g", "n = 1");
  EXPECT_EQ(rig.match(MessageRig{}.property("n", Value{1})), "1 1:d 3 1!a 2!f");
  ASSERT_EQ(rig.matches.failures.size(), 2u);
  EXPECT_EQ(dead_letter_reason(rig.matches.failures[0]), "FilterException");
  EXPECT_EQ(dead_letter_description(rig.matches.failures[0]), "Rule 'a': Int64 division by zero.");
  EXPECT_EQ(dead_letter_reason(rig.matches.failures[1]), "RuleActionException");
  EXPECT_EQ(dead_letter_description(rig.matches.failures[1]), "Rule 'f': sys.Label cannot be a number.");
}

// A filter that can fail is never left out by the index: its error belongs to every message.
TEST(RuleSet, FiltersThatCanFailAreEvaluatedForEveryMessage) {
  RuleSetRig rig;
  rig.add_sql(1, "r", "a = 1 AND b / 0 = 1");
  rig.add_sql(2, "r", "a = 1 AND b > 1");
  EXPECT_EQ(rig.match(MessageRig{}.property("a", Value{2}).property("b", Value{2})), "");
  EXPECT_EQ(rig.match(MessageRig{}.property("b", Value{2})), "1!r");
  EXPECT_EQ(rig.match(MessageRig{}.property("a", Value{1}).property("b", Value{2})), "2 1!r");
}

TEST(RuleSet, EqualityFiltersInSqlAreFoundLikeCorrelationFilters) {
  RuleSetRig rig;
  rig.add_sql(1, "r", "a = 'x'");
  rig.add_sql(2, "r", "'x' = a AND sys.Label = 'l'");
  rig.add_sql(3, "r", "a = 'x' AND b > 1");
  rig.add_sql(4, "r", "a = 'x' AND a = 'y'");
  rig.add_sql(5, "r", "a = 'x' OR b = 1");
  rig.add_sql(6, "r", "a = NULL");
  rig.add_sql(7, "r", "2 > 1");
  rig.add_sql(8, "r", "2 < 1");
  EXPECT_EQ(rig.match(MessageRig{}), "7");
  EXPECT_EQ(rig.match(MessageRig{}.property("a", "x")), "1 5 7");
  EXPECT_EQ(rig.match(MessageRig{}.property("A", "x").label("l")), "1 2 5 7");
  EXPECT_EQ(rig.match(MessageRig{}.property("a", "x").property("b", Value{2})), "1 3 5 7");
  EXPECT_EQ(rig.match(MessageRig{}.property("b", Value{1})), "5 7");
}

TEST(RuleSet, NamesAreUniqueInAnyCase) {
  RuleSetRig rig;
  rig.add_sql(1, "Rule", "1=1");
  EXPECT_EQ(rig.add(1, sql_rule("rULE", "1=1")).error().code, Errc::entity_already_exists);
  EXPECT_TRUE(rig.add(2, sql_rule("rule", "1=1")));
  EXPECT_EQ(rig.rules.find(1, "RULE")->name, "Rule");
  EXPECT_EQ(rig.rules.find(3, "Rule"), nullptr);
  EXPECT_EQ(rig.rules.remove(1, "other").error().code, Errc::not_found);
  EXPECT_EQ(rig.rules.remove(3, "rule").error().code, Errc::not_found);
  EXPECT_TRUE(rig.rules.remove(1, "rule"));
  EXPECT_EQ(rig.rules.find(1, "Rule"), nullptr);
}

TEST(RuleSet, RuleNamesThatAreRefused) {
  for (const std::string_view name : {"", "a/b", "a\\b", "a@b", "a?", "#", "*", "$x", "\xff"})
    EXPECT_EQ(check_rule_name(name).error().code, Errc::argument_error) << name;
  EXPECT_FALSE(check_rule_name(std::string(51, 'x')));
  std::string wide;
  for (int i = 0; i < 50; ++i) wide += "\xC3\xA9";
  EXPECT_TRUE(check_rule_name(wide));
  for (const std::string_view name : {"$Default", "$default", "a b", "a.b-c_d~e"})
    EXPECT_TRUE(check_rule_name(name));
}

TEST(RuleSet, LimitsOfTheTopic) {
  RuleSetRig rig{{.sql_filters_max = 2, .correlation_filters_max = 1}};
  ASSERT_TRUE(rig.add(1, {.name = "$Default"}));
  rig.add_sql(2, "a", "1=1");
  EXPECT_EQ(rig.add(3, sql_rule("b", "1=1")).error().code, Errc::resource_limit_exceeded);
  ASSERT_TRUE(rig.add(3, correlation("c", {.label = "x"})));
  const auto full = rig.add(3, correlation("d", {.label = "x"}));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().detail, "the topic has 1 correlation filters, which is the limit");
  // Replacing needs room only when the kind changes.
  EXPECT_TRUE(rig.rules.replace(2, compiled(sql_rule("A", "a = 1"))));
  EXPECT_EQ(rig.rules.replace(2, compiled(correlation("a", {.label = "x"}))).error().code,
            Errc::resource_limit_exceeded);
  EXPECT_EQ(rig.rules.replace(2, compiled(sql_rule("z", "a = 1"))).error().code, Errc::not_found);
  EXPECT_EQ(rig.rules.find(2, "a")->name, "A");
  EXPECT_EQ(rig.rules.sql_filter_count(), 2u);
  EXPECT_EQ(rig.rules.correlation_filter_count(), 1u);
  rig.rules.remove_subscription(1);
  EXPECT_TRUE(rig.add(3, sql_rule("b", "1=1")));
  RuleSetRig open{{.sql_filters_max = 0, .correlation_filters_max = 0}};
  EXPECT_TRUE(open.add(1, sql_rule("b", "1=1")));
}

TEST(RuleSet, ListsInPages) {
  RuleSetRig rig;
  for (const std::string_view name : {"d", "B", "a", "C"}) rig.add_sql(1, name, "1=1");
  const auto names = [&](std::size_t skip, std::size_t top) {
    std::string text;
    for (const auto* rule : rig.rules.list(1, skip, top)) text += rule->name;
    return text;
  };
  EXPECT_EQ(names(0, 100), "aBCd");
  EXPECT_EQ(names(1, 2), "BC");
  EXPECT_EQ(names(4, 2), "");
  EXPECT_EQ(rig.rules.count(1), 4u);
  EXPECT_EQ(rig.rules.count(2), 0u);
}

// What one rule joins is gone before the next: the bound is per evaluation.
TEST(RuleSet, JoinedTextsOfManyRulesDoNotAddUp) {
  RuleSetRig rig;
  for (int i = 0; i < 100; ++i) rig.add_sql(1, fmt::format("r{}", i), "s + s <> ''");
  const std::size_t joined = 100 * 2 * 20'000;
  ASSERT_GT(joined, TextArena::bytes_max);
  EXPECT_EQ(rig.match(MessageRig{}.property("s", Value{std::string(20'000, 'x')})), "1");
}

TEST(RuleSet, UnreadableMessageIsRefused) {
  RuleSetRig rig;
  ASSERT_TRUE(rig.add(1, {.name = "$Default"}));
  amqp::Encoder out;
  out.put_descriptor(amqp::descriptor::application_properties);
  {
    const auto map = out.begin_map();
    out.put_int(1);
    out.put_int(2);
  }
  ReadMessage message{out.take()};
  EXPECT_EQ(rig.rules.match(message.fields(), rig.random, rig.matches).error().code, Errc::decode_error);
}

// Filters that share a property with others do not make each other slow: only groups the message can belong
// to are asked, and what is gone leaves nothing behind.
TEST(EqualityIndex, GroupsComeAndGo) {
  EqualityIndex index;
  std::vector<CompiledRule> rules;
  for (int i = 0; i < 100; ++i)
    rules.push_back(compiled(sql_rule("r", fmt::format("shared = 1 AND own{} = 2", i))));
  for (std::uint32_t i = 0; i < 100; ++i) index.add(i, rules[i].equalities.tests);
  EXPECT_EQ(index.group_count(), 100u);
  ReadMessage message{MessageRig{}.property("shared", Value{1}).property("OWN42", Value{2})};
  std::vector<EqualityIndex::Place> found;
  index.match(message.fields(), found);
  EXPECT_EQ(found, (std::vector<EqualityIndex::Place>{42}));
  for (std::uint32_t i = 0; i < 100; ++i) index.remove(i);
  EXPECT_EQ(index.group_count(), 0u);
  found.clear();
  index.match(message.fields(), found);
  EXPECT_TRUE(found.empty());
}

}  // namespace
}  // namespace omnibus::rules
