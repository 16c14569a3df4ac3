// A namespace is exported and made again in another one, through running brokers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/fake_http.hpp"
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
  ImportReport import(Broker& broker, std::string_view text, const ImportOptions& options = {}) {
    said_.clear();
    const auto source = read_source(text, {});
    for (const Note& note : source.notes.all())
      if (note.is_error) ADD_FAILURE() << note.path << ": " << note.text;
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
  const auto planned = import(second, text, {.dry_run = true});
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
  EXPECT_THAT(text, HasSubstr("\"Name\": \"b\"")) << "rules that are not named stay, as with --config";
  EXPECT_THAT(text, HasSubstr("n = 1"));
  EXPECT_THAT(text, HasSubstr("\"RoutingKey\": \"eu\"")) << "subscriptions that are not named stay";
  EXPECT_THAT(text, HasSubstr("\"RoutingKey\": \"us\""));
}

TEST_F(Transfer, RulesThatTheFileDoesNotNameGoWhenThatIsAskedFor) {
  auto broker = begin(everything);
  constexpr std::string_view file = R"({"UserConfig": {"Namespaces": [{
      "Topics": [ {"Name": "news", "Subscriptions": [ {"Name": "some", "Rules": [
        {"Name": "A", "Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "n = 1"}}} ]} ]} ]}]}})";
  (void)import(broker, file);
  EXPECT_THAT(said_, Contains(HasSubstr("--replace-rules")));
  EXPECT_THAT(exported(broker), HasSubstr("\"Name\": \"b\""));
  (void)import(broker, file, {.replace_rules = true});
  EXPECT_THAT(said_, Contains(HasSubstr("removed")));
  EXPECT_THAT(exported(broker), testing::Not(HasSubstr("\"Name\": \"b\"")));
}

TEST_F(Transfer, OneNamespaceOfAFileIsImported) {
  auto broker = begin("{}");
  const auto source = read_source(R"({"UserConfig": {"Namespaces": [
      {"Name": "shop", "Queues": [{"Name": "orders", "Properties": {"MaxDeliveryCount": 3}}],
       "Exchanges": [{"Name": "billing", "Type": "Fanout"}]},
      {"Name": "office", "Queues": [{"Name": "orders", "Properties": {"MaxDeliveryCount": 7, "EnableExpress": true}},
                                    {"Name": "letters"}]} ]}})",
                                  {});
  ASSERT_TRUE(source.config);
  const auto import_of = [&](std::string name) {
    return import_namespace(*broker.client, source, {.name_space = std::move(name)},
                            [](auto, const auto&, const auto&) {});
  };
  const auto unsaid = import_of("");
  ASSERT_FALSE(unsaid);
  EXPECT_EQ(unsaid.error().code, Errc::argument_error);
  EXPECT_THAT(unsaid.error().detail, HasSubstr("'shop', 'office'"));
  const auto unknown = import_of("home");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().detail, HasSubstr("no namespace 'home'; it has 'shop', 'office'"));
  EXPECT_THAT(exported(broker), testing::Not(HasSubstr("orders")));
  const auto report = import_of("Office");
  ASSERT_TRUE(report) << report.error().detail;
  EXPECT_EQ(report->created, 2u);
  const std::string text = exported(broker);
  EXPECT_THAT(text, HasSubstr("\"MaxDeliveryCount\": 7"));
  EXPECT_THAT(text, HasSubstr("\"EnableExpress\": true")) << "flags are those of the same namespace";
  EXPECT_THAT(text, testing::Not(HasSubstr("billing")));
}

// The management API shows the size of all partitions together and not how many there are.
TEST_F(Transfer, OtherNumbersOfPartitionsKeepTheirSizes) {
  for (const int count : {4, 16, 32}) {
    const auto config = [&](std::string_view entities) {
      return fmt::format(
          R"({{"Omnibus": {{"PartitionCount": {}}}, "UserConfig": {{"Namespaces": [{{{}}}]}}}})", count,
          entities);
    };
    auto first = begin(config(R"("Queues": [
        {"Name": "a", "Properties": {"EnablePartitioning": true}},
        {"Name": "b", "Properties": {"EnablePartitioning": true, "MaxSizeInMegabytes": 5120}}],
      "Topics": [{"Name": "c", "Properties": {"EnablePartitioning": true, "MaxSizeInMegabytes": 4096}}])"));
    const std::string text = exported(first);
    EXPECT_THAT(text, HasSubstr("\"MaxSizeInMegabytes\": 1024"));
    EXPECT_THAT(text, HasSubstr("\"MaxSizeInMegabytes\": 5120"));
    EXPECT_THAT(text, HasSubstr("\"MaxSizeInMegabytes\": 4096"));
    // It is not said where it is the default.
    EXPECT_EQ(text.contains(fmt::format("\"PartitionCount\": {}", count)), count != 16) << text;
    // The same file starts a broker, and is imported into another.
    auto second = begin(text);
    EXPECT_EQ(exported(second), text);
    EXPECT_EQ(import(second, text).unchanged, 3u) << testing::PrintToString(said_);
    auto third = begin(config(""));
    EXPECT_EQ(import(third, text).created, 3u);
    EXPECT_THAT(said_, testing::Each(testing::Not(HasSubstr("partitions")))) << testing::PrintToString(said_);
    EXPECT_EQ(exported(third), text);
    EXPECT_EQ(import(third, R"({"UserConfig": {"Namespaces": [{"Queues": [
        {"Name": "a", "Properties": {"MaxSizeInMegabytes": 4096}}]}]}})")
                  .updated,
              1u);
    EXPECT_EQ(third.client->get(client::EntityName::queue("a"))->get("MaxSizeInMegabytes"),
              std::to_string(4096 * count));
  }
}

// How many partitions a new entity has is its broker's.
TEST_F(Transfer, AnotherNumberOfPartitionsIsSaid) {
  auto first = begin(R"({"Omnibus": {"PartitionCount": 4}, "UserConfig": {"Namespaces": [{"Queues": [
      {"Name": "a", "Properties": {"EnablePartitioning": true}}]}]}})");
  auto second = begin("{}");
  EXPECT_EQ(import(second, exported(first)).created, 1u);
  EXPECT_THAT(said_, Contains(HasSubstr("it has 16 partitions there and 4 in the file")));
  EXPECT_EQ(second.client->get(client::EntityName::queue("a"))->get("MaxSizeInMegabytes"), "16384");
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

// A number that is missing for a moment would be a wrong size in the file.
TEST_F(Transfer, ABusyServerIsNotOneThatHasNoNumbers) {
  client::FakeHttp server([](const net::HttpRequest& request) -> net::HttpResponse {
    if (request.target.starts_with("/$omnibus/partitions/")) return {.status = 503};
    const bool is_queues = request.target.starts_with("/$Resources/Queues");
    return {.status = 200,
            .headers = {{"Content-Type", "application/atom+xml"}},
            .body = is_queues ? "<feed><entry><title>wide</title><content><QueueDescription>"
                                "<MaxSizeInMegabytes>4096</MaxSizeInMegabytes>"
                                "<EnablePartitioning>true</EnablePartitioning>"
                                "</QueueDescription></content></entry></feed>"
                              : "<feed/>"};
  });
  client::AdminClient client(server.where(), {});
  const auto result = export_namespace(client, [](const std::string&) {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::server_busy);
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
