// Topics, their subscriptions and rules in the configuration file.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/config.hpp"

namespace omnibus::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

ConfigReading read_topics(const std::string& topics, const std::string& rest = "",
                          const std::string& omnibus = "") {
  return read_config("{\"UserConfig\": {\"Namespaces\": [{\"Topics\": [" + topics + "]" + rest +
                         "}]}, \"Omnibus\": {" + omnibus + "}}",
                     "");
}
std::vector<std::string> findings_of(const std::string& topics, const std::string& rest = "",
                                     const std::string& omnibus = "") {
  std::vector<std::string> result;
  const auto reading = read_topics(topics, rest, omnibus);
  bool has_error = false;
  for (const auto& finding : reading.findings) {
    const bool is_error = finding.severity == Finding::Severity::error;
    has_error |= is_error;
    result.push_back((is_error ? "error " : "warning ") + to_text(finding));
  }
  EXPECT_EQ(reading.config.has_value(), !has_error);
  return result;
}
TopicEntry topic_of(const std::string& topic) {
  const auto reading = read_topics(topic);
  for (const auto& finding : reading.findings) ADD_FAILURE() << to_text(finding);
  return reading.config ? reading.config->namespaces.at(0).topics.at(0) : TopicEntry{};
}
std::string topic(const std::string& name, const std::string& subscriptions = "") {
  return fmt::format(R"({{"Name": "{}", "Subscriptions": [{}]}})", name, subscriptions);
}
std::string subscription(const std::string& name, const std::string& properties = "") {
  return fmt::format(R"({{"Name": "{}", "Properties": {{{}}}}})", name, properties);
}
// A topic `t` with one subscription `s` of these rules.
std::string with_rules(const std::string& rules) {
  return topic("t", R"({"Name": "s", "Rules": [)" + rules + "]}");
}
std::string sql_rule(const std::string& name, const std::string& expression) {
  return fmt::format(
      R"({{"Name": "{}", "Properties": {{"FilterType": "Sql", "SqlFilter": {{"SqlExpression": "{}"}}}}}})",
      name, expression);
}
const std::string rules_at = "UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[0]";

TEST(ConfigTopics, DefaultsAreTheEmulators) {
  const auto entry = topic_of(topic("Orders", subscription("Audit")));
  EXPECT_EQ(entry.settings.name, "Orders");
  EXPECT_EQ(entry.settings.default_time_to_live, 1h);
  EXPECT_EQ(entry.settings.duplicate_window, 20s);
  EXPECT_FALSE(entry.settings.exchange);
  ASSERT_EQ(entry.subscriptions.size(), 1u);
  const auto& one = entry.subscriptions[0];
  EXPECT_EQ(one.settings.name, "Orders/Subscriptions/Audit");
  EXPECT_EQ(one.settings.default_time_to_live, 1h);
  EXPECT_EQ(one.settings.delivery_count_max, 3u);
  EXPECT_EQ(one.settings.lock_duration, 1min);
  EXPECT_TRUE(one.settings.dead_letter_on_filter_error);
  EXPECT_THAT(one.rules, IsEmpty());
  EXPECT_FALSE(one.binding);
  EXPECT_EQ(one.document, "");
}

TEST(ConfigTopics, EveryPropertyOfATopicArrives) {
  const auto entry = topic_of(R"({"name": "t", "properties": {"DefaultMessageTimeToLive": "P1D",
    "MaxSizeInMegabytes": 2048, "RequiresDuplicateDetection": true,
    "DuplicateDetectionHistoryTimeWindow": "PT5M", "EnableBatchedOperations": true,
    "FilteringMessagesBeforePublishing": false, "IsAnonymousAccessible": false,
    "AuthorizationRules": [{"KeyName": "r", "PrimaryKey": "k", "Rights": ["Send"]}], "Status": "SendDisabled",
    "UserMetadata": "the \"shop\"", "SupportOrdering": true, "AutoDeleteOnIdle": "PT10M",
    "EnablePartitioning": false, "EnableSubscriptionPartitioning": false, "EnableExpress": false,
    "MaxMessageSizeInKilobytes": 2048}, "subscriptions": []})");
  EXPECT_EQ(entry.settings.default_time_to_live, 24h);
  EXPECT_EQ(entry.settings.size_bytes_max, std::uint64_t{2} << 30);
  EXPECT_TRUE(entry.settings.requires_duplicate_detection);
  EXPECT_EQ(entry.settings.duplicate_window, 5min);
  EXPECT_EQ(entry.settings.status, broker::EntityStatus::send_disabled);
  EXPECT_EQ(entry.settings.auto_delete_on_idle, 10min);
  EXPECT_EQ(entry.settings.message_bytes_max, 2u << 20);
  ASSERT_EQ(entry.rules.size(), 1u);
  EXPECT_EQ(entry.rules[0].key_name, "r");
  EXPECT_EQ(entry.user_metadata, "the \"shop\"");
}

