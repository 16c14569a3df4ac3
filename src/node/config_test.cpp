#include "node/config.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "auth/jwt_fixture.hpp"
#include "node/config_reader.hpp"

namespace omnibus::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

std::vector<std::string> texts(const ConfigReading& reading) {
  std::vector<std::string> result;
  for (const auto& finding : reading.findings)
    result.push_back((finding.severity == Finding::Severity::error ? "error " : "warning ") +
                     to_text(finding));
  return result;
}
ConfigReading read(std::string_view text) { return read_config(text, "/nonexistent"); }
ConfigReading read_settings(const std::string& keys) { return read("{\"Omnibus\": {" + keys + "}}"); }
std::vector<std::string> findings_of(const std::string& keys) { return texts(read_settings(keys)); }
std::vector<std::string> namespace_findings(const std::string& keys) {
  return texts(read("{\"UserConfig\": {\"Namespaces\": [{" + keys + "}]}}"));
}

// A folder of the test's own with a few files in it.
class ConfigFiles : public testing::Test {
 protected:
  ConfigFiles() { std::filesystem::create_directories(folder); }
  ~ConfigFiles() override { std::filesystem::remove_all(folder); }
  void put(const std::string& name, std::string_view text) const {
    std::ofstream(folder / name, std::ios::binary) << text;
  }
  [[nodiscard]] ConfigReading read_here(const std::string& keys) const {
    return read_config("{\"Omnibus\": {" + keys + "}}", folder.string());
  }
  std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) /
      (std::string("omnibus_") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST(Config, AnEmptyFileIsTheDefaults) {
  const auto reading = read("{}");
  ASSERT_TRUE(reading.config);
  EXPECT_THAT(reading.findings, IsEmpty());
  EXPECT_EQ(reading.config->frame_bytes_max, 65536u);
  EXPECT_EQ(reading.config->token_wait, 20s);
  EXPECT_THAT(reading.config->namespaces, IsEmpty());
}

// In the form of the emulator's own sample: comments, every section.
TEST(Config, AnEmulatorFileLoads) {
  const auto reading = read(R"(// the shop
{
  "UserConfig": {
    "Namespaces": [
      {
        "Name": "sbemulatorns",
        "Queues": [ // one
          { "Name": "queue.1", "Properties": { "LockDuration": "PT1M", "MaxDeliveryCount": 3 } }
        ],
        "Topics": [
          { "Name": "topic.1", "Properties": { "DefaultMessageTimeToLive": "PT1H" },
            "Subscriptions": [ { "Name": "sub.1", "Rules": [ { "Name": "r", "Properties": {
              "FilterType": "Correlation", "CorrelationFilter": { "ContentType": "application/text" } } } ] } ] }
        ]
      }
    ],
    "Logging": { "Type": "File" } /* as the sample has it */
  }
}
)");
  ASSERT_TRUE(reading.config);
  EXPECT_THAT(texts(reading), IsEmpty());
  ASSERT_EQ(reading.config->namespaces.size(), 1u);
  EXPECT_EQ(reading.config->namespaces[0].name, "sbemulatorns");
  EXPECT_EQ(reading.config->namespaces[0].queues.size(), 1u);
  EXPECT_EQ(reading.config->namespaces[0].topics.size(), 1u);
}

TEST(Config, AnEventHubsFileLoadsWithAWarning) {
  const auto reading = read(R"({ "UserConfig": {
    "NamespaceConfig": [ { "Type": "EventHub", "Name": "emulatorNs1", "Entities": [ { "Name": "eh1" } ] } ],
    "LoggingConfig": { "Type": "Console,File" } } })");
  EXPECT_TRUE(reading.config);
  EXPECT_THAT(texts(reading), ElementsAre("warning line 2: UserConfig.NamespaceConfig: entities are not "
                                          "supported yet and were ignored"));
}

TEST(Config, EmptyListsOfEntitiesAreNoReasonToWarn) {
  EXPECT_THAT(namespace_findings(R"("Queues": [], "Topics": [], "Exchanges": [], "Scripts": [])"), IsEmpty());
  EXPECT_THAT(namespace_findings(R"("Exchanges": {}, "Scripts": 1, "Topics": "", "Queues": null)").size(),
              4u);
  EXPECT_THAT(namespace_findings(R"("Queues": {})"),
              ElementsAre("error line 1: UserConfig.Namespaces[0].Queues: expected an array"));
}

