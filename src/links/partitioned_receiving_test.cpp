// Receiving from all partitions of a queue: in one store, which shares a link's credit among them itself, in
// two, and each in one of its own, where the link lends it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "links/partitioned_rig.hpp"

namespace omnibus::links {
namespace {

using amqp::SenderSettle;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

class PartitionedReceiving : public ::testing::TestWithParam<std::uint16_t> {
 public:
  PartitionedRig rig{{}, GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Stores, PartitionedReceiving, ::testing::Values(1, 2, PartitionedRig::count));

// P10, P12
TEST_P(PartitionedReceiving, AReceiverGetsTheMessagesOfAllPartitions) {
  for (int i = 0; i < 8; ++i) rig.send(fmt::format("{}", i));
  auto& link = rig.receiver(8);
  EXPECT_THAT(rig.bodies(link), UnorderedElementsAre("0", "1", "2", "3", "4", "5", "6", "7"));
  std::set<std::int64_t> partitions;
  for (std::size_t i = 0; i < 8; ++i) {
    partitions.insert(rig.sequence(link, i) >> 48);
    EXPECT_TRUE(rig.is_accepted(rig.settle(link, i, amqp::State::accepted()))) << i;
  }
  EXPECT_EQ(partitions.size(), rig.count) << "numbers name their partition";
  for (std::uint16_t i = 0; i < rig.count; ++i) EXPECT_EQ(rig.held(i), 0u);
}

TEST_P(PartitionedReceiving, CreditIsNeverGivenTwice) {
  for (int i = 0; i < 20; ++i) rig.send(fmt::format("{}", i));
  auto& link = rig.receiver(3);
  EXPECT_EQ(rig.bodies(link).size(), 3u);
  EXPECT_EQ(rig.locked(), 3u) << "nothing is locked that nobody asked for";
  link.grant(4);
  rig.pump();
  EXPECT_EQ(rig.bodies(link).size(), 7u);
  EXPECT_EQ(rig.locked(), 7u);
}

TEST_P(PartitionedReceiving, WhatComesLaterIsDeliveredAtOnce) {
  auto& link = rig.receiver(5);
  for (std::uint16_t i = 0; i < rig.count; ++i) {
    rig.send(fmt::format("{}", i), {.key = rig.key_for(i)});
    EXPECT_EQ(rig.bodies(link).size(), i + 1u);
  }
}

// No partition starves: with one credit at a time, each has its turn.
TEST_P(PartitionedReceiving, PartitionsTakeTurns) {
  for (std::uint16_t i = 0; i < rig.count; ++i)
    for (int n = 0; n < 5; ++n) rig.send("x", {.key = rig.key_for(i), .id = fmt::format("{} {}", i, n)});
  auto& link = rig.receiver(1);
  std::set<std::int64_t> partitions;
  for (std::size_t i = 0; i < rig.count; ++i) {
    partitions.insert(rig.sequence(link, i) >> 48);
    link.grant(1);
    rig.pump();
  }
  EXPECT_EQ(partitions.size(), rig.count);
}

// So that few commands and few records serve many messages.
TEST_P(PartitionedReceiving, WhatAPartitionHasGoesOutTogether) {
  for (std::uint16_t i = 0; i < rig.count; ++i)
    for (int n = 0; n < 6; ++n) rig.send("x", {.key = rig.key_for(i), .id = fmt::format("{} {}", i, n)});
  auto& link = rig.receiver(0);
  std::set<std::int64_t> partitions;
  for (std::size_t round = 0; round < rig.count; ++round) {
    link.grant(6);
    rig.pump();
    ASSERT_EQ(rig.bodies(link).size(), (round + 1) * 6);
    const std::int64_t partition = rig.sequence(link, round * 6) >> 48;
    for (std::size_t i = 1; i < 6; ++i) EXPECT_EQ(rig.sequence(link, round * 6 + i) >> 48, partition);
    partitions.insert(partition);
  }
  EXPECT_EQ(partitions.size(), rig.count) << "each had its turn";
}

TEST_P(PartitionedReceiving, WithinAPartitionOrderIsKept) {
  for (int n = 0; n < 10; ++n) rig.send(fmt::format("{}", n), {.key = "k"});
  auto& link = rig.receiver(10);
  EXPECT_THAT(rig.bodies(link), ElementsAre("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"));
}

TEST_P(PartitionedReceiving, ReceiveAndDeleteTakesFromAll) {
  for (int i = 0; i < 8; ++i) rig.send(fmt::format("{}", i));
  auto& link = rig.receiver(6, "orders", SenderSettle::settled);
  EXPECT_EQ(rig.bodies(link).size(), 6u);
  EXPECT_EQ(rig.held(0) + rig.held(1) + rig.held(2) + rig.held(3), 2u);
  link.grant(6);
  rig.pump();
  EXPECT_EQ(rig.bodies(link).size(), 8u);
  rig.send("more");
  EXPECT_EQ(rig.bodies(link).size(), 9u);
}

TEST_P(PartitionedReceiving, ADrainIsAnsweredWhenNoPartitionHasAnything) {
  for (int i = 0; i < 5; ++i) rig.send(fmt::format("{}", i));
  auto& link = rig.receiver(0);
  link.grant(10);
  link.drain();
  rig.pump();
  EXPECT_EQ(rig.bodies(link).size(), 5u);
  EXPECT_EQ(link.credit(), 0u) << "the rest is used up";
  rig.send("later");
  EXPECT_EQ(rig.bodies(link).size(), 5u) << "credit that is gone brings nothing";
  link.grant(1);
  rig.pump();
  EXPECT_EQ(rig.bodies(link).size(), 6u);
}

TEST_P(PartitionedReceiving, ADrainOfNothingIsAnsweredToo) {
  auto& link = rig.receiver(3);
  link.drain();
  rig.pump();
  EXPECT_EQ(link.credit(), 0u);
  EXPECT_TRUE(rig.bodies(link).empty());
}

TEST_P(PartitionedReceiving, ALinkThatGoesGivesItsReceiversBack) {
  auto& link = rig.receiver(5);
  EXPECT_EQ(rig.queues.partition("orders", 0).counts().receivers, 1u);
  link.detach();
  rig.pump();
  for (std::uint16_t i = 0; i < rig.count; ++i)
    EXPECT_EQ(rig.queues.partition("orders", i).counts().receivers, 0u);
  rig.send("x");
  EXPECT_EQ(rig.locked(), 0u);
}

TEST_P(PartitionedReceiving, DeadLettersAreReceivedFromAllPartitions) {
  for (int i = 0; i < 4; ++i) rig.send(fmt::format("{}", i));
  auto& link = rig.receiver(4);
  for (std::size_t i = 0; i < 4; ++i) rig.settle(link, i, amqp::State::rejected({"x", "y", {}}));
  auto& dead = rig.receiver(4, "orders/$DeadLetterQueue");
  EXPECT_EQ(rig.bodies(dead).size(), 4u);
}

TEST_P(PartitionedReceiving, AbandonedMessagesComeBack) {
  rig.send("a");
  auto& link = rig.receiver(2);
  rig.settle(link, 0, amqp::State::released());
  EXPECT_THAT(rig.bodies(link), ElementsAre("a", "a"));
}

// What was on its way when the link went is another's at once, whichever partition gave it.
TEST_P(PartitionedReceiving, WhatIsOnItsWayToALinkThatGoesIsGivenBack) {
  for (std::uint16_t i = 0; i < rig.count; ++i) rig.send(fmt::format("{}", i), {.key = rig.key_for(i)});
  auto& link = rig.receiver(0);
  link.grant(rig.count);
  link.detach();
  rig.pump();
  EXPECT_EQ(rig.locked(), 0u);
  auto& other = rig.receiver(rig.count);
  EXPECT_THAT(rig.bodies(other), UnorderedElementsAre("0", "1", "2", "3"));
}

TEST_P(PartitionedReceiving, LinksShareWhatThereIs) {
  auto& one = rig.receiver(2);
  auto& other = rig.receiver(2);
  for (int i = 0; i < 6; ++i) rig.send(fmt::format("{}", i));
  EXPECT_EQ(rig.bodies(one).size(), 2u);
  EXPECT_EQ(rig.bodies(other).size(), 2u);
  one.grant(2);
  rig.pump();
  EXPECT_EQ(rig.bodies(one).size(), 4u) << "what nobody had credit for";
}

// The whole credit can be used by any store, however it was divided before.
TEST(PartitionedReceiver, AllTheCreditServesWhoHasSomething) {
  for (const std::uint16_t partition : {0, 1}) {
    for (const std::uint32_t credit : {1u, 2u, 3u, 4u, 5u, 16u, 100u}) {
      PartitionedRig rig{{}, 2};
      auto& link = rig.receiver(credit);
      for (std::uint32_t n = 0; n < credit + 3; ++n)
        rig.send("x", {.key = rig.key_for(partition), .id = fmt::format("{}", n)});
      EXPECT_EQ(rig.bodies(link).size(), credit) << partition;
      EXPECT_EQ(rig.locked(), credit) << partition;
    }
  }
}

// Stores that never run dry leave each other their share.
TEST(PartitionedReceiver, NoStoreStarves) {
  for (const std::uint32_t credit : {1u, 2u, 7u, 40u}) {
    PartitionedRig rig{{}, 2};
    for (std::uint16_t partition = 0; partition < rig.count; ++partition)
      for (int n = 0; n < 60; ++n)
        rig.send("x", {.key = rig.key_for(partition), .id = fmt::format("{} {}", partition, n)});
    auto& link = rig.receiver(0);
    std::map<std::uint16_t, int> of_store;
    for (std::uint32_t given = 0; given < 80; given += credit) {
      link.grant(credit);
      rig.pump();
    }
    for (std::size_t i = 0; i < 80; ++i)
      ++of_store[static_cast<std::uint16_t>((rig.sequence(link, i) >> 48) % 2)];
    EXPECT_GE(of_store[0], 20) << "credit " << credit;
    EXPECT_GE(of_store[1], 20) << "credit " << credit;
  }
}

// So that few commands serve many messages: what a store has not answered comes back.
TEST(PartitionedReceiver, ALittleCreditWaitsForMore) {
  PartitionedRig rig{{}, 2};
  for (const std::uint16_t partition : {0, 1})
    for (int n = 0; n < 60; ++n)
      rig.send("x", {.key = rig.key_for(partition), .id = fmt::format("{} {}", partition, n)});
  auto& link = rig.receiver(0, "orders", SenderSettle::settled);
  rig.queues.durable = false;
  const auto commands_of = [&](std::uint32_t credit) {
    const std::size_t before = rig.queues.taken;
    link.grant(credit);
    rig.pump();
    return rig.queues.taken - before;
  };
  EXPECT_EQ(commands_of(40), 1u);
  EXPECT_EQ(commands_of(2), 0u) << "a twentieth";
  EXPECT_EQ(commands_of(10), 1u);
  rig.queues.durable = true;
  rig.pump();
  EXPECT_EQ(rig.bodies(link).size(), 52u);
  EXPECT_GT(commands_of(1), 0u) << "nothing is to come back";
  EXPECT_EQ(rig.bodies(link).size(), 53u);
}

// Whatever happens: no link gets more than its credit, nothing lies there while one has some, and every drain
// is answered.
void any_history(std::uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Random random{seed};
  const auto stores = static_cast<std::uint16_t>(2 + random.below(3));
  PartitionedRig rig{{}, stores};
  struct Link {
    amqp::Link* link = nullptr;
    std::uint64_t given = 0;
    std::size_t settled = 0;
  };
  std::vector<Link> links;
  for (int step = 0; step < 60; ++step) {
    const std::uint64_t what = random.below(10);
    if (what < 4) {
      const std::uint64_t count = 1 + random.below(random.below(6) == 0 ? 40 : 3);
      for (std::uint64_t n = 0; n < count; ++n)
        rig.send("x", {.key = rig.key_for(static_cast<std::uint16_t>(random.below(rig.count))),
                       .id = fmt::format("{} {}", step, n)});
    } else if (what == 4 && links.size() < 4) {
      const bool deletes = random.below(3) == 0;
      links.push_back(
          {&rig.receiver(0, "orders", deletes ? SenderSettle::settled : SenderSettle::unsettled)});
    } else if (what == 5 && !links.empty() && random.below(4) == 0) {
      links.back().link->detach();
      links.pop_back();
    } else if (what < 9 && !links.empty()) {
      Link& one = links[random.below(links.size())];
      const auto more = static_cast<std::uint32_t>(random.below(random.below(4) == 0 ? 50 : 4));
      one.given = rig.bodies(*one.link).size() + one.link->credit() + more;
      one.link->grant(more);
      if (random.below(4) == 0) one.link->drain();
    } else {
      for (Link& one : links)
        for (; one.settled < rig.of(*one.link).deliveries.size() && random.below(3) != 0; ++one.settled)
          if (!rig.of(*one.link).deliveries[one.settled].settled)
            one.link->disposition(rig.of(*one.link).deliveries[one.settled].id,
                                  random.below(3) == 0 ? amqp::State::released() : amqp::State::accepted());
    }
    rig.queues.durable = random.below(4) != 0;
    rig.pump();
    rig.queues.durable = true;
    rig.pump();
    std::uint64_t lies = 0;
    for (std::uint16_t i = 0; i < rig.count; ++i)
      lies += rig.queues.partition("orders", i).available(broker::SubQueue::active);
    for (const Link& one : links) {
      ASSERT_LE(rig.bodies(*one.link).size(), one.given) << "step " << step;
      ASSERT_FALSE(one.link->drain_requested() && one.link->credit() > 0) << "step " << step;
      ASSERT_FALSE(lies > 0 && one.link->credit() > 0) << "step " << step << ": " << lies << " lie there";
    }
  }
}

TEST(PartitionedReceiver, AnyHistory) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    any_history(seed);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace omnibus::links
