// Credit and drain, forwarding, quota, status, idle queues, checkpoints, memory [contract 3.7, 9.7, 9.11].
#include "broker/queue_rig.hpp"

namespace omnibus::broker {
namespace {

constexpr ReceiverId one{1};
constexpr ReceiverId two{2};

TEST(QueueCredit, WaitingLinksAreServedInTurnInTheOrderOfTheirCredit) {
  QueueRig rig;
  rig.attach(one);
  rig.attach(two);
  rig.credit(two, 2);
  rig.credit(one, 2);
  for (const char* body : {"1", "2", "3", "4", "5"}) rig.send(body);
  EXPECT_EQ(rig.next(two)->body, "1");
  EXPECT_EQ(rig.next(one)->body, "2");
  EXPECT_EQ(rig.next(two)->body, "3");
  EXPECT_EQ(rig.next(one)->body, "4");
  EXPECT_FALSE(rig.next(one));
  EXPECT_FALSE(rig.next(two));
}

TEST(QueueCredit, DrainDeliversWhatIsThereAndUsesUpTheRest) {
  QueueRig rig;
  rig.send("a");
  rig.attach(one);
  rig.credit(one, 10, true);
  EXPECT_EQ(rig.next(one)->body, "a");
  EXPECT_EQ(rig.drained.at(one), 10u);
  rig.send("b");
  EXPECT_FALSE(rig.next(one));
  rig.credit(one, 1);
  EXPECT_EQ(rig.next(one)->body, "b");
}

TEST(QueueCredit, DrainOfReceiveAndDeleteAnswersBehindItsDeliveries) {
  QueueRig rig;
  rig.send("a");
  rig.attach(one, SubQueue::active, ReceiveMode::receive_and_delete);
  rig.auto_sync = false;
  rig.credit(one, 10, true);
  EXPECT_FALSE(rig.drained.contains(one));
  rig.sync();
  EXPECT_EQ(rig.next(one)->body, "a");
  EXPECT_EQ(rig.drained.at(one), 10u);
}

TEST(QueueCredit, LoweredCreditCountsForWhatIsNotDeliveredYet) {
  QueueRig rig;
  rig.attach(one);
  rig.credit(one, 10);
  rig.send("a");
  rig.apply(SetCredit{one, 1, false});
  rig.send("b");
  EXPECT_EQ(rig.next(one)->body, "a");
  EXPECT_FALSE(rig.next(one));
  EXPECT_EQ(rig.receive().body, "b");
}

QueueSettings forwarding() {
  QueueSettings settings;
  settings.name = "source";
  settings.forward_to = "target";
  return settings;
}

TEST(QueueForward, EveryMessageMovesOnceItIsDurable) {
  QueueRig rig{forwarding()};
  rig.attach(one);
  EXPECT_EQ(rig.refused[one], Errc::not_allowed);
  rig.auto_sync = false;
  rig.apply(Enqueue{rig.ask(), {QueueRig::message("a")}});
  EXPECT_TRUE(rig.forwards.empty());
  rig.sync();
  ASSERT_EQ(rig.forwards.size(), 1u);
  EXPECT_EQ(rig.forwards[0].target, "target");
  EXPECT_EQ(rig.forwards[0].first_sequence, 1);
  EXPECT_EQ(rig.forwards[0].hops, 1);
  rig.apply(Forwarded{1, std::nullopt});
  rig.sync();
  EXPECT_EQ(rig.queue->counts().active, 0u);
  EXPECT_TRUE(rig.journal.released.contains(1));
}

TEST(QueueForward, RefusedForwardGoesToTheDeadLettersOfTheSource) {
  QueueRig rig{forwarding()};
  rig.send("a");
  rig.apply(Forwarded{1, Error{Errc::not_found, "no such queue"}});
  const auto dead = rig.receive(SubQueue::dead_letter);
  EXPECT_EQ(dead.status.changes->dead_letter_reason, "ForwardingFailed");
  EXPECT_EQ(dead.status.changes->dead_letter_description, "'target': no such queue");
}

TEST(QueueForward, FifthHopGoesToTheDeadLetters) {
  QueueRig rig{forwarding()};
  rig.apply(Enqueue{rig.ask(), {QueueRig::message("a")}, ForwardedFrom{7, 4, nullptr}});
  EXPECT_TRUE(rig.forwards.empty());
  const auto dead = rig.receive(SubQueue::dead_letter);
  EXPECT_EQ(dead.status.changes->dead_letter_reason, "MaxTransferHopCountExceeded");
  EXPECT_EQ(dead.status.changes->dead_letter_description,
            "The maximum number of allowed hops when forwarding between queues has been exceeded. This value "
            "is set to "
            "4.");
  EXPECT_EQ(dead.status.changes->enqueue_sequence, 7);
}

TEST(QueueForward, MessageWithoutSessionForwardedIntoSessionsIsADeadLetter) {
  QueueRig rig{{.requires_session = true}};
  rig.apply(Enqueue{rig.ask(), {QueueRig::message("a")}, ForwardedFrom{1, 1, nullptr}});
  const auto dead = rig.receive(SubQueue::dead_letter);
  EXPECT_EQ(dead.status.changes->dead_letter_reason, "Session ID is null.");
  EXPECT_EQ(dead.status.changes->dead_letter_description,
            "Session enabled entity doesn't allow a message whose session identifier is null.");
}

TEST(QueueForward, BacklogIsForwardedAfterARestart) {
  QueueRig rig{forwarding()};
  rig.send("a");
  rig.crash();
  rig.forwards.clear();
  EXPECT_LE(rig.queue->next_deadline(), rig.now);
  rig.apply(Wake{});
  EXPECT_EQ(rig.forwards.size(), 1u);
}

TEST(QueueForward, DeadLettersMoveOnWithTheirSourceOrStay) {
  QueueSettings settings;
  settings.name = "orders";
  settings.forward_dead_letters_to = "failed";
  QueueRig rig{settings};
  rig.send("a");
  rig.send("b");
  rig.settle(rig.receive().lock, DeadLetter{"why", "because", {}});
  rig.settle(rig.receive().lock, DeadLetter{"why", "because", {}});
  ASSERT_EQ(rig.forwards.size(), 2u);
  EXPECT_EQ(rig.forwards[0].changes->dead_letter_source, "orders");
  EXPECT_EQ(rig.forwards[0].changes->dead_letter_reason, "why");
  rig.attach(one, SubQueue::dead_letter);
  EXPECT_EQ(rig.refused[one], Errc::not_allowed);
  rig.apply(Forwarded{1, std::nullopt});
  rig.apply(Forwarded{2, Error{Errc::not_found, "gone"}});
  EXPECT_EQ(rig.queue->counts().dead_letter, 1u);
  rig.crash();
  rig.forwards.clear();
  rig.apply(Wake{});
  EXPECT_TRUE(rig.forwards.empty()) << "it stays also when the destination recovers";
}

TEST(QueueEntity, FullQueueRefusesSendsAndGoesOnDelivering) {
  QueueRig rig{{.size_bytes_max = 10}};
  EXPECT_EQ(rig.send("0123456789"), std::nullopt);
  EXPECT_EQ(rig.send("x"), Errc::resource_limit_exceeded);
  rig.complete(rig.receive().lock);
  EXPECT_EQ(rig.send("x"), std::nullopt);
}

TEST(QueueEntity, MessageAboveTheLimitIsRefused) {
  QueueRig rig{{.message_bytes_max = 4}};
  EXPECT_EQ(rig.send("1234"), std::nullopt);
  EXPECT_EQ(rig.send("12345"), Errc::message_size_exceeded);
}

TEST(QueueEntity, StatusRefusesAndDetaches) {
  QueueRig rig;
  rig.send("a");
  rig.attach(one);
  auto settings = rig.settings;
  settings.status = EntityStatus::receive_disabled;
  rig.apply(UpdateSettings{rig.ask(), settings});
  EXPECT_EQ(rig.detached[one], Errc::entity_disabled);
  rig.attach(two);
  EXPECT_EQ(rig.refused[two], Errc::entity_disabled);
  EXPECT_EQ(rig.send("b"), std::nullopt);
  settings.status = EntityStatus::send_disabled;
  rig.apply(UpdateSettings{rig.ask(), settings});
  EXPECT_EQ(rig.send("c"), Errc::entity_disabled);
  EXPECT_EQ(rig.receive().body, "a");
  settings.status = EntityStatus::disabled;
  rig.apply(UpdateSettings{rig.ask(), settings});
  EXPECT_EQ(rig.send("c"), Errc::entity_disabled);
  const auto request = rig.ask();
  rig.apply(Peek{request});
  EXPECT_EQ(rig.refusal(request), Errc::entity_disabled);
}

TEST(QueueEntity, IdleQueueAsksToBeDeleted) {
  QueueRig rig{{.auto_delete_on_idle = 5min}};
  rig.advance(4min);
  rig.peek();
  rig.advance(4min);
  EXPECT_TRUE(rig.others.empty());
  rig.attach(one);
  rig.advance(1h);
  EXPECT_TRUE(rig.others.empty()) << "a link is activity";
  rig.apply(CloseReceiver{one});
  rig.advance(5min);
  EXPECT_EQ(rig.others.size(), 1u);
}

TEST(QueueEntity, TransferDeadLettersAreAPlaceOfTheirOwn) {
  QueueRig rig;
  const auto request = rig.ask();
  rig.apply(EnqueueTransferDeadLetter{request, QueueRig::message("a"), "why", "because"});
  EXPECT_TRUE(rig.answer<Accepted>(request));
  EXPECT_FALSE(rig.try_receive());
  EXPECT_EQ(rig.queue->counts().transfer_dead_letter, 1u);
  EXPECT_EQ(rig.receive(SubQueue::transfer_dead_letter).status.changes->dead_letter_reason, "why");
}

TEST(QueueEntity, PartitionIsInTheUpperBitsOfTheNumber) {
  QueueRig rig{{.partition = 3, .is_partitioned = true}};
  rig.send("a");
  const auto got = rig.receive();
  EXPECT_EQ(got.sequence, (SequenceNumber{3} << 48) + 1);
  EXPECT_EQ(got.status.partition, 3);
}

TEST(QueueEntity, SettingsHaveTheirRanges) {
  EXPECT_FALSE(check_settings({}));
  EXPECT_TRUE(check_settings({.lock_duration = 4s}));
  EXPECT_TRUE(check_settings({.lock_duration = 301s}));
  EXPECT_TRUE(check_settings({.default_time_to_live = 999ms}));
  EXPECT_TRUE(check_settings({.duplicate_window = 19s}));
  EXPECT_TRUE(check_settings({.duplicate_window = 169h}));
  EXPECT_TRUE(check_settings({.delivery_count_max = 0}));
  EXPECT_TRUE(check_settings({.delivery_count_max = 2001}));
  EXPECT_TRUE(check_settings({.auto_delete_on_idle = 299s}));
  EXPECT_TRUE(check_settings({.requires_session = true, .forward_to = "x"}));
  EXPECT_TRUE(check_update({}, {.requires_session = true}));
}

// The aim is 96 bytes per message, payloads apart; the measured number is printed.
TEST(QueueMemory, MillionMessagesTakeFewBytesEach) {
  struct NullJournal : RecordSink {
    Location append(Bytes, std::span<const Payload* const>) override { return {++last}; }
    void release(const StoredMessage&) override {}
    std::uint64_t last = 0;
  } journal;
  Random random{1};
  Instant now{std::chrono::milliseconds{1'700'000'000'000}};
  Queue queue{{.default_time_to_live = 24h}, random, now};
  Effects effects{journal};
  const Enqueue one_message{RequestId{1}, {QueueRig::message("x")}};
  constexpr std::size_t count = 1'000'000;
  for (std::size_t i = 0; i < count; ++i) {
    queue.apply(now, one_message, effects);
    if (i % 1000 == 999) queue.apply(now, Persisted{{journal.last}}, effects);
    effects.list.clear();
  }
  ASSERT_EQ(queue.counts().active, count);
  const double bytes = static_cast<double>(queue.index_bytes()) / count;
  std::printf("index: %.1f bytes per message (with a time to live)\n", bytes);
  RecordProperty("bytes_per_message", std::to_string(bytes));
  EXPECT_LE(bytes, 96.0);
}

}  // namespace
}  // namespace omnibus::broker