TEST(Config, EmulatorKeysAreReadInAnyLetterCase) {
  const auto reading = read(R"({ "USERCONFIG": { "namespaces": [ { "name": "shop",
    "authorizationrules": [ { "keyname": "r", "primarykey": "k", "rights": [ "send", "LISTEN" ] } ] } ],
    "logging": { "type": "console" } } })");
  EXPECT_THAT(texts(reading), IsEmpty());
  ASSERT_TRUE(reading.config);
  const auto& space = reading.config->namespaces.at(0);
  EXPECT_EQ(space.name, "shop");
  EXPECT_EQ(space.rules.at(0).primary_key, "k");
  EXPECT_THAT(space.rules.at(0).rights, ElementsAre(auth::Right::send, auth::Right::listen));
}

TEST(Config, TwoSpellingsOfOneKeyAreTwins) {
  EXPECT_THAT(namespace_findings("\"Name\": \"a\",\n\"NAME\": \"b\""),
              ElementsAre("error line 2: UserConfig.Namespaces[0].NAME: the same key as 'Name' on line 1"));
}

TEST(Config, UnknownKeysBesideTheEmulatorsAreWarnings) {
  const auto reading = read("{ \"Extra\": 1,\n\"UserConfig\": { \"Namespace\": [] } }");
  EXPECT_TRUE(reading.config);
  EXPECT_THAT(texts(reading),
              ElementsAre("warning line 1: Extra: unknown key, ignored",
                          "warning line 2: UserConfig.Namespace: unknown key, ignored; did you mean "
                          "'Namespaces'?"));
}

TEST(Config, OurKeysAreExact) {
  EXPECT_THAT(
      findings_of(
          "\n\"requireTls\": true,\n\"TokenSecond\": 1,\n\"Colour\": 1,\n\"Quotas\": {\"Conections\": 1}"),
      ElementsAre("error line 2: Omnibus.requireTls: unknown key; this one is written 'RequireTls'",
                  "error line 3: Omnibus.TokenSecond: unknown key; did you mean 'TokenSeconds'?",
                  "error line 4: Omnibus.Colour: unknown key",
                  "error line 5: Omnibus.Quotas.Conections: unknown key; did you mean 'Connections'?"));
  EXPECT_THAT(texts(read(R"({"omnibus": {"RequireTls": true}})")),
              ElementsAre("error line 1: omnibus: unknown key; this one is written 'Omnibus'"));
  EXPECT_THAT(namespace_findings(R"("exchanges": [])"),
              ElementsAre(HasSubstr("this one is written 'Exchanges'")));
}

TEST(Config, DuplicateKeysAreErrorsWhereverTheyAre) {
  const auto reading = read(
      "{\"Omnibus\": {\"Auth\": \"On\",\n\"Auth\": \"Off\"},\n\"UserConfig\": {\"Namespaces\": "
      "[{\"Queues\": [\n{\"Name\": 1, \"Name\": 2}]}]}}");
  EXPECT_FALSE(reading.config);
  EXPECT_THAT(texts(reading),
              ElementsAre("error line 2: Omnibus.Auth: the key is there twice in this object",
                          "error line 4: UserConfig.Namespaces[0].Queues[0].Name: the key is there twice in "
                          "this object",
                          "error line 4: UserConfig.Namespaces[0].Queues[0].Name: expected a text"));
}

TEST(Config, AllMistakesAreReportedAtOnceInTheOrderOfLines) {
  const auto reading = read(R"({
  "Omnibus": {
    "MaxFrameBytes": 300000,
    "Shards": -1,
    "Listen": [ "localhost", "127.0.0.1:70000" ],
    "Profile": "Standard",
    "Quotas": { "Connections": "many" }
  },
  "UserConfig": { "Logging": { "Type": "Printer" } }
})");
  EXPECT_FALSE(reading.config);
  EXPECT_THAT(texts(reading),
              ElementsAre("error line 3: Omnibus.MaxFrameBytes: at most 262144 with the profile \"Standard\"",
                          "error line 4: Omnibus.Shards: expected an integer from 0 to 256",
                          "error line 5: Omnibus.Listen[0]: expected \"HOST:PORT\", the port from 0 to 65535",
                          "error line 5: Omnibus.Listen[1]: expected \"HOST:PORT\", the port from 0 to 65535",
                          "error line 7: Omnibus.Quotas.Connections: expected an integer of at least 0",
                          "error line 9: UserConfig.Logging.Type: expected \"File\" or \"Console\" or "
                          "\"File,Console\" or \"Console,File\""));
}

TEST(Config, BrokenJsonIsOneFinding) {
  const auto reading = read("{\n\"Omnibus\": {\n}");
  EXPECT_FALSE(reading.config);
  ASSERT_EQ(reading.findings.size(), 1u);
  EXPECT_THAT(texts(reading)[0], HasSubstr("error line 3: not valid JSON at column 2: "));
  EXPECT_FALSE(read("[]").config);
  EXPECT_FALSE(read(R"({"Omnibus": []})").config);
}

