// Time to live, scheduling, deferral, dead letters, duplicates [contract 5.4, 9.2, 9.4 - 9.6, 6.11].
#include "broker/queue_rig.hpp"

namespace omnibus::broker {
namespace {

TEST(QueueTime, EffectiveTimeToLiveIsTheSmallerOne) {
  QueueRig rig{{.default_time_to_live = 60s}};
  rig.send("short", {.ttl_ms = 1000});
  rig.send("long", {.ttl_ms = 600000});
  const auto all = rig.peek();
  EXPECT_EQ(all[0].status.expires, rig.now + 1s);
  EXPECT_EQ(all[1].status.expires, rig.now + 60s);
  rig.advance(1s);
  EXPECT_EQ(rig.receive().body, "long");
  EXPECT_EQ(rig.queue->counts().active, 1u);
}

TEST(QueueTime, ExpiredGoesToTheDeadLettersWhenAskedSo) {
  QueueRig rig{{.dead_letter_on_expiration = true}};
  rig.send("a", {.ttl_ms = 1000});
  rig.advance(999ms);
  EXPECT_EQ(rig.queue->counts().dead_letter, 0u);
  rig.advance(1ms);
  const auto dead = rig.receive(SubQueue::dead_letter);
  EXPECT_EQ(dead.status.changes->dead_letter_reason, "TTLExpiredException");
  EXPECT_EQ(dead.status.changes->dead_letter_description, "The message expired and was dead lettered.");
  rig.advance(24h);  // no time to live there
  EXPECT_EQ(rig.queue->counts().dead_letter, 1u);
}

TEST(QueueTime, LockedMessageExpiresWhenItsLockEnds) {
  QueueRig rig{{.lock_duration = 30s, .dead_letter_on_expiration = true}};
  rig.send("a", {.ttl_ms = 1000});
  rig.send("b", {.ttl_ms = 1000});
  const auto a = rig.receive();
  const auto b = rig.receive();
  rig.advance(10s);
  EXPECT_EQ(rig.complete(a.lock), std::nullopt);
  EXPECT_EQ(rig.settle(b.lock, Release{}), std::nullopt);
  EXPECT_FALSE(rig.try_receive());
  EXPECT_EQ(rig.receive(SubQueue::dead_letter).body, "b");
}

TEST(QueueTime, DeferredMessageExpiresWhenFetched) {
  QueueRig rig;
  rig.send("a", {.ttl_ms = 1000});
  const auto a = rig.receive();
  rig.settle(a.lock, Defer{});
  rig.advance(10s);
  EXPECT_EQ(rig.peek().size(), 1u);
  EXPECT_EQ(rig.receive_deferred(a.sequence), Errc::message_not_found);
  EXPECT_EQ(rig.peek().size(), 0u);
}

TEST(QueueTime, ScheduledMessageGetsANewNumberAndItsTimeToLiveStartsThen) {
  QueueRig rig;
  const Instant due = rig.now + 1h;
  const auto number = rig.schedule("later", due, {.ttl_ms = 1000});
  rig.send("now");
  auto all = rig.peek();
  EXPECT_EQ(all.at(0).status.state, MessageState::scheduled);
  EXPECT_EQ(rig.queue->counts().scheduled, 1u);
  EXPECT_EQ(rig.receive().body, "now");
  EXPECT_FALSE(rig.try_receive());
  rig.advance(1h);
  all = rig.peek();
  const auto& later = all.at(1);
  EXPECT_EQ(later.body, "later");
  EXPECT_GT(later.sequence, number);
  EXPECT_EQ(later.status.state, MessageState::active);
  EXPECT_EQ(later.status.enqueued, due);
  EXPECT_EQ(later.status.expires, due + 1s);
}

TEST(QueueTime, ScheduledByAnnotationInThePastIsImmediate) {
  QueueRig rig;
  rig.send("a", {.scheduled = rig.now - 1s});
  EXPECT_EQ(rig.receive().body, "a");
}

TEST(QueueTime, CancelIsAllOrNothing) {
  QueueRig rig;
  const auto a = rig.schedule("a", rig.now + 1h);
  const auto b = rig.schedule("b", rig.now + 1h);
  auto request = rig.ask();
  rig.apply(CancelScheduled{request, {a, 99}});
  EXPECT_EQ(rig.refusal(request), Errc::message_not_found);
  request = rig.ask();
  rig.apply(CancelScheduled{request, {a}});
  EXPECT_TRUE(rig.answer<Done>(request));
  request = rig.ask();
  rig.apply(CancelScheduled{request, {a}});
  EXPECT_EQ(rig.refusal(request), Errc::message_not_found);
  rig.advance(1h);
  EXPECT_EQ(rig.receive().body, "b");
  request = rig.ask();
  rig.apply(CancelScheduled{request, {b}});
  EXPECT_EQ(rig.refusal(request), Errc::message_not_found) << "it was activated";
}

TEST(QueueTime, DeferredStaysDeferredWhenAbandonedAndCounts) {
  QueueRig rig;
  rig.send("a");
  const auto a = rig.receive();
  rig.settle(a.lock, Defer{});
  EXPECT_FALSE(rig.try_receive());
  EXPECT_EQ(rig.queue->counts().deferred, 1u);
  Got got;
  EXPECT_EQ(rig.receive_deferred(a.sequence, &got), std::nullopt);
  EXPECT_EQ(got.attempts, 1u) << "deferring does not count";
  EXPECT_EQ(got.status.state, MessageState::deferred);
  EXPECT_EQ(rig.receive_deferred(a.sequence), Errc::message_not_found) << "locked";
  EXPECT_EQ(rig.abandon(got.lock), std::nullopt);
  EXPECT_FALSE(rig.try_receive());
  EXPECT_EQ(rig.receive_deferred(a.sequence, &got), std::nullopt);
  EXPECT_EQ(got.attempts, 2u);
  EXPECT_EQ(rig.complete(got.lock), std::nullopt);
  EXPECT_EQ(rig.receive_deferred(a.sequence), Errc::message_not_found);
}

TEST(QueueTime, DeferredIsReceivedAndDeletedAfterItsRemovalIsDurable) {
  QueueRig rig;
  rig.send("a");
  const auto a = rig.receive();
  rig.settle(a.lock, Defer{});
  rig.auto_sync = false;
  const auto request = rig.ask();
  rig.apply(ReceiveDeferred{
      request, SubQueue::active, ReceiveMode::receive_and_delete, ConnectionId{1}, {a.sequence}});
  EXPECT_FALSE(rig.answer<Messages>(request));
  rig.sync();
  EXPECT_EQ(rig.answer<Messages>(request)->messages.size(), 1u);
  EXPECT_TRUE(rig.journal.released.contains(1));
}

TEST(QueueTime, ApplicationDeadLettersWithItsOwnWordsTruncated) {
  QueueRig rig;
  rig.send("a");
  std::string long_text;
  for (int i = 0; i < 5000; ++i) long_text += "\xc3\xa9";
  rig.settle(rig.receive().lock, DeadLetter{"mine", long_text, {}});
  const auto dead = rig.receive(SubQueue::dead_letter);
  EXPECT_EQ(dead.status.changes->dead_letter_reason, "mine");
  EXPECT_EQ(dead.status.changes->dead_letter_description->size(), 8192u);
  rig.settle(dead.lock, Complete{});

  rig.send("b");
  rig.settle(rig.receive().lock, DeadLetter{});
  EXPECT_EQ(rig.receive(SubQueue::dead_letter).status.changes, nullptr) << "both are optional";
}

TEST(QueueTime, PropertiesThatGrowTooLargeDeadLetter) {
  QueueRig rig;
  rig.send("a");
  amqp::Encoder map;
  {
    auto scope = map.begin_map();
    map.put_string("big");
    map.put_string(std::string(70000, 'x'));
  }
  rig.settle(rig.receive().lock, Abandon{map.take()});
  const auto dead = rig.receive(SubQueue::dead_letter);
  EXPECT_EQ(dead.status.changes->dead_letter_reason, "HeaderSizeExceeded");
  EXPECT_EQ(dead.status.changes->dead_letter_description,
            "The size quota for this stream has been exceeded.");
}

TEST(QueueTime, DuplicatesAreDroppedWithinTheWindowAlsoAfterCompletionAndRestart) {
  QueueRig rig{{.requires_duplicate_detection = true, .duplicate_window = 60s}};
  rig.send("a", {.id = "1"});
  rig.complete(rig.receive().lock);
  EXPECT_EQ(rig.send("again", {.id = "1"}), std::nullopt);
  EXPECT_FALSE(rig.try_receive());
  rig.crash();
  rig.advance(59s);
  EXPECT_EQ(rig.send("again", {.id = "1"}), std::nullopt);
  EXPECT_FALSE(rig.try_receive());
  rig.advance(1s);
  rig.send("anew", {.id = "1"});
  EXPECT_EQ(rig.receive().body, "anew");
  rig.send("no id");
  rig.send("no id");
  EXPECT_EQ(rig.queue->counts().active, 3u);
}

TEST(QueueTime, DuplicatesInsideABatchAndScheduledOnes) {
  QueueRig rig{{.requires_duplicate_detection = true}};
  const auto request = rig.ask();
  rig.apply(Enqueue{request,
                    {QueueRig::message("a", {.id = "1"}), QueueRig::message("b", {.id = "1"}),
                     QueueRig::message("c", {.id = "2"})}});
  EXPECT_TRUE(rig.answer<Accepted>(request));
  EXPECT_EQ(rig.receive().body, "a");
  EXPECT_EQ(rig.receive().body, "c");
  EXPECT_NE(rig.schedule("d", rig.now + 1s, {.id = "2"}), 0);
  EXPECT_EQ(rig.queue->counts().scheduled, 0u);
}

TEST(QueueTime, BatchDeleteTakesOnlyAvailableOnesEnqueuedBefore) {
  QueueRig rig;
  rig.send("locked");
  const auto locked = rig.receive();
  rig.send("deferred");
  rig.settle(rig.receive().lock, Defer{});
  rig.schedule("scheduled", rig.now + 1h);
  rig.send("old 1");
  rig.send("old 2");
  rig.advance(1s);
  const Instant before = rig.now;
  rig.send("new");
  auto request = rig.ask();
  rig.apply(BatchDelete{request, SubQueue::active, 1, before, std::nullopt});
  EXPECT_EQ(rig.answer<Deleted>(request)->count, 1u);
  request = rig.ask();
  rig.apply(BatchDelete{request, SubQueue::active, 100, before, std::nullopt});
  EXPECT_EQ(rig.answer<Deleted>(request)->count, 1u);
  EXPECT_EQ(rig.receive().body, "new");
  EXPECT_EQ(rig.complete(locked.lock), std::nullopt);
  request = rig.ask();
  rig.apply(BatchDelete{request, SubQueue::active, 4001, before, std::nullopt});
  EXPECT_EQ(rig.refusal(request), Errc::argument_out_of_range);
}

TEST(QueueTime, PurgeRemovesEverything) {
  QueueRig rig;
  rig.send("a");
  rig.receive();
  rig.send("b");
  rig.schedule("c", rig.now + 1h);
  const auto request = rig.ask();
  rig.apply(Purge{request, SubQueue::active, 100});
  EXPECT_EQ(rig.answer<Deleted>(request)->count, 3u);
  EXPECT_TRUE(rig.peek().empty());
  EXPECT_EQ(rig.queue->counts().size_bytes, 0u);
}

TEST(QueueTime, PeekGoesOnBehindTheLastNumberAndStopsAtItsBytes) {
  QueueRig rig;
  for (const char* body : {"aaaa", "bbbb", "cccc"}) rig.send(body);
  rig.receive();
  EXPECT_EQ(rig.peek(SubQueue::active, 2).at(0).body, "bbbb");
  EXPECT_EQ(rig.peek(SubQueue::active, 1, 2).size(), 2u);
  EXPECT_TRUE(rig.peek(SubQueue::active, 4).empty());
  const auto request = rig.ask();
  rig.apply(Peek{request, SubQueue::active, 1, 10, 5, std::nullopt});
  EXPECT_EQ(rig.messages_of(request).size(), 1u);
  EXPECT_EQ(rig.peek().at(0).attempts, 1u) << "peeking is no delivery";
}

}  // namespace
}  // namespace omnibus::broker
