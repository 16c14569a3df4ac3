// Queues of the configuration file.
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

ConfigReading read_queues(const std::string& queues, const std::string& rest = "") {
  return read_config("{\"UserConfig\": {\"Namespaces\": [{\"Queues\": [" + queues + "]" + rest + "}]}}", "");
}
std::vector<std::string> findings_of(const std::string& queues, const std::string& rest = "") {
  std::vector<std::string> result;
  const auto reading = read_queues(queues, rest);
  bool has_error = false;
  for (const auto& finding : reading.findings) {
    const bool is_error = finding.severity == Finding::Severity::error;
    has_error |= is_error;
    result.push_back((is_error ? "error " : "warning ") + to_text(finding));
  }
  EXPECT_EQ(reading.config.has_value(), !has_error);
  return result;
}
std::string queue(const std::string& name, const std::string& properties = "") {
  return fmt::format(R"({{"Name": "{}", "Properties": {{{}}}}})", name, properties);
}
broker::QueueSettings settings_of(const std::string& properties) {
  const auto reading = read_queues(queue("q", properties) + "," + queue("other"));
  EXPECT_TRUE(reading.config) << properties;
  return reading.config ? reading.config->namespaces.at(0).queues.at(0).settings : broker::QueueSettings{};
}

// The emulator's defaults are not the cloud's. [HTTP 16.1]
TEST(ConfigQueues, DefaultsAreTheEmulators) {
  const auto settings = settings_of("");
  broker::QueueSettings expected;
  expected.name = "q";
  expected.default_time_to_live = 1h;
  expected.duplicate_window = 20s;
  expected.delivery_count_max = 3;
  EXPECT_EQ(settings, expected);
  EXPECT_THAT(findings_of(R"({"Name": "q"})"), IsEmpty()) << "without properties";
}

TEST(ConfigQueues, EveryPropertyArrives) {
  const auto settings = settings_of(R"("LockDuration": "PT5M", "MaxSizeInMegabytes": 5120,
    "RequiresDuplicateDetection": true, "requiressession": true, "DefaultMessageTimeToLive": "P1DT1S",
    "DeadLetteringOnMessageExpiration": true, "DuplicateDetectionHistoryTimeWindow": "P7D",
    "MaxDeliveryCount": 2000, "EnableBatchedOperations": false, "IsAnonymousAccessible": false,
    "Status": "receivedisabled", "ForwardTo": "", "AutoDeleteOnIdle": "PT5M", "EnablePartitioning": false,
    "ForwardDeadLetteredMessagesTo": "sb://localhost:5672/Other", "EnableExpress": false,
    "MaxMessageSizeInKilobytes": 102400)");
  EXPECT_EQ(settings.lock_duration, 5min);
  EXPECT_EQ(settings.size_bytes_max, std::uint64_t{5} << 30);
  EXPECT_TRUE(settings.requires_duplicate_detection);
  EXPECT_TRUE(settings.requires_session);
  EXPECT_EQ(settings.default_time_to_live, 24h + 1s);
  EXPECT_TRUE(settings.dead_letter_on_expiration);
  EXPECT_EQ(settings.duplicate_window, 7 * 24h);
  EXPECT_EQ(settings.delivery_count_max, 2000u);
  EXPECT_EQ(settings.status, broker::EntityStatus::receive_disabled);
  EXPECT_EQ(settings.forward_to, "");
  EXPECT_EQ(settings.forward_dead_letters_to, "Other");
  EXPECT_EQ(settings.auto_delete_on_idle, 5min);
  EXPECT_EQ(settings.message_bytes_max, 100u << 20);
}

TEST(ConfigQueues, UnlimitedIsUnlimitedInEverySpelling) {
  for (const auto* text : {"P10675199DT2H48M5.4775807S", "P10675199DT2H48M5.477S"}) {
    const auto settings =
        settings_of(fmt::format(R"("DefaultMessageTimeToLive": "{0}", "AutoDeleteOnIdle": "{0}")", text));
    EXPECT_EQ(settings.default_time_to_live, broker::unlimited);
    EXPECT_EQ(settings.auto_delete_on_idle, broker::unlimited);
  }
}