TEST(Config, FindingsAreBounded) {
  const auto with = [](std::size_t count) {
    std::string keys;
    for (std::size_t i = 0; i < count; ++i) keys += fmt::format("{}\"Strange{}\": 1", i == 0 ? "" : ",", i);
    return read_settings(keys);
  };
  EXPECT_EQ(with(findings_max).findings.size(), findings_max);
  const auto more = with(findings_max + 2);
  ASSERT_EQ(more.findings.size(), findings_max + 1);
  EXPECT_EQ(to_text(more.findings.back()),
            "2 more findings are not shown; 'omnibus config check' says every one");
}

TEST(Config, AllFindingsAreKeptForWhoAsks) {
  constexpr std::size_t count = 15 * findings_max;
  std::string text = "{\"Omnibus\": {";
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("{}\n\"Strange{}\": 1", i == 0 ? "" : ",", i);
  const auto all = read_config(text + "}}", "/nonexistent", ConfigScope::whole, FindingsKept::all);
  EXPECT_FALSE(all.config);
  ASSERT_EQ(all.findings.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(all.findings[i].line, i + 2);
    EXPECT_EQ(all.findings[i].key, fmt::format("Omnibus.Strange{}", i));
  }
}

// The keys of twins deep inside are what costs most: 8 KiB each. The text of the file is small beside them.
TEST(Config, AllFindingsAreBoundedByTheirBytes) {
  constexpr std::size_t levels = 60;
  const std::string key(128, 'k');
  std::string text;
  for (std::size_t i = 0; i < levels; ++i) text += fmt::format("{{\"{}\":", key);
  constexpr std::size_t twins = 10'000;
  text += "{\"a\":0";
  for (std::size_t i = 0; i < twins; ++i) text += ",\n\"a\":0";
  text += std::string(levels + 1, '}');
  const auto all = read_config(text, "/nonexistent", ConfigScope::whole, FindingsKept::all);
  EXPECT_FALSE(all.config);
  std::size_t bytes = 0;
  for (const auto& finding : all.findings)
    bytes += sizeof(Finding) + finding.key.size() + finding.text.size();
  EXPECT_GT(bytes, findings_bytes_max * 99 / 100);
  EXPECT_LT(bytes, findings_bytes_max + 1024);
  const auto shown = all.findings.size() - 1;
  ASSERT_LT(shown, twins);
  // One more is the unknown key at the top.
  EXPECT_EQ(all.findings.back().text, fmt::format("{} more findings are not shown", twins + 1 - shown));
}

// A queue with a mistake has a name all the same: who has it too, and who forwards to nobody, is told at once
// and not after the first repair.
TEST(Config, OneMistakeHidesNoOther) {
  EXPECT_THAT(
      namespace_findings(R"("Queues": [
      {"Name": "a", "Properties": {"LockDuration": "PT1S", "MaxDeliveryCount": 0, "DefaultMessageTimeToLive": "PT0S"}},
      {"Name": "A", "Properties": {"ForwardTo": "nobody", "RequiresSession": "yes"}},
      {"Name": "b", "Properties": {"ForwardTo": "a", "ForwardDeadLetteredMessagesTo": "nobody", "Colour": 1}}],
    "Topics": [{"Name": "t", "Properties": {"AutoDeleteOnIdle": "PT1S"}, "Subscriptions": [
      {"Name": "s", "Properties": {"LockDuration": "PT1S", "ForwardTo": "nobody"}},
      {"Name": "S", "Rules": [{"Name": "r", "Properties": {}}, {"Name": "r", "Properties": 1}]}]}])"),
      ElementsAre(HasSubstr("line 2: UserConfig.Namespaces[0].Queues[0].Properties.MaxDeliveryCount"),
                  HasSubstr("line 2: UserConfig.Namespaces[0].Queues[0].Properties.LockDuration"),
                  HasSubstr("line 2: UserConfig.Namespaces[0].Queues[0].Properties.DefaultMessage"),
                  HasSubstr("line 3: UserConfig.Namespaces[0].Queues[1].Properties.RequiresSession"),
                  HasSubstr("line 3: UserConfig.Namespaces[0].Queues[1]: queue 'A' is there already"),
                  HasSubstr("line 4: UserConfig.Namespaces[0].Queues[2].Properties.Colour"),
                  HasSubstr("Queues[2].Properties.ForwardDeadLetteredMessagesTo: there is no entity"),
                  HasSubstr("line 5: UserConfig.Namespaces[0].Topics[0].Properties.AutoDeleteOnIdle"),
                  HasSubstr("line 6: UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Properties.LockD"),
                  HasSubstr("Subscriptions[0].Properties.ForwardTo: there is no entity"),
                  HasSubstr("Subscriptions[1].Rules[0].Properties: 'FilterType' is missing"),
                  HasSubstr("Subscriptions[1].Rules[1].Properties: expected an object"),
                  HasSubstr("Subscriptions[1].Rules[1]: rule 'r' is there twice"),
                  HasSubstr("Subscriptions[1]: subscription 'S' is there twice")));
}

