// Messages over HTTP, the test tools and the clock, at a running broker: real sockets, stores and threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "node/http_client_rig.hpp"
#include "node/server_rig.hpp"

namespace omnibus::node {
namespace {

using amqp::Role;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ServerRest : public ServerRig {
 protected:
  std::unique_ptr<Server> start_with(std::string_view entities, bool test_clock = false) {
    auto options = options_with(2, entities);
    options.test_clock = test_clock;
    return start(std::move(options));
  }
  static std::string path_of(const HttpClient::Answer& locked) {
    const std::string location = locked.header("Location");
    return location.substr(std::min(location.size(), std::string_view("http://localhost").size()));
  }
};

TEST_F(ServerRest, WhatHttpSendsAmqpReceivesAndBack) {
  const auto server = start_with(R"("Queues": [{"Name": "q"},
      {"Name": "p", "Properties": {"EnablePartitioning": true}}])");
  ASSERT_TRUE(server);
  // Two connections are on two shards; stores too.
  HttpClient http(server->addresses()[0]);
  HttpClient other(server->addresses()[0]);
  AmqpClient amqp(server->addresses()[0]);
  for (const std::string queue : {"q", "p"}) {
    EXPECT_EQ(http.ask("POST", "/" + queue + "/messages", "one").status, 201);
    EXPECT_EQ(other
                  .ask("POST", "/" + queue + "/messages", R"([{"Body":"two"},{"Body":"three"}])",
                       "Content-Type: application/vnd.microsoft.servicebus.json\r\n")
                  .status,
              201);
    EXPECT_EQ(take(amqp, queue, 3).size(), 3u);
    ASSERT_TRUE(amqp.send(amqp.attach(Role::sender, queue), numbered(2)));
    const auto locked = http.ask("POST", "/" + queue + "/messages/head?timeout=5");
    EXPECT_EQ(locked.status, 201);
    EXPECT_THAT(locked.header("BrokerProperties"), HasSubstr("\"DeliveryCount\":1,"));
    EXPECT_EQ(other.ask("DELETE", "/" + queue + "/messages/head?timeout=5").status, 200);
    EXPECT_EQ(other.ask("POST", path_of(locked)).status, 200) << "a lock is not of a connection";
    EXPECT_EQ(other.ask("DELETE", path_of(locked)).status, 200);
    EXPECT_EQ(http.ask("DELETE", path_of(locked)).status, 404);
    EXPECT_EQ(http.ask("DELETE", "/" + queue + "/messages/head?timeout=0").status, 204);
  }
}

TEST_F(ServerRest, AClientThatLeavesWhileItWaitsLosesNothing) {
  const auto server = start_with(R"("Queues": [{"Name": "q"}])");
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  for (const char* method : {"POST", "DELETE"}) {
    // One that waits, and gets its message.
    std::optional<HttpClient> waits;
    waits.emplace(server->addresses()[0]);
    waits->send(method, "/q/messages/head?timeout=20");
    EXPECT_EQ(http.ask("POST", "/q/messages", "for you").status, 201);
    const auto got = waits->receive();
    EXPECT_EQ(got.body, "for you");
    if (*method == 'P') {
      EXPECT_EQ(http.ask("DELETE", path_of(got)).status, 200);
    }
    // One that does not wait for it.
    waits.emplace(server->addresses()[0]);
    waits->send(method, "/q/messages/head?timeout=20");
    waits.reset();
    EXPECT_EQ(http.ask("POST", "/q/messages", "for the next").status, 201);
    const auto next = http.ask("POST", "/q/messages/head?timeout=5");
    EXPECT_EQ(next.body, "for the next");
    EXPECT_THAT(next.header("BrokerProperties"), HasSubstr("\"DeliveryCount\":1,"));
    EXPECT_EQ(http.ask("DELETE", path_of(next)).status, 200);
  }
}

TEST_F(ServerRest, ToolsPurgeLookAndPutIn) {
  const auto server = start_with(R"("Queues": [{"Name": "q"}],
      "Topics": [{"Name": "t", "Subscriptions": [{"Name": "s"}]}])");
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  EXPECT_EQ(http.ask("POST", "/$omnibus/messages/q",
                     R"([{"Body":"a","BrokerProperties":{"MessageId":"1","ContentType":"text/plain"},
                          "UserProperties":{"n":1}},{"Body":"_w==","IsBodyBase64":true}])")
                .body,
            R"({"accepted":2})");
  const auto seen = http.ask("GET", "/$omnibus/messages/q");
  EXPECT_THAT(seen.body, AllOf(HasSubstr(R"("Body":"a","IsBodyBase64":false)"),
                               HasSubstr(R"("Body":"/w==","IsBodyBase64":true)"),
                               HasSubstr(R"("MessageId":"1")"), HasSubstr(R"("ContentType":"text/plain")"),
                               HasSubstr(R"("UserProperties":{"n":1})"), HasSubstr(R"("next":3)")));
  EXPECT_THAT(http.ask("GET", "/$omnibus/messages/q?from=2&top=1").body,
              Not(HasSubstr(R"("MessageId":"1")")));
  EXPECT_EQ(http.ask("GET", "/$omnibus/messages/q?top=0").status, 400);
  EXPECT_EQ(http.ask("POST", "/q/messages/head?timeout=0").status, 201) << "locked ones are purged too";
  EXPECT_EQ(http.ask("POST", "/$omnibus/purge/q").body, R"({"purged":2})");
  EXPECT_EQ(http.ask("GET", "/$omnibus/messages/q").body, R"({"value":[]})");
  EXPECT_EQ(http.ask("POST", "/$omnibus/purge/nobody").status, 404);
  EXPECT_EQ(http.ask("POST", "/$omnibus/purge/q?subqueue=some").status, 400);
  EXPECT_EQ(http.ask("GET", "/$omnibus/purge/q").status, 405);

  EXPECT_EQ(http.ask("POST", "/t/messages", "now").status, 201);
  EXPECT_EQ(http.ask("POST", "/t/messages", "later",
                     "BrokerProperties: {\"ScheduledEnqueueTimeUtc\":\"Sun, 06 Nov 2094 08:49:37 GMT\"}\r\n")
                .status,
            201);
  EXPECT_EQ(http.ask("POST", "/$omnibus/purge/t").body, R"({"purged":2})")
      << "what is scheduled, and the copies";
}

