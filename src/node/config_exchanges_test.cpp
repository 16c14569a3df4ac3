// Exchanges of the configuration file: their documents, and every code a finding can have [EX 2.3, 4.3].
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

ConfigReading read_exchanges(const std::string& exchanges, const std::string& rest = "") {
  return read_config("{\"UserConfig\": {\"Namespaces\": [{\"Exchanges\": [" + exchanges + "]" + rest + "}]}}",
                     "");
}
std::vector<std::string> texts(const ConfigReading& reading) {
  std::vector<std::string> result;
  for (const auto& finding : reading.findings) result.push_back(to_text(finding));
  return result;
}
// "code" of an error, "(code)" of a warning.
std::vector<std::string> codes(const std::string& exchanges, const std::string& rest = "") {
  std::vector<std::string> result;
  bool has_error = false;
  const auto reading = read_exchanges(exchanges, rest);
  for (const auto& finding : reading.findings) {
    const bool is_error = finding.severity == Finding::Severity::error;
    has_error |= is_error;
    result.push_back(is_error ? std::string(finding.code) : fmt::format("({})", finding.code));
  }
  EXPECT_EQ(reading.config.has_value(), !has_error);
  return result;
}
std::string exchange_of(const std::string& type, const std::string& subscriptions,
                        const std::string& more = "") {
  return fmt::format(R"({{"Name": "x", "Type": "{}", "Subscriptions": [{}]{}}})", type, subscriptions, more);
}
// The codes of a subscription `s` of a Fanout exchange with these attributes.
std::vector<std::string> codes_of(const std::string& attributes) {
  return codes(exchange_of("Fanout", R"({"Name": "s", )" + attributes + "}"));
}
std::vector<std::string> codes_in_broker(const std::string& attributes) {
  return codes_of(R"("Broker": {)" + attributes + "}");
}
TopicEntry entry_of(const std::string& document) {
  const auto reading = read_exchanges(document);
  EXPECT_TRUE(reading.config) << testing::PrintToString(texts(reading));
  return reading.config ? reading.config->namespaces.at(0).topics.at(0) : TopicEntry{};
}

const std::string default_broker =
    R"("Broker":{"HandlerStatus":"Listening","Receipts":"None","RetryDelayMs":2000,"RetryDelayMaxMs":300000,)"
    R"("RejectDelayMs":1000,"MaxRejects":0,"BreakAfterFailures":20,"Limits":{"TimeLimitMs":5000,)"
    R"("MemoryLimitBytes":16777216,"MaxSends":100,"MaxSendBytes":4194304,"MaxLogLines":100}}})";

TEST(ConfigExchanges, DefaultsAreTheCloudsNotTheEmulators) {
  const auto entry = entry_of(exchange_of("Fanout", R"({"Name": "a"})"));
  EXPECT_EQ(entry.settings.exchange, rules::ExchangeType::fanout);
  EXPECT_EQ(entry.settings.default_time_to_live, broker::unlimited);
  EXPECT_EQ(entry.settings.duplicate_window, 10min);
  EXPECT_EQ(entry.settings.unroutable, rules::Unroutable::accept);
  EXPECT_EQ(entry.settings.alternate_exchange, "");
  EXPECT_EQ(entry.document, "{}");
  ASSERT_EQ(entry.subscriptions.size(), 1u);
  const auto& one = entry.subscriptions[0];
  EXPECT_EQ(one.settings.name, "x/Subscriptions/a");
  EXPECT_EQ(one.settings.delivery_count_max, 10u);
  EXPECT_EQ(one.settings.default_time_to_live, broker::unlimited);
  EXPECT_EQ(one.binding, rules::Binding{});
  EXPECT_EQ(one.document,
            R"({"WorkerThreadCount":1,"MinListenTime":120000,"AcknowledgePolicy":"OnlyOnSuccessHandling",)"
            R"("RejectPolicy":"Never",)" +
                default_broker);
}

