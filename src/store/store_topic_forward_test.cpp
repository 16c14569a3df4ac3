// Messages that subscriptions send on, and topics that are sent to by other entities [contract 9.7].
#include <gmock/gmock.h>

#include "amqp/codec/message.hpp"
#include "store/store_topic_rig.hpp"

namespace omnibus::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct ForwardRig : TopicStoreRig {
  using TopicStoreRig::TopicStoreRig;
  void route_by_name() {
    owner->route = [this](ForwardRequest& request) -> Result<std::optional<PartitionId>> {
      for (const auto& info : store->partitions())
        if (info.name == request.target) return std::optional{info.id};
      return fail(Errc::not_found, "no '{}'", request.target);
    };
  }
  static std::string text(const Payload& message) { return message.to_string(); }
};

// What an action changed is the message from then on: the next topic's rules see it.
TEST(StoreTopicForward, CopyGoesOnAsItsRuleMadeIt) {
  ForwardRig rig;
  rig.route_by_name();
  const auto first = rig.topic("first");
  const auto second = rig.topic("second");
  const auto marked =
      rig.subscribe(second, "second/Subscriptions/marked", {ForwardRig::rule("m", "mark = 'yes'")});
  const auto plain =
      rig.subscribe(second, "second/Subscriptions/plain", {ForwardRig::rule("p", "mark IS NULL")});
  const auto source = rig.subscribe(
      first, "first/Subscriptions/on",
      {ForwardRig::rule("marks", "n < 10", "SET mark = 'yes'"), ForwardRig::rule("rest", "n >= 10")},
      {.forward_to = "second"});
  for (const int n : {1, 20}) EXPECT_EQ(rig.publish(first, n), std::nullopt);
  rig.turn();
  EXPECT_EQ(rig.store->counts(source)->active, 0u);
  const auto seen = rig.look(marked);
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_THAT(ForwardRig::text(seen[0]), HasSubstr("mark"));
  EXPECT_THAT(ForwardRig::text(seen[0]), HasSubstr("RuleName"));
  EXPECT_THAT(rig.peek(plain), ElementsAre("m20"));
  rig.crash();
  EXPECT_THAT(rig.take_all(marked), ElementsAre("m1"));
  EXPECT_THAT(rig.take_all(plain), ElementsAre("m20"));
  EXPECT_EQ(rig.store->stats().journal.live_bytes, 0u);
}

// The number at the first entity stays with the message, also when that was a topic.
TEST(StoreTopicForward, NumberIsThatOfTheFirstEntity) {
  ForwardRig rig;
  rig.route_by_name();
  const auto topic = rig.topic("first");
  const auto queue = rig.create("end");
  rig.subscribe(topic, "first/Subscriptions/on", {}, {.forward_to = "end"});
  for (int i = 1; i <= 3; ++i) rig.publish(topic, i);
  rig.turn();
  rig.receive(queue);
  const auto got = rig.receive(queue);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->body, "m2");
  EXPECT_EQ(got->effect.status.changes->enqueue_sequence, 2);
}

TEST(StoreTopicForward, WhatIsRefusedThereIsADeadLetterHere) {
  ForwardRig rig;
  rig.route_by_name();
  const auto topic = rig.topic("first");
  rig.topic("full", {.size_bytes_max = 1, .message_bytes_max = 1024});
  const auto a = rig.subscribe(topic, "first/Subscriptions/a", {}, {.forward_to = "full"});
  const auto b = rig.subscribe(topic, "first/Subscriptions/b", {}, {.forward_to = "first/Subscriptions/a"});
  const auto c = rig.subscribe(topic, "first/Subscriptions/c", {}, {.forward_to = "nowhere"});
  rig.publish(topic, 1);
  rig.turn();
  for (const auto id : {a, b, c}) {
    EXPECT_EQ(rig.store->counts(id)->active, 0u);
    EXPECT_THAT(rig.peek(id, broker::SubQueue::dead_letter), ElementsAre("m1"));
  }
  EXPECT_EQ(rig.store->stats().journal.live_bytes, TopicStoreRig::numbered(1).bytes.size()) << "shared still";
}

// first -> second -> first ...: four hops, and it comes to rest.
TEST(StoreTopicForward, CircleIsCut) {
  ForwardRig rig;
  rig.route_by_name();
  const auto first = rig.topic("first");
  const auto second = rig.topic("second");
  const auto a = rig.subscribe(first, "first/Subscriptions/a", {}, {.forward_to = "second"});
  const auto b = rig.subscribe(second, "second/Subscriptions/b", {}, {.forward_to = "first"});
  rig.publish(first, 1);
  for (int i = 0; i < 10; ++i) rig.turn();
  EXPECT_EQ(rig.store->counts(a)->active + rig.store->counts(b)->active, 0u);
  EXPECT_EQ(rig.store->counts(a)->dead_letter + rig.store->counts(b)->dead_letter, 1u);
}

TEST(StoreTopicForward, QueueForwardsItsDeadLettersToATopic) {
  ForwardRig rig;
  rig.route_by_name();
  const auto topic = rig.topic("graveyard");
  const auto watch = rig.subscribe(topic, "graveyard/Subscriptions/watch");
  const auto queue = rig.create("work", {.forward_dead_letters_to = "graveyard"});
  rig.send(queue, "bad");
  rig.settle(queue, rig.receive(queue)->effect.lock, broker::DeadLetter{"why", "because", {}});
  rig.turn();
  const auto got = rig.receive(watch);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->body, "bad");
  EXPECT_EQ(got->effect.status.changes->dead_letter_reason, "why");
  EXPECT_EQ(got->effect.status.changes->dead_letter_source, "work");
}

// Nobody is there whom a forwarded message could be given back to.
TEST(StoreTopicForward, UnroutableOneStaysWithItsSource) {
  ForwardRig rig;
  rig.route_by_name();
  rig.topic("billing", {.exchange = rules::ExchangeType::direct, .unroutable = rules::Unroutable::release});
  const auto queue = rig.create("work", {.forward_to = "billing"});
  rig.send(queue, "x");
  rig.turn();
  EXPECT_THAT(rig.peek(queue, broker::SubQueue::dead_letter), ElementsAre("x"));
}

}  // namespace
}  // namespace omnibus::store