TEST_F(ServerRest, ResetLeavesWhatTheConfigurationMade) {
  const auto server = start_with(R"("Queues": [{"Name": "Kept"}],
      "Topics": [{"Name": "t", "Subscriptions": [{"Name": "s"}]}])");
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  http.put("/made", "<QueueDescription/>");
  http.put("/t/Subscriptions/made", "<SubscriptionDescription/>");
  for (const char* entity : {"kept", "made", "t"})
    EXPECT_EQ(http.ask("POST", std::string("/") + entity + "/messages", "x").status, 201);
  EXPECT_EQ(http.ask("POST", "/$omnibus/reset").body, R"({"purged":4,"deleted":0})");
  EXPECT_EQ(http.ask("POST", "/kept/messages", "x").status, 201);
  EXPECT_EQ(http.ask("POST", "/$omnibus/reset?entities=delete").body, R"({"purged":1,"deleted":2})");
  EXPECT_EQ(http.ask("POST", "/made/messages", "x").status, 404);
  EXPECT_EQ(http.ask("DELETE", "/t/Subscriptions/s/messages/head?timeout=0").status, 204);
  EXPECT_EQ(http.ask("DELETE", "/t/Subscriptions/made/messages/head?timeout=0").status, 404);
  EXPECT_EQ(http.ask("POST", "/$omnibus/reset?entities=keep").status, 400);
}

TEST_F(ServerRest, WithoutTheFlagThereIsNoClockToMove) {
  const auto server = start_with(R"("Queues": [])");
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  for (const char* method : {"GET", "POST"}) {
    const auto refused = http.ask(method, "/$omnibus/clock", R"({"advance":"PT1M"})");
    EXPECT_EQ(refused.status, 404);
    EXPECT_THAT(refused.body, HasSubstr("--test-clock"));
  }
}

