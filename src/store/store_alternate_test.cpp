// Alternate exchanges in a store: forwarded messages that nobody matches, and what exchanges send on
// themselves.
#include <gmock/gmock.h>

#include "store/store_topic_rig.hpp"

namespace omnibus::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

struct AlternateRig : TopicStoreRig {
  AlternateRig() { route_by_name(); }
  void route_by_name() {
    owner->route = [this](ForwardRequest& request) -> Result<std::optional<PartitionId>> {
      asked.push_back(request.target);
      for (const auto& info : store->partitions())
        if (info.name == request.target) return std::optional{info.id};
      return fail(Errc::not_found, "no '{}'", request.target);
    };
  }
  PartitionId exchange(const std::string& name, const std::string& alternate,
                       rules::Unroutable unroutable = rules::Unroutable::accept) {
    return topic(
        name,
        {.exchange = rules::ExchangeType::direct, .unroutable = unroutable, .alternate_exchange = alternate});
  }
  PartitionId keyed_subscription(PartitionId exchange, const std::string& of, const std::string& key) {
    return bind(exchange, of + "/Subscriptions/s", {.routing_key = key});
  }
  static broker::IncomingMessage keyed(std::int32_t number, const std::string& key,
                                       std::optional<Instant> due = std::nullopt) {
    auto message = numbered(number, 0, due);
    message.facts.routing_key = key;
    return message;
  }
  std::optional<Errc> publish_all(PartitionId exchange, std::vector<broker::IncomingMessage> messages) {
    broker::Enqueue command{ask(), std::move(messages), {}, {}};
    const auto request = command.request;
    apply(exchange, std::move(command));
    turn();
    return result(request);
  }
  std::vector<std::string> asked{};
};

// The key of the first exchange's subject is none: a queue's message has the empty one.
TEST(StoreAlternate, ForwardedMessageGoesOnAndIsOneBatchWithItsRemoval) {
  AlternateRig rig;
  rig.exchange("first", "second");
  rig.exchange("second", "third");
  const auto third = rig.exchange("third", "");
  const auto end = rig.keyed_subscription(third, "third", "");
  const auto queue = rig.create("work", {.forward_to = "first"});
  rig.send(queue, "x");
  rig.turn();
  EXPECT_THAT(rig.asked, ElementsAre("first", "second", "third"));
  EXPECT_EQ(rig.store->counts(queue)->active, 0u);
  rig.crash();
  EXPECT_THAT(rig.take_all(end), ElementsAre("x"));
  EXPECT_EQ(rig.store->counts(queue)->active + rig.store->counts(queue)->dead_letter, 0u);
}

TEST(StoreAlternate, LastExchangeDecidesAboutAForwardedMessage) {
  AlternateRig rig;
  rig.exchange("first", "second", rules::Unroutable::release);
  rig.exchange("second", "first");
  rig.exchange("strict", "final");
  rig.exchange("final", "strict", rules::Unroutable::release);
  const auto dropped = rig.create("dropped", {.forward_to = "first"});
  const auto kept = rig.create("kept", {.forward_to = "strict"});
  const auto astray = rig.create("astray", {.forward_to = "leads-nowhere"});
  rig.exchange("leads-nowhere", "nowhere");
  for (const auto id : {dropped, kept, astray}) {
    rig.send(id, "x");
    rig.turn();
    EXPECT_EQ(rig.store->counts(id)->active, 0u);
  }
  EXPECT_EQ(rig.store->counts(dropped)->dead_letter, 0u);
  EXPECT_THAT(rig.peek(kept, broker::SubQueue::dead_letter), ElementsAre("x"));
  EXPECT_THAT(rig.peek(astray, broker::SubQueue::dead_letter), ElementsAre("x"));
}