TEST(ConfigTopics, EveryPropertyOfASubscriptionArrives) {
  const auto entry = topic_of(
      R"({"Name": "t", "Properties": {"MaxMessageSizeInKilobytes": 4096}, "Subscriptions": [{"Name": "s",
    "Properties": {"LockDuration": "PT5S", "RequiresSession": true, "DefaultMessageTimeToLive": "PT2H",
    "DeadLetteringOnMessageExpiration": true, "DeadLetteringOnFilterEvaluationExceptions": false,
    "MaxDeliveryCount": 7, "EnableBatchedOperations": true, "Status": "ReceiveDisabled", "ForwardTo": "",
    "UserMetadata": "m", "ForwardDeadLetteredMessagesTo": "T", "AutoDeleteOnIdle": "PT5M"}}]})");
  ASSERT_EQ(entry.subscriptions.size(), 1u);
  const auto& settings = entry.subscriptions[0].settings;
  EXPECT_EQ(settings.lock_duration, 5s);
  EXPECT_TRUE(settings.requires_session);
  EXPECT_EQ(settings.default_time_to_live, 2h);
  EXPECT_TRUE(settings.dead_letter_on_expiration);
  EXPECT_FALSE(settings.dead_letter_on_filter_error);
  EXPECT_EQ(settings.delivery_count_max, 7u);
  EXPECT_EQ(settings.status, broker::EntityStatus::receive_disabled);
  EXPECT_EQ(settings.forward_dead_letters_to, "T");
  EXPECT_EQ(settings.auto_delete_on_idle, 5min);
  EXPECT_EQ(settings.message_bytes_max, 4u << 20) << "the topic's";
  EXPECT_EQ(entry.subscriptions[0].user_metadata, "m");
}

TEST(ConfigTopics, MistakesAreNamedWithLineAndKey) {
  const std::string at = "UserConfig.Namespaces[0].Topics[0]";
  EXPECT_THAT(findings_of("7"), ElementsAre("error line 1: " + at + ": expected an object"));
  EXPECT_THAT(findings_of("{}"), ElementsAre("error line 1: " + at + ": 'Name' is missing"));
  EXPECT_THAT(findings_of(R"({"Name": "t", "Propertys": {}})"),
              ElementsAre("error line 1: " + at + ".Propertys: unknown key; did you mean 'Properties'?"));
  EXPECT_THAT(findings_of("{\"Name\": \"t\", \"Properties\": {\n\"LockDuration\": \"PT1M\"}}"),
              ElementsAre("error line 2: " + at + ".Properties.LockDuration: unknown key"));
  EXPECT_THAT(findings_of("{\"Name\": \"t\", \"Properties\": {\n\"AutoDeleteOnIdle\": \"PT1M\"}}"),
              ElementsAre("error line 2: " + at +
                          ".Properties.AutoDeleteOnIdle: AutoDeleteOnIdle of 't' must be at least 5 min"));
  EXPECT_THAT(
      findings_of(
          R"({"Name": "t", "Properties": {"EnableExpress": true, "RequiresDuplicateDetection": true}})"),
      ElementsAre(HasSubstr("do not go together")));
  EXPECT_THAT(
      findings_of(topic("t", subscription("s", R"("MaxSizeInMegabytes": 1024)"))),
      ElementsAre("error line 1: " + at + ".Subscriptions[0].Properties.MaxSizeInMegabytes: unknown key"));
  EXPECT_THAT(findings_of(topic("t", "{\"Name\": \"s\", \"Properties\": {\n\"LockDuration\": \"PT1S\"}}")),
              ElementsAre(HasSubstr("error line 2: " + at + ".Subscriptions[0].Properties.LockDuration: ")));
  EXPECT_THAT(findings_of(topic("t", "{}")),
              ElementsAre("error line 1: " + at + ".Subscriptions[0]: 'Name' is missing"));
  EXPECT_THAT(
      findings_of(topic("t", subscription("a/b") + ",\n" + subscription(std::string(51, 'a')) + ",\n" +
                                 subscription("$s") + ",\n" + subscription("S") + "," + subscription("s"))),
      ElementsAre(HasSubstr("line 1: " + at + ".Subscriptions[0].Name: the name of a subscription has"),
                  HasSubstr("line 2: " + at + ".Subscriptions[1].Name: expected a text of 1 to 50 bytes"),
                  HasSubstr("line 3: " + at + ".Subscriptions[2].Name: the name of a subscription has"),
                  HasSubstr("line 4: " + at + ".Subscriptions[4]: subscription 's' is there twice")));
}