TEST(ConfigExchanges, EveryAttributeArrives) {
  const auto entry = entry_of(R"({"Name": "Orders", "Type": "Topic", "Id": "e-1", "Caption": "Order events",
    "Description": "two\nlines", "Status": "SendDisabled", "Unroutable": "Release", "AlternateExchange": "orders",
    "Broker": {"MaxSizeInMegabytes": 5120, "DefaultMessageTimeToLive": "P1D",
      "RequiresDuplicateDetection": true, "DuplicateDetectionHistoryTimeWindow": "PT1H",
      "EnablePartitioning": false, "MaxMessageSizeInKilobytes": 2048, "AutoDeleteOnIdle": "PT5M"},
    "Subscriptions": [{"Name": "paid", "Id": "s-1", "Caption": "c", "Description": "d",
      "ConsumerId": "invoicing01", "RoutingKey": "order.*.paid", "PrefetchCount": 32, "PrefetchSize": 8388608,
      "Broker": {"Status": "ReceiveDisabled", "HandlerStatus": "Stopped", "MaxDeliveryCount": 5,
        "LockDuration": "PT30S", "DefaultMessageTimeToLive": "PT1H", "DeadLetteringOnMessageExpiration": true,
        "RequiresSession": true, "ForwardDeadLetteredMessagesTo": "orders", "AutoDeleteOnIdle": "PT6M",
        "Receipts": "OnSettled", "SendTo": ["ORDERS"], "RetryDelayMs": 1, "RetryDelayMaxMs": 2,
        "RejectDelayMs": 3, "MaxRejects": 4, "BreakAfterFailures": 5, "Limits": {"MaxSends": 6}}}]})");
  EXPECT_EQ(entry.settings.exchange, rules::ExchangeType::topic);
  EXPECT_EQ(entry.settings.status, broker::EntityStatus::send_disabled);
  EXPECT_EQ(entry.settings.unroutable, rules::Unroutable::release);
  EXPECT_EQ(entry.settings.alternate_exchange, "orders");
  EXPECT_EQ(entry.settings.size_bytes_max, std::uint64_t{5} << 30);
  EXPECT_EQ(entry.settings.default_time_to_live, 24h);
  EXPECT_TRUE(entry.settings.requires_duplicate_detection);
  EXPECT_EQ(entry.settings.duplicate_window, 1h);
  EXPECT_EQ(entry.settings.message_bytes_max, 2u << 20);
  EXPECT_EQ(entry.settings.auto_delete_on_idle, 5min);
  EXPECT_EQ(entry.document, R"({"Id":"e-1","Caption":"Order events","Description":"two\nlines"})");
  ASSERT_EQ(entry.subscriptions.size(), 1u);
  const auto& one = entry.subscriptions[0];
  ASSERT_TRUE(one.binding);
  EXPECT_EQ(one.binding->routing_key, "order.*.paid");
  EXPECT_EQ(one.settings.prefetch_count, 32u);
  EXPECT_EQ(one.settings.prefetch_bytes, 8388608u);
  EXPECT_EQ(one.settings.status, broker::EntityStatus::receive_disabled);
  EXPECT_EQ(one.settings.delivery_count_max, 5u);
  EXPECT_EQ(one.settings.lock_duration, 30s);
  EXPECT_EQ(one.settings.default_time_to_live, 1h);
  EXPECT_TRUE(one.settings.dead_letter_on_expiration);
  EXPECT_TRUE(one.settings.requires_session);
  EXPECT_EQ(one.settings.forward_dead_letters_to, "orders");
  EXPECT_EQ(one.settings.auto_delete_on_idle, 6min);
  EXPECT_EQ(
      one.document,
      R"({"Id":"s-1","Caption":"c","Description":"d","ConsumerId":"invoicing01",)"
      R"("RoutingKey":"order.*.paid","WorkerThreadCount":1,"MinListenTime":120000,)"
      R"("AcknowledgePolicy":"OnlyOnSuccessHandling","RejectPolicy":"Never",)"
      R"("Broker":{"HandlerStatus":"Stopped","Receipts":"OnSettled","SendTo":["ORDERS"],"RetryDelayMs":1,)"
      R"("RetryDelayMaxMs":2,"RejectDelayMs":3,"MaxRejects":4,"BreakAfterFailures":5,)"
      R"("Limits":{"TimeLimitMs":5000,"MemoryLimitBytes":16777216,"MaxSends":6,"MaxSendBytes":4194304,)"
      R"("MaxLogLines":100}}})");
}

