// Exchanges: who gets a message by the exchange's type, what receivers are told, and what matches nothing.
#include <gmock/gmock.h>

#include "amqp/codec/value.hpp"
#include "broker/topic_rig.hpp"

namespace omnibus::broker {
namespace {

using rules::ExchangeType;
using testing::ElementsAre;
using testing::IsEmpty;

class ExchangeRig : public TopicRig {
 public:
  explicit ExchangeRig(TopicSettings with) : TopicRig(std::move(with)) {}
  explicit ExchangeRig(ExchangeType type) : TopicRig({.name = "orders", .exchange = type}) {}

  void bind(SubscriptionId id, rules::Binding binding) {
    const auto made = subscribe(id, {}, {}, std::move(binding));
    EXPECT_TRUE(made) << (made ? "" : made.error().detail);
  }
  IncomingMessage keyed(const std::string& key, const std::string& body) {
    IncomingMessage one = message(MessageRig{}.body(body));
    one.facts.routing_key = key;
    return one;
  }
  static Payload with_subject(const std::string& subject, std::string_view body) {
    amqp::Encoder out;
    amqp::Properties properties;
    properties.subject = subject;
    out.put_composite(properties);
    out.put_descriptor(amqp::descriptor::data);
    out.put_binary(as_bytes(body));
    return Payload::copy_of(out.bytes());
  }
  void route(const std::string& key) { EXPECT_EQ(send(std::vector{keyed(key, key)}), std::nullopt); }
  // What a receiver finds among the annotations; "-" when it is not there.
  static std::string annotation(const Received& got, std::string_view key) {
    const auto view = amqp::MessageView::parse(got.bytes);
    const auto map = amqp::decode_value(view->message_annotations());
    const amqp::Value* value = map ? map->find(key) : nullptr;
    return value && value->as_text() ? std::string{*value->as_text()} : "-";
  }
  // Answers whether the sender got it back.
  bool unrouted(std::vector<IncomingMessage> messages) {
    const RequestId request = ask();
    apply(Enqueue{request, std::move(messages), std::nullopt});
    EXPECT_NE(answer<Unrouted>(request) != nullptr, answer<Accepted>(request) != nullptr);
    return answer<Unrouted>(request) != nullptr;
  }
};

TEST(Exchange, SinglesThatComeTogetherAreRoutedEach) {
  ExchangeRig rig{
      {.name = "orders", .exchange = ExchangeType::direct, .unroutable = rules::Unroutable::release}};
  rig.bind(1, {.routing_key = "yes"});
  const std::vector requests{rig.ask(), rig.ask(), rig.ask()};
  rig.apply(EnqueueEach{requests, {rig.keyed("yes", "a"), rig.keyed("no", "b"), rig.keyed("yes", "c")}});
  EXPECT_TRUE(rig.answer<Accepted>(requests[0]));
  EXPECT_TRUE(rig.answer<Unrouted>(requests[1]));
  EXPECT_TRUE(rig.answer<Accepted>(requests[2]));
  EXPECT_THAT(rig.bodies(1), ElementsAre("a", "c"));
}

TEST(Exchange, FanoutReachesEverybody) {
  ExchangeRig rig{ExchangeType::fanout};
  rig.bind(1, {});
  rig.bind(2, {.routing_key = "ignored"});
  rig.route("any");
  rig.route("");
  EXPECT_THAT(rig.bodies(1), ElementsAre("any", ""));
  EXPECT_THAT(rig.bodies(2), ElementsAre("any", ""));
  EXPECT_EQ(rig.held_payloads(), 2u);
}

TEST(Exchange, DirectComparesKeysByteForByte) {
  ExchangeRig rig{ExchangeType::direct};
  rig.bind(1, {.routing_key = "paid"});
  rig.bind(2, {.routing_key = "Paid"});
  rig.bind(3, {.routing_key = "paid"});
  rig.route("paid");
  rig.route("Paid");
  rig.route("paid.late");
  EXPECT_THAT(rig.bodies(1), ElementsAre("paid"));
  EXPECT_THAT(rig.bodies(2), ElementsAre("Paid"));
  EXPECT_THAT(rig.bodies(3), ElementsAre("paid"));
}

TEST(Exchange, TopicMatchesWordsAndSurvivesACrash) {
  ExchangeRig rig{ExchangeType::topic};
  rig.bind(1, {.routing_key = "order.*.paid"});
  rig.bind(2, {.routing_key = "order.#"});
  rig.bind(3, {.routing_key = "#"});
  for (const bool again : {false, true}) {
    if (again) rig.crash();
    for (const char* key : {"order.77.paid", "order", "order.77.eu.paid", "invoice"}) rig.route(key);
  }
  EXPECT_THAT(rig.bodies(1), ElementsAre("order.77.paid", "order.77.paid"));
  EXPECT_EQ(rig.bodies(2).size(), 6u);
  EXPECT_EQ(rig.bodies(3).size(), 8u);
}

TEST(Exchange, HeadersLookAtApplicationProperties) {
  ExchangeRig rig{ExchangeType::headers};
  using rules::RoutingHeaders;
  rig.bind(1, {.routing_key = {},
               .routing_headers = RoutingHeaders{{"region", std::string{"eu"}}, {"size", std::int64_t{3}}}});
  rig.bind(2,
           {.routing_key = {},
            .routing_headers = RoutingHeaders{
                {"x-match", std::string{"any"}}, {"region", std::string{"eu"}}, {"size", std::int64_t{3}}}});
  const auto send = [&](const char* region, std::int32_t size, const char* body) {
    rig.send(
        MessageRig{}.property("region", amqp::Value{region}).property("size", amqp::Value{size}).body(body));
  };
  send("eu", 3, "both");
  send("eu", 4, "region");
  send("us", 4, "none");
  EXPECT_THAT(rig.bodies(1), ElementsAre("both"));
  EXPECT_THAT(rig.bodies(2), ElementsAre("both", "region"));
}

// The key comes from the address, or is the subject; a sender's own word for it does not count [EX 2.2].
TEST(Exchange, DeliveriesTellTheExchangeAndTheKey) {
  ExchangeRig rig{ExchangeType::topic};
  rig.bind(1, {.routing_key = "#"});
  rig.route("from.address");
  rig.send(ExchangeRig::with_subject("from.subject", "b"));
  rig.send(MessageRig{}
               .annotation("x-exchange", amqp::Value{"forged"})
               .annotation("x-routing-key", amqp::Value{"forged"})
               .annotation("x-mine", amqp::Value{"stays"})
               .body("c"));
  for (const bool again : {false, true}) {
    if (again) rig.crash();
    const auto got = rig.peek(1);
    ASSERT_EQ(got.size(), 3u);
    for (const auto& one : got) EXPECT_EQ(ExchangeRig::annotation(one, "x-exchange"), "orders");
    EXPECT_EQ(ExchangeRig::annotation(got[0], "x-routing-key"), "from.address");
    EXPECT_EQ(ExchangeRig::annotation(got[1], "x-routing-key"), "from.subject");
    EXPECT_EQ(ExchangeRig::annotation(got[2], "x-routing-key"), "");
    EXPECT_EQ(ExchangeRig::annotation(got[2], "x-mine"), "stays");
  }
}

TEST(Exchange, CopiesOfAPlainTopicSayNothingOfKeys) {
  TopicRig rig;
  ASSERT_TRUE(rig.subscribe(1));
  rig.send(MessageRig{}.annotation("x-exchange", amqp::Value{"the sender's"}).body("a"));
  const auto got = rig.peek(1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(ExchangeRig::annotation(got[0], "x-exchange"), "the sender's");
  EXPECT_EQ(ExchangeRig::annotation(got[0], "x-routing-key"), "-");
}

TEST(Exchange, ScheduledMessageKeepsTheKeyOfItsAddress) {
  ExchangeRig rig{ExchangeType::direct};
  rig.bind(1, {.routing_key = "later"});
  IncomingMessage one =
      rig.message(MessageRig{}
                      .annotation("x-opt-scheduled-enqueue-time",
                                  amqp::Value{amqp::Timestamp{(rig.now + 1min).time_since_epoch().count()}})
                      .body("x"));
  one.facts.routing_key = "later";
  EXPECT_EQ(rig.send(std::vector{one}), std::nullopt);
  rig.crash();
  rig.advance(1min);
  const auto got = rig.peek(1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(ExchangeRig::annotation(got[0], "x-routing-key"), "later");
}

TEST(Exchange, WhatMatchesNothingIsDroppedOrGivenBack) {
  for (const bool releases : {false, true}) {
    ExchangeRig rig{{.requires_duplicate_detection = true,
                     .exchange = ExchangeType::direct,
                     .unroutable = releases ? rules::Unroutable::release : rules::Unroutable::accept}};
    const auto with_id = [&](const std::string& key) {
      IncomingMessage one = rig.message(MessageRig{}.id("the same").body("x"));
      one.facts.routing_key = key;
      return one;
    };
    EXPECT_EQ(rig.unrouted({with_id("nobody")}), releases);
    EXPECT_EQ(rig.journal.records.size(), releases ? 0u : 1u) << "given back: as if it had never come";
    rig.bind(1, {.routing_key = "nobody"});
    EXPECT_FALSE(rig.unrouted({with_id("nobody")}));
    EXPECT_EQ(rig.bodies(1).size(), releases ? 1u : 0u) << "one that was accepted makes this a duplicate";
    // Of a batch all are taken when one of them is.
    EXPECT_FALSE(rig.unrouted({rig.keyed("nobody", "a"), rig.keyed("elsewhere", "b")}));
    EXPECT_EQ(rig.unrouted({rig.keyed("x", "a"), rig.keyed("y", "b")}), releases);
  }
}

// What came to one exchange under a key of its address goes on to the next under the same key.
TEST(Exchange, ForwardedMessageKeepsItsKey) {
  ExchangeRig rig{ExchangeType::direct};
  rig.bind(1, {.routing_key = "paid"});
  MessageChanges changes;
  changes.routing_key = "paid";
  const RequestId request = rig.ask();
  rig.apply(Enqueue{request,
                    {rig.message(MessageRig{}.body("a"))},
                    ForwardedFrom{1, 1, std::make_shared<const MessageChanges>(changes)}});
  EXPECT_NE(rig.answer<Accepted>(request), nullptr);
  const auto got = rig.peek(1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(ExchangeRig::annotation(got[0], "x-routing-key"), "paid");
}

}  // namespace
}  // namespace omnibus::broker
