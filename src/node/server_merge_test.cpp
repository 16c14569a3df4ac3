// What a second start with another configuration changes [HTTP 16.1].
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "node/http_client_rig.hpp"
#include "node/server_rig.hpp"

namespace omnibus::node {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ServerMerge : public ServerRig {
 protected:
  // From now on the broker runs with this configuration, on what was there before.
  void begin(std::string_view entities) {
    http_.reset();
    server_.reset();
    server_ = start(options_with(2, entities));
    ASSERT_TRUE(server_);
    http_ = std::make_unique<HttpClient>(server_->addresses()[0]);
  }
  std::string get(std::string_view path, std::string_view headers = {}) {
    // A start counts as an access.
    static const std::regex accessed{"<AccessedAt>[^<]*<"};
    return std::regex_replace(http_->ask("GET", path, {}, headers).body, accessed, "");
  }

  std::unique_ptr<Server> server_;
  std::unique_ptr<HttpClient> http_;
};

TEST_F(ServerMerge, WhatTheFileNamesIsChangedAndTheRestStays) {
  begin(R"("Queues": [{"Name": "q", "Properties": {"MaxDeliveryCount": 5}}, {"Name": "other"}])");
  AmqpClient client(server_->addresses()[0]);
  ASSERT_TRUE(client.send(client.attach(amqp::Role::sender, "q"), numbered(2)));
  ASSERT_EQ(http_
                ->update("/q",
                         "<QueueDescription><LockDuration>PT2M</LockDuration><MaxDeliveryCount>6"
                         "</MaxDeliveryCount></QueueDescription>")
                .status,
            200);
  begin(R"("Queues": [{"Name": "q", "Properties": {"MaxDeliveryCount": 7, "UserMetadata": "note"}}])");
  const std::string q = get("/q");
  EXPECT_THAT(q, AllOf(HasSubstr("<MaxDeliveryCount>7<"), HasSubstr("<UserMetadata>note<"),
                       HasSubstr("<LockDuration>PT2M<"), HasSubstr("<MessageCount>2<")));
  EXPECT_THAT(get("/other"), HasSubstr("<QueueDescription")) << "nothing is removed";
  begin("");
  EXPECT_EQ(get("/q"), q) << "it is durable, and not touched without a reason";
}

TEST_F(ServerMerge, WhatCannotBeChangedLeavesTheEntityAsItWas) {
  begin(R"("Queues": [{"Name": "q"}, {"Name": "kind"}])");
  const std::string q = get("/q");
  begin(R"("Queues": [{"Name": "q", "Properties": {"RequiresSession": true, "MaxDeliveryCount": 9}}],
           "Topics": [{"Name": "kind", "Subscriptions": [{"Name": "s"}]}])");
  EXPECT_EQ(get("/q"), q) << "as a whole";
  EXPECT_THAT(get("/kind"), HasSubstr("<QueueDescription"));
}

TEST_F(ServerMerge, RulesThatTheFileNamesAreMadeOrChangedAndOthersStay) {
  const auto with_rules = [](std::string_view rules) {
    return fmt::format(R"("Topics": [{{"Name": "t", "Subscriptions": [{{"Name": "s"{}}}]}}])", rules);
  };
  const auto sql = [](std::string_view name, std::string_view text) {
    return fmt::format(
        R"({{"Name": "{}", "Properties": {{"FilterType": "Sql", "SqlFilter": {{"SqlExpression": "{}"}}}}}})",
        name, text);
  };
  begin(with_rules(fmt::format(R"(, "Rules": [{}, {}])", sql("a", "n = 1"), sql("b", "n = 2"))));
  const auto rule =
      http_->put("/t/Subscriptions/s/Rules/mine",
                 "<RuleDescription xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\"><Filter "
                 "i:type=\"SqlFilter\"><SqlExpression>n = 3</SqlExpression></Filter></RuleDescription>");
  ASSERT_EQ(rule.status, 201) << rule.body;
  begin(with_rules(""));
  EXPECT_THAT(get("/t/Subscriptions/s/Rules"), AllOf(HasSubstr(">mine</title>"), HasSubstr(">a</title>")));
  begin(with_rules(fmt::format(R"(, "Rules": [{}, {}])", sql("B", "n = 20"), sql("c", "n = 4"))));
  EXPECT_THAT(get("/t/Subscriptions/s/Rules"),
              AllOf(HasSubstr(">b</title>"), HasSubstr("n = 20"), Not(HasSubstr("n = 2<")),
                    HasSubstr(">c</title>"), HasSubstr(">a</title>"), HasSubstr(">mine</title>")));
  begin(with_rules(R"(, "Rules": [])"));
  EXPECT_THAT(get("/t/Subscriptions/s/Rules"), AllOf(HasSubstr(">mine</title>"), Not(HasSubstr("$Default"))));
}

TEST_F(ServerMerge, AccessRulesAreTheWholeSetThatTheFileNames) {
  const auto with = [](std::string_view name, std::string_view key) {
    return fmt::format(R"("Queues": [{{"Name": "q", "Properties": {{"AuthorizationRules": [
        {{"KeyName": "{}", "PrimaryKey": "{}", "Rights": ["Send"]}}]}}}}])",
                       name, key);
  };
  begin(with("one", "key1"));
  EXPECT_THAT(get("/q"), AllOf(HasSubstr("<KeyName>one<"), HasSubstr("<PrimaryKey>key1<")));
  begin(R"("Queues": [{"Name": "q"}])");
  EXPECT_THAT(get("/q"), HasSubstr("<PrimaryKey>key1<")) << "not named, so it stays";
  begin(with("two", "key2"));
  EXPECT_THAT(get("/q"), AllOf(HasSubstr("<PrimaryKey>key2<"), Not(HasSubstr("key1"))));
  // Keys are in the journal as they are, so nobody else may read it.
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder_->path() / "data"))
    if (file.path().string().contains("store-")) {
      EXPECT_EQ(file.status().permissions() &
                    (std::filesystem::perms::group_all | std::filesystem::perms::others_all),
                std::filesystem::perms::none)
          << file.path();
    }
}

TEST_F(ServerMerge, DocumentsOfExchangesAreReplacedAndOtherSubscriptionsStay) {
  begin(R"("Exchanges": [{"Name": "x", "Type": "Direct", "Caption": "old", "Subscriptions": [
      {"Name": "s", "RoutingKey": "a"}]}])");
  ASSERT_EQ(http_
                ->ask("PUT", "/x/Subscriptions/mine", R"({"RoutingKey": "m"})",
                      "Content-Type: application/json\r\n")
                .status,
            201);
  begin(
      R"("Exchanges": [{"Name": "x", "Type": "Direct", "Subscriptions": [{"Name": "s", "RoutingKey": "b"}]}])");
  const std::string x = get("/x", "Accept: application/json\r\n");
  EXPECT_THAT(
      x, AllOf(HasSubstr("\"RoutingKey\":\"b\""), HasSubstr("\"RoutingKey\":\"m\""), Not(HasSubstr("old"))));
  AmqpClient client(server_->addresses()[0]);
  ASSERT_TRUE(client.send(client.attach(amqp::Role::sender, "x/b"), numbered(1)));
  EXPECT_EQ(take(client, "x/Subscriptions/s", 1).size(), 1u);
  begin(R"("Exchanges": [{"Name": "x", "Type": "Topic"}])");
  EXPECT_THAT(get("/x", "Accept: application/json\r\n"), HasSubstr("\"Type\":\"Direct\""));
}

}  // namespace
}  // namespace omnibus::node