TEST(ConfigExchanges, HeadersKeepTheirTypes) {
  const auto entry = entry_of(
      exchange_of("Headers", R"({"Name": "s", "RoutingHeaders": {"Headers": {"x-match": "any", "n": -1,
        "u": 18446744073709551615, "r": 1.5, "t": "text", "b": true, "a": null}}})"));
  ASSERT_EQ(entry.subscriptions.size(), 1u);
  EXPECT_EQ(entry.subscriptions[0].binding->routing_headers,
            (rules::RoutingHeaders{{"x-match", std::string("any")},
                                   {"n", std::int64_t{-1}},
                                   {"u", std::uint64_t{18446744073709551615u}},
                                   {"r", 1.5},
                                   {"t", std::string("text")},
                                   {"b", true},
                                   {"a", std::monostate{}}}));
  EXPECT_THAT(entry.subscriptions[0].document,
              HasSubstr(R"("RoutingHeaders":{"Headers":{"a":null,"b":true,"n":-1,"r":1.5,"t":"text",)"
                        R"("u":18446744073709551615,"x-match":"any"}})"));
}

// The good documents of the contract.
TEST(ConfigExchanges, GoodDocumentsAreTaken) {
  EXPECT_THAT(codes(R"({ "Name": "billing", "Type": "Direct", "Unroutable": "Release", "Subscriptions": [
    { "Name": "eu", "RoutingKey": "eu" }, { "Name": "no-key", "RoutingKey": "" } ] })"),
              IsEmpty());
  EXPECT_THAT(codes(R"({ "Name": "news", "Type": "Fanout",
    "Subscriptions": [ { "Name": "a" }, { "Name": "b", "PrefetchCount": 1 } ] })"),
              IsEmpty());
  const std::string scripts =
      R"(, "Scripts": [{ "Name": "make-invoice", "Version": 3, "Language": "javascript",
         "Source": "function handle(message) {}" }], "Queues": [{"Name": "invoices"}, {"Name": "audit"}])";
  EXPECT_THAT(texts(read_exchanges(R"({ "Name": "orders", "Type": "Topic", "Caption": "Order events",
    "Subscriptions": [ { "Name": "all", "RoutingKey": "#" },
      { "Name": "invoicing", "ConsumerId": "invoicing01", "RoutingKey": "order.*.paid", "PrefetchCount": 32,
        "PrefetchSize": 8388608, "WorkerThreadCount": 1, "MinListenTime": 60000,
        "AcknowledgePolicy": "OnlyOnSuccessHandling", "RejectPolicy": "WhenOverloaded",
        "Handler": "make-invoice@3",
        "Broker": { "MaxDeliveryCount": 5, "LockDuration": "PT30S", "SendTo": ["invoices", "audit"],
          "Limits": { "TimeLimitMs": 2000, "MemoryLimitBytes": 33554432 } } } ] })",
                                   scripts)),
              ElementsAre(HasSubstr("Handler: handlers do not run yet"),
                          HasSubstr("Scripts: scripts do not run yet and are not kept")));
  EXPECT_THAT(texts(read_exchanges(R"({ "Name": "alerts", "Type": "Headers", "Subscriptions": [
    { "Name": "night-shift",
      "RoutingHeaders": { "Headers": { "x-match": "all", "severity": 1, "site": "gdansk", "ticket": null } },
      "AcknowledgePolicy": "AlwaysBeforeHandling",
      "Handler": { "Language": "javascript", "Source": "function handle(message) {}" } },
    { "Name": "any-critical",
      "RoutingHeaders": { "Headers": { "x-match": "any", "severity": 1, "escalated": true } } } ] })")),
              ElementsAre(HasSubstr("Handler: handlers do not run yet")));
}

