// A namespace is exported and made again in another one, through running brokers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/listener.hpp"
#include "node/server.hpp"
#include "transfer/exporting.hpp"
#include "transfer/importing.hpp"

namespace omnibus::transfer {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr std::string_view everything = R"({"UserConfig": {"Namespaces": [{
  "Queues": [ {"Name": "inbox", "Properties": {"ForwardTo": "orders/eu", "UserMetadata": "true"}},
              {"Name": "orders/eu", "Properties": {"LockDuration": "PT30S", "RequiresSession": true,
                 "AuthorizationRules": [ {"KeyName": "w", "PrimaryKey": "k1", "SecondaryKey": "k2", "Rights": ["Send"]} ]}},
              {"Name": "wide", "Properties": {"EnablePartitioning": true, "Status": "SendDisabled"}} ],
  "Topics": [ {"Name": "news", "Properties": {"RequiresDuplicateDetection": true}, "Subscriptions": [
      {"Name": "all", "Properties": {"MaxDeliveryCount": 9, "ForwardDeadLetteredMessagesTo": "inbox"}},
      {"Name": "some", "Rules": [
        {"Name": "a", "Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "n > @p", "Parameters": {"@p": 3}},
           "Action": {"SqlExpression": "SET x = 1"}}},
        {"Name": "b", "Properties": {"FilterType": "Correlation", "CorrelationFilter": {"Label": "l", "Properties": {"t": "x", "d": 1.5}}}} ]} ]} ],
  "Exchanges": [ {"Id": "x1", "Name": "billing", "Type": "Direct", "AlternateExchange": "rest", "Subscriptions": [
      {"Id": "x2", "Name": "eu", "RoutingKey": "eu", "PrefetchCount": 5} ]},
    {"Id": "x3", "Name": "rest", "Type": "Fanout"} ] }]}})";

class Transfer : public testing::Test {
 protected:
  struct Broker {
    std::unique_ptr<node::Server> server;
    std::unique_ptr<client::AdminClient> client;
  };
  Broker begin(std::string_view config) {
    node::ServeOptions options;
    options.ephemeral = true;
    options.listen = {"127.0.0.1:0"};
    auto reading = node::read_config(config, "");
    EXPECT_TRUE(reading.config);
    if (reading.config) options.config = *std::move(reading.config);
    options.config.shards = 1;
    auto server = node::Server::start(std::move(options));
    EXPECT_TRUE(server) << server.error().detail;
    const auto port = net::parse_host_port((*server)->addresses()[0])->port;
    auto where = client::parse_connection_string(fmt::format(
        "Endpoint=sb://"
        "127.0.0.1:{};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;"
        "UseDevelopmentEmulator=true",
        port));
    return {*std::move(server), std::make_unique<client::AdminClient>(*where, client::AdminOptions{})};
  }
  static std::string exported(Broker& broker) {
    const auto result = export_namespace(*broker.client, [](const std::string&) {});
    EXPECT_TRUE(result) << result.error().detail;
    return result ? pretty_json(result->config) : "";
  }
  ImportReport import(Broker& broker, std::string_view text, bool dry_run = false) {
    said_.clear();
    const auto source = read_source(text, {});
    for (const Note& note : source.notes.all())
      if (note.is_error) ADD_FAILURE() << note.path << ": " << note.text;
    const ImportOptions options{.dry_run = dry_run};
    const auto report =
        import_namespace(*broker.client, source, options,
                         [this](ImportAction action, const std::string& entity, const std::string& what) {
                           if (action != ImportAction::unchanged) said_.push_back(entity + ": " + what);
                         });
    EXPECT_TRUE(report) << report.error().detail;
    return report ? *report : ImportReport{};
  }

  std::vector<std::string> said_;
};

