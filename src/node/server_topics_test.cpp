// Topics, subscriptions and exchanges of the running broker: from Config.json to clients and over a restart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "node/server_rig.hpp"

namespace omnibus::node {
namespace {

using amqp::Role;
using testing::ElementsAre;
using testing::HasSubstr;

class ServerTopics : public ServerRig {
 protected:
  static Payload sale(std::string_view body, std::int64_t amount, std::string_view region) {
    amqp::MessageBuilder builder;
    const auto id = amqp::encode(amqp::Value{body});
    builder.properties().message_id = {id};
    builder.properties().subject = "sale";
    builder.application_property("amount", amqp::Value{amount});
    builder.application_property("region", amqp::Value{region});
    builder.body(amqp::Value{body});
    return builder.build();
  }
  static Payload keyed(std::string_view body, std::string_view key) {
    amqp::MessageBuilder builder;
    builder.properties().subject = key;
    builder.body(amqp::Value{body});
    return builder.build();
  }
};

const std::string sales = R"("Topics": [{"Name": "Sales", "Subscriptions": [
  {"Name": "all"},
  {"Name": "large", "Rules": [{"Name": "r", "Properties": {"FilterType": "Sql",
     "SqlFilter": {"SqlExpression": "amount > 100"}}}]},
  {"Name": "europe", "Rules": [{"Name": "r", "Properties": {"FilterType": "Correlation",
     "CorrelationFilter": {"Label": "sale", "Properties": {"region": "eu"}}}}]}]}])";

TEST_F(ServerTopics, EachSubscriptionGetsWhatItsRulesWant) {
  const auto server = start(options_with(2, sales));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  auto& sender = client.attach(Role::sender, "sales");
  ASSERT_TRUE(client.send(sender, {sale("small us", 5, "us"), sale("small eu", 5, "eu"),
                                   sale("large us", 500, "us"), sale("large eu", 500, "eu")}));
  EXPECT_THAT(take(client, "sales/Subscriptions/all", 4),
              ElementsAre("small us", "small eu", "large us", "large eu"));
  EXPECT_THAT(take(client, "SALES/subscriptions/LARGE", 2), ElementsAre("large us", "large eu"));
  EXPECT_THAT(take(client, "sales/Subscriptions/europe", 2), ElementsAre("small eu", "large eu"));
}

TEST_F(ServerTopics, MessagesAndSubscriptionsSurviveARestartWithoutTheFile) {
  {
    const auto server = start(options_with(2, sales));
    ASSERT_TRUE(server);
    AmqpClient client(server->addresses()[0]);
    auto& sender = client.attach(Role::sender, "sales");
    ASSERT_TRUE(client.send(sender, {sale("one", 5, "us"), sale("two", 500, "eu")}));
    EXPECT_THAT(take(client, "sales/Subscriptions/all", 1), ElementsAre("one"));
  }
  const auto server = start(options_with(2, R"("Queues": [])"));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  EXPECT_THAT(take(client, "sales/Subscriptions/all", 1), ElementsAre("two"));
  EXPECT_THAT(take(client, "sales/Subscriptions/europe", 1), ElementsAre("two"));
  // And their rules do.
  ASSERT_TRUE(
      client.send(client.attach(Role::sender, "sales"), {sale("three", 5, "eu"), sale("four", 500, "us")}));
  EXPECT_THAT(take(client, "sales/Subscriptions/large", 2), ElementsAre("two", "four"));
  EXPECT_THAT(take(client, "sales/Subscriptions/europe", 1), ElementsAre("three"));
}

// The file makes what is not there and changes what is, as far as that can be changed. [HTTP 16.1]
TEST_F(ServerTopics, AFileThatGrewAddsWhatIsNew) {
  {
    ASSERT_TRUE(start(options_with(1, R"("Topics": [{"Name": "t", "Subscriptions": [{"Name": "old"}]}])")));
  }
  const auto server = start(options_with(1, R"("Topics": [{"Name": "T",
      "Properties": {"MaxMessageSizeInKilobytes": 2048}, "Subscriptions": [
        {"Name": "OLD", "Properties": {"RequiresSession": true}}, {"Name": "new"}]}])"));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  auto& sender = client.attach(Role::sender, "t");
  EXPECT_EQ(client.of(sender).max_message_size, 2048u * 1024);
  ASSERT_TRUE(client.send(sender, numbered(1)));
  EXPECT_THAT(take(client, "t/Subscriptions/old", 1), ElementsAre("m0")) << "it has no sessions, for life";
  EXPECT_THAT(take(client, "t/Subscriptions/new", 1), ElementsAre("m0"));
}

