#include "node/exchange_documents.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace omnibus::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

DocumentWorld world() {
  DocumentWorld result;
  result.has_entity = [](std::string_view name) { return name == "there"; };
  result.has_exchange = [](std::string_view name) { return name == "other"; };
  return result;
}

std::vector<std::string> codes(const DocumentReading& reading, bool warnings = false) {
  std::vector<std::string> all;
  for (const auto& one : reading.findings)
    if (one.is_warning == warnings) all.push_back(one.path + " " + one.code);
  return all;
}

TEST(ExchangeDocuments, TheNameIsTheAddresss) {
  const auto named = [](std::string_view text) { return read_exchange(text, "billing", world()); };
  EXPECT_TRUE(named(R"({"Type": "Fanout"})").exchange);
  EXPECT_TRUE(named(R"({"Name": "Billing", "Type": "Fanout"})").exchange);
  const auto other = named(R"({"Name": "x", "Type": "Fanout"})");
  EXPECT_FALSE(other.exchange);
  EXPECT_THAT(codes(other), ElementsAre("/Name name.invalid"));
  EXPECT_THAT(codes(read_exchange(R"({"Type": "Fanout"})", "amq.x", world())),
              ElementsAre("/Name name.reserved"));
}

TEST(ExchangeDocuments, FindingsSayWhereByPointers) {
  const auto reading = read_exchange(
      R"({"Type": "Direct", "Colour": 1, "Subscriptions": [ {"Name": "a"}, {"Name": "b", "RoutingKey": "a.*"},
          {"Name": "c", "RoutingKey": "c", "Broker": {"ForwardTo": "nowhere"}} ]})",
      "billing", world());
  EXPECT_FALSE(reading.exchange);
  EXPECT_THAT(codes(reading), testing::UnorderedElementsAre(
                                  "/Colour unknown-attribute", "/Subscriptions/0 routing-key.required",
                                  "/Subscriptions/1/RoutingKey routing-key.syntax",
                                  "/Subscriptions/2/Broker/ForwardTo forward-to.not-found"));
  EXPECT_THAT(codes(read_exchange("{", "billing", world())), ElementsAre(" type"));
  EXPECT_THAT(codes(read_exchange("[]", "billing", world())), ElementsAre(" type"));
}

