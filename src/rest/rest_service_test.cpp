// Sending, receiving and settling by requests, over the real machines.
#include "rest/rest_service.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/partition_key.hpp"
#include "rest/rest_rig.hpp"

namespace omnibus::rest {
namespace {

using namespace std::chrono_literals;
using auth::Right;
using testing::HasSubstr;

struct Rig : RestRig {
  Rig() { port.add(queue("q"), wall); }
};

TEST(RestSend, IsAnsweredOnceDurable) {
  Rig rig;
  rig.port.durable = false;
  const auto sent = rig.send("q", "one");
  EXPECT_FALSE(sent->response);
  EXPECT_EQ(rig.service->requests(), 1u);
  rig.port.durable = true;
  rig.run();
  EXPECT_EQ(sent->status(), 201);
  EXPECT_EQ(rig.service->requests(), 0u);
}

TEST(RestSend, DoesNotWaitForADiskThatDoesNotAnswer) {
  RestRig rig;
  rig.port.add(RestRig::queue("orders"), rig.wall);
  rig.port.add_partitioned(RestRig::queue("spread"), 4, rig.wall);
  for (const std::uint16_t i : {1, 2, 3}) rig.port.set_down("spread", i);
  rig.port.durable = false;
  const auto plain = rig.send("orders", "1");
  const auto spread = rig.send("spread", "2");
  rig.port.set_up();
  rig.port.set_down("spread", 0);
  rig.service->give_up(0, rig.now());
  EXPECT_EQ(plain->status(), 500);
  EXPECT_EQ(spread->status(), 0) << "another store has it now";
  rig.port.durable = true;
  rig.run();
  EXPECT_EQ(spread->status(), 201);
  EXPECT_EQ(rig.service->requests(), 0u);
}

TEST(RestReceive, ALockIsCompletedByItsAddress) {
  Rig rig;
  rig.send("q", "one", R"({"MessageId":"m/1"})");
  const auto locked = rig.lock("Q");
  EXPECT_EQ(locked->status(), 201);
  EXPECT_EQ(locked->body(), "one");
  EXPECT_EQ(locked->property("MessageId"), "m/1");
  EXPECT_EQ(locked->property("DeliveryCount"), "1");
  EXPECT_EQ(rig.lock("q")->status(), 204) << "it is locked";
  EXPECT_EQ(rig.settle("DELETE", *locked)->status(), 200);
  EXPECT_EQ(rig.settle("DELETE", *locked)->status(), 404) << "the lock is gone";
  rig.advance(10min);
  EXPECT_EQ(rig.lock("q")->status(), 204);
}

TEST(RestReceive, AnUnlockedMessageComesBackAndARenewedLockLasts) {
  Rig rig;
  rig.send("q", "one");
  auto locked = rig.lock("q");
  EXPECT_EQ(rig.settle("PUT", *locked)->status(), 200);
  locked = rig.lock("q");
  EXPECT_EQ(locked->property("DeliveryCount"), "2");
  const auto lock = rig.port.queue("q").settings().lock_duration;
  rig.advance(lock - 1s);
  const auto renewed = rig.settle("POST", *locked);
  EXPECT_EQ(renewed->status(), 200);
  EXPECT_NE(renewed->property("LockedUntilUtc"), "");
  rig.advance(lock - 1s);
  EXPECT_EQ(rig.settle("DELETE", *locked)->status(), 200);
}

TEST(RestReceive, ALostLockIsNotFound) {
  Rig rig;
  rig.send("q", "one");
  const auto locked = rig.lock("q");
  rig.advance(10min);
  for (const char* method : {"DELETE", "PUT", "POST"}) EXPECT_EQ(rig.settle(method, *locked)->status(), 404);
  EXPECT_EQ(rig.lock("q")->body(), "one");
}

TEST(RestReceive, AndDeleteTakesItForGood) {
  Rig rig;
  rig.send("q", "one");
  const auto taken = rig.take("q");
  EXPECT_EQ(taken->status(), 200);
  EXPECT_EQ(taken->body(), "one");
  EXPECT_EQ(taken->property("LockToken"), "");
  EXPECT_EQ(taken->header("Location"), "");
  rig.advance(10min);
  EXPECT_EQ(rig.take("q")->status(), 204);
}

TEST(RestReceive, WaitsForAMessageAsLongAsItIsTold) {
  Rig rig;
  const auto first = rig.lock("q", "30");
  const auto second = rig.lock("q", "30");
  EXPECT_FALSE(first->response);
  EXPECT_EQ(rig.service->polls(), 2u);
  rig.advance(20s);
  rig.send("q", "one");
  EXPECT_EQ(first->body(), "one");
  EXPECT_FALSE(second->response);
  EXPECT_EQ(rig.service->next_tick(), rig.tick + 10s);
  rig.advance(10s);
  EXPECT_EQ(second->status(), 204);
  EXPECT_EQ(rig.service->polls(), 0u);
  EXPECT_EQ(rig.service->next_tick(), std::nullopt);
}

// A client that went away while it waited must not swallow what comes then, nor count as a delivery.
TEST(RestReceive, WhoIsGoneSwallowsNothing) {
  for (const char* method : {"POST", "DELETE"})
    for (const bool half : {false, true}) {
      Rig rig;
      const auto gone = rig.ask(method, "/q/messages/head?timeout=60");
      (half ? gone->ended : gone->wanted) = half;
      rig.send("q", "one");
      const auto locked = rig.lock("q");
      EXPECT_EQ(locked->body(), "one") << method;
      EXPECT_EQ(locked->property("DeliveryCount"), "1") << method;
      EXPECT_EQ(rig.service->polls(), 0u);
    }
}

TEST(RestReceive, WhoGoesGivesItsPlaceUpAtOnce) {
  Rig rig;
  const auto gone = rig.lock("q", "60");
  ASSERT_TRUE(gone->gone);
  gone->gone();
  EXPECT_EQ(rig.service->polls(), 0u);
  EXPECT_EQ(gone->status(), 400) << "who only closed half is told why";
  rig.run();
  rig.send("q", "one");
  EXPECT_EQ(rig.lock("q")->property("DeliveryCount"), "1");
}

// The message was on its way when the client left.
TEST(RestReceive, WhatWasOnItsWayIsGivenBack) {
  Rig rig;
  rig.send("q", "one");
  const auto gone = rig.begin("POST", "/q/messages/head?timeout=60");
  gone->gone();
  rig.run();
  const auto locked = rig.lock("q");
  EXPECT_EQ(locked->body(), "one");
  EXPECT_EQ(locked->property("DeliveryCount"), "1");
}

TEST(RestReceive, DeadLettersAndSubscriptionsHaveAddressesToo) {
  Rig rig;
  broker::TopicSettings topic;
  topic.name = "orders";
  rig.port.add_topic(topic, rig.wall);
  rig.port.subscribe("orders", "audit", rig.wall);
  EXPECT_EQ(rig.send("orders", "one")->status(), 201);
  EXPECT_EQ(rig.take("orders/Subscriptions/audit")->body(), "one");
  EXPECT_EQ(rig.take("orders/subscriptions/audit/$deadletterqueue")->status(), 204);
  EXPECT_EQ(rig.take("orders")->status(), 400) << "a topic holds no messages";
  EXPECT_EQ(rig.send("orders/Subscriptions/audit", "x")->status(), 400);
  EXPECT_EQ(rig.send("q/$DeadLetterQueue", "x")->status(), 400);

  rig.send("q", "bad", R"({"TimeToLive":1})");
  auto settings = rig.queue("dead");
  settings.delivery_count_max = 1;
  rig.port.add(settings, rig.wall);
  rig.send("dead", "worse");
  EXPECT_EQ(rig.settle("PUT", *rig.lock("dead"))->status(), 200);
  const auto dead = rig.lock("dead/$DeadLetterQueue");
  EXPECT_EQ(dead->body(), "worse");
  EXPECT_EQ(dead->header("DeadLetterReason"), "\"MaxDeliveryCountExceeded\"");
  EXPECT_EQ(rig.settle("DELETE", *dead)->status(), 200);
}

TEST(RestReceive, SessionsAreNotForHttp) {
  Rig rig;
  auto settings = rig.queue("s");
  settings.requires_session = true;
  rig.port.add(settings, rig.wall);
  EXPECT_EQ(rig.send("s", "one", R"({"SessionId":"a"})")->status(), 201);
  EXPECT_EQ(rig.send("s", "one")->status(), 400) << "the queue wants a session";
  EXPECT_EQ(rig.lock("s")->status(), 400);
  EXPECT_EQ(rig.lock("s/$DeadLetterQueue")->status(), 204) << "which has none";
}

TEST(RestReceive, OfAPartitionedEntityWhateverPartitionHasIt) {
  Rig rig;
  rig.port.add_partitioned(rig.queue("p"), 4, rig.wall);
  EXPECT_EQ(rig.take("p")->status(), 204);
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(rig.send("p", std::to_string(i), fmt::format(R"({{"PartitionKey":"k{}"}})", i))->status(), 201);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(rig.take("p")->status(), 200) << i;
  for (int i = 0; i < 20; ++i) {
    const auto locked = rig.lock("p");
    ASSERT_EQ(locked->status(), 201) << i;
    EXPECT_EQ(rig.settle("POST", *locked)->status(), 200) << i;
    EXPECT_EQ(rig.settle("DELETE", *locked)->status(), 200) << i;
  }
  EXPECT_EQ(rig.take("p")->status(), 204);

  const auto first = rig.lock("p", "60");
  const auto second = rig.lock("p", "60");
  rig.send("p", "one", R"({"PartitionKey":"a"})");
  EXPECT_TRUE(first->response || second->response);
  EXPECT_FALSE(first->response && second->response);
  rig.send("p", "two", R"({"PartitionKey":"b"})");
  EXPECT_EQ(first->status(), 201);
  EXPECT_EQ(second->status(), 201);
  const auto third = rig.lock("p", "10");
  rig.advance(10s);
  EXPECT_EQ(third->status(), 204) << "before the locks are over";
  EXPECT_EQ(rig.service->polls(), 0u);
}

TEST(RestReceive, APartitionThatIsDownIsPassedOver) {
  Rig rig;
  rig.port.add_partitioned(rig.queue("p"), 2, rig.wall);
  rig.send("p", "one", R"({"PartitionKey":"a"})");
  rig.port.set_down("p", broker::partition_of_key("a", 2) == 0 ? 1 : 0);
  EXPECT_EQ(rig.take("p")->body(), "one");
}

TEST(RestSend, ABatchIsAllOrNothing) {
  Rig rig;
  rig.port.add_partitioned(rig.queue("p"), 4, rig.wall);
  const RestRig::Headers batch = {
      {"Content-Type", "application/vnd.microsoft.servicebus.json; charset=utf-8"}, {"ignored", "5"}};
  EXPECT_EQ(rig.ask("POST", "/q/messages", R"([{"Body":"one"},{"Body":"dHdv","IsBodyBase64":true}])", batch)
                ->status(),
            201);
  const auto one = rig.take("q");
  EXPECT_EQ(one->body(), "one");
  EXPECT_EQ(one->header("ignored"), "");
  EXPECT_EQ(rig.take("q")->body(), "two");
  const auto refused = rig.ask("POST", "/p/messages",
                               R"([{"Body":"1","BrokerProperties":{"PartitionKey":"a"}},
                                   {"Body":"2","BrokerProperties":{"PartitionKey":"b"}}])",
                               batch);
  EXPECT_EQ(refused->status(), 400) << refused->body();
  EXPECT_EQ(rig.take("p")->status(), 204);
  EXPECT_EQ(rig.ask("POST", "/q/messages", "nonsense", batch)->status(), 400);
  EXPECT_EQ(rig.service->requests(), 0u);
}