TEST(ConfigTopics, QueuesTopicsAndExchangesShareTheirNames) {
  EXPECT_THAT(
      findings_of(topic("Orders"), ",\n\"Queues\": [{\"Name\": \"orders\"}]"),
      ElementsAre("error line 2: UserConfig.Namespaces[0].Queues[0]: topic 'orders' is there already, "
                  "on line 1"));
  EXPECT_THAT(
      findings_of(topic("a") + ",\n" + topic("A")),
      ElementsAre(HasSubstr("line 2: UserConfig.Namespaces[0].Topics[1]: topic 'A' is there already")));
}

TEST(ConfigTopics, TargetsOfForwardingAreEntitiesOfTheFile) {
  EXPECT_THAT(findings_of(topic("t", subscription("s", R"("ForwardTo": "q")")) + "," + topic("u"),
                          R"(, "Queues": [{"Name": "q", "Properties": {"ForwardTo": "u"}}])"),
              IsEmpty());
  EXPECT_THAT(findings_of(topic("t", subscription("s", R"("ForwardTo": "gone")"))),
              ElementsAre(HasSubstr("Subscriptions[0].Properties.ForwardTo: there is no entity")));
  EXPECT_THAT(findings_of(topic("t", subscription("s", R"("ForwardTo": "u", "RequiresSession": true)")) +
                          "," + topic("u")),
              ElementsAre(HasSubstr("has sessions and cannot forward")));
}

TEST(ConfigTopics, ALoopThroughSubscriptionsIsShown) {
  EXPECT_THAT(findings_of(topic("T", subscription("a") + "," + subscription("b", R"("ForwardTo": "q")")),
                          ",\n\"Queues\": [{\"Name\": \"q\", \"Properties\": {\"ForwardTo\": \"t\"}}]"),
              ElementsAre(testing::AllOf(HasSubstr("messages would go round in a loop: "),
                                         HasSubstr("t -> T/Subscriptions/b -> q"))));
  EXPECT_THAT(findings_of(topic("t", subscription("s", R"("ForwardTo": "T")"))),
              ElementsAre(HasSubstr("loop: t -> t/Subscriptions/s -> T")));
}

TEST(ConfigTopics, QuotasCount) {
  const auto two = topic("a", subscription("x") + "," + subscription("y"));
  const auto with = [&](const std::string& topics, const std::string& quota, const std::string& rest = "") {
    return findings_of(topics, rest, "\"Quotas\": {" + quota + "}");
  };
  EXPECT_THAT(with(two, R"("Entities": 1)"), IsEmpty()) << "subscriptions do not count";
  EXPECT_THAT(with(two + "," + topic("b"), R"("Entities": 2)", R"(, "Queues": [{"Name": "q"}])"),
              ElementsAre(HasSubstr("Queues: 3 entities, 'Quotas.Entities' allows 2")));
  EXPECT_THAT(with(two, R"("SubscriptionsPerTopic": 2)"), IsEmpty());
  EXPECT_THAT(with(two, R"("SubscriptionsPerTopic": 1)"),
              ElementsAre(HasSubstr("Topics[0]: 2 subscriptions, 'Quotas.SubscriptionsPerTopic' allows 1")));
  EXPECT_THAT(with(two, R"("SubscriptionsPerTopic": 0)"), IsEmpty());
  // The rule that a subscription has by itself counts as SQL.
  EXPECT_THAT(with(two, R"("SqlFiltersPerTopic": 1)"),
              ElementsAre(HasSubstr("2 SQL filters, 'Quotas.SqlFiltersPerTopic' allows 1")));
  const auto correlation = [](const char* name) {
    return fmt::format(
        R"({{"Name": "{}", "Properties": {{"FilterType": "Correlation", "CorrelationFilter": {{"To": "a"}}}}}})",
        name);
  };
  const auto rules = with_rules(correlation("a") + "," + correlation("b"));
  EXPECT_THAT(with(rules, R"("CorrelationFiltersPerTopic": 2, "SqlFiltersPerTopic": 1)"), IsEmpty());
  EXPECT_THAT(with(rules, R"("CorrelationFiltersPerTopic": 1)"),
              ElementsAre(HasSubstr("2 correlation filters, 'Quotas.CorrelationFiltersPerTopic' allows 1")));
}

