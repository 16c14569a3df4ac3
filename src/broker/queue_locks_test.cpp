// Peek-lock and receive-and-delete: delivery count, lock life, settlement [contract 4.4, 4.5, 9.3].
#include "broker/queue_rig.hpp"

namespace omnibus::broker {
namespace {

// A lock that ran out puts the message back; the late complete is refused.
TEST(QueueLocks, LateCompleteIsRefusedAndMessageComesBack) {
  QueueRig rig{{.lock_duration = 30s}};
  rig.send("invoice 17");
  const auto first = rig.receive();
  EXPECT_EQ(first.attempts, 1u);
  rig.advance(31s);

  EXPECT_EQ(rig.complete(first.lock), Errc::message_lock_lost);
  const auto second = rig.receive();
  EXPECT_EQ(second.body, "invoice 17");
  EXPECT_EQ(second.attempts, 2u);
  EXPECT_NE(second.lock, first.lock);
}

TEST(QueueLocks, CompleteRemovesAndASecondCompleteIsRefused) {
  QueueRig rig;
  rig.send("a");
  const auto got = rig.receive();
  EXPECT_EQ(rig.complete(got.lock), std::nullopt);
  EXPECT_EQ(rig.complete(got.lock), Errc::message_lock_lost);
  EXPECT_FALSE(rig.try_receive());
  EXPECT_EQ(rig.queue->counts().active, 0u);
  EXPECT_EQ(rig.queue->counts().size_bytes, 0u);
  EXPECT_TRUE(rig.journal.released.contains(1));
}

// A link sends the completions nobody waits for together; one lost lock must not cost the others theirs.
TEST(QueueLocks, CompletionsThatWantNoAnswerCountEachForItself) {
  QueueRig rig{{.lock_duration = 30s}};
  rig.send("lost");
  const auto lost = rig.receive();
  rig.advance(31s);
  rig.send("kept");
  rig.send("also");
  const auto again = rig.receive();
  const auto kept = rig.receive();
  const auto also = rig.receive();
  const std::size_t records = rig.journal.records.size();
  rig.apply(Settle{RequestId::none, {kept.lock, lost.lock, also.lock, kept.lock}, Complete{}});
  EXPECT_EQ(rig.journal.records.size(), records + 1) << "one record for all of them";
  EXPECT_EQ(rig.queue->counts().active, 1u);
  EXPECT_EQ(rig.complete(again.lock), std::nullopt) << "it is held by another lock now";
}

TEST(QueueLocks, AbandonCountsAndTheMessageRegainsItsPlace) {
  QueueRig rig;
  rig.send("first");
  rig.send("second");
  const auto got = rig.receive();
  EXPECT_EQ(rig.abandon(got.lock), std::nullopt);
  const auto again = rig.receive();
  EXPECT_EQ(again.body, "first");
  EXPECT_EQ(again.attempts, 2u);
  EXPECT_EQ(again.sequence, got.sequence);
}

TEST(QueueLocks, ReleaseDoesNotCount) {
  QueueRig rig;
  rig.send("a");
  EXPECT_EQ(rig.settle(rig.receive().lock, Release{}), std::nullopt);
  EXPECT_EQ(rig.receive().attempts, 1u);
}

TEST(QueueLocks, LockOfALostLinkStaysAndIsRenewedAndSettledByToken) {
  QueueRig rig{{.lock_duration = 30s}};
  rig.send("a");
  rig.attach(rig.plain);
  rig.credit(rig.plain, 1);
  const auto got = rig.next(rig.plain).value();
  rig.apply(CloseReceiver{rig.plain});
  EXPECT_FALSE(rig.try_receive());
  rig.advance(20s);
  EXPECT_EQ(rig.renew(got.lock), std::nullopt);
  rig.advance(20s);
  EXPECT_EQ(rig.complete(got.lock), std::nullopt);
}

TEST(QueueLocks, LockEndsExactlyAtItsTime) {
  QueueRig rig{{.lock_duration = 30s}};
  rig.send("a");
  const auto got = rig.receive();
  EXPECT_EQ(got.locked_until, rig.now + 30s);
  rig.advance(30s - 1ms);
  EXPECT_EQ(rig.renew(got.lock), std::nullopt);
  rig.advance(30s);
  EXPECT_EQ(rig.renew(got.lock), Errc::message_lock_lost);
}

TEST(QueueLocks, RenewingSeveralIsAllOrNothing) {
  QueueRig rig{{.lock_duration = 30s}};
  rig.send("a");
  rig.send("b");
  const auto a = rig.receive();
  const auto b = rig.receive();
  rig.complete(b.lock);
  rig.advance(20s);
  const auto request = rig.ask();
  rig.apply(RenewLocks{request, {a.lock, b.lock}});
  EXPECT_EQ(rig.refusal(request), Errc::message_lock_lost);
  rig.advance(10s);
  EXPECT_EQ(rig.complete(a.lock), Errc::message_lock_lost);
}

TEST(QueueLocks, SettlingSeveralIsAllOrNothing) {
  QueueRig rig;
  rig.send("a");
  rig.send("b");
  const auto a = rig.receive();
  const auto b = rig.receive();
  rig.complete(b.lock);
  const auto request = rig.ask();
  rig.apply(Settle{request, {a.lock, b.lock}, Complete{}, std::nullopt});
  EXPECT_EQ(rig.refusal(request), Errc::message_lock_lost);
  EXPECT_EQ(rig.complete(a.lock), std::nullopt);
}

TEST(QueueLocks, NthFailedDeliveryGoesToTheDeadLetters) {
  QueueRig rig{{.delivery_count_max = 2}};
  rig.send("poison");
  EXPECT_EQ(rig.receive().attempts, 1u);
  rig.advance(1min);
  const auto second = rig.receive();
  EXPECT_EQ(second.status.delivery_count, 1u);
  rig.abandon(second.lock);
  EXPECT_FALSE(rig.try_receive());

  const auto dead = rig.receive(SubQueue::dead_letter);
  EXPECT_EQ(dead.body, "poison");
  EXPECT_EQ(dead.sequence, second.sequence);
  EXPECT_EQ(dead.status.delivery_count, 2u);
  EXPECT_EQ(dead.status.changes->dead_letter_reason, "MaxDeliveryCountExceeded");
  EXPECT_EQ(dead.status.changes->dead_letter_description,
            "Message could not be consumed after 2 delivery attempts.");
}

TEST(QueueLocks, InTheDeadLettersTheCountGrowsAndNothingMoves) {
  QueueRig rig{{.delivery_count_max = 1}};
  rig.send("a");
  rig.abandon(rig.receive().lock);
  for (std::uint32_t attempts = 2; attempts < 6; ++attempts) {
    const auto dead = rig.receive(SubQueue::dead_letter);
    EXPECT_EQ(dead.attempts, attempts);
    EXPECT_EQ(rig.settle(dead.lock, DeadLetter{}), Errc::not_allowed);
    EXPECT_EQ(rig.abandon(dead.lock), std::nullopt);
  }
  EXPECT_EQ(rig.complete(rig.receive(SubQueue::dead_letter).lock), std::nullopt);
  EXPECT_EQ(rig.queue->counts().dead_letter, 0u);
}

TEST(QueueLocks, ReceiveAndDeleteLeavesOnlyWhenItsRemovalIsDurable) {
  QueueRig rig;
  rig.send("a");
  rig.attach(rig.plain, SubQueue::active, ReceiveMode::receive_and_delete);
  rig.auto_sync = false;
  rig.credit(rig.plain, 1);
  EXPECT_FALSE(rig.next(rig.plain));
  EXPECT_FALSE(rig.journal.released.contains(1));
  rig.sync();
  EXPECT_EQ(rig.next(rig.plain)->body, "a");
  EXPECT_TRUE(rig.journal.released.contains(1));
  rig.crash();
  EXPECT_FALSE(rig.try_receive());
}

TEST(QueueLocks, TagIsTheTokenInGuidOrder) {
  const LockToken token{
      {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}};
  const std::array<std::uint8_t, 16> tag{0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66,
                                         0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
  EXPECT_EQ(token.delivery_tag(), tag);
  EXPECT_EQ(LockToken::from_delivery_tag(tag), token);
}

TEST(QueueLocks, TokensOfAPartitionSayWhoseTheyAre) {
  QueueRig rig{{.partition = 258, .is_partitioned = true}};
  rig.send("a");
  const auto got = rig.receive();
  EXPECT_EQ(got.lock.partition(), 258);
  EXPECT_EQ(LockToken::from_delivery_tag(got.lock.delivery_tag()).partition(), 258);
  EXPECT_EQ(got.sequence, sequence_base(258) + 1);
  EXPECT_EQ(partition_of(got.sequence), 258);
}

}  // namespace
}  // namespace omnibus::broker