TEST(RestSend, WhatIsWrongIsRefused) {
  Rig rig;
  auto small = rig.queue("small");
  small.message_bytes_max = 1000;
  rig.port.add(small, rig.wall);
  EXPECT_EQ(rig.send("small", std::string(2000, 'x'))->status(), 403);
  EXPECT_THAT(rig.send("small", std::string(2000, 'x'))->body(), HasSubstr("SubCode=40300"));
  EXPECT_EQ(rig.send("q", "x", "{")->status(), 400);
  EXPECT_EQ(rig.send("q", "x", R"({"SessionId":"a","PartitionKey":"b"})")->status(), 400);
  EXPECT_EQ(rig.send("q", "x", R"({"TimeToLive":0})")->status(), 400);
  EXPECT_EQ(rig.send("nobody", "x")->status(), 404);
  EXPECT_EQ(rig.lock("nobody")->status(), 404);
  EXPECT_EQ(rig.ask("DELETE", "/nobody/messages/1/f81d4fae-7dec-11d0-a765-00a0c91e6bf6")->status(), 410);
  EXPECT_EQ(rig.ask("DELETE", "/q/messages/1/f81d4fae-7dec-11d0-a765-00a0c91e6bf6")->status(), 404);
  EXPECT_EQ(rig.send("q/$management", "x")->status(), 404);
  auto closed = rig.queue("closed");
  closed.status = broker::EntityStatus::disabled;
  rig.port.add(closed, rig.wall);
  EXPECT_EQ(rig.send("closed", "x")->status(), 403);
  EXPECT_EQ(rig.lock("closed")->status(), 403);
}

