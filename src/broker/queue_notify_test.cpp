// Receivers that are told when there is something to get: what links to partitioned entities live on.
#include <gtest/gtest.h>

#include "broker/queue_rig.hpp"
#include "broker/receivers.hpp"

namespace omnibus::broker {
namespace {

constexpr ReceiverId one{11};
constexpr ReceiverId other{12};

class NotifyRig : public QueueRig {
 public:
  using QueueRig::QueueRig;
  void attach_to_hear(ReceiverId id, ReceiveMode mode = ReceiveMode::peek_lock,
                      SubQueue sub_queue = SubQueue::active) {
    AttachReceiver command{id, ConnectionId{1}, sub_queue, mode, {}};
    command.notify = true;
    apply(command);
  }
  // How often this receiver was told so far.
  int told(ReceiverId id) {
    int count = 0;
    for (const auto& effect : answers)
      if (const auto* said = std::get_if<MessagesAvailable>(&effect); said && said->receiver == id) ++count;
    return count;
  }
  // What it was told last.
  std::uint32_t last_count(ReceiverId id) {
    std::uint32_t count = 0;
    for (const auto& effect : answers)
      if (const auto* said = std::get_if<MessagesAvailable>(&effect); said && said->receiver == id)
        count = said->count;
    return count;
  }
};

TEST(QueueNotify, ToldOnceWhenAMessageIsThere) {
  NotifyRig rig;
  rig.attach_to_hear(one);
  EXPECT_EQ(rig.told(one), 0);
  rig.auto_sync = false;
  rig.send("a");
  EXPECT_EQ(rig.told(one), 0) << "it is not durable";
  rig.sync();
  EXPECT_EQ(rig.told(one), 1);
  rig.auto_sync = true;
  rig.send("b");
  EXPECT_EQ(rig.told(one), 1) << "it knows";
}

TEST(QueueNotify, ToldAtTheAttachOfWhatIsThereAlready) {
  NotifyRig rig;
  rig.send("a");
  rig.attach_to_hear(one);
  EXPECT_EQ(rig.told(one), 1);
  rig.attach(other);
  EXPECT_EQ(rig.told(other), 0) << "who did not ask is not told";
}

TEST(QueueNotify, ADrainThatLeavesSomethingSaysSoAndOneThatDoesNotArms) {
  NotifyRig rig;
  rig.send("a");
  rig.send("b");
  rig.attach_to_hear(one);
  rig.credit(one, 1, true);
  EXPECT_EQ(rig.next(one)->body, "a");
  EXPECT_EQ(rig.told(one), 2) << "b is there";
  rig.credit(one, 5, true);
  EXPECT_EQ(rig.next(one)->body, "b");
  EXPECT_FALSE(rig.next(one));
  EXPECT_EQ(rig.told(one), 2);
  rig.send("c");
  EXPECT_EQ(rig.told(one), 3);
}

TEST(QueueNotify, ToldHowManyWait) {
  NotifyRig rig;
  for (const char* body : {"a", "b", "c", "d", "e"}) rig.send(body);
  rig.attach_to_hear(one);
  EXPECT_EQ(rig.last_count(one), 5u);
  rig.credit(one, 2, true);
  EXPECT_EQ(rig.last_count(one), 3u) << "locked ones do not wait";
  const LockToken abandoned = rig.next(one)->lock;
  const LockToken completed = rig.next(one)->lock;
  rig.settle(abandoned, Abandon{});
  rig.settle(completed, Complete{});
  rig.credit(one, 0, true);
  EXPECT_EQ(rig.last_count(one), 4u) << "an abandoned one waits again";
  rig.attach(other, SubQueue::active, ReceiveMode::receive_and_delete);
  rig.credit(other, 3);
  rig.credit(one, 0, true);
  EXPECT_EQ(rig.last_count(one), 1u) << "three went while they waited";
}

// A line of links that hear of it one after the other would be slower than what comes.
TEST(QueueNotify, TheMoreThereIsTheMoreAreTold) {
  NotifyRig rig;
  const ReceiverId third{13};
  for (const ReceiverId id : {one, other, third}) rig.attach_to_hear(id);
  rig.auto_sync = false;
  for (std::uint64_t i = 0; i < Receivers::together; ++i) rig.send("x");
  rig.sync();
  EXPECT_EQ(rig.told(one), 1);
  EXPECT_EQ(rig.told(other), 0) << "one takes so many";
  rig.send("one more");
  rig.sync();
  EXPECT_EQ(rig.told(one), 1);
  EXPECT_EQ(rig.told(other), 1);
  EXPECT_EQ(rig.told(third), 0) << "two have the word";
  rig.auto_sync = true;
  rig.credit(one, Receivers::together, true);
  EXPECT_EQ(rig.told(third), 0) << "one message is left, and the other has the word for it";
  rig.credit(other, 0, false);
  EXPECT_EQ(rig.told(third), 1) << "the other passed";
}

TEST(QueueNotify, AnEmptyDrainIsAQuestionThatCostsNothing) {
  NotifyRig rig;
  rig.attach_to_hear(one);
  rig.credit(one, 0, true);
  EXPECT_EQ(rig.told(one), 0);
  rig.send("a");
  EXPECT_EQ(rig.told(one), 1);
  rig.credit(one, 0, true);
  EXPECT_EQ(rig.told(one), 2) << "asked again, told again";
  EXPECT_FALSE(rig.next(one));
}

TEST(QueueNotify, OneAfterAnotherHearsOfIt) {
  NotifyRig rig;
  rig.attach_to_hear(one);
  rig.attach_to_hear(other);
  rig.send("a");
  EXPECT_EQ(rig.told(one), 1);
  EXPECT_EQ(rig.told(other), 0) << "one is enough";
  rig.credit(one, 1, true);
  const auto got = rig.next(one);
  ASSERT_TRUE(got);
  EXPECT_EQ(rig.abandon(got->lock), std::nullopt);
  EXPECT_EQ(rig.told(one), 1);
  EXPECT_EQ(rig.told(other), 1) << "it came back, and it is the other's turn";
}

TEST(QueueNotify, WhoPassesLetsAnotherHearAndIsToldWhenItAsksAgain) {
  NotifyRig rig;
  rig.attach_to_hear(one);
  rig.attach_to_hear(other);
  rig.send("a");
  rig.credit(one, 0, false);
  EXPECT_EQ(rig.told(other), 1);
  rig.credit(other, 0, false);
  rig.send("b");
  EXPECT_EQ(rig.told(one), 1) << "it has passed";
  rig.credit(one, 0, true);
  EXPECT_EQ(rig.told(one), 2);
}

TEST(QueueNotify, WhatOneLeavesIsForTheNextToo) {
  NotifyRig rig;
  rig.attach_to_hear(one);
  rig.attach_to_hear(other);
  rig.auto_sync = false;
  for (const char* body : {"a", "b", "c"}) rig.send(body);
  rig.sync();
  rig.auto_sync = true;
  rig.credit(one, 1, true);
  EXPECT_EQ(rig.told(one), 2) << "it may want more";
  EXPECT_EQ(rig.told(other), 1);
}

TEST(QueueNotify, WhoLeavesWithoutAnswerHasNotTakenTheNewsAlong) {
  NotifyRig rig;
  rig.attach_to_hear(one);
  rig.attach_to_hear(other);
  rig.send("a");
  rig.apply(CloseReceiver{one});
  EXPECT_EQ(rig.told(other), 1);
}

TEST(QueueNotify, ReceiveAndDeleteIsToldBeforeItsDrainIsAnswered) {
  NotifyRig rig;
  rig.send("a");
  rig.send("b");
  rig.attach_to_hear(one, ReceiveMode::receive_and_delete);
  rig.auto_sync = false;
  rig.credit(one, 1, true);
  EXPECT_EQ(rig.told(one), 2);
  EXPECT_FALSE(rig.next(one)) << "the removal is not durable";
  rig.sync();
  EXPECT_EQ(rig.next(one)->body, "a");
}

TEST(QueueNotify, OfItsOwnSubQueueOnly) {
  NotifyRig rig;
  rig.attach_to_hear(one, ReceiveMode::peek_lock, SubQueue::dead_letter);
  rig.send("a");
  EXPECT_EQ(rig.told(one), 0);
  const auto got = rig.receive();
  EXPECT_EQ(rig.settle(got.lock, DeadLetter{}), std::nullopt);
  EXPECT_EQ(rig.told(one), 1);
}

TEST(QueueNotify, WhoLeftIsNotTold) {
  NotifyRig rig;
  rig.attach_to_hear(one);
  rig.apply(CloseReceiver{one});
  rig.send("a");
  EXPECT_EQ(rig.told(one), 0);
}

TEST(QueueNotify, TokensOfAPartitionSayWhoseTheyAre) {
  NotifyRig rig{{.partition = 258, .is_partitioned = true}};
  rig.send("a");
  const auto got = rig.receive();
  EXPECT_EQ(got.lock.partition(), 258);
  EXPECT_EQ(LockToken::from_delivery_tag(got.lock.delivery_tag()).partition(), 258);
  EXPECT_EQ(got.sequence, sequence_base(258) + 1);
  EXPECT_EQ(partition_of(got.sequence), 258);
}

}  // namespace
}  // namespace omnibus::broker
