// What is durable before a peer sees something [contract 4.6], row by row, and what a crash leaves.
#include "broker/queue_rig.hpp"

namespace omnibus::broker {
namespace {

TEST(QueueDurability, SendIsAnsweredAndDeliveredOnlyWhenDurable) {
  QueueRig rig;
  rig.attach(rig.plain);
  rig.credit(rig.plain, 10);
  rig.auto_sync = false;
  const auto request = rig.ask();
  rig.apply(Enqueue{request, {QueueRig::message("a"), QueueRig::message("b")}});
  EXPECT_EQ(rig.journal.records.size(), 1u);  // one record per transfer
  EXPECT_FALSE(rig.answer<Accepted>(request));
  EXPECT_FALSE(rig.next(rig.plain));
  EXPECT_TRUE(rig.peek().empty());
  rig.sync();
  EXPECT_TRUE(rig.answer<Accepted>(request));
  EXPECT_EQ(rig.next(rig.plain)->body, "a");
  EXPECT_EQ(rig.next(rig.plain)->body, "b");
}

TEST(QueueDurability, RefusedSendLeavesNothing) {
  QueueRig rig{{.requires_session = true}};
  const auto request = rig.ask();
  rig.apply(Enqueue{request, {QueueRig::message("a", {.session = "s"}), QueueRig::message("b")}});
  EXPECT_EQ(rig.refusal(request), Errc::not_allowed);
  EXPECT_TRUE(rig.journal.records.empty());
}

TEST(QueueDurability, SinglesThatComeTogetherShareARecordAndAreAnsweredTogether) {
  QueueRig rig;
  rig.auto_sync = false;
  const std::vector requests{rig.ask(), rig.ask(), rig.ask()};
  rig.apply(EnqueueEach{requests, {QueueRig::message("a"), QueueRig::message("b"), QueueRig::message("c")}});
  EXPECT_EQ(rig.journal.records.size(), 1u);
  EXPECT_FALSE(rig.answer<AcceptedEach>(requests[0]));
  rig.sync();
  const auto* accepted = rig.answer<AcceptedEach>(requests[0]);
  ASSERT_TRUE(accepted);
  EXPECT_EQ(accepted->others, (std::vector{requests[1], requests[2]}));
  for (const char* body : {"a", "b", "c"}) EXPECT_EQ(rig.receive().body, body);
}

TEST(QueueDurability, OneOfTheSinglesThatIsRefusedLeavesTheOthers) {
  QueueRig rig{{.message_bytes_max = 4}};
  const std::vector requests{rig.ask(), rig.ask(), rig.ask()};
  rig.apply(
      EnqueueEach{requests, {QueueRig::message("a"), QueueRig::message("too long"), QueueRig::message("c")}});
  EXPECT_TRUE(rig.answer<Accepted>(requests[0]));
  EXPECT_EQ(rig.refusal(requests[1]), Errc::message_size_exceeded);
  EXPECT_TRUE(rig.answer<Accepted>(requests[2]));
  EXPECT_EQ(rig.receive().body, "a");
  EXPECT_EQ(rig.receive().body, "c");
}

TEST(QueueDurability, SinglesFillAQueueUpToItsSizeAndNoFurther) {
  QueueRig rig{{.size_bytes_max = 10}};
  const std::vector requests{rig.ask(), rig.ask(), rig.ask()};
  rig.apply(EnqueueEach{requests,
                        {QueueRig::message("12345"), QueueRig::message("678"), QueueRig::message("9ab")}});
  EXPECT_TRUE(rig.answer<Accepted>(requests[0]));
  EXPECT_TRUE(rig.answer<Accepted>(requests[1]));
  EXPECT_EQ(rig.refusal(requests[2]), Errc::resource_limit_exceeded);
}

TEST(QueueDurability, EachOfTheSinglesHearsOfAFailedStore) {
  QueueRig rig;
  rig.auto_sync = false;
  const std::vector requests{rig.ask(), rig.ask()};
  rig.apply(EnqueueEach{requests, {QueueRig::message("a"), QueueRig::message("b")}});
  rig.apply(StoreFailed{});
  for (const RequestId request : requests) EXPECT_EQ(rig.refusal(request), Errc::internal_error);
}

TEST(QueueDurability, LostSendNeverHappened) {
  QueueRig rig;
  rig.send("kept");
  rig.auto_sync = false;
  rig.apply(Enqueue{rig.ask(), {QueueRig::message("lost")}});
  rig.crash();
  rig.auto_sync = true;
  EXPECT_EQ(rig.receive().body, "kept");
  EXPECT_FALSE(rig.try_receive());
}

TEST(QueueDurability, EverySettlementAnswerWaits) {
  for (const Outcome& outcome : {Outcome{Complete{}}, Outcome{Abandon{}}, Outcome{Defer{}},
                                 Outcome{DeadLetter{}}, Outcome{Release{}}}) {
    QueueRig rig;
    rig.send("a");
    const auto got = rig.receive();
    rig.auto_sync = false;
    const auto request = rig.ask();
    rig.apply(Settle{request, {got.lock}, outcome, std::nullopt});
    EXPECT_FALSE(rig.answer<Done>(request)) << outcome.index();
    rig.sync();
    EXPECT_TRUE(rig.answer<Done>(request)) << outcome.index();
  }
}

// A crash would put it back where it was, and who saw it as a dead letter would see it twice.
TEST(QueueDurability, ADeadLetterIsSeenOnlyWhenDurable) {
  QueueRig rig;
  rig.send("a");
  const auto got = rig.receive();
  rig.auto_sync = false;
  rig.apply(Settle{rig.ask(), {got.lock}, DeadLetter{"reason", "text", {}}, std::nullopt, ReceiverId::none});
  EXPECT_FALSE(rig.try_receive(SubQueue::dead_letter));
  rig.sync();
  EXPECT_EQ(rig.receive(SubQueue::dead_letter).body, "a");
}

TEST(QueueDurability, SettlementNobodyAwaitsIsJournaledToo) {
  QueueRig rig;
  rig.send("a");
  const auto got = rig.receive();
  rig.apply(Settle{RequestId::none, {got.lock}, Complete{}, std::nullopt});
  EXPECT_TRUE(rig.answers.size() == 1) << "only the send was answered";
  rig.crash();
  EXPECT_FALSE(rig.try_receive());
}

TEST(QueueDurability, LockIsNotAwaitedButHoldsOverARestartOnceDurable) {
  QueueRig rig{{.lock_duration = 30s}};
  rig.send("a");
  rig.attach(rig.plain);
  rig.auto_sync = false;
  rig.credit(rig.plain, 1);
  const auto got = rig.next(rig.plain).value();  // left before its lock was durable
  rig.sync();
  rig.crash();
  rig.auto_sync = true;
  EXPECT_FALSE(rig.try_receive());
  EXPECT_EQ(rig.complete(got.lock), std::nullopt);
}

TEST(QueueDurability, LostLockLeavesTheMessageAvailableAndTheAttemptUncounted) {
  QueueRig rig;
  rig.send("a");
  rig.attach(rig.plain);
  rig.auto_sync = false;
  rig.credit(rig.plain, 1);
  const auto lost = rig.next(rig.plain).value();
  rig.crash();
  rig.auto_sync = true;
  EXPECT_EQ(rig.complete(lost.lock), Errc::message_lock_lost);
  EXPECT_EQ(rig.receive().attempts, 1u);
}

TEST(QueueDurability, LockThatSurvivedEndsInItsTimeAndCounts) {
  QueueRig rig{{.lock_duration = 30s}};
  rig.send("a");
  const auto got = rig.receive();
  rig.advance(10s);
  EXPECT_EQ(rig.renew(got.lock), std::nullopt);
  rig.crash();
  rig.advance(29s);
  EXPECT_FALSE(rig.try_receive());
  rig.advance(1s);
  EXPECT_EQ(rig.receive().attempts, 2u);
}

TEST(QueueDurability, DuplicateIsAcceptedOnlyWhenTheFirstIsDurable) {
  QueueRig rig{{.requires_duplicate_detection = true}};
  rig.auto_sync = false;
  rig.apply(Enqueue{rig.ask(), {QueueRig::message("a", {.id = "1"})}});
  const auto second = rig.ask();
  rig.apply(Enqueue{second, {QueueRig::message("a", {.id = "1"})}});
  EXPECT_FALSE(rig.answer<Accepted>(second));
  rig.sync();
  EXPECT_TRUE(rig.answer<Accepted>(second));
}

TEST(QueueDurability, FailedStoreRefusesWhatWaitedAndServesNobody) {
  QueueRig rig;
  rig.auto_sync = false;
  const auto request = rig.ask();
  rig.apply(Enqueue{request, {QueueRig::message("a")}});
  rig.apply(StoreFailed{});
  EXPECT_EQ(rig.refusal(request), Errc::internal_error);
  EXPECT_EQ(rig.send("b"), Errc::server_busy);
  EXPECT_EQ(rig.queue->next_deadline(), never);
}

TEST(QueueDurability, FailedStoreStillAnswersADrain) {
  QueueRig rig;
  rig.send("a");
  rig.attach(rig.plain, SubQueue::active, ReceiveMode::receive_and_delete);
  rig.auto_sync = false;
  rig.credit(rig.plain, 5, true);
  EXPECT_FALSE(rig.drained.contains(rig.plain)) << "it waits behind the delivery";
  rig.apply(StoreFailed{});
  EXPECT_FALSE(rig.next(rig.plain));
  EXPECT_EQ(rig.drained[rig.plain], 5u);
}

TEST(QueueDurability, ActivatedNumberIsNotShownBeforeItIsDurable) {
  QueueRig rig;
  rig.schedule("later", rig.now + 10s);
  rig.attach(rig.plain);
  rig.credit(rig.plain, 1);
  rig.auto_sync = false;
  rig.advance(10s);
  EXPECT_FALSE(rig.next(rig.plain));
  rig.sync();
  EXPECT_EQ(rig.next(rig.plain)->sequence, 2);
}

TEST(QueueDurability, BatchRecordLivesAsLongAsItsLastMessage) {
  QueueRig rig;
  rig.apply(Enqueue{rig.ask(), {QueueRig::message("a"), QueueRig::message("b")}});
  rig.complete(rig.receive().lock);
  EXPECT_FALSE(rig.journal.released.contains(1));
  rig.crash();
  const auto b = rig.receive();
  EXPECT_EQ(b.body, "b");
  rig.complete(b.lock);
  EXPECT_TRUE(rig.journal.released.contains(1));
}

TEST(QueueDurability, RelocatedRecordIsReadAtItsNewPlace) {
  QueueRig rig;
  rig.apply(Enqueue{rig.ask(), {QueueRig::message("a"), QueueRig::message("b")}});
  rig.schedule("c", rig.now + 1s);
  rig.complete(rig.receive().lock);
  rig.advance(1s);
  const auto move = [&](std::uint64_t from) {
    const std::string record = rig.journal.records.at(from - 1).bytes;
    const bool needed = rig.queue->relocate(as_bytes(record), {from}, rig.journal);
    rig.sync();
    EXPECT_TRUE(rig.journal.released.contains(from));
    return needed;
  };
  EXPECT_TRUE(move(1));
  const std::uint64_t once = rig.journal.records.size();
  EXPECT_TRUE(move(2));
  EXPECT_TRUE(move(once)) << "a copy moves on like the first record";
  for (const std::uint64_t dead : {std::uint64_t{1}, std::uint64_t{2}, once}) {
    auto& record = rig.journal.records.at(dead - 1);
    EXPECT_TRUE(rig.journal.released.contains(dead));
    std::fill(record.bytes.begin() + static_cast<std::ptrdiff_t>(record.head), record.bytes.end(), '?');
  }
  EXPECT_EQ(rig.rebuilt(nullptr, 0)->describe(), rig.queue->describe());
  EXPECT_EQ(rig.receive().body, "b");
  rig.crash();
  rig.advance(10min);
  const auto b = rig.receive();
  EXPECT_EQ(b.body, "b") << "the message that was gone when the record moved stays gone";
  const auto c = rig.receive();
  EXPECT_EQ(c.body, "c");
  rig.complete(b.lock);
  rig.complete(c.lock);
  EXPECT_FALSE(move(once + 1));
}

// Receive-and-delete: the message is gone from the queue, but its bytes still wait for the removal.
TEST(QueueDurability, RecordThatIsAboutToGoIsNotCopied) {
  QueueRig rig;
  rig.send("a");
  rig.attach(rig.plain, SubQueue::active, ReceiveMode::receive_and_delete);
  rig.auto_sync = false;
  rig.credit(rig.plain, 1);
  const std::string record = rig.journal.records.at(0).bytes;
  EXPECT_FALSE(rig.queue->relocate(as_bytes(record), {1}, rig.journal));
  rig.sync();
  EXPECT_EQ(rig.next(rig.plain)->body, "a");
  EXPECT_TRUE(rig.journal.released.contains(1));
}

}  // namespace
}  // namespace omnibus::broker