// What has no name that could be read may be the one that seems to be missing.
TEST(Config, NobodyIsMissedWhereANameCouldNotBeRead) {
  const std::string forward = R"("Queues": [{"Name": "a", "Properties": {"ForwardTo": "b"}})";
  EXPECT_THAT(namespace_findings(forward + "]"), ElementsAre(HasSubstr("there is no entity of this name")));
  EXPECT_THAT(namespace_findings(forward + R"(, {"Nmae": "b"}])"),
              ElementsAre(HasSubstr("unknown key"), HasSubstr("'Name' is missing")));
  EXPECT_THAT(namespace_findings(forward + "], \"Topics\": {}"), ElementsAre(HasSubstr("expected an array")));
  EXPECT_THAT(namespace_findings(forward + "], \"exchanges\": []"), ElementsAre(HasSubstr("'Exchanges'")));
  EXPECT_THAT(namespace_findings(forward + R"(], "Queues": [{"Name": "b"}])"),
              ElementsAre(HasSubstr("the key is there twice")));
}

TEST(Config, SettingsArriveWhereTheyBelong) {
  const auto reading = read_settings(R"("Profile": "Standard", "Auth": "Off", "RequireTls": true,
    "Listen": ["127.0.0.1:0", "[::1]:5672", "*:443", "localhost:65535"], "Shards": 3, "MaxFrameBytes": 262144,
    "Stores": 4, "StoreFolders": ["/disk1", "/disk2"],
    "LinksPerConnection": 7, "IdleTimeOutSeconds": 5, "GreetingSeconds": 2, "WriteTimeoutSeconds": 3,
    "TokenSeconds": 0, "NoLinkSeconds": 11, "IdleConnectionSeconds": 12, "IdleLinkSeconds": 13,
    "TransactionSeconds": 14, "AuditLog": "/var/log/audit.jsonl", "AuditLogMegabytes": 15,
    "AuditLogFiles": 16, "Metrics": {"Open": false, "EntitiesMax": 8},
    "Quotas": {"Connections": 9, "Entities": 1, "ReceivesPerEntity": 2, "HttpRequests": 3,
               "TransactionsPerConnection": 4, "MessagesPerTransaction": 5, "OperationsPerTransaction": 0,
               "ReservedNumbers": 7}, "Tls": {"Names": ["broker.test"]})");
  EXPECT_THAT(texts(reading), IsEmpty());
  ASSERT_TRUE(reading.config);
  const auto& config = *reading.config;
  EXPECT_EQ(config.profile, Config::Profile::standard);
  EXPECT_FALSE(config.auth_on);
  EXPECT_TRUE(config.require_tls);
  EXPECT_THAT(config.listen, ElementsAre("127.0.0.1:0", "[::1]:5672", "*:443", "localhost:65535"));
  EXPECT_EQ(config.shards, 3u);
  EXPECT_EQ(config.stores, 4u);
  EXPECT_THAT(config.store_folders, ElementsAre("/disk1", "/disk2"));
  EXPECT_EQ(config.frame_bytes_max, 262144u);
  EXPECT_EQ(config.links_per_connection_max, 7u);
  EXPECT_EQ(config.idle_time_out, 5s);
  EXPECT_EQ(config.greeting_wait, 2s);
  EXPECT_EQ(config.write_wait, 3s);
  EXPECT_EQ(config.token_wait, 0s);
  EXPECT_EQ(config.no_link_wait, 11s);
  EXPECT_EQ(config.idle_connection, 12s);
  EXPECT_EQ(config.idle_link, 13s);
  EXPECT_EQ(config.connections_max, 9u);
  EXPECT_EQ(config.receivers_per_entity_max, 2u);
  EXPECT_EQ(config.http_requests_max, 3u);
  EXPECT_EQ(config.transactions_per_connection_max, 4u);
  EXPECT_EQ(config.messages_per_transaction_max, 5u);
  EXPECT_EQ(config.operations_per_transaction_max, 0u);
  EXPECT_EQ(config.reserved_numbers_max, 7u);
  EXPECT_EQ(config.transaction_time, 14s);
  EXPECT_EQ(config.audit_log, "/var/log/audit.jsonl");
  EXPECT_EQ(config.audit_log_mb, 15u);
  EXPECT_EQ(config.audit_log_files, 16u);
  EXPECT_EQ(config.metrics_open, std::optional{false});
  EXPECT_EQ(config.metrics_entities_max, 8u);
  EXPECT_THAT(config.tls.names, ElementsAre("broker.test"));
}