TEST(ConfigExchanges, AFindingNamesLineKeyAndCode) {
  EXPECT_THAT(
      texts(read_exchanges("{\"Name\": \"billing\", \"Type\": \"Direct\", \"Subscriptions\": [\n"
                           "{\"Name\": \"a\"},\n{\"Name\": \"b\",\n\"RoutingKey\": \"a.*\"}]}")),
      ElementsAre("line 2: UserConfig.Namespaces[0].Exchanges[0].Subscriptions[0]: subscription 'a' of "
                  "the Direct exchange has no RoutingKey [routing-key.required]",
                  "line 4: UserConfig.Namespaces[0].Exchanges[0].Subscriptions[1].RoutingKey: "
                  "subscription 'b' of the Direct exchange has a RoutingKey that is not words of "
                  "letters and digits joined by dots [routing-key.syntax]"));
}

TEST(ConfigExchanges, ExchangesAreJudged) {
  EXPECT_THAT(codes("7"), ElementsAre("type"));
  EXPECT_THAT(codes("{}"), testing::UnorderedElementsAre("name.invalid", "type.unknown"));
  EXPECT_THAT(codes(R"({"Name": "x", "Type": "topic"})"), ElementsAre("type.unknown"));
  EXPECT_THAT(codes(R"({"Name": "x", "Type": 1})"), ElementsAre("type"));
  EXPECT_THAT(codes(R"({"Name": "x//y", "Type": "Topic"})"), ElementsAre("name.invalid"));
  EXPECT_THAT(codes(R"({"Name": "AMQ.topic", "Type": "Topic"})"), ElementsAre("name.reserved"));
  EXPECT_THAT(codes(R"({"Name": "x", "Type": "Fanout"}, {"Name": "X", "Type": "Fanout"})"),
              ElementsAre("name.duplicate"));
  EXPECT_THAT(codes(R"({"Name": "x", "Type": "Fanout"})", R"(, "Queues": [{"Name": "x"}])"), ElementsAre(""));
  EXPECT_THAT(codes(R"({"Name": "x", "type": "Fanout"})"),
              testing::UnorderedElementsAre("unknown-attribute", "type.unknown"));
  EXPECT_THAT(codes(R"({"Name": "x", "Type": "Fanout", "Rules": []})"), ElementsAre("unknown-attribute"));
  EXPECT_THAT(codes(R"({"Name": "x", "Type": "Fanout", "Id": ""})"), ElementsAre("id.invalid"));
  EXPECT_THAT(codes(R"({"Name": "x", "Type": "Fanout", "Id": ")" + std::string(129, 'i') + "\"}"),
              ElementsAre("id.invalid"));
  EXPECT_THAT(
      codes(R"({"Name": "x", "Type": "Fanout", "Id": "i", "Subscriptions": [{"Name": "s", "Id": "i"}]})"),
      ElementsAre("id.duplicate"));
  const auto broker = [](const std::string& text) {
    return codes(exchange_of("Fanout", "", R"(, "Broker": {)" + text + "}"));
  };
  EXPECT_THAT(broker(R"("MaxSizeInMegabytes": 1000)"), ElementsAre("broker.range"));
  EXPECT_THAT(broker(R"("MaxSizeInMegabytes": "1024")"), ElementsAre("type"));
  EXPECT_THAT(broker(R"("MaxMessageSizeInKilobytes": 1)"), ElementsAre("broker.range"));
  EXPECT_THAT(broker(R"("AutoDeleteOnIdle": "PT1S")"), ElementsAre("broker.range"));
  EXPECT_THAT(broker(R"("AutoDeleteOnIdle": "soon")"), ElementsAre("broker.range"));
  EXPECT_THAT(broker(R"("EnablePartitioning": true)"), ElementsAre("broker.range"));
  EXPECT_THAT(broker(R"("LockDuration": "PT1M")"), ElementsAre("unknown-attribute"));
  EXPECT_THAT(codes(exchange_of("Fanout", "", R"(, "Status": "ReceiveDisabled")")),
              ElementsAre("broker.range"));
  EXPECT_THAT(codes(exchange_of("Fanout", "", R"(, "Unroutable": "Drop")")), ElementsAre("broker.range"));
  EXPECT_THAT(codes(exchange_of("Fanout", "", R"(, "AlternateExchange": "gone")")), ElementsAre("()"))
      << "there is none of this name";
  EXPECT_THAT(codes(exchange_of("Fanout", "", R"(, "AlternateExchange": "a b")")),
              ElementsAre("broker.range"));
}

TEST(ConfigExchanges, RoutingIsJudgedByTheTypeWhereverThatStands) {
  const auto key = [](const std::string& type, const std::string& text) {
    return codes(exchange_of(type, R"({"Name": "s", "RoutingKey": ")" + text + "\"}"));
  };
  EXPECT_THAT(codes(R"({"Subscriptions": [{"Name": "s"}], "Name": "x", "Type": "Topic"})"),
              ElementsAre("routing-key.required"));
  EXPECT_THAT(key("Direct", std::string(256, 'k')), ElementsAre("routing-key.too-long"));
  for (const auto* text : {"key*", "a..b", "a_b"})
    EXPECT_THAT(key("Topic", text), ElementsAre("routing-key.syntax")) << text;
  EXPECT_THAT(key("Fanout", "a"), ElementsAre("(routing-key.unused)"));
  EXPECT_THAT(codes(exchange_of("Direct", R"({"Name": "s", "RoutingKey": 7})")), ElementsAre("type"));

  const auto headers = [](const std::string& type, const std::string& text) {
    return codes(exchange_of(type, R"({"Name": "s", "RoutingKey": "", "RoutingHeaders": )" + text + "}"));
  };
  EXPECT_THAT(codes(exchange_of("Headers", R"({"Name": "s"})")), ElementsAre("routing-headers.required"));
  EXPECT_THAT(headers("Headers", "{}"), ElementsAre("routing-headers.required"));
  EXPECT_THAT(headers("Headers", "[]"), ElementsAre("type"));
  EXPECT_THAT(headers("Headers", R"({"Headers": {"a": 1}, "Header": {}})"), ElementsAre("unknown-attribute"));
  EXPECT_THAT(headers("Headers", R"({"Headers": {"x-match": "some", "a": 1}})"),
              ElementsAre("routing-headers.x-match"));
  EXPECT_THAT(headers("Headers", R"({"Headers": {"h": {"a": 1}}})"), ElementsAre("routing-headers.value"));
  EXPECT_THAT(headers("Headers", R"({"Headers": {"": 1}})"), ElementsAre("routing-headers.name"));
  EXPECT_THAT(headers("Headers", R"({"Headers": {}})"), ElementsAre("(routing-headers.matches-all)"));
  EXPECT_THAT(headers("Headers", R"({"Headers": {"x-match": "any"}})"),
              ElementsAre("(routing-headers.matches-none)"));
  EXPECT_THAT(headers("Headers", R"({"Headers": {"x-a": 1, "a~/b": 2}})"),
              ElementsAre("(routing-headers.x-ignored)"));
  EXPECT_THAT(headers("Topic", R"({"Headers": {"a": 1}})"), ElementsAre("(routing-headers.unused)"));
  std::string many;
  for (int i = 0; i < 65; ++i) many += fmt::format("{}\"h{}\": 1", i == 0 ? "" : ",", i);
  EXPECT_THAT(headers("Headers", "{\"Headers\": {" + many + "}}"), ElementsAre("routing-headers.too-many"));
}