TEST(ConfigTopics, TheProfileDecidesAboutTheSizeOfMessages) {
  const auto reading = read_topics(topic("t", subscription("s")), "", R"("Profile": "Standard")");
  ASSERT_TRUE(reading.config);
  EXPECT_EQ(reading.config->namespaces[0].topics.at(0).settings.message_bytes_max, 256u * 1024);
  EXPECT_EQ(reading.config->namespaces[0].topics[0].subscriptions.at(0).settings.message_bytes_max,
            256u * 1024);
  EXPECT_THAT(findings_of(R"({"Name": "t", "Properties": {"MaxMessageSizeInKilobytes": 1024}})", "",
                          R"("Profile": "Standard")"),
              ElementsAre(HasSubstr("not with the profile")));
}

// Rules

TEST(ConfigRules, SqlFiltersAndActionsArrive) {
  const auto entry = topic_of(with_rules(R"({"Name": "big", "Properties": {"FilterType": "sql",
    "SqlFilter": {"SqlExpression": "amount >\n @least", "Parameters": {"@least": 100}},
    "Action": {"SqlExpression": "SET sys.Label = 'big'"}}},)" +
                                         sql_rule("$Default", "1=1") + "," + sql_rule("none", "1=0")));
  ASSERT_EQ(entry.subscriptions.size(), 1u);
  const auto& rules = entry.subscriptions[0].rules;
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[0].name, "big");
  const auto* sql = std::get_if<rules::SqlFilter>(&rules[0].filter);
  ASSERT_NE(sql, nullptr);
  EXPECT_EQ(sql->expression, "amount >\n @least");
  ASSERT_EQ(sql->parameters.size(), 1u);
  EXPECT_EQ(sql->parameters[0].second, amqp::Value{std::int64_t{100}});
  ASSERT_TRUE(rules[0].action);
  EXPECT_EQ(rules[0].action->expression, "SET sys.Label = 'big'");
  EXPECT_TRUE(std::holds_alternative<rules::TrueFilter>(rules[1].filter));
  EXPECT_FALSE(rules[1].action);
  EXPECT_TRUE(std::holds_alternative<rules::FalseFilter>(rules[2].filter));
}

TEST(ConfigRules, CorrelationFiltersKeepTheTypesOfJson) {
  const auto entry = topic_of(with_rules(R"({"Name": "r", "Properties": {"FilterType": "Correlation",
    "CorrelationFilter": {"ContentType": "application/text", "CorrelationId": "id1", "Label": "subject1",
      "MessageId": "msgid1", "ReplyTo": "someQueue", "ReplyToSessionId": "sessionId", "SessionId": "session1",
      "To": "xyz", "Properties": {"a": "1", "b": 1, "c": 1.5, "d": true, "e": 9223372036854775808}}}})"));
  ASSERT_EQ(entry.subscriptions.size(), 1u);
  const auto* filter = std::get_if<rules::CorrelationFilter>(&entry.subscriptions[0].rules.at(0).filter);
  ASSERT_NE(filter, nullptr);
  EXPECT_EQ(filter->content_type, "application/text");
  EXPECT_EQ(filter->correlation_id, "id1");
  EXPECT_EQ(filter->label, "subject1");
  EXPECT_EQ(filter->message_id, "msgid1");
  EXPECT_EQ(filter->reply_to, "someQueue");
  EXPECT_EQ(filter->reply_to_session_id, "sessionId");
  EXPECT_EQ(filter->session_id, "session1");
  EXPECT_EQ(filter->to, "xyz");
  using Pair = std::pair<std::string, amqp::Value>;
  EXPECT_EQ(filter->properties, (std::vector<Pair>{{"a", amqp::Value{"1"}},
                                                   {"b", amqp::Value{std::int64_t{1}}},
                                                   {"c", amqp::Value{1.5}},
                                                   {"d", amqp::Value{true}},
                                                   {"e", amqp::Value{9223372036854775808.0}}}));
}