TEST(Config, WrongTypesSayWhatIsExpected) {
  EXPECT_THAT(findings_of(R"("Auth": true)"), ElementsAre(HasSubstr(R"(expected "On" or "Off")")));
  EXPECT_THAT(findings_of(R"("Auth": "off")"), ElementsAre(HasSubstr(R"(expected "On" or "Off")")));
  EXPECT_THAT(findings_of(R"("RequireTls": "true")"), ElementsAre(HasSubstr("expected true or false")));
  EXPECT_THAT(findings_of(R"("Shards": 1.5)"), ElementsAre(HasSubstr("expected an integer")));
  EXPECT_THAT(findings_of(R"("Stores": 1025)"), ElementsAre(HasSubstr("expected an integer from 0 to 1024")));
  EXPECT_THAT(findings_of(R"("StoreFolders": ["disk"])"),
              ElementsAre(HasSubstr("expected an absolute path")));
  EXPECT_THAT(findings_of(R"("StoreFolders": ["/a", "/a"])"),
              ElementsAre(HasSubstr("two stores cannot share")));
  EXPECT_THAT(findings_of(R"("Shards": 99999999999999999999)"),
              ElementsAre(HasSubstr("expected an integer")));
  EXPECT_THAT(findings_of(R"("Listen": "a:1")"), ElementsAre(HasSubstr("expected an array")));
  EXPECT_THAT(findings_of(R"("Listen": [1])"), ElementsAre(HasSubstr("Omnibus.Listen[0]: expected a text")));
  EXPECT_THAT(findings_of(R"("Quotas": null)"), ElementsAre(HasSubstr("expected an object")));
  for (const auto* address :
       {"", ":1", "a:", "a:b", "::1:5672", "[]:1", "a:-1", "a:+1", "a b:1", "amqp://a:1"})
    EXPECT_FALSE(read_settings(fmt::format("\"Listen\": [\"{}\"]", address)).config) << address;
}

TEST(Config, WhatIsNotUsedYetIsCheckedAndSaid) {
  const auto reading = read_settings(R"("PartitionCount": 4, "AnonymousTerminus": true)");
  EXPECT_TRUE(reading.config);
  EXPECT_THAT(texts(reading), ElementsAre("warning line 1: Omnibus.AnonymousTerminus: not used yet"));
  EXPECT_EQ(reading.config->partition_count, 4);
  EXPECT_FALSE(read_settings(R"("PartitionCount": 33)").config);
  EXPECT_FALSE(read_settings(R"("PartitionCount": 1)").config);
  EXPECT_TRUE(read_settings(R"("StoreSwitch": true)").config->store_switch);
  EXPECT_FALSE(read_settings(R"("AnonymousTerminus": 1)").config);
}

TEST(Config, TheStandardFrameLimitDoesNotDependOnTheOrderOfKeys) {
  EXPECT_TRUE(read_settings(R"("MaxFrameBytes": 262144, "Profile": "Standard")").config);
  EXPECT_FALSE(read_settings(R"("MaxFrameBytes": 262145, "Profile": "Standard")").config);
  EXPECT_FALSE(read_settings(R"("Profile": "Standard", "MaxFrameBytes": 262145)").config);
  EXPECT_TRUE(read_settings(R"("MaxFrameBytes": 262145, "Profile": "Premium")").config);
}

TEST(Config, FurtherNamespacesHaveNamesAndHostNamesOfTheirOwn) {
  const auto good = read(R"({"UserConfig": {"Namespaces": [
      {"Queues": [{"Name": "orders"}]},
      {"Name": "billing", "HostNames": ["billing.test"], "Queues": [{"Name": "orders"}]}]}})");
  ASSERT_TRUE(good.config) << (texts(good).empty() ? "" : texts(good).front());
  EXPECT_EQ(good.config->namespaces.at(1).name, "billing");
  EXPECT_EQ(good.config->namespaces.at(1).queues.size(), 1u) << "names of entities are a namespace's own";

  const auto bad = read(
      "{\"UserConfig\": {\"Namespaces\": [{\"HostNames\": [\"a.test\"]},\n{},\n{\"Name\": \"a.b\"},\n"
      "{\"Name\": \"SBEmulatorNS\"},\n{\"Name\": \"c\", \"HostNames\": [\"a.test\"]},\n"
      "{\"Name\": \"d\", \"HostNames\": [\"sbemulatorns.localhost\"]}]}}");
  EXPECT_FALSE(bad.config);
  EXPECT_THAT(
      texts(bad),
      ElementsAre("error line 2: UserConfig.Namespaces[1]: 'Name' is missing",
                  HasSubstr("line 3: UserConfig.Namespaces[2].Name: expected 1 to 63 letters"),
                  "error line 4: UserConfig.Namespaces[3]: another namespace has this name",
                  "error line 5: UserConfig.Namespaces[4]: another namespace has one of its host names",
                  "error line 6: UserConfig.Namespaces[5]: another namespace has one of its host names"));
}

