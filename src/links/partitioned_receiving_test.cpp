// Receiving from all partitions of a queue: in one store, which shares a link's credit among them itself, in
// two, and each in one of its own, where the link lends it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "links/partitioned_rig.hpp"

namespace omnibus::links {
namespace {

using amqp::SenderSettle;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

class PartitionedReceiving : public ::testing::TestWithParam<std::uint16_t> {};

INSTANTIATE_TEST_SUITE_P(Stores, PartitionedReceiving, ::testing::Values(1, 2, PartitionedRig::count));

// P10, P12
TEST_P(PartitionedReceiving, AReceiverGetsTheMessagesOfAllPartitions) {
  PartitionedRig rig{{}, GetParam()};
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
  PartitionedRig rig{{}, GetParam()};
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
  PartitionedRig rig{{}, GetParam()};
  auto& link = rig.receiver(5);
  for (std::uint16_t i = 0; i < rig.count; ++i) {
    rig.send(fmt::format("{}", i), {.key = rig.key_for(i)});
    EXPECT_EQ(rig.bodies(link).size(), i + 1u);
  }
}

// No partition starves: with one credit at a time, each has its turn.
TEST_P(PartitionedReceiving, PartitionsTakeTurns) {
  PartitionedRig rig{{}, GetParam()};
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
  PartitionedRig rig{{}, GetParam()};
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
  PartitionedRig rig{{}, GetParam()};
  for (int n = 0; n < 10; ++n) rig.send(fmt::format("{}", n), {.key = "k"});
  auto& link = rig.receiver(10);
  EXPECT_THAT(rig.bodies(link), ElementsAre("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"));
}

TEST_P(PartitionedReceiving, ReceiveAndDeleteTakesFromAll) {
  PartitionedRig rig{{}, GetParam()};
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
  PartitionedRig rig{{}, GetParam()};
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
  PartitionedRig rig{{}, GetParam()};
  auto& link = rig.receiver(3);
  link.drain();
  rig.pump();
  EXPECT_EQ(link.credit(), 0u);
  EXPECT_TRUE(rig.bodies(link).empty());
}

TEST_P(PartitionedReceiving, ALinkThatGoesGivesItsReceiversBack) {
  PartitionedRig rig{{}, GetParam()};
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
  PartitionedRig rig{{}, GetParam()};
  for (int i = 0; i < 4; ++i) rig.send(fmt::format("{}", i));
  auto& link = rig.receiver(4);
  for (std::size_t i = 0; i < 4; ++i) rig.settle(link, i, amqp::State::rejected({"x", "y", {}}));
  auto& dead = rig.receiver(4, "orders/$DeadLetterQueue");
  EXPECT_EQ(rig.bodies(dead).size(), 4u);
}

TEST_P(PartitionedReceiving, AbandonedMessagesComeBack) {
  PartitionedRig rig{{}, GetParam()};
  rig.send("a");
  auto& link = rig.receiver(2);
  rig.settle(link, 0, amqp::State::released());
  EXPECT_THAT(rig.bodies(link), ElementsAre("a", "a"));
}

// What was on its way when the link went is another's at once, whichever partition gave it.
TEST_P(PartitionedReceiving, WhatIsOnItsWayToALinkThatGoesIsGivenBack) {
  PartitionedRig rig{{}, GetParam()};
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
  PartitionedRig rig{{}, GetParam()};
  auto& one = rig.receiver(2);
  auto& other = rig.receiver(2);
  for (int i = 0; i < 6; ++i) rig.send(fmt::format("{}", i));
  EXPECT_EQ(rig.bodies(one).size(), 2u);
  EXPECT_EQ(rig.bodies(other).size(), 2u);
  one.grant(2);
  rig.pump();
  EXPECT_EQ(rig.bodies(one).size(), 4u) << "what nobody had credit for";
}

}  // namespace
}  // namespace omnibus::links
