// Exchanges made, changed and removed as JSON documents, over real sockets [HTTP 18].
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "node/http_client_rig.hpp"
#include "node/server_rig.hpp"

namespace omnibus::node {
namespace {

using amqp::Role;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view sends_json = "Content-Type: application/json\r\n";
constexpr std::string_view wants_json = "Accept: application/json\r\n";

class ServerDocuments : public ServerRig {
 protected:
  void SetUp() override { begin(R"("Queues": [{"Name": "q"}], "Topics": [{"Name": "t"}])"); }
  void begin(std::string_view entities) {
    http_.reset();
    server_.reset();
    server_ = start(options_with(2, entities));
    ASSERT_TRUE(server_);
    http_ = std::make_unique<HttpClient>(server_->addresses()[0]);
  }
  HttpClient::Answer put(std::string_view path, std::string_view body, std::string_view headers = {}) {
    return http_->ask("PUT", path, body, std::string(sends_json) + std::string(headers));
  }
  HttpClient::Answer get(std::string_view path) { return http_->ask("GET", path, {}, wants_json); }
  // A start counts as an access.
  static std::string without_access(const std::string& text) {
    return std::regex_replace(text, std::regex{R"("AccessedAt":"[^"]*")"}, "");
  }
  // How many messages a subscription has.
  std::uint64_t active(std::string_view subscription) {
    const std::string document = get(subscription).body;
    const std::string word = "\"ActiveMessageCount\":";
    const auto at = document.find(word);
    return at == std::string::npos ? 99 : std::strtoull(document.c_str() + at + word.size(), nullptr, 10);
  }

  std::unique_ptr<Server> server_;
  std::unique_ptr<HttpClient> http_;
};

TEST_F(ServerDocuments, AnExchangeIsMadeReadChangedAndRemoved) {
  const auto made =
      put("/billing", R"({"Type": "Direct", "Subscriptions": [{"Name": "eu", "RoutingKey": "eu"}]})");
  EXPECT_EQ(made.status, 201) << made.body;
  EXPECT_THAT(made.body,
              AllOf(HasSubstr("\"Type\":\"Direct\""), HasSubstr("\"Id\":\""),
                    HasSubstr("\"RetryDelayMaxMs\":300000"), HasSubstr("\"SubscriptionCount\":1")));
  AmqpClient client(server_->addresses()[0]);
  ASSERT_TRUE(client.send(client.attach(Role::sender, "billing/eu"), numbered(2)));
  EXPECT_EQ(active("/billing/Subscriptions/eu"), 2u);

  EXPECT_EQ(put("/billing/Subscriptions/us", R"({"RoutingKey": "us"})").status, 201);
  EXPECT_EQ(put("/BILLING/subscriptions/EU", R"({"RoutingKey": "europe", "PrefetchCount": 3})").status, 200);
  ASSERT_TRUE(client.send(client.attach(Role::sender, "billing/europe"), numbered(1)));
  ASSERT_TRUE(client.send(client.attach(Role::sender, "billing/eu"), numbered(1)));
  EXPECT_EQ(active("/billing/Subscriptions/eu"), 3u) << "the new key counts, and copies stay";

  const auto same = put("/billing", R"({"Type": "Direct", "Caption": "c"})");
  EXPECT_EQ(same.status, 200);
  EXPECT_THAT(same.body, AllOf(HasSubstr("\"Caption\":\"c\""), HasSubstr("\"SubscriptionCount\":2")))
      << "subscriptions that are not spoken of stay";
  EXPECT_THAT(
      put("/billing", R"({"Type": "Direct", "Subscriptions": [{"Name": "us", "RoutingKey": "us"}]})").body,
      HasSubstr("\"SubscriptionCount\":1"));
  EXPECT_EQ(get("/billing/Subscriptions/eu").status, 404);
  EXPECT_EQ(http_->ask("DELETE", "/billing/Subscriptions/us").status, 200);
  EXPECT_EQ(http_->ask("DELETE", "/billing").status, 200);
  EXPECT_EQ(get("/billing").status, 404);
}

TEST_F(ServerDocuments, AllOfItIsThereAfterARestart) {
  ASSERT_EQ(put("/x", R"({"Type": "Topic", "Caption": "kept", "Subscriptions": [
      {"Name": "s", "RoutingKey": "a.*", "Broker": {"MaxDeliveryCount": 4}}]})")
                .status,
            201);
  ASSERT_EQ(put("/x/Subscriptions/s", R"({"RoutingKey": "b.#"})").status, 200);
  const std::string before = without_access(get("/x").body);
  EXPECT_THAT(before, AllOf(HasSubstr("\"RoutingKey\":\"b.#\""), HasSubstr("\"MaxDeliveryCount\":10"),
                            HasSubstr("\"Caption\":\"kept\"")));
  begin("");
  EXPECT_EQ(without_access(get("/x").body), before);
  AmqpClient client(server_->addresses()[0]);
  ASSERT_TRUE(client.send(client.attach(Role::sender, "x/b.c"), numbered(1)));
  ASSERT_TRUE(client.send(client.attach(Role::sender, "x/a.c"), numbered(1)));
  EXPECT_EQ(active("/x/Subscriptions/s"), 1u);
}

TEST_F(ServerDocuments, WhatIsWrongChangesNothing) {
  const auto wrong = put("/x", R"({"Type": "Direct", "Subscriptions": [{"Name": "a"}]})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.body,
              AllOf(HasSubstr("\"code\":\"SubscriptionInvalid\""), HasSubstr("routing-key.required"),
                    HasSubstr("\"path\":\"/Subscriptions/0\"")));
  EXPECT_EQ(get("/x").status, 404);
  EXPECT_EQ(put("/x", "{").status, 400);
  EXPECT_EQ(put("/q", R"({"Type": "Fanout"})").status, 409) << "a queue has the name";
  EXPECT_THAT(put("/t", R"({"Type": "Fanout"})").body, HasSubstr("name.duplicate"));
  EXPECT_EQ(put("/none/Subscriptions/s", "{}").status, 404);
  EXPECT_EQ(put("/t/Subscriptions/s", "{}").status, 404) << "a topic has no documents";

  ASSERT_EQ(
      put("/x", R"({"Id": "one", "Type": "Fanout", "Subscriptions": [{"Name": "a", "ConsumerId": "me"}]})")
          .status,
      201);
  const auto type = put("/x", R"({"Type": "Direct"})");
  EXPECT_EQ(type.status, 409);
  EXPECT_THAT(type.body, HasSubstr("type.immutable"));
  EXPECT_THAT(put("/x", R"({"Id": "two", "Type": "Fanout"})").body, HasSubstr("id.immutable"));
  EXPECT_THAT(put("/y", R"({"Id": "one", "Type": "Fanout"})").body, HasSubstr("id.duplicate"));
  EXPECT_THAT(put("/x/Subscriptions/b", R"({"ConsumerId": "me"})").body, HasSubstr("consumer-id.duplicate"));
  EXPECT_EQ(put("/x/Subscriptions/a", R"({"Broker": {"RequiresSession": true}})").status, 409);
  EXPECT_EQ(put("/x", R"({"Type": "Fanout"})", "If-None-Match: *\r\n").status, 409);
  EXPECT_EQ(put("/y", R"({"Type": "Fanout"})", "If-Match: *\r\n").status, 404);
  EXPECT_EQ(put("/y", R"({"Type": "Fanout"})", "If-None-Match: *\r\n").status, 201);
  EXPECT_EQ(put("/y", R"({"Type": "Fanout", "Status": "Disabled"})", "If-Match: *\r\n").status, 200);
  const auto scripts = http_->ask("PUT", "/$Scripts/s", "{}");
  EXPECT_EQ(scripts.status, 501);
  EXPECT_THAT(scripts.body, HasSubstr("Scripts are not supported yet"));
}

// A shared property is the same one, whoever speaks of it. [HTTP 18, the second table]
TEST_F(ServerDocuments, AtomClientsSeeATopic) {
  ASSERT_EQ(put("/d", R"({"Type": "Direct", "Unroutable": "Release", "Subscriptions": [
      {"Name": "s", "RoutingKey": "k"}]})")
                .status,
            201);
  ASSERT_EQ(put("/f", R"({"Type": "Fanout"})").status, 201);
  EXPECT_THAT(http_->ask("GET", "/d").body, AllOf(HasSubstr("<TopicDescription"), Not(HasSubstr("Direct"))));
  EXPECT_THAT(http_->ask("GET", "/$Resources/Topics").body,
              AllOf(HasSubstr(">d</title>"), HasSubstr(">f</title>"), HasSubstr(">t</title>")));
  EXPECT_EQ(http_->put("/d", "<TopicDescription/>").status, 409);
  EXPECT_EQ(http_
                ->update("/d",
                         "<TopicDescription><DefaultMessageTimeToLive>PT5M</DefaultMessageTimeToLive>"
                         "</TopicDescription>")
                .status,
            200);
  EXPECT_THAT(get("/d").body, AllOf(HasSubstr("\"DefaultMessageTimeToLive\":\"PT5M\""),
                                    HasSubstr("\"Unroutable\":\"Release\"")));
  EXPECT_EQ(http_->put("/d/Subscriptions/n", "<SubscriptionDescription/>").status, 400);
  EXPECT_EQ(http_->put("/f/Subscriptions/n", "<SubscriptionDescription/>").status, 201);
  EXPECT_THAT(get("/f/Subscriptions/n").body, AllOf(HasSubstr("\"Id\":"), HasSubstr("\"MaxRejects\":0")));
  EXPECT_EQ(http_
                ->update("/d/Subscriptions/s",
                         "<SubscriptionDescription><MaxDeliveryCount>5</MaxDeliveryCount>"
                         "</SubscriptionDescription>")
                .status,
            200);
  EXPECT_THAT(get("/d/Subscriptions/s").body,
              AllOf(HasSubstr("\"RoutingKey\":\"k\""), HasSubstr("\"MaxDeliveryCount\":5")));
  EXPECT_THAT(http_->ask("GET", "/d/Subscriptions/s/Rules").body, Not(HasSubstr("<entry")));
  EXPECT_EQ(http_->ask("GET", "/d/Subscriptions/s/Rules/$Default").status, 404);
  EXPECT_EQ(http_->put("/d/Subscriptions/s/Rules/r", "<RuleDescription/>").status, 400);
}

TEST_F(ServerDocuments, ListsHavePages) {
  for (const auto* name : {"c", "a", "b"})
    ASSERT_EQ(put(fmt::format("/{}", name), R"({"Type": "Fanout", "Subscriptions": [{"Name": "s"}]})").status,
              201);
  const std::string first = http_->ask("GET", "/$Resources/Exchanges?$top=2").body;
  EXPECT_THAT(
      first, AllOf(HasSubstr("\"Name\":\"a\""), HasSubstr("\"Name\":\"b\""), Not(HasSubstr("\"Name\":\"c\"")),
                   Not(HasSubstr("\"Subscriptions\"")), HasSubstr("$skip=2&$top=2")));
  EXPECT_THAT(http_->ask("GET", "/$Resources/Exchanges?$skip=2&$top=2").body,
              AllOf(HasSubstr("\"Name\":\"c\""), Not(HasSubstr("next"))));
  EXPECT_EQ(http_->ask("GET", "/$Resources/Exchanges?$skip=3").body, R"({"value":[]})");
}

}  // namespace
}  // namespace omnibus::node