TEST(ConfigExchanges, SubscriptionsAreJudged) {
  EXPECT_THAT(codes(exchange_of("Fanout", "7, {}")), ElementsAre("type", "name.invalid"));
  EXPECT_THAT(codes(exchange_of("Fanout", R"({"Name": ")" + std::string(51, 's') + "\"}")),
              ElementsAre("name.invalid"));
  EXPECT_THAT(codes(exchange_of("Fanout", R"({"Name": "s"}, {"Name": "S"})")), ElementsAre("name.duplicate"));
  EXPECT_THAT(codes_of(R"("Prefetchcount": 1)"), ElementsAre("unknown-attribute"));
  EXPECT_THAT(codes_of(R"("Id": 1)"), ElementsAre("type"));
  EXPECT_THAT(codes_of(R"("ConsumerId": "")"), ElementsAre("consumer-id.invalid"));
  EXPECT_THAT(codes_of(R"("ConsumerId": "a\tb")"), ElementsAre("consumer-id.invalid"));
  EXPECT_THAT(
      codes(exchange_of("Fanout", R"({"Name": "a", "ConsumerId": "c"}, {"Name": "b", "ConsumerId": "c"})")),
      ElementsAre("consumer-id.duplicate"));
  EXPECT_THAT(codes(R"({"Name": "x", "Type": "Fanout", "Subscriptions": [{"Name": "a", "ConsumerId": "c"}]},
                       {"Name": "y", "Type": "Fanout", "Subscriptions": [{"Name": "a", "ConsumerId": "c"}]})"),
              IsEmpty())
      << "unique in its exchange";
  for (const auto* value : {"-1", "65536", "99999999999999999999"})
    EXPECT_THAT(codes_of(fmt::format(R"("PrefetchCount": {})", value)), ElementsAre("prefetch-count.range"));
  EXPECT_THAT(codes_of(R"("PrefetchCount": 1.5)"), ElementsAre("type"));
  EXPECT_THAT(codes_of(R"("PrefetchSize": "0")"), ElementsAre("type"));
  EXPECT_THAT(codes_of(R"("PrefetchSize": 2147483648)"), ElementsAre("prefetch-size.range"));
  EXPECT_THAT(codes_of(R"("Caption": ")" + std::string(1025, 'c') + "\""), ElementsAre("broker.range"));
}

