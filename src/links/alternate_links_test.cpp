// A sender to an exchange whose messages nobody matches: the way along alternate exchanges, and its end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "links/topic_rig.hpp"

namespace omnibus::links {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t accepted = amqp::descriptor::accepted;
constexpr std::uint64_t rejected = amqp::descriptor::rejected;
constexpr std::uint64_t released = amqp::descriptor::released;

broker::TopicSettings direct(std::string name, std::string alternate,
                             rules::Unroutable unroutable = rules::Unroutable::accept) {
  broker::TopicSettings settings;
  settings.name = std::move(name);
  settings.exchange = rules::ExchangeType::direct;
  settings.alternate_exchange = std::move(alternate);
  settings.unroutable = unroutable;
  return settings;
}

// `orders` with the alternate `e1`, and further exchanges as a test adds them.
class AlternateRig : public TopicRig {
 public:
  explicit AlternateRig(broker::TopicSettings first = direct("orders", "e1")) : TopicRig(std::move(first)) {
    bind("own", "own");
  }
  void add(broker::TopicSettings settings) { queues.add_topic(std::move(settings), wall()); }
  void bind_to(std::string_view exchange, std::string key) {
    rules::Binding binding;
    binding.routing_key = key;
    queues.subscribe(exchange, "s", wall(), binding);
  }
  std::vector<std::string> at(std::string_view exchange) {
    return take(fmt::format("{}/Subscriptions/s", exchange));
  }
  std::string why() { return of(*sender()).outcomes.back().condition; }
  amqp::Link* sender() {
    for (auto& [link, all] : heard.links)
      if (!all.outcomes.empty()) return link;
    return nullptr;
  }
  std::uint64_t send_batch(const std::vector<Sent>& messages) {
    amqp::Encoder batch;
    for (const auto& one : messages) {
      std::vector<std::uint8_t> scratch;
      batch.put_descriptor(amqp::descriptor::data);
      batch.put_binary(message(one).contiguous(scratch));
    }
    auto& link = attach("batch", Role::sender, "orders");
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    outgoing.message_format = amqp::batch_message_format;
    link.send(outgoing, Payload::copy_of(batch.bytes()));
    pump();
    return of(link).outcomes.empty() ? 0 : of(link).outcomes.back().state;
  }
};

TEST(AlternateLinks, SameKeyMatchesThere) {
  AlternateRig rig;
  rig.add(direct("E1", "e2"));
  rig.add(direct("e2", ""));
  rig.bind_to("e1", "one");
  rig.bind_to("e2", "two");
  EXPECT_EQ(rig.send("orders", {"by subject", "one"}), accepted);
  EXPECT_EQ(rig.send("orders/two", {"by address", "one"}), accepted);
  EXPECT_EQ(rig.send("orders", {"own", "own"}), accepted);
  EXPECT_EQ(rig.send("orders", {"nobody's", "x"}), accepted) << "dropped by the last";
  EXPECT_THAT(rig.at("e1"), ElementsAre("by subject"));
  EXPECT_THAT(rig.at("e2"), ElementsAre("by address"));
  EXPECT_THAT(rig.take("orders/Subscriptions/own"), ElementsAre("own"));
  EXPECT_THAT(rig.queues.forwards, IsEmpty());
}

TEST(AlternateLinks, AcceptedOnceDurableThere) {
  AlternateRig rig;
  rig.add(direct("e1", ""));
  rig.bind_to("e1", "one");
  rig.queues.durable = false;
  EXPECT_EQ(rig.send("orders", {"a", "one"}), 0u);
  rig.queues.durable = true;
  EXPECT_THAT(rig.at("e1"), ElementsAre("a"));
  EXPECT_EQ(rig.of(*rig.sender()).outcomes.back().state, accepted);
}

TEST(AlternateLinks, LastExchangeDecides) {
  for (const auto last : {rules::Unroutable::accept, rules::Unroutable::release}) {
    const auto other =
        last == rules::Unroutable::accept ? rules::Unroutable::release : rules::Unroutable::accept;
    AlternateRig rig{direct("orders", "e1", other)};
    rig.add(direct("e1", "", last));
    EXPECT_EQ(rig.send("orders", {"a", "x"}), last == rules::Unroutable::accept ? accepted : released);
  }
}

// orders -> e1 -> e2 -> orders: e2 is the last.
TEST(AlternateLinks, CircleEnds) {
  for (const auto last : {rules::Unroutable::accept, rules::Unroutable::release}) {
    AlternateRig rig;
    rig.add(direct("e1", "e2"));
    rig.add(direct("e2", "ORDERS", last));
    const std::size_t before = rig.queues.taken;
    EXPECT_EQ(rig.send("orders", {"a", "x"}), last == rules::Unroutable::accept ? accepted : released);
    EXPECT_EQ(rig.queues.taken, before + 3) << "asked once each";
  }
}

TEST(AlternateLinks, EightStepsAndNoMore) {
  AlternateRig rig;
  for (int i = 1; i <= 9; ++i)
    rig.add(direct(fmt::format("e{}", i), fmt::format("e{}", i + 1),
                   i == 8 ? rules::Unroutable::release : rules::Unroutable::accept));
  rig.bind_to("e8", "eight");
  rig.bind_to("e9", "nine");
  EXPECT_EQ(rig.send("orders", {"a", "eight"}), accepted);
  EXPECT_EQ(rig.send("orders", {"b", "nine"}), released);
  EXPECT_THAT(rig.at("e8"), ElementsAre("a"));
  EXPECT_THAT(rig.at("e9"), IsEmpty());
}

TEST(AlternateLinks, ClosedWayIsTheSendersToHear) {
  AlternateRig rig;
  const auto refused = [&](std::string_view condition) {
    EXPECT_EQ(rig.send("orders", {"a", "x"}), rejected);
    EXPECT_EQ(rig.why(), condition);
    EXPECT_EQ(rig.send("orders", {"b", "own"}), accepted) << "the link goes on";
  };
  refused("amqp:not-found");
  rig.queues.add({.name = "e1"}, rig.wall());
  refused("amqp:not-allowed");
  rig.queues.remove("e1");
  auto settings = direct("e1", "");
  settings.status = broker::EntityStatus::send_disabled;
  rig.add(settings);
  refused("com.microsoft:entity-disabled");
  rig.queues.remove("e1");
  settings.status = broker::EntityStatus::active;
  settings.size_bytes_max = 1;
  rig.add(settings);
  refused("amqp:resource-limit-exceeded");
}

// A sender that settles at once is told by the end of its link, as of any refusal.
TEST(AlternateLinks, SettledMessageWalksToo) {
  AlternateRig rig;
  rig.add(direct("e1", ""));
  rig.bind_to("e1", "one");
  EXPECT_EQ(rig.send("orders", {"a", "one"}, true), 0u);
  EXPECT_THAT(rig.at("e1"), ElementsAre("a"));
}

TEST(AlternateLinks, BatchOfWhichNothingMatchesGoesTogether) {
  AlternateRig rig;
  rig.add(direct("e1", ""));
  rig.bind_to("e1", "one");
  EXPECT_EQ(rig.send_batch({{"a", "one"}, {"b", "one"}, {"c", "x"}}), accepted);
  EXPECT_THAT(rig.at("e1"), ElementsAre("a", "b"));
}

// Accepted as a whole by the exchange that keeps a part of it, which sends the rest on by itself.
TEST(AlternateLinks, BatchThatMatchesInPartIsAcceptedWhole) {
  AlternateRig rig;
  rig.add(direct("e1", "e2"));
  rig.bind_to("e1", "one");
  EXPECT_EQ(rig.send_batch({{"a", "x"}, {"b", "own"}}), accepted);
  EXPECT_THAT(rig.take("orders/Subscriptions/own"), ElementsAre("b"));
  ASSERT_EQ(rig.queues.forwards.size(), 1u);
  EXPECT_EQ(rig.queues.forwards[0].target, "e1");
  EXPECT_EQ(rig.queues.forwards[0].steps, 0);
  EXPECT_EQ(rig.send_batch({{"c", "y"}, {"d", "one"}}), accepted);
  ASSERT_EQ(rig.queues.forwards.size(), 2u);
  EXPECT_EQ(rig.queues.forwards[1].target, "e2");
  EXPECT_EQ(rig.queues.forwards[1].steps, 1) << "it has come one step already";
}

TEST(AlternateLinks, DuplicateIsOneThatWasTaken) {
  auto first = direct("orders", "e1");
  first.requires_duplicate_detection = true;
  AlternateRig rig{first};
  EXPECT_EQ(rig.send("orders", {"a", "one"}), rejected) << "there is no e1";
  rig.add(direct("e1", ""));
  rig.bind_to("e1", "one");
  EXPECT_EQ(rig.send("orders", {"a", "one"}), accepted);
  EXPECT_EQ(rig.send("orders", {"a", "one"}), accepted);
  EXPECT_THAT(rig.at("e1"), ElementsAre("a"));
}

TEST(AlternateLinks, LinkThatGoesOnTheWayLeavesNothingBehind) {
  AlternateRig rig;
  rig.add(direct("e1", ""));
  rig.bind_to("e1", "one");
  rig.queues.durable = false;
  auto& link = rig.attach("short", Role::sender, "orders");
  amqp::Outgoing outgoing;
  outgoing.tag = as_bytes("t");
  link.send(outgoing, TopicRig::message({"a", "one"}));
  rig.pump();
  link.detach();
  rig.pump();
  rig.queues.durable = true;
  EXPECT_THAT(rig.at("e1"), ElementsAre("a")) << "it was on the disk's way already";
}

}  // namespace
}  // namespace omnibus::links