TEST(RestSend, ScheduledMessagesWait) {
  Rig rig;
  rig.send("q", "later",
           fmt::format(R"({{"ScheduledEnqueueTimeUtc":"{}"}})", "Fri, 15 Jan 2027 08:01:00 GMT"));
  EXPECT_EQ(rig.lock("q")->status(), 204);
  rig.advance(61s);
  EXPECT_EQ(rig.lock("q")->body(), "later");
}

TEST(RestSend, AnExchangeTakesTheLabelOrTheAddress) {
  Rig rig;
  broker::TopicSettings exchange;
  exchange.name = "ex";
  exchange.exchange = rules::ExchangeType::direct;
  exchange.unroutable = rules::Unroutable::release;
  rig.port.add_topic(exchange, rig.wall);
  rules::Binding binding;
  binding.routing_key = "red";
  rig.port.subscribe("ex", "s", rig.wall, binding);
  EXPECT_EQ(rig.send("ex", "label", R"({"Label":"red"})")->status(), 201);
  EXPECT_EQ(rig.send("ex/red", "address")->status(), 201);
  EXPECT_EQ(rig.send("exchanges/ex/red", "other address")->status(), 201);
  const auto nobody = rig.send("ex/blue", "x");
  EXPECT_EQ(nobody->status(), 404);
  EXPECT_THAT(nobody->body(), HasSubstr("SubCode=40401"));
  for (const char* body : {"label", "address", "other address"})
    EXPECT_EQ(rig.take("ex/Subscriptions/s")->body(), body);
}