TEST(ConfigExchanges, WhatOnlyAHandlerUsesIsJudged) {
  const std::string handler = R"("Handler": {"Language": "javascript", "Source": "s"}, )";
  const auto with_handler = [&](const std::string& text) {
    auto found = codes_of(handler + text);
    std::erase_if(found, [](const std::string& code) { return code == "()"; });  // that it does not run yet
    return found;
  };
  EXPECT_THAT(with_handler(R"("WorkerThreadCount": 0)"), ElementsAre("worker-thread-count.range"));
  EXPECT_THAT(with_handler(R"("WorkerThreadCount": 1025)"), ElementsAre("worker-thread-count.range"));
  EXPECT_THAT(with_handler(R"("WorkerThreadCount": 1024)"), ElementsAre("(worker-thread-count.clamped)"));
  EXPECT_THAT(with_handler(R"("MinListenTime": 0)"), ElementsAre("min-listen-time.range"));
  EXPECT_THAT(with_handler(R"("MinListenTime": 999)"), ElementsAre("(min-listen-time.small)"));
  EXPECT_THAT(with_handler(R"("MinListenTime": 1000)"), IsEmpty());
  EXPECT_THAT(with_handler(R"("AcknowledgePolicy": "Sometimes")"), ElementsAre("acknowledge-policy.unknown"));
  EXPECT_THAT(with_handler(R"("RejectPolicy": "never")"), ElementsAre("reject-policy.unknown"));
  EXPECT_THAT(codes_of(R"("MinListenTime": 5000, "RejectPolicy": "Never")"), ElementsAre("(handler.absent)"));
}