TEST(StoreAlternate, RestOfATransferAndDueMessagesGoOn) {
  AlternateRig rig;
  const auto first = rig.exchange("first", "second");
  const auto second = rig.exchange("second", "third");
  const auto third = rig.exchange("third", "first");
  const auto own = rig.keyed_subscription(first, "first", "own");
  const auto near = rig.keyed_subscription(second, "second", "near");
  const auto far = rig.keyed_subscription(third, "third", "far");
  const Instant due = rig.owner->clock + 1min;
  EXPECT_EQ(
      rig.publish_all(first, {AlternateRig::keyed(1, "far"), AlternateRig::keyed(2, "own"),
                              AlternateRig::keyed(3, "near"), AlternateRig::keyed(4, "nobody"),
                              AlternateRig::keyed(5, "far", due), AlternateRig::keyed(6, "nobody", due)}),
      std::nullopt);
  rig.advance(0s);
  EXPECT_THAT(rig.peek(own), ElementsAre("m2"));
  EXPECT_THAT(rig.peek(near), ElementsAre("m3"));
  EXPECT_THAT(rig.peek(far), ElementsAre("m1"));
  EXPECT_EQ(rig.store->topic_counts(first)->scheduled, 2u);
  rig.restart();
  rig.route_by_name();
  rig.advance(1min);
  EXPECT_EQ(rig.store->topic_counts(first)->scheduled, 0u);
  rig.crash();
  EXPECT_EQ(rig.store->topic_counts(first)->scheduled, 0u);
  EXPECT_THAT(rig.take_all(far), ElementsAre("m1", "m5"));
  EXPECT_THAT(rig.take_all(near), ElementsAre("m3"));
  EXPECT_THAT(rig.take_all(own), ElementsAre("m2"));
  EXPECT_EQ(rig.store->stats().journal.live_bytes, 0u);
}

// Whatever is durable when the machine goes, each message is in one place and comes to one end.
TEST(StoreAlternate, CrashBetweenLosesAndDoublesNothing) {
  for (int turns = 0; turns < 6; ++turns) {
    AlternateRig rig;
    const auto first = rig.exchange("first", "second");
    const auto second = rig.exchange("second", "");
    const auto own = rig.keyed_subscription(first, "first", "own");
    const auto far = rig.keyed_subscription(second, "second", "far");
    EXPECT_EQ(rig.publish_all(first, {AlternateRig::keyed(1, "far"), AlternateRig::keyed(2, "own")}),
              std::nullopt);
    for (int i = 0; i < turns; ++i) {
      rig.store->wake(rig.owner->clock);
      rig.io.step();
    }
    rig.crash();
    rig.route_by_name();
    rig.advance(0s);
    rig.advance(0s);
    EXPECT_THAT(rig.take_all(own), ElementsAre("m2")) << turns;
    EXPECT_THAT(rig.take_all(far), ElementsAre("m1")) << turns;
  }
}

// An alternate in another store: the message stays until that one has answered.
TEST(StoreAlternate, OwnerTakesWhatGoesToAnotherStore) {
  AlternateRig rig;
  const auto first = rig.exchange("first", "elsewhere");
  const auto own = rig.keyed_subscription(first, "first", "own");
  std::vector<ForwardRequest> taken;
  const auto elsewhere = [&](ForwardRequest& request) -> Result<std::optional<PartitionId>> {
    taken.push_back(std::move(request));
    return std::optional<PartitionId>{};
  };
  rig.owner->route = elsewhere;
  EXPECT_EQ(rig.publish_all(first, {AlternateRig::keyed(1, "far"), AlternateRig::keyed(2, "own")}),
            std::nullopt);
  rig.advance(0s);
  ASSERT_EQ(taken.size(), 1u);
  ASSERT_TRUE(taken[0].walk);
  EXPECT_EQ(taken[0].walk->steps(), 1);
  EXPECT_FALSE(taken[0].walk->go_to("FIRST"));
  EXPECT_TRUE(taken[0].from_exchange);
  Random random{1};
  const auto command = forward_command(taken[0], broker::RequestId{7}, random);
  ASSERT_TRUE(command);
  EXPECT_EQ(command->steps, 1);
  EXPECT_EQ(command->forwarded->changes->routing_key, "far");
  rig.crash();
  rig.owner->route = elsewhere;
  rig.advance(0s);
  ASSERT_EQ(taken.size(), 2u) << "asked again";
  rig.store->forwarded(rig.owner->clock, first, taken[1].sequence, Error{Errc::entity_disabled, "no"});
  rig.turn();
  EXPECT_EQ(rig.store->topic_counts(first)->scheduled, 1u);
  rig.advance(1s);
  ASSERT_EQ(taken.size(), 3u);
  rig.store->forwarded(rig.owner->clock, first, taken[2].sequence, std::nullopt);
  rig.turn();
  rig.crash();
  EXPECT_EQ(rig.store->topic_counts(first)->scheduled, 0u);
  EXPECT_THAT(rig.take_all(own), ElementsAre("m2"));
}

}  // namespace
}  // namespace omnibus::store