TEST(RestAccess, RightsAreThoseOfTheOperation) {
  Rig rig;
  rig.allow("q", "sends", {Right::send});
  rig.allow("q", "listens", {Right::listen});
  rig.token = rig.token_for("https://ns.example/q", "sends");
  EXPECT_EQ(rig.send("q", "one")->status(), 201);
  EXPECT_EQ(rig.lock("q")->status(), 401);
  EXPECT_THAT(rig.lock("q")->body(), HasSubstr("SubCode=40100"));
  rig.token = rig.token_for("https://ns.example/q/messages", "sends");
  EXPECT_EQ(rig.send("q", "two")->status(), 201) << "a token for the very address";
  rig.token = rig.token_for("https://ns.example/q", "listens");
  EXPECT_EQ(rig.send("q", "x")->status(), 401);
  EXPECT_EQ(rig.settle("DELETE", *rig.lock("q"))->status(), 200);
  rig.token = "";
  EXPECT_THAT(rig.send("q", "x")->body(), HasSubstr("SubCode=40102"));
  rig.token = rig.token_for("https://ns.example/other", "sends");
  EXPECT_EQ(rig.send("q", "x")->status(), 401);
  EXPECT_EQ(rig.take("nobody")->status(), 401) << "what is there is not told to strangers";
}