TEST(Config, HostNamesBecomeLowerCaseAndAreThereOnce) {
  const auto reading = read(R"({"UserConfig": {"Namespaces": [{"HostNames": ["Shop.Test"]}]}})");
  ASSERT_TRUE(reading.config);
  EXPECT_THAT(reading.config->namespaces.at(0).host_names, ElementsAre("shop.test"));
  EXPECT_THAT(namespace_findings(R"("HostNames": ["a.test", "A.test", "b:1"])"),
              ElementsAre(HasSubstr("HostNames[1]: the host name is there twice"),
                          HasSubstr("HostNames[2]: expected letters")));
}

TEST(Config, RulesAreJudgedWithTheirLine) {
  EXPECT_THAT(
      namespace_findings(
          "\"AuthorizationRules\": [\n{\"KeyName\": \"a\", \"PrimaryKey\": \"k\", \"Rights\": [\"Send\"]},\n"
          "{\"KeyName\": \"A\", \"PrimaryKey\": \"k\", \"Rights\": [\"Send\"]},\n"
          "{\"KeyName\": \"m\", \"PrimaryKey\": \"k\", \"Rights\": [\"Manage\"]},\n"
          "{\"KeyName\": \"n\", \"PrimaryKey\": \"two words\", \"Rights\": [\"Send\"]},\n"
          "{\"PrimaryKey\": \"k\", \"Rights\": []},\n"
          "{\"KeyName\": \"o\", \"Rights\": [\"Sned\"]},\n"
          "{\"KeyName\": \"p\", \"Rights\": [\"Send\"]},\n 7]"),
      ElementsAre(
          "error line 3: UserConfig.Namespaces[0].AuthorizationRules[1]: rule 'A' is there twice",
          HasSubstr("error line 4: UserConfig.Namespaces[0].AuthorizationRules[2]: rule 'm' has Manage"),
          HasSubstr("error line 5: UserConfig.Namespaces[0].AuthorizationRules[3]: the primary key of "
                    "rule 'n'"),
          HasSubstr("error line 6: UserConfig.Namespaces[0].AuthorizationRules[4].Rights: expected at "
                    "least one"),
          "error line 6: UserConfig.Namespaces[0].AuthorizationRules[4]: 'KeyName' is missing",
          HasSubstr("error line 7: UserConfig.Namespaces[0].AuthorizationRules[5].Rights[0]: expected"),
          HasSubstr("warning line 8: UserConfig.Namespaces[0].AuthorizationRules[6]: neither"),
          "error line 9: UserConfig.Namespaces[0].AuthorizationRules[7]: expected an object"));
}

TEST(Config, TwelveRulesAndNotOneMore) {
  const auto with = [](int count) {
    std::string rules;
    for (int i = 0; i < count; ++i)
      rules += fmt::format(R"({}{{"KeyName": "r{}", "PrimaryKey": "k", "Rights": ["Send"]}})",
                           i == 0 ? "" : ",", i);
    return namespace_findings("\"AuthorizationRules\": [" + rules + "]");
  };
  EXPECT_THAT(with(12), IsEmpty());
  EXPECT_THAT(with(13), ElementsAre(HasSubstr("AuthorizationRules: expected an array of at most 12")));
}

TEST_F(ConfigFiles, CertificatesAreNamedFromTheFolderOfTheFile) {
  put("server.pem", "PEM");
  put("server.key", "PEM");
  put("ca.pem", "PEM");
  const auto reading = read_here(R"("Tls": {"CertificateFile": "server.pem", "KeyFile": "server.key",
    "ClientCaFile": "ca.pem", "Names": ["a.test"]},
    "ClientCertificates": [{"Name": "CN=shop", "Rights": ["Send"]}])");
  EXPECT_THAT(texts(reading), ElementsAre(HasSubstr("warning line 2: Omnibus.Tls.Names: has no effect")));
  ASSERT_TRUE(reading.config);
  EXPECT_EQ(reading.config->tls.certificate_file, (folder / "server.pem").string());
  EXPECT_EQ(reading.config->tls.key_file, (folder / "server.key").string());
  EXPECT_EQ(reading.config->tls.client_ca_file, (folder / "ca.pem").string());
  EXPECT_EQ(reading.config->client_certificates.at(0).name, "CN=shop");
  EXPECT_EQ(reading.config->client_certificates.at(0).rights, auth::Rights{auth::Right::send});
}