TEST_F(Transfer, ANamespaceIsMadeAgainFromItsExport) {
  auto first = begin(everything);
  const std::string text = exported(first);
  EXPECT_THAT(text, HasSubstr("\"ForwardTo\": \"orders/eu\""));
  EXPECT_THAT(text, HasSubstr("\"PrimaryKey\": \"k1\""));
  auto second = begin("{}");
  const auto planned = import(second, text, true);
  EXPECT_THAT(exported(second), testing::Not(HasSubstr("inbox"))) << "a dry run changes nothing";
  const auto report = import(second, text);
  EXPECT_EQ(report.refused, 0u) << testing::PrintToString(said_);
  EXPECT_GE(report.created, 8u);
  EXPECT_LE(planned.created, report.created) << "rules behind the first are only known when they are made";
  EXPECT_EQ(exported(second), text);

  const auto again = import(second, text);
  EXPECT_EQ(again.created + again.refused, 0u) << testing::PrintToString(said_);
  EXPECT_EQ(again.updated, 2u) << "only exchanges are put again: " << testing::PrintToString(said_);
  EXPECT_EQ(exported(second), text);

  // The same file starts a broker.
  auto third = begin(text);
  EXPECT_EQ(exported(third), text);
}

TEST_F(Transfer, WhatTheFileNamesIsChangedAndTheRestStays) {
  auto broker = begin(everything);
  const auto report = import(broker, R"({"UserConfig": {"Namespaces": [{
      "Queues": [ {"Name": "inbox", "Properties": {"MaxDeliveryCount": 4, "ForwardTo": ""}},
                  {"Name": "orders/eu", "Properties": {"RequiresSession": false, "LockDuration": "PT1M"}} ],
      "Topics": [ {"Name": "news", "Subscriptions": [ {"Name": "some", "Rules": [
        {"Name": "A", "Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "n = 1"}}} ]} ]} ],
      "Exchanges": [ {"Name": "billing", "Type": "Direct", "Subscriptions": [ {"Name": "us", "RoutingKey": "us"} ]} ] }]}})");
  EXPECT_EQ(report.refused, 1u);
  EXPECT_THAT(said_, Contains("queue 'inbox': MaxDeliveryCount, ForwardTo"));
  EXPECT_THAT(said_, Contains(HasSubstr("RequiresSession is true and cannot be changed")));
  const std::string text = exported(broker);
  EXPECT_THAT(text, HasSubstr("\"UserMetadata\": \"true\"")) << "it was not named";
  EXPECT_THAT(text, HasSubstr("\"LockDuration\": \"PT30S\"")) << "what was refused is as it was";
  EXPECT_THAT(text, testing::Not(HasSubstr("\"Name\": \"b\"")));
  EXPECT_THAT(text, HasSubstr("n = 1"));
  EXPECT_THAT(text, HasSubstr("\"RoutingKey\": \"eu\"")) << "subscriptions that are not named stay";
  EXPECT_THAT(text, HasSubstr("\"RoutingKey\": \"us\""));
}

// They mean nothing to our broker, but they are shown and kept for those who look.
TEST_F(Transfer, FlagsWithoutEffectArePassedOn) {
  auto broker = begin("{}");
  const auto file = [](std::string_view batched) {
    return fmt::format(R"({{"UserConfig": {{"Namespaces": [{{"Queues": [
        {{"Name": "q", "Properties": {{"EnableBatchedOperations": {}, "EnableExpress": true}}}}]}}]}}}})",
                       batched);
  };
  EXPECT_EQ(import(broker, file("false")).created, 1u);
  EXPECT_THAT(exported(broker), HasSubstr("\"EnableBatchedOperations\": false"));
  EXPECT_EQ(import(broker, file("false")).unchanged, 1u) << testing::PrintToString(said_);
  EXPECT_EQ(import(broker, file("true")).updated, 1u);
}

TEST_F(Transfer, NobodyThereIsOneError) {
  auto broker = begin("{}");
  broker.server.reset();
  const auto source = read_source(everything, {});
  EXPECT_FALSE(import_namespace(*broker.client, source, {}, [](auto, const auto&, const auto&) {}));
  EXPECT_FALSE(export_namespace(*broker.client, [](const std::string&) {}));
}

}  // namespace
}  // namespace omnibus::transfer