TEST(ConfigQueues, RulesOfAQueueAreKeptWithIt) {
  const auto reading = read_queues(
      queue("q", R"("AuthorizationRules": [{"KeyName": "r", "PrimaryKey": "k", "Rights": ["Send"]}])"));
  ASSERT_TRUE(reading.config);
  ASSERT_EQ(reading.config->namespaces.at(0).queues.at(0).rules.size(), 1u);
  EXPECT_EQ(reading.config->namespaces[0].queues[0].rules[0].key_name, "r");
}

TEST(ConfigQueues, RangesAreJudgedWithTheLineOfTheProperty) {
  const std::string at = "UserConfig.Namespaces[0].Queues[0].Properties.";
  const auto only = [&](const std::string& property) {
    const auto found = findings_of("\n{\"Name\": \"q\", \"Properties\":\n{\n" + property + "}}");
    EXPECT_EQ(found.size(), 1u) << property;
    return found.empty() ? "" : found[0];
  };
  EXPECT_EQ(only(R"("LockDuration": "PT4.999S")"),
            "error line 4: " + at + "LockDuration: LockDuration of 'q' must be 5 s to 5 min");
  EXPECT_EQ(only(R"("lockduration": "PT5M0.001S")"),
            "error line 4: " + at + "LockDuration: LockDuration of 'q' must be 5 s to 5 min");
  EXPECT_THAT(only(R"("DefaultMessageTimeToLive": "PT0S")"), HasSubstr("error line 4: " + at));
  EXPECT_THAT(only(R"("DuplicateDetectionHistoryTimeWindow": "PT19S")"), HasSubstr("error line 4: " + at));
  EXPECT_THAT(only(R"("AutoDeleteOnIdle": "PT4M59S")"), HasSubstr("error line 4: " + at));
  EXPECT_THAT(only(R"("MaxDeliveryCount": 0)"), HasSubstr("expected an integer from 1 to 2000"));
  EXPECT_THAT(only(R"("MaxSizeInMegabytes": 1000)"), HasSubstr("expected one of 1024, 2048"));
  EXPECT_THAT(only(R"("MaxMessageSizeInKilobytes": 1023)"),
              HasSubstr("expected an integer from 1024 to 102400"));
  EXPECT_THAT(only(R"("LockDuration": "1 minute")"), HasSubstr("expected an ISO 8601 duration"));
  EXPECT_THAT(only(R"("LockDuration": "-PT1M")"), HasSubstr("expected an ISO 8601 duration"));
  EXPECT_THAT(only(R"("LockDuration": 60)"), HasSubstr("expected an ISO 8601 duration"));
  EXPECT_THAT(only(R"("RequiresSession": "true")"), HasSubstr("expected true or false"));
  EXPECT_THAT(only(R"("Status": "Creating")"), HasSubstr("expected \"Active\" or \"Disabled\""));
  EXPECT_THAT(only(R"("EnableExpress": true, "RequiresDuplicateDetection": true)"),
              HasSubstr("do not go together"));
}

TEST(ConfigQueues, UnknownKeysAreNamedWithTheirLine) {
  EXPECT_THAT(
      findings_of("{\"Name\": \"q\",\n\"Property\": {}, \"Properties\": {\n\"LockDuratoin\": \"PT1M\"}}"),
      ElementsAre("error line 2: UserConfig.Namespaces[0].Queues[0].Property: unknown key; "
                  "did you mean 'Properties'?",
                  "error line 3: UserConfig.Namespaces[0].Queues[0].Properties.LockDuratoin: unknown "
                  "key; did you mean 'LockDuration'?"));
}