TEST(ConfigRules, ABadExpressionIsToldWithItsPosition) {
  EXPECT_THAT(findings_of(with_rules(sql_rule("r", "a = "))),
              ElementsAre(HasSubstr("error line 1: " + rules_at +
                                    ".Properties.SqlFilter.SqlExpression: filter at character 5: ")));
  EXPECT_THAT(findings_of(with_rules(sql_rule("r", "[a\\nb] = sys.gone"))),
              ElementsAre(HasSubstr("there is no system property 'gone'")));
  EXPECT_THAT(findings_of(with_rules(sql_rule("r", std::string(1025, '1')))),
              ElementsAre(HasSubstr("longer than 1024 characters")));
  EXPECT_THAT(findings_of(with_rules(R"({"Name": "r", "Properties": {"FilterType": "Sql",
    "SqlFilter": {"SqlExpression": "a = 1"}, "Action": {"SqlExpression": "SET"}}})")),
              ElementsAre(HasSubstr(rules_at + ".Properties.Action.SqlExpression: action at character 4: ")));
  EXPECT_THAT(findings_of(with_rules(sql_rule("r", "a = @p"))), ElementsAre(HasSubstr("'@p' is not bound")));
  EXPECT_THAT(findings_of(with_rules(sql_rule("r", "a = 1 'x\\ty'"))),
              ElementsAre(testing::Not(HasSubstr("\t"))));
}

TEST(ConfigRules, MistakesAreNamed) {
  const auto one = [](const std::string& rule) {
    const auto found = findings_of(with_rules(rule));
    EXPECT_EQ(found.size(), 1u) << rule;
    return found.empty() ? "" : found[0];
  };
  const auto properties = [&](const std::string& text) {
    return one(R"({"Name": "r", "Properties": {)" + text + "}}");
  };
  EXPECT_THAT(one("[]"), HasSubstr(rules_at + ": expected an object"));
  EXPECT_THAT(one(R"({"Name": "r"})"), HasSubstr(rules_at + ": 'Properties' is missing"));
  EXPECT_THAT(one(R"({"Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "1=1"}}})"),
              HasSubstr("'Name' is missing"));
  EXPECT_THAT(one(sql_rule("a/b", "1=1")), HasSubstr(".Name: the rule name 'a/b' holds '/'"));
  EXPECT_THAT(one(sql_rule("$x", "1=1")), HasSubstr(".Name: "));
  EXPECT_THAT(one(sql_rule("r", "1=1") + "," + sql_rule("R", "1=1")), HasSubstr("rule 'R' is there twice"));
  EXPECT_THAT(properties(""), HasSubstr("'FilterType' is missing"));
  EXPECT_THAT(properties(R"("FilterType": "True")"), HasSubstr("expected \"Sql\" or \"Correlation\""));
  EXPECT_THAT(properties(R"("FilterType": "Sql")"), HasSubstr("'SqlFilter' is missing"));
  EXPECT_THAT(properties(R"("FilterType": "Sql", "SqlFilter": {})"), HasSubstr("'SqlExpression' is missing"));
  EXPECT_THAT(properties(R"("FilterType": "Sql", "SqlFilter": {"SqlExpression": 1})"),
              HasSubstr("expected a text"));
  EXPECT_THAT(properties(R"("FilterType": "Sql", "SqlFilter": {"SqlExpression": "1=1"}, "Filter": 1)"),
              HasSubstr(".Filter: unknown key"));
  EXPECT_THAT(properties(R"("FilterType": "Correlation", "CorrelationFilter": {})"),
              HasSubstr(".CorrelationFilter: "));
  EXPECT_THAT(properties(R"("FilterType": "Correlation", "CorrelationFilter": {"Subject": "a"})"),
              HasSubstr("Subject: unknown key"));
  EXPECT_THAT(properties(R"("FilterType": "Correlation", "CorrelationFilter": {"Properties": {"a": []}})"),
              HasSubstr("Properties.a: expected a text, a number, true or false"));
  EXPECT_THAT(properties(R"("FilterType": "Correlation", "CorrelationFilter": {"To": "a"},
                            "SqlFilter": {"SqlExpression": "1=1"})"),
              HasSubstr("warning line 2: " + rules_at + ".Properties.SqlFilter: has no effect"));
}

}  // namespace
}  // namespace omnibus::node