// Every exchange is also /exchanges/NAME; who has a key of an entity called "exchanges" has none of theirs.
TEST(RestAccess, AnotherNameOfAnExchangeOpensNothing) {
  Rig rig;
  broker::TopicSettings exchange;
  exchange.name = "ex";
  exchange.exchange = rules::ExchangeType::fanout;
  rig.port.add_topic(exchange, rig.wall);
  rig.port.add(rig.queue("exchanges"), rig.wall);
  rig.allow("exchanges", "foreign", {Right::send});
  rig.allow("ex", "own", {Right::send});
  rig.token = rig.token_for("https://ns.example/exchanges", "foreign");
  EXPECT_EQ(rig.send("exchanges", "x")->status(), 201);
  EXPECT_EQ(rig.send("exchanges/ex/red", "x")->status(), 401);
  rig.token = rig.token_for("https://ns.example/ex", "own");
  EXPECT_EQ(rig.send("exchanges/ex/red", "x")->status(), 201);
}

TEST(RestLimits, OneTooManyIsToldToComeAgain) {
  Rig rig;
  rig.settings.polls_max = 2;
  rig.settings.requests_max = 1;
  const auto first = rig.lock("q", "60");
  const auto second = rig.lock("q", "60");
  const auto third = rig.lock("q", "60");
  EXPECT_EQ(third->status(), 503);
  EXPECT_EQ(third->header("Retry-After"), "1");
  rig.advance(60s);
  EXPECT_EQ(first->status(), 204);
  EXPECT_EQ(rig.lock("q", "60")->status(), 0);

  rig.port.durable = false;
  const auto sent = rig.send("q", "one");
  EXPECT_EQ(rig.send("q", "two")->status(), 503);
  rig.port.durable = true;
  rig.run();
  EXPECT_EQ(sent->status(), 201);
  rig.settings.bytes_max = 0;
  EXPECT_EQ(rig.send("q", "x")->status(), 503);
}

// 64 MB of messages may be on their way to the disk. It is asked before a message is read, so the one that
// reaches the limit is taken, and the next is not.
TEST(RestLimits, SoManyBytesAreBeingSentAndNoMore) {
  Rig rig;
  constexpr std::size_t step = std::size_t{16} << 20;
  ASSERT_EQ(rig.settings.bytes_max, 4 * step);
  auto large = RestRig::queue("large");
  large.message_bytes_max = 2 * step;
  rig.port.add(large, rig.wall);
  rig.port.durable = false;
  const std::string body(step, 'x');
  std::vector<RestRig::AskedPtr> all;
  for (int i = 0; i < 4; ++i) all.push_back(rig.send("large", body));
  for (const auto& one : all) EXPECT_EQ(one->status(), 0) << one->body();
  const auto more = rig.send("q", "x");
  EXPECT_EQ(more->status(), 503);
  EXPECT_THAT(more->body(), HasSubstr("Too many requests are under way."));
  rig.port.durable = true;
  rig.run();
  for (const auto& one : all) EXPECT_EQ(one->status(), 201);
  EXPECT_EQ(rig.send("q", "x")->status(), 201) << "there is room again";
}

// A full road makes requests wait, and nothing is lost.
TEST(RestLimits, AFullRoadIsWaitedFor) {
  Rig rig;
  rig.port.capacity = 2;
  std::vector<RestRig::AskedPtr> all;
  for (int i = 0; i < 20; ++i) all.push_back(rig.begin("POST", "/q/messages", std::to_string(i)));
  rig.run();
  for (const auto& one : all) EXPECT_EQ(one->status(), 201);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(rig.take("q")->body(), std::to_string(i));
}

TEST(RestAccess, TlsWhereItIsRequired) {
  Rig rig;
  rig.settings.require_tls = true;
  EXPECT_THAT(rig.send("q", "x")->body(), HasSubstr("SubCode=40101"));
}

}  // namespace
}  // namespace omnibus::rest