TEST(ConfigQueues, NamesAreJudged) {
  EXPECT_THAT(findings_of("7,\n{},\n" + queue("a//b") + ",\n" + queue("") + ",\n" + queue("$q")),
              ElementsAre(HasSubstr("error line 1: UserConfig.Namespaces[0].Queues[0]: expected an object"),
                          HasSubstr("error line 2: UserConfig.Namespaces[0].Queues[1]: 'Name' is missing"),
                          HasSubstr("error line 3: UserConfig.Namespaces[0].Queues[2].Name: a name has no"),
                          HasSubstr("error line 4: UserConfig.Namespaces[0].Queues[3].Name: expected a text"),
                          HasSubstr("error line 5: UserConfig.Namespaces[0].Queues[4].Name: a name has")));
  EXPECT_THAT(
      findings_of(queue("Orders") + ",\n" + queue("orders")),
      ElementsAre("error line 2: UserConfig.Namespaces[0].Queues[1]: queue 'orders' is there already, on "
                  "line 1"));
}

TEST(ConfigQueues, TargetsOfForwardingExist) {
  EXPECT_THAT(findings_of(queue("a", R"("ForwardTo": "B")") + "," + queue("b")), IsEmpty());
  EXPECT_THAT(
      findings_of(queue("a", R"("ForwardTo": "c")") + ",\n" +
                  queue("b", R"("ForwardDeadLetteredMessagesTo": "sb://h/d")")),
      ElementsAre(HasSubstr("error line 1: UserConfig.Namespaces[0].Queues[0].Properties.ForwardTo: there "
                            "is no entity"),
                  HasSubstr("error line 2: UserConfig.Namespaces[0].Queues[1].Properties."
                            "ForwardDeadLetteredMessagesTo: there is no entity")));
  EXPECT_THAT(findings_of(queue("a", R"("ForwardTo": "A")")),
              ElementsAre(HasSubstr("cannot forward to itself")));
  EXPECT_THAT(findings_of(queue("a", R"("ForwardTo": "b", "RequiresSession": true)") + "," + queue("b")),
              ElementsAre(HasSubstr("cannot forward")));
  EXPECT_THAT(findings_of(queue("a", R"("ForwardTo": "sb://h")")), ElementsAre(HasSubstr("names no entity")));
}

// What went before is the mistake; a target that could not be read is not said to be missing as well.
TEST(ConfigQueues, AMistakeInATargetIsOneFinding) {
  EXPECT_THAT(findings_of(queue("a", R"("ForwardTo": "b")") + "," + queue("b", R"("MaxDeliveryCount": 0)")),
              ElementsAre(HasSubstr("MaxDeliveryCount")));
}

TEST(ConfigQueues, AForwardToATopicIsGoodWhereverTheTopicStands) {
  const std::string queues = queue("a", R"("ForwardTo": "Topic.1")");
  const std::string topics = R"(, "Topics": [{"Name": "topic.1"}])";
  EXPECT_THAT(findings_of(queues, topics), IsEmpty());
  EXPECT_EQ(read_queues(queues, topics).config->namespaces.at(0).queues.at(0).settings.forward_to, "Topic.1");
}

// Clients ask for messages at a subscription; nothing is sent to one. [HTTP 12]
TEST(ConfigQueues, ASubscriptionIsNoTarget) {
  EXPECT_THAT(findings_of(queue("a", R"("ForwardTo": "t/Subscriptions/s")"),
                          R"(, "Topics": [{"Name": "t", "Subscriptions": [{"Name": "s"}]}])"),
              ElementsAre(HasSubstr("ForwardTo: 'subscriptions' cannot be a later segment of a name")));
}

TEST(ConfigQueues, ALoopIsShownAndALongChainIsGood) {
  std::string chain;
  for (int i = 0; i < 9; ++i)
    chain += queue(fmt::format("q{}", i), fmt::format(R"("ForwardTo": "q{}")", i + 1)) + ",";
  EXPECT_THAT(findings_of(chain + queue("q9")), IsEmpty());
  EXPECT_THAT(findings_of(queue("A", R"("ForwardTo": "b")") + ",\n" + queue("b", R"("ForwardTo": "C")") +
                          ",\n" + queue("c", R"("ForwardTo": "b")")),
              ElementsAre("error line 3: UserConfig.Namespaces[0].Queues[2].Properties.ForwardTo: messages "
                          "would go round in a loop: b -> c -> b"));
  // Dead letters are no circle: someone has to fail first.
  EXPECT_THAT(findings_of(queue("a", R"("ForwardTo": "b")") + "," +
                          queue("b", R"("ForwardDeadLetteredMessagesTo": "a")")),
              IsEmpty());
  EXPECT_THAT(
      findings_of(chain + queue("q9", R"("ForwardTo": "q0")")),
      ElementsAre(HasSubstr("loop: q0 -> q1 -> q2 -> q3 -> q4 -> ... -> q6 -> q7 -> q8 -> q9 -> q0")));
}

TEST(ConfigQueues, TheProfileDecidesAboutTheSizeOfMessages) {
  const auto read = [](const std::string& properties, const char* profile) {
    return read_config(fmt::format(R"({{"UserConfig": {{"Namespaces": [{{"Queues": [{}]}}]}},
        "Omnibus": {{"Profile": "{}"}}}})",
                                   queue("q", properties), profile),
                       "");
  };
  const auto bytes = [](const ConfigReading& reading) {
    return reading.config ? reading.config->namespaces.at(0).queues.at(0).settings.message_bytes_max : 0;
  };
  EXPECT_EQ(bytes(read("", "Premium")), 1024u * 1024);
  EXPECT_EQ(bytes(read("", "Standard")), 256u * 1024);
  EXPECT_EQ(bytes(read(R"("MaxMessageSizeInKilobytes": 2048)", "Premium")), 2048u * 1024);
  EXPECT_FALSE(read(R"("MaxMessageSizeInKilobytes": 2048)", "Standard").config);
}

// P5, P17, P56
TEST(ConfigQueues, PartitionedEntitiesHaveTheirCountAndTheirQuota) {
  const auto with = [](std::string_view omnibus) {
    return read_config(fmt::format(R"({{"UserConfig": {{"Namespaces": [{{
        "Queues": [{{"Name": "q", "Properties": {{"EnablePartitioning": true, "MaxSizeInMegabytes": 2048}}}},
                   {{"Name": "plain"}}],
        "Topics": [{{"Name": "t", "Properties": {{"EnablePartitioning": true}},
                    "Subscriptions": [{{"Name": "s"}}]}}]
        }}]}}, "Omnibus": {{{}}}}})",
                                   omnibus),
                       "");
  };
  const auto reading = with(R"("PartitionCount": 8)");
  ASSERT_TRUE(reading.config);
  const auto& space = reading.config->namespaces.at(0);
  EXPECT_TRUE(space.queues.at(0).settings.is_partitioned);
  EXPECT_EQ(space.queues.at(0).settings.partition_count, 8) << "said behind the queue";
  EXPECT_EQ(space.queues.at(0).settings.size_bytes_max, std::uint64_t{2} << 30) << "of each partition";
  EXPECT_EQ(space.queues.at(1).settings.partition_count, 1);
  EXPECT_EQ(space.topics.at(0).settings.partition_count, 8);
  EXPECT_EQ(with("").config->namespaces.at(0).queues.at(0).settings.partition_count, 16);
  EXPECT_TRUE(with(R"("Quotas": {"PartitionedEntities": 2})").config);
  const auto refused = with(R"("Quotas": {"PartitionedEntities": 1})");
  EXPECT_FALSE(refused.config);
  EXPECT_THAT(to_text(refused.findings.at(0)), HasSubstr("'Quotas.PartitionedEntities' allows 1"));
  EXPECT_TRUE(with(R"("Quotas": {"PartitionedEntities": 0})").config) << "no limit";
}

TEST(ConfigQueues, TheQuotaOfEntitiesCounts) {
  const auto read = [](int quota) {
    return read_config(fmt::format(R"({{"Omnibus": {{"Quotas": {{"Entities": {}}}}},
        "UserConfig": {{"Namespaces": [{{"Queues": [{}, {}]}}]}}}})",
                                   quota, queue("a"), queue("b")),
                       "")
        .config.has_value();
  };
  EXPECT_TRUE(read(2));
  EXPECT_FALSE(read(1));
  EXPECT_TRUE(read(0));
}

}  // namespace
}  // namespace omnibus::node