TEST_F(ConfigFiles, HalfACertificateIsAnError) {
  put("x.pem", "PEM");
  EXPECT_THAT(texts(read_here(R"("Tls": {"CertificateFile": "x.pem"})")),
              ElementsAre("error line 1: Omnibus.Tls: 'CertificateFile' needs 'KeyFile'"));
  EXPECT_THAT(texts(read_here(R"("Tls": {"KeyFile": "x.pem"})")),
              ElementsAre("error line 1: Omnibus.Tls: 'KeyFile' needs 'CertificateFile'"));
  EXPECT_THAT(texts(read_here(R"("Tls": {"ClientCaFile": "gone.pem"})")),
              ElementsAre(testing::AllOf(HasSubstr("Omnibus.Tls.ClientCaFile: cannot open '"),
                                         HasSubstr("gone.pem"))));
  EXPECT_THAT(texts(read_here(R"("Tls": {"ClientCaFile": "."})")),
              ElementsAre(HasSubstr("is not a plain file")));
  EXPECT_THAT(findings_of(R"("ClientCertificates": [{"Name": "a", "Rights": ["Send"]}])"),
              ElementsAre(HasSubstr("Omnibus.ClientCertificates: needs 'Tls.ClientCaFile'")));
}

TEST_F(ConfigFiles, ClientCertificatesAreChecked) {
  put("ca.pem", "PEM");
  EXPECT_THAT(
      texts(
          read_here("\"Tls\": {\"ClientCaFile\": \"ca.pem\"}, \"ClientCertificates\": [\n"
                    "{\"Name\": \"a\", \"Rights\": [\"Send\"]},\n{\"Name\": \"a\", \"Rights\": [\"Send\"]},\n"
                    "{\"Rights\": [\"Send\"]},\n{\"Name\": \"b\", \"rights\": [\"Send\"]}]")),
      ElementsAre(HasSubstr("error line 3: Omnibus.ClientCertificates[1]: a certificate of this name"),
                  HasSubstr("error line 4: Omnibus.ClientCertificates[2]: 'Name' is missing"),
                  HasSubstr("error line 5: Omnibus.ClientCertificates[3].rights: unknown key"),
                  HasSubstr("error line 5: Omnibus.ClientCertificates[3]: 'Rights' is missing")));
}

// The issuer that was read verifies a token of another implementation.
TEST_F(ConfigFiles, AnIssuerThatWasReadJudgesTokens) {
  put("keys.json", auth::fixture::jwks);
  const auto from_file =
      fmt::format(R"("JwtIssuers": [{{"Issuer": "{}", "JwksFile": "keys.json"}}])", auth::fixture::issuer);
  // Comments are for people: inside the inline document too.
  const auto inlined = fmt::format(R"("JwtIssuers": [{{"Issuer": "{}", "Jwks": /* public */ {}}}])",
                                   auth::fixture::issuer, auth::fixture::jwks);
  for (const auto& keys : {from_file, inlined}) {
    const auto reading = read_here(keys);
    EXPECT_THAT(texts(reading), IsEmpty());
    ASSERT_TRUE(reading.config);
    auth::JwtIssuers issuers;
    ASSERT_TRUE(issuers.add(reading.config->jwt_issuers.at(0)));
    const auto grant = issuers.validate(auth::fixture::rs256, "orders", Instant{1'800'000'000s});
    ASSERT_TRUE(grant) << grant.error().detail;
    EXPECT_EQ(grant->rights, auth::Rights{auth::Right::send});
  }
}

TEST_F(ConfigFiles, ASecretFileLosesItsLineBreak) {
  put("secret", std::string(auth::fixture::secret) + "\r\n");
  const auto reading =
      read_here(R"("JwtIssuers": [{"Issuer": "i", "Hs256SecretFile": "secret", "Audiences": ["a"],
    "ClockSkewSeconds": 5, "ClaimRights": [{"Claim": "c", "Value": "v", "Rights": ["Listen"], "Path": "/Orders/"}]}])");
  EXPECT_THAT(texts(reading), IsEmpty());
  ASSERT_TRUE(reading.config);
  const auto& issuer = reading.config->jwt_issuers.at(0);
  EXPECT_EQ(issuer.hs256_secret, auth::fixture::secret);
  EXPECT_THAT(issuer.audiences, ElementsAre("a"));
  EXPECT_EQ(issuer.clock_skew, 5s);
  ASSERT_EQ(issuer.claim_rights.size(), 1u);
  EXPECT_EQ(issuer.claim_rights[0].path, "orders");
  EXPECT_EQ(issuer.claim_rights[0].rights, auth::Rights{auth::Right::listen});
}

