// Sending to partitioned entities, and their sessions [contract 9.10]. Where a test shows one of the
// statements P1 to P56 of the contracts' list, it says which.
#include <gmock/gmock.h>

#include "links/partitioned_rig.hpp"

namespace omnibus::links {
namespace {

using amqp::Value;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::UnorderedElementsAre;
namespace descriptor = amqp::descriptor;

// ---- sending ----

// P9, P34
TEST(PartitionedLinks, WithoutAKeyMessagesGoRound) {
  PartitionedRig rig;
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(rig.is_accepted(rig.send(fmt::format("{}", i))));
  for (std::uint16_t i = 0; i < rig.count; ++i) EXPECT_EQ(rig.held(i), 2u) << i;
}

void send_at_once(PartitionedRig& rig, amqp::Link& link, int count) {
  for (int i = 0; i < count; ++i) {
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    link.send(outgoing, Payload::copy_of(PartitionedRig::encoded(fmt::format("{}", i))));
  }
  rig.pump();
}

// So that they make few records, and are delivered and settled together. One read may end within a message.
TEST(PartitionedLinks, WhatComesTogetherGoesToOnePartition) {
  for (const std::size_t input_bytes_max : {std::size_t{SIZE_MAX}, std::size_t{597}}) {
    PartitionedRig rig;
    rig.input_bytes_max = input_bytes_max;
    auto& link = rig.attach("one more sender", amqp::Role::sender, "orders");
    for (int round = 1; round <= 3; ++round) {
      send_at_once(rig, link, 30);
      std::vector<std::uint64_t> held;
      for (std::uint16_t i = 0; i < rig.count; ++i) held.push_back(rig.held(i));
      EXPECT_EQ(std::ranges::count(held, 30u), round) << "a partition for each round";
    }
  }
}

// A sender that never pauses fills all partitions.
TEST(PartitionedLinks, SoManyGoToOnePartitionAndNoMore) {
  for (const std::size_t input_bytes_max : {std::size_t{SIZE_MAX}, std::size_t{597}}) {
    PartitionedRig rig;
    rig.input_bytes_max = input_bytes_max;
    auto& link = rig.attach("one more sender", amqp::Role::sender, "orders");
    const auto most = static_cast<int>(EntityClient::enqueues_max);
    send_at_once(rig, link, most);
    std::vector<std::uint64_t> held;
    for (std::uint16_t i = 0; i < rig.count; ++i) held.push_back(rig.held(i));
    EXPECT_THAT(held, UnorderedElementsAre(most, 0, 0, 0));
    send_at_once(rig, link, most + 1);
    held.clear();
    for (std::uint16_t i = 0; i < rig.count; ++i) held.push_back(rig.held(i));
    EXPECT_THAT(held, UnorderedElementsAre(most, most, 1, 0));
  }
}

// P23, P24, P26, P28, P41
TEST(PartitionedLinks, TheSameKeyIsAlwaysTheSamePartition) {
  PartitionedRig rig;
  for (int i = 0; i < 5; ++i) {
    rig.send(fmt::format("k{}", i), {.key = "device-0001"});      // partition 2 of 4
    rig.send(fmt::format("s{}", i), {.session = "device-0002"});  // partition 3 of 4
  }
  EXPECT_EQ(rig.held(2), 5u);
  EXPECT_EQ(rig.held(3), 5u);
}

// P31, P32, P33
TEST(PartitionedLinks, AnIdIsTheKeyWhereDuplicatesAreLookedFor) {
  PartitionedRig rig{{.requires_duplicate_detection = true}};
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(rig.is_accepted(rig.send("x", {.id = "abc"})));  // partition 1
  EXPECT_EQ(rig.held(1), 1u) << "all repeats met the same partition";
  PartitionedRig other;
  for (int i = 0; i < 8; ++i) other.send("x", {.id = "abc"});
  EXPECT_EQ(other.held(1), 2u) << "no key without duplicate detection";
}

// contract 9.10, duplicate detection: within the key
TEST(PartitionedLinks, EqualIdsUnderDifferentKeysAreNoDuplicates) {
  PartitionedRig rig{{.requires_duplicate_detection = true}};
  const std::string first = rig.key_for(1);
  std::string second;
  for (int i = 0; second.empty(); ++i)
    if (std::string key = fmt::format("other {}", i); broker::partition_of_key(key, rig.count) == 1)
      second = key;
  rig.send("x", {.key = first, .id = "1"});
  rig.send("x", {.key = second, .id = "1"});
  rig.send("x", {.key = second, .id = "1"});
  EXPECT_EQ(rig.held(1), 2u);
}

// P29
TEST(PartitionedLinks, SessionAndKeyThatDifferAreRefused) {
  PartitionedRig rig;
  EXPECT_EQ(rig.send("x", {.session = "a", .key = "b"}).condition, "amqp:not-allowed");
}

TEST(PartitionedLinks, ABatchIsInOnePartition) {
  PartitionedRig rig;
  const auto format = amqp::batch_message_format;
  EXPECT_TRUE(
      rig.is_accepted(rig.send(rig.batch({rig.encoded("a"), rig.encoded("b"), rig.encoded("c")}), format)));
  std::vector<std::uint64_t> held;
  for (std::uint16_t i = 0; i < rig.count; ++i) held.push_back(rig.held(i));
  EXPECT_THAT(held, UnorderedElementsAre(3, 0, 0, 0));
  EXPECT_EQ(
      rig.send(rig.batch({rig.encoded("a", {.key = "a"}), rig.encoded("b", {.key = "b"})}), format).condition,
      "amqp:not-allowed");
}

// P3, P35
TEST(PartitionedLinks, APartitionThatIsDownIsPassedOver) {
  PartitionedRig rig;
  rig.queues.set_down("orders", 1);
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(rig.is_accepted(rig.send(fmt::format("{}", i)))) << i;
  EXPECT_EQ(rig.held(1), 0u);
  EXPECT_EQ(rig.held(0) + rig.held(2) + rig.held(3), 9u);
}

TEST(PartitionedLinks, WhatReachesOneThatWentDownJustNowGoesToAnother) {
  PartitionedRig rig;
  rig.queues.set_down("orders", 1, true);
  rig.queues.set_down("orders", 2, true);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(rig.is_accepted(rig.send(fmt::format("{}", i)))) << i;
  EXPECT_EQ(rig.held(0) + rig.held(3), 8u);
}

// P25, P47
TEST(PartitionedLinks, WithAKeyThereIsNoOtherPartition) {
  PartitionedRig rig;
  for (const bool quietly : {false, true}) {
    rig.queues.set_down("orders", 1, quietly);
    const auto refused = rig.send("x", {.key = rig.key_for(1)});
    EXPECT_EQ(refused.state, descriptor::rejected);
    EXPECT_EQ(refused.condition, "com.microsoft:server-busy");
    EXPECT_TRUE(rig.is_accepted(rig.send("x", {.key = rig.key_for(2)})))
        << "only that part of the traffic fails";
  }
}

TEST(PartitionedLinks, WhenAllAreDownASendSaysSo) {
  PartitionedRig rig;
  for (std::uint16_t i = 0; i < rig.count; ++i) rig.queues.set_down("orders", i);
  EXPECT_EQ(rig.send("x").condition, "com.microsoft:server-busy");
}

// P37; contract 9.10: one that does not answer is given up
TEST(PartitionedLinks, WhatWaitsForADiskThatDoesNotAnswerGoesToAnother) {
  PartitionedRig rig;
  for (const std::uint16_t i : {1, 2, 3}) rig.queues.set_down("orders", i);
  rig.queues.durable = false;
  EXPECT_EQ(rig.send("alone").state, 0u) << "it waits";
  EXPECT_EQ(
      rig.send(rig.batch({rig.encoded("a"), rig.encoded("b"), rig.encoded("c")}), amqp::batch_message_format)
          .state,
      0u);
  rig.queues.set_up();
  rig.queues.set_down("orders", 0);
  rig.broker->give_up(0, rig.now());
  rig.queues.durable = true;
  rig.pump();
  const auto& outcomes = rig.heard.links.begin()->second.outcomes;
  ASSERT_EQ(outcomes.size(), 2u) << "the late answer is for nobody";
  EXPECT_TRUE(rig.is_accepted(outcomes[0]));
  EXPECT_TRUE(rig.is_accepted(outcomes[1]));
  EXPECT_EQ(rig.held(1) + rig.held(2) + rig.held(3), 4u);
  EXPECT_EQ(rig.held(0), 4u) << "sends are at least once";
}

TEST(PartitionedLinks, WhatOnlyOneCanTakeIsRefusedWhenItsDiskDoesNotAnswer) {
  PartitionedRig rig;
  rig.queues.add({.name = "plain"}, rig.wall());
  rig.queues.durable = false;
  EXPECT_EQ(rig.send("x", {.key = rig.key_for(0)}).state, 0u);
  EXPECT_EQ(rig.send("x", {.key = rig.key_for(2)}).state, 0u);
  EXPECT_EQ(rig.send(Payload::copy_of(rig.encoded("x")), 0, "plain").state, 0u) << "in store 0 too";
  rig.broker->give_up(0, rig.now());
  rig.pump();
  std::vector<std::string> conditions;
  for (const auto& [link, heard] : rig.heard.links)
    for (const auto& outcome : heard.outcomes) conditions.push_back(outcome.condition);
  EXPECT_THAT(conditions, ElementsAre("amqp:internal-error", "amqp:internal-error"));
  rig.queues.durable = true;
  rig.pump();
  for (const auto& [link, heard] : rig.heard.links)
    for (const auto& outcome : heard.outcomes) conditions.push_back(outcome.condition);
  EXPECT_THAT(conditions, UnorderedElementsAre("amqp:internal-error", "amqp:internal-error",
                                               "amqp:internal-error", "amqp:internal-error", ""))
      << "the other store answers, the late answers are for nobody";
}

TEST(PartitionedLinks, WhenAllDisksStandStillASendSaysSo) {
  PartitionedRig rig;
  rig.queues.durable = false;
  EXPECT_EQ(rig.send("x").state, 0u);
  for (std::uint16_t i = 0; i < rig.count; ++i) {
    rig.queues.set_down("orders", i);
    rig.broker->give_up(i, rig.now());
    rig.pump();
  }
  ASSERT_EQ(rig.heard.links.begin()->second.outcomes.size(), 1u);
  EXPECT_EQ(rig.heard.links.begin()->second.outcomes[0].condition, "amqp:internal-error");
}

// Nor is the connection held up by what was given up.
TEST(PartitionedLinks, WhatWasGivenUpDoesNotHoldTheConnectionUp) {
  PartitionedRig rig;
  rig.queues.durable = false;
  const std::string large(1000 * 1000, 'x');
  for (int i = 0; i < 18; ++i) rig.send(large, {.key = rig.key_for(1), .id = "1"});
  EXPECT_TRUE(rig.broker->congested());
  rig.broker->give_up(1, rig.now());
  EXPECT_FALSE(rig.broker->congested());
  rig.queues.durable = true;
  rig.pump();
  EXPECT_FALSE(rig.broker->congested());
  EXPECT_TRUE(rig.is_accepted(rig.send("x", {.key = rig.key_for(1)})));
}

// ---- sessions ----

// P26, P27
TEST(PartitionedLinks, ANamedSessionIsFoundInItsPartition) {
  PartitionedRig rig{{.requires_session = true}};
  for (const char* session : {"a", "b", "c", "d"})
    for (int n = 0; n < 2; ++n) rig.send(fmt::format("{}{}", session, n), {.session = session});
  for (const std::string session : {"a", "b", "c", "d"}) {
    auto& link = rig.session_receiver(session);
    EXPECT_THAT(rig.bodies(link), ElementsAre(session + "0", session + "1"));
  }
}

TEST(PartitionedLinks, TheNextSessionIsThatOfAnyPartition) {
  PartitionedRig rig{{.requires_session = true}};
  std::vector<std::string> all;
  for (int i = 0; i < 6; ++i) rig.send(fmt::format("{}", i), {.session = fmt::format("s{}", i)});
  for (int i = 0; i < 6; ++i) {
    auto& link = rig.session_receiver(std::nullopt);
    ASSERT_EQ(rig.bodies(link).size(), 1u) << i;
    all.push_back(rig.bodies(link).front());
  }
  EXPECT_THAT(all, UnorderedElementsAre("0", "1", "2", "3", "4", "5")) << "no session is held by a loser";
}

TEST(PartitionedLinks, WhoWaitsGetsTheFirstSessionThatComes) {
  PartitionedRig rig{{.requires_session = true}};
  auto& link = rig.session_receiver(std::nullopt, 0);
  EXPECT_EQ(rig.of(link).attached, std::nullopt) << "it waits";
  rig.send("x", {.session = "late"});
  ASSERT_EQ(rig.of(link).attached, true);
  link.grant(5);
  rig.pump();
  EXPECT_THAT(rig.bodies(link), ElementsAre("x"));
  for (std::uint16_t i = 0, receivers = 0; i < rig.count; ++i) {
    receivers = static_cast<std::uint16_t>(receivers + rig.queues.partition("orders", i).counts().receivers);
    if (i + 1 == rig.count) {
      EXPECT_EQ(receivers, 1) << "the others do not wait any more";
    }
  }
}

TEST(PartitionedLinks, AWaitForASessionEnds) {
  PartitionedRig rig{{.requires_session = true}};
  auto& link = rig.session_receiver(std::nullopt, 0);
  rig.advance(61s);
  ASSERT_TRUE(rig.of(link).detached);
  EXPECT_EQ(rig.of(link).detached->name, "com.microsoft:timeout");
}

TEST(PartitionedLinks, AnEntityWithSessionsIsNotReceivedFromWithout) {
  PartitionedRig rig{{.requires_session = true}};
  auto& link = rig.receiver(1);
  ASSERT_TRUE(rig.of(link).detached);
  EXPECT_EQ(rig.of(link).detached->name, "amqp:not-allowed");
}

// ---- topics ----

TEST(PartitionedLinks, ACopyStaysInThePartitionOfItsMessage) {
  PartitionedRig rig;
  rig.queues.add_partitioned_topic({.name = "news"}, rig.count, rig.wall());
  rig.queues.subscribe_partitioned("news", "all", rig.wall());
  for (std::uint16_t i = 0; i < rig.count; ++i)
    EXPECT_TRUE(rig.is_accepted(
        rig.send(Payload::copy_of(rig.encoded(fmt::format("{}", i), {.key = rig.key_for(i)})), 0, "news")));
  for (std::uint16_t i = 0; i < rig.count; ++i)
    EXPECT_EQ(rig.queues.partition("news/Subscriptions/all", i).counts().active, 1u);
  auto& link = rig.receiver(10, "news/Subscriptions/all");
  EXPECT_THAT(rig.bodies(link), UnorderedElementsAre("0", "1", "2", "3"));
}

}  // namespace
}  // namespace omnibus::links