TEST(ExchangeDocuments, ASubscriptionIsJudgedByItsExchange) {
  broker::TopicSettings exchange;
  exchange.name = "billing";
  exchange.exchange = rules::ExchangeType::topic;
  EXPECT_THAT(codes(read_subscription(R"({"RoutingKey": "key*"})", exchange, "s", world())),
              ElementsAre("/RoutingKey routing-key.syntax"));
  const auto good =
      read_subscription(R"({"RoutingKey": "a.#", "Broker": {"ForwardTo": "there"}})", exchange, "s", world());
  ASSERT_TRUE(good.exchange);
  EXPECT_EQ(good.exchange->subscriptions.at(0).settings.name, "billing/Subscriptions/s");
  EXPECT_EQ(good.exchange->subscriptions.at(0).binding->routing_key, "a.#");
}

// What is written can be read again, says the same, and has every default.
TEST(ExchangeDocuments, WhatIsWrittenIsReadAsTheSame) {
  const auto first = read_exchange(
      R"({"Id": "e1", "Type": "Headers", "Caption": "c", "Unroutable": "Release", "AlternateExchange": "other",
          "Broker": {"DefaultMessageTimeToLive": "P1D", "RequiresDuplicateDetection": true},
          "Subscriptions": [ {"Id": "s1", "Name": "s", "ConsumerId": "me", "PrefetchCount": 7,
            "RoutingHeaders": {"Headers": {"x-match": "any", "n": 1, "t": "x", "z": null}},
            "Broker": {"MaxDeliveryCount": 4, "LockDuration": "PT30S", "SendTo": ["there"], "Limits": {"MaxSends": 3}}} ]})",
      "alerts", world());
  ASSERT_TRUE(first.exchange) << first.findings.at(0).message;
  const auto info_of = [](const auto& entry, store::PartitionKind kind) {
    store::PartitionInfo info;
    info.kind = kind;
    info.name = entry.settings.name;
    info.document = entry.document;
    if constexpr (requires { entry.binding; })
      info.settings = entry.settings;
    else
      info.topic_settings = entry.settings;
    return info;
  };
  const auto exchange = info_of(*first.exchange, store::PartitionKind::topic);
  const auto subscription = info_of(first.exchange->subscriptions.at(0), store::PartitionKind::subscription);
  const DocumentState state;
  auto document = write_exchange(exchange, &state);
  JsonValue::Array all;
  all.push_back({.value = write_subscription(subscription, &state)});
  document.push_back({.name = "Subscriptions", .value = {.value = std::move(all)}});
  add_warnings(document, true, exchange.topic_settings, world());
  const std::string text = to_json({.value = document});
  EXPECT_THAT(text, HasSubstr("\"Status\":\"Active\""));
  EXPECT_THAT(text, HasSubstr("\"RetryDelayMs\":2000"));
  EXPECT_THAT(text, HasSubstr("\"MaxSends\":3,\"MaxSendBytes\":4194304"));
  EXPECT_THAT(text, HasSubstr("\"Warnings\":[]")) << "defaults alone are not worth one";

  const auto second = read_exchange(text, "alerts", world());
  ASSERT_TRUE(second.exchange) << second.findings.at(0).path << second.findings.at(0).message;
  EXPECT_EQ(second.exchange->settings, first.exchange->settings);
  EXPECT_EQ(second.exchange->document, first.exchange->document);
  EXPECT_EQ(second.exchange->subscriptions.at(0).settings, first.exchange->subscriptions.at(0).settings);
  EXPECT_EQ(second.exchange->subscriptions.at(0).document, first.exchange->subscriptions.at(0).document);
  auto header_names = [](const DocumentReading& reading) {
    std::vector<std::string> names;
    for (const auto& [name, value] : *reading.exchange->subscriptions.at(0).binding->routing_headers)
      names.push_back(name);
    return names;
  };
  EXPECT_THAT(header_names(second), testing::UnorderedElementsAreArray(header_names(first)));
}

TEST(ExchangeDocuments, WarningsAreShownAsLongAsTheyAreTrue) {
  const auto reading = read_exchange(
      R"({"Type": "Fanout", "AlternateExchange": "gone", "Subscriptions": [
          {"Name": "s", "RoutingKey": "unused", "MinListenTime": 5000} ]})",
      "news", world());
  EXPECT_TRUE(reading.exchange);
  EXPECT_THAT(codes(reading, true),
              testing::UnorderedElementsAre("/AlternateExchange alternate-exchange.unknown",
                                            "/Subscriptions/0/MinListenTime handler.absent",
                                            "/Subscriptions/0/RoutingKey routing-key.unused"));
  EXPECT_THAT(codes(reading), IsEmpty());
}

TEST(ExchangeDocuments, TheStandardProfileHasItsOwnSize) {
  DocumentWorld standard = world();
  standard.is_standard = true;
  const auto small = read_exchange(R"({"Type": "Fanout", "Subscriptions": [{"Name": "s"}]})", "x", standard);
  ASSERT_TRUE(small.exchange);
  EXPECT_EQ(small.exchange->subscriptions.at(0).settings.message_bytes_max, 256u * 1024);
  EXPECT_THAT(codes(read_exchange(R"({"Type": "Fanout", "Broker": {"MaxMessageSizeInKilobytes": 2048}})", "x",
                                  standard)),
              ElementsAre("/Broker/MaxMessageSizeInKilobytes broker.range"));
}

}  // namespace
}  // namespace omnibus::node