TEST(ConfigExchanges, HandlersAreJudgedAsFarAsTheyCanBe) {
  EXPECT_THAT(codes_of(R"("Handler": 7)"), ElementsAre("type"));
  for (const auto* name : {"", "a b", "a@", "a@0", "a@1234567890", "-a"})
    EXPECT_THAT(codes_of(fmt::format(R"("Handler": "{}")", name)), ElementsAre("handler.not-found")) << name;
  EXPECT_THAT(codes_of(R"("Handler": "gone")"), ElementsAre("()", "handler.not-found"));
  EXPECT_THAT(codes_of(R"("Handler": {})"), ElementsAre("handler.language", "handler.no-handle"));
  EXPECT_THAT(codes_of(R"("Handler": {"Language": "lua", "Source": "s"})"), ElementsAre("handler.language"));
  EXPECT_THAT(codes_of(R"("Handler": {"Language": "javascript", "Source": ""})"),
              ElementsAre("handler.no-handle"));
  EXPECT_THAT(
      codes_of(R"("Handler": {"Language": "javascript", "Source": ")" + std::string(262'145, ' ') + "\"}"),
      ElementsAre("handler.too-large"));
  EXPECT_THAT(codes_of(R"("Handler": {"Language": "javascript", "Source": "s", "Name": "n"})"),
              ElementsAre("unknown-attribute"));
  const auto scripts = [](const std::string& text) { return codes("", R"(, "Scripts": [)" + text + "]"); };
  EXPECT_THAT(scripts(R"({"Name": "a", "Language": "javascript", "Source": "s"})"), ElementsAre("()"));
  EXPECT_THAT(scripts("{}"),
              testing::UnorderedElementsAre("name.invalid", "handler.language", "handler.no-handle"));
  EXPECT_THAT(scripts(R"({"Name": "a/b", "Language": "javascript", "Source": "s"})"),
              ElementsAre("name.invalid"));
  EXPECT_THAT(scripts(R"({"Name": "a", "Language": "javascript", "Source": "s"},
                         {"Name": "A", "Language": "javascript", "Source": "s"})"),
              ElementsAre("name.duplicate"));
}

TEST(ConfigExchanges, BrokerIsJudged) {
  EXPECT_THAT(codes_in_broker(R"("Status": "active")"), ElementsAre("broker.range"));
  EXPECT_THAT(codes_in_broker(R"("LockDuration": "PT1S")"), ElementsAre("broker.range"));
  EXPECT_THAT(codes_in_broker(R"("LockDuration": 60)"), ElementsAre("type"));
  EXPECT_THAT(codes_in_broker(R"("MaxDeliveryCount": 0)"), ElementsAre("broker.range"));
  EXPECT_THAT(codes_in_broker(R"("RequiresSession": "true")"), ElementsAre("type"));
  EXPECT_THAT(codes_in_broker(R"("HandlerStatus": "Started")"), ElementsAre("broker.range"));
  EXPECT_THAT(codes_in_broker(R"("Receipts": "All")"), ElementsAre("broker.range"));
  EXPECT_THAT(codes_in_broker(R"("Limits": {"MaxSends": 1001})"), ElementsAre("broker.range"));
  EXPECT_THAT(codes_in_broker(R"("Limits": {"maxSends": 1})"), ElementsAre("unknown-attribute"));
  EXPECT_THAT(codes_in_broker(R"("SendTo": ["gone", "X"])"), ElementsAre("(send-to.unknown)"));
  EXPECT_THAT(codes_in_broker(R"("SendTo": [""])"), ElementsAre("broker.range"));
  EXPECT_THAT(codes_in_broker(R"("ForwardTo": "gone")"), ElementsAre("forward-to.not-found"));
  EXPECT_THAT(codes_in_broker(R"("ForwardTo": "")"), ElementsAre("broker.range"));
  EXPECT_THAT(codes_in_broker(R"("ForwardDeadLetteredMessagesTo": "gone")"),
              ElementsAre("forward-to.not-found"));
  // The second is the loop, which has no code.
  EXPECT_THAT(codes_in_broker(R"("ForwardTo": "x", "RequiresSession": true)"),
              ElementsAre("forward-to.session", ""));
  EXPECT_THAT(
      codes(exchange_of("Fanout", R"({"Name": "s", "Handler": {"Language": "javascript", "Source": "s"},
                                           "Broker": {"ForwardTo": "x"}})")),
      ElementsAre("()", "forward-to.handler", ""));
  EXPECT_THAT(texts(read_exchanges(exchange_of("Fanout", R"({"Name": "s", "Broker": {"ForwardTo": "X"}})"))),
              ElementsAre(HasSubstr("loop: x -> x/Subscriptions/s -> X")));
}

}  // namespace
}  // namespace omnibus::node