// What is there stays what it is; nothing of the other kind is put into it.
TEST_F(ServerTopics, ANameKeepsItsKind) {
  {
    ASSERT_TRUE(start(options_with(1, R"("Queues": [{"Name": "a"}], "Topics": [{"Name": "b"}])")));
  }
  const auto server = start(options_with(1, R"("Topics": [{"Name": "a", "Subscriptions": [{"Name": "s"}]}],
      "Exchanges": [{"Name": "b", "Type": "Fanout", "Subscriptions": [{"Name": "s"}]}])"));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  ASSERT_TRUE(client.send(client.attach(Role::sender, "a"), numbered(1)));
  EXPECT_THAT(take(client, "a", 1), ElementsAre("m0"));
  for (const auto* gone : {"a/Subscriptions/s", "b/Subscriptions/s"}) {
    auto& receiver = client.attach(Role::receiver, gone);
    ASSERT_TRUE(client.until([&] { return client.of(receiver).detached.has_value(); }));
    EXPECT_EQ(client.of(receiver).detached->name, "amqp:not-found") << gone;
  }
}

TEST_F(ServerTopics, AnExchangeRoutesByItsKeys) {
  const std::string events = R"("Exchanges": [{"Name": "events", "Type": "Topic", "Subscriptions": [
      {"Name": "all", "RoutingKey": "#"}, {"Name": "paid", "RoutingKey": "order.*.paid"}]}])";
  {
    const auto server = start(options_with(2, events));
    ASSERT_TRUE(server);
    AmqpClient client(server->addresses()[0]);
    ASSERT_TRUE(client.send(client.attach(Role::sender, "events"),
                            {keyed("one", "order.1.paid"), keyed("two", "order.1.sent")}));
    EXPECT_THAT(take(client, "events/Subscriptions/all", 2), ElementsAre("one", "two"));
  }
  // The Id that was made for it is no difference.
  const auto server = start(options_with(2, events));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  ASSERT_TRUE(client.send(client.attach(Role::sender, "events"), {keyed("three", "order.2.paid")}));
  EXPECT_THAT(take(client, "events/Subscriptions/paid", 2), ElementsAre("one", "three"));
}

TEST_F(ServerTopics, ForwardsToATopicAndOutOfASubscriptionInAnyStore) {
  const auto [first, second] = apart();
  // A queue of the one store, a topic of the other, and back again.
  const auto server =
      start(options_with(2, fmt::format(R"("Queues": [{{"Name": "{0}", "Properties": {{"ForwardTo": "{1}"}}}},
          {{"Name": "end/{0}"}}], "Topics": [{{"Name": "{1}", "Subscriptions": [{{"Name": "stays"}},
          {{"Name": "goes", "Properties": {{"ForwardTo": "end/{0}"}}}}]}}])",
                                        first, second)));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  ASSERT_TRUE(client.send(client.attach(Role::sender, first), numbered(100)));
  for (const auto& address : {second + "/Subscriptions/stays", "end/" + first}) {
    const auto bodies = take(client, address, 100);
    EXPECT_EQ(bodies.front(), "m0");
    EXPECT_EQ(std::set<std::string>(bodies.begin(), bodies.end()).size(), 100u) << address;
  }
}

TEST_F(ServerTopics, ManyTopicsInManyStoresAreAllThere) {
  std::string topics;
  for (int i = 0; i < 40; ++i)
    topics += fmt::format(R"({}{{"Name": "t{}", "Subscriptions": [{{"Name": "a"}}, {{"Name": "b"}}]}})",
                          i == 0 ? "" : ",", i);
  {
    ASSERT_TRUE(start(options_with(4, "\"Topics\": [" + topics + "]")));
  }
  const auto server = start(options_with(2, ""));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  for (int i = 0; i < 40; ++i) {
    const auto name = fmt::format("t{}", i);
    ASSERT_TRUE(client.send(client.attach(Role::sender, name), numbered(1, name)));
    EXPECT_THAT(take(client, name + "/Subscriptions/b", 1), ElementsAre(name + "0"));
  }
}

}  // namespace
}  // namespace omnibus::node