TEST_F(ServerRest, TheClockMovesWhatLivesByIt) {
  const auto server = start_with(R"("Queues": [
      {"Name": "q", "Properties": {"LockDuration": "PT5M", "DefaultMessageTimeToLive": "P1D",
        "DeadLetteringOnMessageExpiration": true}},
      {"Name": "p", "Properties": {"LockDuration": "PT5M", "EnablePartitioning": true}},
      {"Name": "d", "Properties": {"RequiresDuplicateDetection": true,
        "DuplicateDetectionHistoryTimeWindow": "PT10M"}}])",
                                 true);
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  const auto advance = [&](std::string_view span) {
    const auto moved = http.ask("POST", "/$omnibus/clock", fmt::format(R"({{"advance":"{}"}})", span));
    EXPECT_EQ(moved.status, 200) << moved.body;
    return moved.body;
  };
  // Locks, of one store and of many.
  for (const std::string queue : {"q", "p"}) {
    EXPECT_EQ(http.ask("POST", "/" + queue + "/messages", "one").status, 201);
    EXPECT_EQ(http.ask("POST", "/" + queue + "/messages/head?timeout=0").status, 201);
    EXPECT_EQ(http.ask("POST", "/" + queue + "/messages/head?timeout=0").status, 204);
    advance("PT5M1S");
    const auto again = http.ask("DELETE", "/" + queue + "/messages/head?timeout=0");
    EXPECT_EQ(again.status, 200) << "the lock of five minutes is over";
    EXPECT_THAT(again.header("BrokerProperties"), HasSubstr("\"DeliveryCount\":2,"));
  }
  // Schedules, and then the time to live.
  HttpClient other(server->addresses()[0]);
  EXPECT_EQ(other
                .ask("POST", "/q/messages", "far",
                     "BrokerProperties: {\"ScheduledEnqueueTimeUtc\":"
                     "\"Sun, 06 Nov 2095 08:49:37 GMT\"}\r\n")
                .status,
            201);
  EXPECT_EQ(http.ask("DELETE", "/q/messages/head?timeout=0").status, 204);
  EXPECT_THAT(http.ask("POST", "/$omnibus/clock", R"({"set":"2095-11-06T09:00:00Z"})").body,
              HasSubstr(R"("now":"2095-11-06T09:00:00)"));
  EXPECT_EQ(other.ask("POST", "/q/messages/head?timeout=0").body, "far");
  advance("P2D");
  EXPECT_EQ(http.ask("POST", "/q/messages/head?timeout=0").status, 204);
  EXPECT_EQ(http.ask("DELETE", "/q/$DeadLetterQueue/messages/head?timeout=0").body, "far");
  // The window of duplicates.
  const char* id = "BrokerProperties: {\"MessageId\":\"same\"}\r\n";
  for (const int purged : {1, 0}) {
    EXPECT_EQ(http.ask("POST", "/d/messages", "x", id).status, 201);
    EXPECT_EQ(http.ask("POST", "/$omnibus/purge/d").body, fmt::format(R"({{"purged":{}}})", purged));
  }
  advance("PT11M");
  EXPECT_EQ(http.ask("POST", "/d/messages", "x", id).status, 201);
  EXPECT_EQ(http.ask("POST", "/$omnibus/purge/d").body, R"({"purged":1})");
  // Entities that nobody uses.
  EXPECT_EQ(
      http.put("/idle", "<QueueDescription><AutoDeleteOnIdle>PT10M</AutoDeleteOnIdle></QueueDescription>")
          .status,
      201);
  advance("PT11M");
  EXPECT_EQ(http.ask("POST", "/idle/messages", "x").status, 404);
  EXPECT_EQ(other.ask("POST", "/idle/messages", "x").status, 404) << "every shard knows";
  // Tokens go by the real time: that of these requests would have ended long ago.
  EXPECT_THAT(http.ask("GET", "/$omnibus/clock").body, HasSubstr("offset_ms"));
  for (const char* bad : {"", "{}", R"({"advance":"-PT1S"})", R"({"set":"1999-01-01T00:00:00Z"})",
                          R"({"advance":"P10000000D"})", R"({"advance":5})"})
    EXPECT_EQ(http.ask("POST", "/$omnibus/clock", bad).status, 400) << bad;
}

TEST_F(ServerRest, APartitionedEntityGoesWhenAllOfItIsIdle) {
  const auto server = start_with(R"("Queues": [
      {"Name": "idle", "Properties": {"EnablePartitioning": true, "AutoDeleteOnIdle": "PT10M"}},
      {"Name": "used", "Properties": {"EnablePartitioning": true, "AutoDeleteOnIdle": "PT10M"}}])",
                                 true);
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  const auto advance = [&](std::string_view span) {
    EXPECT_EQ(http.ask("POST", "/$omnibus/clock", fmt::format(R"({{"advance":"{}"}})", span)).status, 200);
  };
  advance("PT8M");
  // One key, one partition: the other fifteen have been idle for longer.
  EXPECT_EQ(http.ask("POST", "/used/messages", "x", "BrokerProperties: {\"PartitionKey\": \"k\"}\r\n").status,
            201);
  advance("PT4M");
  // The stores have told; who removes it is on the first shard, and these requests may be quicker.
  const auto is_there = [&] { return http.ask("GET", "/idle").body.contains("QueueDescription"); };
  for (int i = 0; i < 2000 && is_there(); ++i) std::this_thread::yield();
  EXPECT_FALSE(is_there());
  EXPECT_EQ(http.ask("DELETE", "/used/messages/head?timeout=5").body, "x");
}

TEST_F(ServerRest, LinksSeeTheMovedClockToo) {
  const auto server =
      start_with(R"("Queues": [{"Name": "q", "Properties": {"LockDuration": "PT1M"}}])", true);
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  EXPECT_EQ(http.ask("POST", "/$omnibus/clock", R"({"advance":"P365D"})").status, 200);
  AmqpClient amqp(server->addresses()[0]);
  ASSERT_TRUE(amqp.send(amqp.attach(Role::sender, "q"), numbered(1)));
  EXPECT_THAT(take(amqp, "q", 1), ElementsAre("m0"));
}

}  // namespace
}  // namespace omnibus::node