TEST_F(ConfigFiles, IssuersAreJudgedWithTheirLine) {
  put("long", std::string(auth::jwks_bytes_max + 1, ' '));
  put("broken", "{}");
  EXPECT_THAT(
      texts(read_here(
          "\"JwtIssuers\": [\n{\"Issuer\": \"i\"},\n{\"Hs256Secret\": \"short\"},\n"
          "{\"Issuer\": \"i\", \"JwksFile\": \"long\"},\n{\"Issuer\": \"i\", \"JwksFile\": \"broken\"},\n"
          "{\"Issuer\": \"i\", \"JwksFile\": \"gone\"},\n{\"Issuer\": \"i\", \"Jwks\": {\"keys\": []}},\n"
          "{\"Issuer\": \"i\", \"Jwks\": \"text\", \"Audiences\": []},\n"
          "{\"Issuer\": \"i\", \"Jwks\": {\"keys\": []}, \"JwksFile\": \"broken\", \"ClaimRights\": []}]")),
      ElementsAre(
          HasSubstr("error line 2: Omnibus.JwtIssuers[0]: no key"),
          HasSubstr(
              "error line 3: Omnibus.JwtIssuers[1].Hs256Secret: an HS256 secret needs at least 32 bytes"),
          HasSubstr("error line 3: Omnibus.JwtIssuers[1]: 'Issuer' is missing"),
          testing::AllOf(HasSubstr("error line 4: Omnibus.JwtIssuers[2].JwksFile: '"),
                         HasSubstr("has more than")),
          HasSubstr("error line 5: Omnibus.JwtIssuers[3].JwksFile: the JWKS document is not"),
          HasSubstr("error line 6: Omnibus.JwtIssuers[4].JwksFile: cannot open"),
          HasSubstr("error line 7: Omnibus.JwtIssuers[5].Jwks: the JWKS document has no usable"),
          HasSubstr("error line 8: Omnibus.JwtIssuers[6].Jwks: expected an object"),
          HasSubstr("error line 8: Omnibus.JwtIssuers[6].Audiences: expected at least one"),
          HasSubstr("error line 9: Omnibus.JwtIssuers[7].Jwks: the JWKS document has no usable"),
          HasSubstr("error line 9: Omnibus.JwtIssuers[7].JwksFile: the JWKS document is not"),
          HasSubstr("error line 9: Omnibus.JwtIssuers[7].ClaimRights: expected at least one"),
          HasSubstr("error line 9: Omnibus.JwtIssuers[7].Jwks: not together with 'JwksFile'")));
}

// Every place that takes a secret, each with something wrong about it or near it.
TEST_F(ConfigFiles, NoSecretIsEverPartOfAFinding) {
  put("secret", "HUSH-4");
  const auto reading = read_config(R"({ "UserConfig": { "Namespaces": [ { "AuthorizationRules": [
      { "KeyName": "a", "PrimaryKey": "HUSH-1 ", "SecondaryKey": "HUSH-2", "Rights": [ "HUSH-3" ] },
      { "KeyName": "b", "PrimaryKey": "HUSH 1", "SecondaryKey": "HUSH\t2", "Rights": [ "Send" ] },
      { "KeyName": "c", "PrimaryKey": "HUSH 1", "Rights": [ "Send" ] },
      { "KeyName": "d", "PrimaryKey": [ "HUSH" ], "Rights": "HUSH" } ] } ] },
    "Omnibus": { "Auth": "HUSH", "Listen": [ "HUSH" ], "JwtIssuers": [
      { "Issuer": "i", "Hs256Secret": "HUSH-5" }, { "Issuer": "i", "Hs256SecretFile": "secret" },
      { "Issuer": "i", "Hs256Secret": { "k": "HUSH" } },
      { "Issuer": "i", "Jwks": { "keys": [ { "kty": "RSA", "n": "HUSH", "e": "HUSH", "d": "HUSH" } ] } } ] } })",
                                   folder.string());
  EXPECT_FALSE(reading.config);
  EXPECT_GE(reading.findings.size(), 10u);
  for (const auto& text : texts(reading)) EXPECT_THAT(text, testing::Not(HasSubstr("HUSH")));
  // Broken JSON is not quoted either.
  for (const auto& text : texts(read(R"({"Omnibus": {"JwtIssuers": [{"Hs256Secret": "HUSH)")))
    EXPECT_THAT(text, testing::Not(HasSubstr("HUSH")));
}

TEST_F(ConfigFiles, AFileIsReadWithItsFolder) {
  put("server.pem", "PEM");
  put("Config.json", R"({"Omnibus": {"Tls": {"ClientCaFile": "server.pem"}}})");
  const auto reading = read_config_file((folder / "Config.json").string());
  ASSERT_TRUE(reading);
  ASSERT_TRUE(reading->config);
  EXPECT_EQ(reading->config->tls.client_ca_file, (folder / "server.pem").string());
  const auto gone = read_config_file((folder / "Other.json").string());
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Errc::io);
  EXPECT_THAT(gone.error().detail, HasSubstr("Other.json"));
}

}  // namespace
}  // namespace omnibus::node
