// What is counted for people who watch: each happening once, and nothing of it by a replay.
#include "broker/queue_rig.hpp"

namespace omnibus::broker {
namespace {

TEST(QueueTotals, EachWayOutIsCounted) {
  QueueRig rig{{.lock_duration = 30s, .delivery_count_max = 2}};
  for (const auto* body : {"completed", "abandoned", "released", "deferred", "dead", "lock"}) rig.send(body);
  EXPECT_EQ(rig.queue->totals().received, 6u);
  EXPECT_EQ(rig.complete(rig.receive().lock), std::nullopt);
  EXPECT_EQ(rig.abandon(rig.receive().lock), std::nullopt);
  const auto again = rig.receive();
  EXPECT_EQ(again.body, "abandoned");
  EXPECT_EQ(rig.abandon(again.lock), std::nullopt) << "its last attempt";
  EXPECT_EQ(rig.settle(rig.receive().lock, Release{}), std::nullopt);
  EXPECT_EQ(rig.receive(SubQueue::active, ReceiveMode::receive_and_delete).body, "released");
  const auto deferred = rig.receive();
  EXPECT_EQ(rig.settle(deferred.lock, Defer{}), std::nullopt);
  EXPECT_EQ(rig.settle(rig.receive().lock, DeadLetter{}), std::nullopt);
  rig.receive();
  rig.advance(31s);

  const Totals& totals = rig.queue->totals();
  EXPECT_EQ(totals.delivered, 8u);
  EXPECT_EQ(totals.completed, 2u) << "and the one that was received and deleted";
  EXPECT_EQ(totals.abandoned, 2u);
  EXPECT_EQ(totals.released, 1u);
  EXPECT_EQ(totals.deferred, 1u);
  EXPECT_EQ(totals.dead_lettered, 2u);
  EXPECT_EQ(totals.locks_expired, 1u);
  EXPECT_EQ(totals.expired, 0u);
  Got got;
  EXPECT_EQ(rig.receive_deferred(deferred.sequence, &got), std::nullopt);
  EXPECT_EQ(rig.complete(got.lock), std::nullopt);
  EXPECT_EQ(totals.delivered, 9u);
  EXPECT_EQ(totals.completed, 3u);
}

TEST(QueueTotals, ExpiredOnesCountWhetherTheyAreKeptOrNot) {
  for (const bool kept : {false, true}) {
    QueueRig rig{{.dead_letter_on_expiration = kept}};
    rig.send("a", {.ttl_ms = 1000});
    rig.advance(2s);
    EXPECT_EQ(rig.queue->totals().expired, 1u);
    EXPECT_EQ(rig.queue->totals().dead_lettered, kept ? 1u : 0u);
  }
}

TEST(QueueTotals, ADuplicateIsNotTakenIn) {
  QueueRig rig{{.requires_duplicate_detection = true}};
  rig.send("a", {.id = "1"});
  rig.send("a", {.id = "1"});
  EXPECT_EQ(rig.queue->totals().received, 1u);
  EXPECT_EQ(rig.queue->totals().duplicates, 1u);
}

// A session's lock is the lock of all that its receiver holds.
TEST(QueueTotals, ASessionsLockRunsOutForEachOfItsMessages) {
  QueueRig rig{{.lock_duration = 30s, .requires_session = true}};
  for (int i = 0; i < 3; ++i) rig.send("m", {.session = "s"});
  rig.attach_session(QueueRig::plain, "s");
  rig.credit(QueueRig::plain, 2);
  rig.advance(31s);
  EXPECT_EQ(rig.queue->totals().locks_expired, 2u);
}

TEST(QueueTotals, AReplayIsNoHappening) {
  QueueRig rig;
  rig.send("a");
  rig.send("b");
  EXPECT_EQ(rig.complete(rig.receive().lock), std::nullopt);
  rig.crash();
  EXPECT_EQ(rig.queue->counts().active, 1u);
  EXPECT_EQ(rig.queue->totals(), Totals{});
}

}  // namespace
}  // namespace omnibus::broker
