// The schema and the guide say what the reader does: each key, each limit, each example.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "node/config.hpp"
#include "node/config_json.hpp"

namespace omnibus::node {
namespace {

std::string doc(const std::string& name) {
  std::ifstream file(std::filesystem::path(OMNIBUS_DOCS) / name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> names_in(const JsonValue* object) {
  std::vector<std::string> result;
  if (object != nullptr && object->if_object() != nullptr)
    for (const auto& member : *object->if_object()) result.push_back(member.name);
  return result;
}

class Schema : public testing::Test {
 protected:
  JsonValue schema = parse_located_json(doc("config.schema.json")).value();
  const JsonValue* definitions = schema.find("$defs");
};

TEST_F(Schema, HasExactlyTheKeysThatTheReaderKnows) {
  ASSERT_NE(definitions, nullptr);
  std::vector<std::string> objects;
  for (const auto& known : known_objects()) {
    objects.push_back(known.name);
    const auto* definition = definitions->find(known.name);
    ASSERT_NE(definition, nullptr) << known.name;
    EXPECT_THAT(names_in(definition->find("properties")), testing::UnorderedElementsAreArray(known.keys))
        << known.name;
    const auto* additional = definition->find("additionalProperties");
    EXPECT_EQ(known.closed, additional != nullptr && std::get<bool>(additional->value) == false)
        << known.name;
  }
  std::vector<std::string> defined;
  for (const auto& member : *definitions->if_object())
    if (member.value.find("properties") != nullptr) defined.push_back(member.name);
  EXPECT_THAT(defined, testing::UnorderedElementsAreArray(objects));
}

// Each integer is tried at both ends of what the schema allows, and one past them.
TEST_F(Schema, LimitsAreThoseOfTheReader) {
  const auto try_all = [&](const char* object, const std::string& before, const std::string& after) {
    int tried = 0;
    for (const auto& [name, line, property] : *definitions->find(object)->find("properties")->if_object()) {
      const auto* type = property.find("type");
      if (type == nullptr || *type->if_text() != "integer") continue;
      ++tried;
      const auto min = std::get<std::int64_t>(property.find("minimum")->value);
      const auto max = std::get<std::int64_t>(property.find("maximum")->value);
      const auto reads = [&](std::int64_t value) {
        return read_config(fmt::format("{}\"{}\": {}{}", before, name, value, after), "").config.has_value();
      };
      EXPECT_TRUE(reads(min)) << name;
      EXPECT_TRUE(reads(max)) << name;
      EXPECT_FALSE(reads(min - 1)) << name;
      EXPECT_FALSE(reads(max + 1)) << name;
    }
    return tried;
  };
  EXPECT_EQ(try_all("Omnibus", R"({"Omnibus": {)", "}}"), 18);
  EXPECT_EQ(try_all("Quotas", R"({"Omnibus": {"Quotas": {)", "}}}"), 13);
  EXPECT_EQ(try_all("Metrics", R"({"Omnibus": {"Metrics": {)", "}}}"), 1);
  EXPECT_EQ(
      try_all("QueueProperties",
              R"({"UserConfig": {"Namespaces": [ {"Queues": [ {"Name": "q", "Properties": {)", "}}]}]}}"),
      2);
  EXPECT_EQ(
      try_all("TopicProperties",
              R"({"UserConfig": {"Namespaces": [ {"Topics": [ {"Name": "t", "Properties": {)", "}}]}]}}"),
      1);
  EXPECT_EQ(try_all("SubscriptionProperties",
                    R"({"UserConfig": {"Namespaces": [ {"Topics": [ {"Name": "t", "Subscriptions": [
                       {"Name": "s", "Properties": {)",
                    "}}]}]}]}}"),
            1);
  const std::string exchange =
      R"({"UserConfig": {"Namespaces": [ {"Exchanges": [ {"Name": "x", "Type": "Fanout", )";
  EXPECT_EQ(try_all("ExchangeBroker", exchange + R"("Broker": {)", "}}]}]}}"), 1);
  EXPECT_EQ(try_all("ExchangeSubscription", exchange + R"("Subscriptions": [ {"Name": "s", )", "}]}]}]}}"),
            4);
  EXPECT_EQ(try_all("SubscriptionBroker", exchange + R"("Subscriptions": [ {"Name": "s", "Broker": {)",
                    "}}]}]}]}}"),
            6);
  EXPECT_EQ(try_all("HandlerLimits", exchange + R"("Subscriptions": [ {"Name": "s", "Broker": {"Limits": {)",
                    "}}}]}]}]}}"),
            5);
  EXPECT_EQ(try_all("JwtIssuer",
                    R"({"Omnibus": {"JwtIssuers": [ {"Issuer": "i",
                       "Hs256Secret": "a shared secret of enough bytes, 40 of it", )",
                    "}]}}"),
            1);
}

// Each number that can be set is in the table of limits, with its default.
TEST_F(Schema, ThePageOfLimitsHasThemAll) {
  const std::string page = doc("guide/limits.md");
  const auto default_of = [](const JsonValue& property) {
    return std::get<std::int64_t>(property.find("default")->value);
  };
  int rows = 0;
  for (const auto& [object, prefix] :
       {std::pair{"Omnibus", ""}, {"Quotas", "Quotas."}, {"Metrics", "Metrics."}})
    for (const auto& [name, line, property] : *definitions->find(object)->find("properties")->if_object()) {
      const auto* type = property.find("type");
      if (type == nullptr || *type->if_text() != "integer") continue;
      ASSERT_NE(property.find("default"), nullptr) << name;
      const auto row = fmt::format("| `{}{}` | {} |", prefix, name, default_of(property));
      EXPECT_THAT(page, testing::HasSubstr(row));
      ++rows;
    }
  EXPECT_EQ(rows, 32);
}

// What the schema calls a default is what is used when the key is not there.
TEST_F(Schema, QuotasHaveTheDefaultsOfTheSchema) {
  const Config config;
  const std::map<std::string, std::uint32_t> defaults = {
      {"Connections", config.connections_max},
      {"Namespaces", config.namespaces_max},
      {"Entities", config.entities_max},
      {"PartitionedEntities", config.partitioned_entities_max},
      {"SubscriptionsPerTopic", config.subscriptions_per_topic_max},
      {"SqlFiltersPerTopic", config.sql_filters_per_topic_max},
      {"CorrelationFiltersPerTopic", config.correlation_filters_per_topic_max},
      {"ReceivesPerEntity", config.receivers_per_entity_max},
      {"HttpRequests", config.http_requests_max},
      {"TransactionsPerConnection", config.transactions_per_connection_max},
      {"MessagesPerTransaction", config.messages_per_transaction_max},
      {"OperationsPerTransaction", config.operations_per_transaction_max},
      {"ReservedNumbers", config.reserved_numbers_max}};
  for (const auto& [name, line, property] : *definitions->find("Quotas")->find("properties")->if_object()) {
    ASSERT_TRUE(defaults.contains(name)) << name;
    EXPECT_EQ(std::get<std::int64_t>(property.find("default")->value), defaults.at(name)) << name;
  }
}

TEST_F(Schema, NumbersOfOmnibusHaveTheDefaultsOfTheSchema) {
  const Config config;
  const std::map<std::string, std::int64_t> defaults = {
      {"Shards", config.shards},
      {"Stores", config.stores},
      {"StoreStallSeconds", config.store_stall_time.count()},
      {"PayloadCacheMegabytes", config.payload_cache_mb},
      {"MaxFrameBytes", config.frame_bytes_max},
      {"LinksPerConnection", config.links_per_connection_max},
      {"LongPollsPerShard", config.long_polls_max},
      {"IdleTimeOutSeconds", config.idle_time_out.count()},
      {"GreetingSeconds", config.greeting_wait.count()},
      {"WriteTimeoutSeconds", config.write_wait.count()},
      {"TokenSeconds", config.token_wait.count()},
      {"NoLinkSeconds", config.no_link_wait.count()},
      {"IdleConnectionSeconds", config.idle_connection.count()},
      {"IdleLinkSeconds", config.idle_link.count()},
      {"TransactionSeconds", config.transaction_time.count()},
      {"PartitionCount", config.partition_count},
      {"AuditLogMegabytes", config.audit_log_mb},
      {"AuditLogFiles", config.audit_log_files}};
  std::size_t compared = 0;
  for (const auto& [name, line, property] : *definitions->find("Omnibus")->find("properties")->if_object()) {
    const auto* type = property.find("type");
    if (type == nullptr || *type->if_text() != "integer") continue;
    ASSERT_TRUE(defaults.contains(name)) << name;
    EXPECT_EQ(std::get<std::int64_t>(property.find("default")->value), defaults.at(name)) << name;
    ++compared;
  }
  EXPECT_EQ(compared, defaults.size());
  EXPECT_EQ(
      std::get<std::int64_t>(
          definitions->find("Metrics")->find("properties")->find("EntitiesMax")->find("default")->value),
      config.metrics_entities_max);
}

TEST_F(Schema, ExamplesOfTheGuideAreRead) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "omnibus_config_examples";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "issuer.jwks") << R"({"keys": [{"kty": "EC", "crv": "P-256",
      "x": "wph0ad0DmGnXW4HfvmE0pI8wmoCc_0joXdMDIe2od3M", "y": "VcCaa_yVms4PLVNo3-GQqYl4S6a9-YGroH652z5H4xg"}]})";
  for (const auto* name : {"server.pem", "server.key", "clients.pem"}) std::ofstream(folder / name) << "PEM";
  int examples = 0;
  for (const auto* page : {"guide/configuration.md", "guide/authentication.md"}) {
    const std::string text = doc(page);
    const std::string_view fence = "```json\n";
    for (auto begin = text.find(fence); begin != std::string::npos; begin = text.find(fence, begin)) {
      begin += fence.size();
      const auto example = text.substr(begin, text.find("```", begin) - begin);
      const auto reading = read_config(example, folder.string());
      EXPECT_TRUE(reading.config) << page << ":\n" << example;
      for (const auto& finding : reading.findings) ADD_FAILURE() << page << ": " << to_text(finding);
      ++examples;
    }
  }
  EXPECT_GE(examples, 4);
  std::filesystem::remove_all(folder);
}

TEST_F(Schema, TheExampleFileIsReadWithoutAWarning) {
  const auto reading = read_config(doc("guide/examples/Config.json"), "");
  EXPECT_TRUE(reading.config);
  for (const auto& finding : reading.findings) ADD_FAILURE() << to_text(finding);
}

}  // namespace
}  // namespace omnibus::node
