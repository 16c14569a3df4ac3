// The ordinary life of a store: what is sent is there, answers keep their order, memory keeps its bounds.
#include "store/store.hpp"

#include <gmock/gmock.h>

#include "store/store_rig.hpp"

namespace omnibus::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Store, SendIsAnsweredWhenDurableAndReceived) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create("orders");
  const auto request = rig.start_send(id, {"one"});
  rig.run();
  EXPECT_FALSE(rig.answered(request)) << "nothing was committed";
  rig.turn();
  EXPECT_EQ(rig.result(request), std::nullopt);
  const auto got = rig.receive(id);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->body, "one");
  EXPECT_EQ(rig.settle(id, got->effect.lock), std::nullopt);
  EXPECT_EQ(rig.store->counts(id)->active, 0u);
  EXPECT_EQ(rig.store->stats().journal.live_shares, 0u);
  EXPECT_EQ(rig.store->stats().journal.live_bytes, 0u);
  EXPECT_EQ(rig.store->stats().cache_records, 0u) << "dropped when released";
}

// Locks and unanswered settlements cost no sync of their own.
TEST(Store, WhatNobodyWaitsForSharesTheNextSync) {
  StoreRig rig{{.lazy = true}};
  rig.open();
  const auto id = rig.create("orders");
  const auto who = receiver(1);
  rig.attach(id, who);
  rig.credit(id, who, 10);
  rig.turn();
  rig.advance(1s);
  const std::uint64_t before = rig.store->stats().journal.syncs;
  rig.send(id, "one", 10);
  const auto got = rig.next(who);
  ASSERT_TRUE(got);
  rig.apply(id, broker::Settle{broker::RequestId::none, {got->effect.lock}, broker::Complete{}, {}, who});
  rig.turn();
  EXPECT_EQ(rig.store->stats().journal.syncs, before + 1) << "the send's";
  rig.advance(rig.settings.store.lazy_commit);
  EXPECT_EQ(rig.store->stats().journal.syncs, before + 2) << "nothing came by: lock and completion together";
  rig.advance(1s);
  EXPECT_EQ(rig.store->stats().journal.syncs, before + 2);
}

TEST(Store, RestartBringsEverythingBack) {
  for (const bool clean : {true, false}) {
    StoreRig rig;
    rig.open();
    const auto id = rig.create("orders", {.lock_duration = 30s});
    const auto other = rig.create("other", {.requires_session = true});
    for (int i = 0; i < 20; ++i) EXPECT_EQ(rig.send(id, fmt::format("m{}", i)), std::nullopt);
    rig.start_send(id, {"b1", "b2", "b3"});
    rig.turn();
    EXPECT_EQ(rig.send(other, "s", 0, "session"), std::nullopt);
    rig.settle(id, rig.receive(id)->effect.lock);
    const auto held = rig.receive(id);
    const std::string before = rig.store->describe(id);
    const auto infos = rig.store->partitions();
    const auto live = rig.store->stats().journal.live_bytes;
    if (clean)
      rig.restart();
    else
      rig.crash();
    EXPECT_EQ(rig.store->describe(id), before);
    EXPECT_EQ(rig.store->partitions(), infos);
    EXPECT_EQ(rig.store->stats().journal.live_bytes, live);
    EXPECT_EQ(rig.store->stats().journal.live_shares, 23u);
    EXPECT_EQ(rig.settle(id, held->effect.lock), std::nullopt) << "the lock was durable";
    EXPECT_EQ(rig.receive(id)->body, "m2");
    EXPECT_THAT(rig.owner->damages, IsEmpty());
    EXPECT_THAT(rig.peek(other), ElementsAre("s"));
  }
}

TEST(Store, CleanCloseLeavesLittleToReplay) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create("orders");
  for (int i = 0; i < 50; ++i) rig.send(id, fmt::format("m{}", i), 1000);
  rig.restart();
  EXPECT_LE(rig.store->stats().journal.bytes_since_checkpoint, 2000u);
  EXPECT_EQ(rig.store->counts(id)->active, 50u);

  rig.settings.store.closing_checkpoint_items_max = 10;
  rig.restart();
  rig.send(id, "more");
  rig.restart();
  EXPECT_EQ(rig.store->counts(id)->active, 51u) << "too much for a checkpoint: the log has it";
}

TEST(Store, UnknownPartitionIsNotFound) {
  StoreRig rig;
  rig.open();
  const auto request = rig.start_send(PartitionId{77}, {"x"});
  EXPECT_EQ(rig.result(request), Errc::not_found);
  rig.attach(PartitionId{77}, receiver(3));
  EXPECT_EQ(rig.owner->refused.find(receiver(3))->second.code, Errc::not_found);
}

// A cold message is read back; what was asked later by the same connection waits behind it, others do not.
TEST(Store, AnswersOfAConnectionKeepTheirOrderAcrossAColdRead) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create("orders");
  const auto warm = rig.create("warm");
  for (int i = 0; i < 3; ++i) rig.send(id, fmt::format("cold{}", i));
  rig.restart();  // nothing is in memory any more
  rig.send(warm, "warm0");
  rig.owner->order.clear();
  rig.attach(id, receiver(5, 1));
  rig.credit(id, receiver(5, 1), 2);
  rig.attach(warm, receiver(5, 2));
  rig.credit(warm, receiver(5, 2), 1);
  const auto same = rig.ask(5);
  rig.apply(warm, broker::Peek{same, broker::SubQueue::active, 0, 1, 1000, {}});
  const auto other = rig.ask(6);
  rig.apply(warm, broker::Peek{other, broker::SubQueue::active, 0, 1, 1000, {}});
  EXPECT_TRUE(rig.answered(other)) << "another connection waits for nobody";
  EXPECT_FALSE(rig.answered(same));
  EXPECT_EQ(rig.store->stats().answers_waiting, 5u);
  rig.turn();
  const auto attached = fmt::format("effect {}", broker::Effect{broker::ReceiverAttached{}}.index());
  EXPECT_THAT(
      rig.owner->order,
      ElementsAre(attached, fmt::format("messages of {}", static_cast<std::uint64_t>(other) & 0xffffffff),
                  "deliver 1", "deliver 2", attached, "deliver 1",
                  fmt::format("messages of {}", static_cast<std::uint64_t>(same) & 0xffffffff)));
  EXPECT_EQ(rig.next(receiver(5, 1))->body, "cold0");
  EXPECT_EQ(rig.next(receiver(5, 1))->body, "cold1");
  EXPECT_EQ(rig.next(receiver(5, 2))->body, "warm0");
  EXPECT_EQ(rig.store->stats().answers_waiting, 0u);
}

TEST(Store, MessagesOfOneRecordShareOneRead) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create("orders");
  std::vector<std::string> bodies;
  for (int i = 0; i < 50; ++i) bodies.push_back(fmt::format("b{}", i));
  rig.start_send(id, bodies);
  rig.turn();
  rig.restart();
  EXPECT_EQ(rig.peek(id), bodies);
  EXPECT_EQ(rig.store->stats().reads, 1u);
  for (const auto& body : bodies) {
    const auto got = rig.receive(id);
    EXPECT_EQ(got->body, body);
    EXPECT_EQ(rig.settle(id, got->effect.lock), std::nullopt);
  }
  EXPECT_EQ(rig.store->stats().reads, 1u) << "kept for the next ones";
  EXPECT_EQ(rig.store->stats().cache_records, 0u);
  EXPECT_EQ(rig.store->stats().journal.live_shares, 0u);
}

TEST(Store, ReadsUnderWayAreBounded) {
  StoreRig rig{{.store = {.reads_max = 2}}};
  rig.open();
  const auto id = rig.create("orders");
  for (int i = 0; i < 20; ++i) rig.send(id, fmt::format("m{}", i));
  rig.restart();
  rig.attach(id, receiver(1));
  rig.credit(id, receiver(1), 20);
  EXPECT_EQ(rig.store->stats().reads, 2u) << "the others wait their turn";
  EXPECT_EQ(rig.store->stats().reads_under_way, 20u);
  rig.turn();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(rig.next(receiver(1))->body, fmt::format("m{}", i));
}

TEST(Store, CacheStaysWithinItsBudgetAndColdMessagesAreReadBack) {
  StoreRig rig{{.store = {.cache_bytes_max = 64u << 10}}};
  rig.open();
  const auto id = rig.create("orders");
  for (int i = 0; i < 300; ++i) {
    rig.send(id, fmt::format("m{}", i), 1000);
    ASSERT_LE(rig.store->stats().cache_bytes, 64u << 10);
  }
  EXPECT_GT(rig.store->stats().cache_records, 40u);
  for (int i = 0; i < 300; ++i) {
    const auto got =
        rig.receive(id, broker::SubQueue::active,
                    i % 2 ? broker::ReceiveMode::peek_lock : broker::ReceiveMode::receive_and_delete);
    ASSERT_EQ(got->body, fmt::format("m{}", i));
    if (i % 2) rig.settle(id, got->effect.lock);
    ASSERT_LE(rig.store->stats().cache_bytes, 64u << 10);
  }
  EXPECT_GT(rig.store->stats().reads, 200u);
  EXPECT_EQ(rig.store->stats().journal.live_bytes, 0u);
  EXPECT_EQ(rig.store->stats().cache_records, 0u);
}

// The journal without a disk forgets a record when it is released: not before a receive-and-delete has it.
TEST(Store, EphemeralStoreServesColdMessagesToo) {
  StoreRig rig{{.store = {.cache_bytes_max = 2000}, .memory = true}};
  rig.open();
  const auto id = rig.create("orders");
  for (int i = 0; i < 10; ++i) rig.send(id, fmt::format("m{}", i), 1000);
  for (int i = 0; i < 10; ++i) {
    const auto got = rig.receive(id, broker::SubQueue::active, broker::ReceiveMode::receive_and_delete);
    ASSERT_EQ(got->body, fmt::format("m{}", i));
  }
  EXPECT_THAT(rig.owner->damages, IsEmpty());
  EXPECT_EQ(rig.store->stats().journal.live_shares, 0u);
  EXPECT_GT(rig.store->stats().reads, 5u);
}

TEST(Store, OldMessageMovesAlongAndIsReceived) {
  StoreRig rig{{.store = {.checkpoint_bytes = 16u << 10}, .journal = {.segment_bytes = 8u << 10}}};
  rig.open();
  const auto id = rig.create("orders");
  rig.start_send(id, {"old0", "old1", "old2"}, 500);
  rig.turn();
  rig.settle(id, rig.receive(id)->effect.lock);
  const auto deferred = rig.receive(id);
  ASSERT_EQ(rig.settle(id, deferred->effect.lock, broker::Defer{}), std::nullopt);
  const auto keep = rig.receive(id);
  ASSERT_EQ(rig.settle(id, keep->effect.lock, broker::DeadLetter{}), std::nullopt);
  std::size_t most = 0;
  for (int i = 0; i < 600; ++i) {
    rig.send(id, fmt::format("m{}", i), 700);
    rig.settle(id, rig.receive(id)->effect.lock);
    if (i > 100) most = std::max<std::size_t>(most, rig.store->stats().journal.segments);
  }
  EXPECT_LE(most, 14u) << "600 messages went through";
  EXPECT_EQ(rig.store->stats().journal.live_shares, 2u);
  EXPECT_THAT(rig.peek(id), ElementsAre("old1"));
  EXPECT_THAT(rig.peek(id, broker::SubQueue::dead_letter), ElementsAre("old2"));
  const std::string before = rig.store->describe(id);
  rig.crash();
  EXPECT_EQ(rig.store->describe(id), before);
  EXPECT_THAT(rig.peek(id), ElementsAre("old1"));
  EXPECT_EQ(rig.receive(id, broker::SubQueue::dead_letter)->body, "old2");
  EXPECT_EQ(rig.store->stats().journal.live_shares, 2u);
  EXPECT_THAT(rig.owner->damages, IsEmpty());
}

TEST(Store, CheckpointInSlicesEqualsTheLog) {
  StoreRig rig{{.store = {.checkpoint_bytes = 20'000, .checkpoint_items_per_turn = 3}}};
  rig.open();
  std::vector<PartitionId> ids;
  for (int i = 0; i < 5; ++i)
    ids.push_back(rig.create(fmt::format("q{}", i), {.requires_duplicate_detection = i == 2}));
  std::vector<broker::LockToken> locks;
  for (int i = 0; i < 300; ++i) {
    const auto id = ids[static_cast<std::size_t>(i) % ids.size()];
    rig.send(id, fmt::format("m{}", i), 100);
    if (i % 3 == 0) locks.push_back(rig.receive(id)->effect.lock);
    if (i % 7 == 0 && i > 0) rig.settle(ids[static_cast<std::size_t>(i) % ids.size()], locks.back());
    if (i == 150) {
      EXPECT_TRUE(rig.remove(ids[0]));
      ids.erase(ids.begin());
    }
    if (i == 200) ids.push_back(rig.create("late"));
  }
  rig.advance(100ms);
  EXPECT_GE(rig.store->stats().checkpoints, 2u);
  std::vector<std::string> before;
  for (const auto id : ids) before.push_back(rig.store->describe(id));
  const auto infos = rig.store->partitions();
  rig.crash();
  std::vector<std::string> after;
  for (const auto id : ids) after.push_back(rig.store->describe(id));
  EXPECT_EQ(after, before);
  EXPECT_EQ(rig.store->partitions(), infos);
  EXPECT_THAT(rig.owner->damages, IsEmpty());
}

// Work per turn does not grow with the partitions that nobody uses.
TEST(Store, HundredThousandIdlePartitionsCostNothingPerTurn) {
  StoreRig rig{{.journal = {.segment_bytes = 4u << 20, .preallocate = false}, .memory = true}};
  rig.open();
  constexpr int count = 100'000;
  int created = 0;
  for (int i = 0; i < count; ++i)
    rig.store->create_partition(rig.owner->clock, PartitionId::none, fmt::format("q{}", i), {},
                                [&](const Result<PartitionId>& id) { created += id.has_value(); });
  rig.turn();
  ASSERT_EQ(created, count);
  EXPECT_EQ(rig.store->next_deadline(), broker::never);
  // A turn over all of them would take 10^10 steps here.
  for (int i = 0; i < count; ++i) {
    rig.store->end_turn(rig.owner->clock);
    rig.store->wake(rig.owner->clock);
  }
  EXPECT_EQ(rig.send(PartitionId{count / 2}, "x"), std::nullopt);
  EXPECT_EQ(rig.receive(PartitionId{count / 2})->body, "x");
  EXPECT_EQ(rig.store->stats().partitions, static_cast<std::uint64_t>(count));
}

TEST(Store, TimePassesForTheQueueWhoseTimeHasCome) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create("locks", {.lock_duration = 10s});
  rig.create("idle");
  rig.send(id, "x");
  const auto got = rig.receive(id);
  EXPECT_EQ(rig.store->next_deadline(), got->effect.locked_until);
  EXPECT_EQ(rig.owner->deadline, *got->effect.locked_until) << "the owner is told";
  rig.advance(9s);
  EXPECT_FALSE(rig.receive(id));
  rig.advance(1s);
  EXPECT_EQ(rig.receive(id)->effect.status.delivery_count, 1u);
}

TEST(StoreCatalogue, UpdateIsDurableAndDetachesWhomItForbids) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create("orders");
  rig.attach(id, receiver(1));
  auto settings = rig.store->find(id)->settings;
  settings.delivery_count_max = 3;
  settings.status = broker::EntityStatus::receive_disabled;
  bool done = false;
  rig.store->update_partition(rig.owner->clock, id, settings,
                              [&](const Result<void>& r) { done = r.has_value(); });
  EXPECT_FALSE(done);
  rig.turn();
  EXPECT_TRUE(done);
  EXPECT_EQ(rig.owner->detached.find(receiver(1))->second.code, Errc::entity_disabled);
  rig.crash();
  EXPECT_EQ(rig.store->find(id)->settings, settings);
  EXPECT_EQ(rig.store->find(id)->name, "orders");
  rig.attach(id, receiver(2));
  EXPECT_EQ(rig.owner->refused.find(receiver(2))->second.code, Errc::entity_disabled);

  settings.requires_session = true;
  std::optional<Errc> code;
  rig.store->update_partition(rig.owner->clock, id, settings,
                              [&](const Result<void>& r) { code = r.error().code; });
  EXPECT_EQ(code, Errc::not_allowed);
  rig.store->create_partition(rig.owner->clock, id, "again", {},
                              [&](const Result<PartitionId>& r) { code = r.error().code; });
  EXPECT_EQ(code, Errc::entity_already_exists);
}

TEST(StoreCatalogue, DeletedPartitionGivesItsSpaceBack) {
  StoreRig rig{{.journal = {.segment_bytes = 8u << 10}}};
  rig.open();
  const auto id = rig.create("big");
  const auto other = rig.create("other");
  rig.attach(id, receiver(4));
  for (int i = 0; i < 100; ++i) rig.send(id, fmt::format("m{}", i), 1000);
  rig.send(other, "stays");
  const auto waits = rig.start_send(id, {"last"});
  EXPECT_TRUE(rig.remove(id));
  EXPECT_EQ(rig.result(waits), std::nullopt) << "what was sent before is answered";
  const auto gone = rig.owner->detached.find(receiver(4));
  ASSERT_NE(gone, rig.owner->detached.end());
  EXPECT_EQ(gone->second.code, Errc::not_found);
  EXPECT_EQ(gone->second.detail, "The messaging entity 'big' could not be found");
  EXPECT_EQ(rig.send(id, "x"), Errc::not_found);
  rig.advance(1s);
  EXPECT_EQ(rig.store->stats().journal.live_shares, 1u);
  rig.store->checkpoint_soon(rig.owner->clock);
  rig.advance(1s);
  EXPECT_LE(rig.store->stats().journal.segments, 3u);
  rig.crash();
  EXPECT_THAT(rig.store->partitions(), SizeIs(1));
  EXPECT_THAT(rig.peek(other), ElementsAre("stays"));
  EXPECT_THAT(rig.owner->damages, IsEmpty());
  EXPECT_NE(rig.create("next"), id) << "ids are not used twice";
}

TEST(StoreCatalogue, IdlePartitionIsDeletedAndTold) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create("idle", {.auto_delete_on_idle = 5min});
  rig.send(id, "x");
  rig.advance(5min);
  ASSERT_THAT(rig.owner->gone, SizeIs(1));
  EXPECT_EQ(rig.owner->gone[0].second, "idle");
  EXPECT_THAT(rig.store->partitions(), IsEmpty());
  rig.crash();
  EXPECT_THAT(rig.store->partitions(), IsEmpty());
}

// What its other partitions do, in other stores, only the owner knows.
TEST(StoreCatalogue, IdlePartitionOfSeveralIsOnlyTold) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create(
      "idle", {.auto_delete_on_idle = 5min, .partition = 3, .is_partitioned = true, .partition_count = 16});
  rig.send(id, "x");
  rig.advance(5min);
  EXPECT_THAT(rig.owner->idle, ElementsAre(id));
  rig.advance(1min);
  EXPECT_THAT(rig.owner->idle, ElementsAre(id, id)) << "told again while it is so";
  EXPECT_THAT(rig.owner->gone, IsEmpty());
  EXPECT_THAT(rig.peek(id), ElementsAre("x"));
}

TEST(StoreForward, MessageMovesToAnotherPartitionOfTheStore) {
  StoreRig rig;
  rig.open();
  const auto target = rig.create("target");
  const auto source = rig.create("source", {.forward_to = "target"});
  rig.owner->route = [&](ForwardRequest& request) -> Result<std::optional<PartitionId>> {
    EXPECT_EQ(request.target, "target");
    return std::optional{target};
  };
  rig.send(source, "x");
  const auto got = rig.receive(target);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->body, "x");
  EXPECT_EQ(got->effect.status.changes->enqueue_sequence, 1);
  EXPECT_EQ(rig.store->counts(source)->active, 0u);
  EXPECT_EQ(rig.store->stats().journal.live_shares, 1u);

  auto closed = rig.store->find(target)->settings;
  closed.status = broker::EntityStatus::send_disabled;
  rig.store->update_partition(rig.owner->clock, target, closed, [](const Result<void>&) {});
  rig.send(source, "y");
  EXPECT_THAT(rig.peek(source, broker::SubQueue::dead_letter), ElementsAre("y"));
}

// After a start the owner does not know at once where targets are: what it would call missing only waits.
TEST(StoreForward, WaitsUntilTheOwnerKnowsTheTargets) {
  RigSettings settings;
  settings.store.errands_wait = true;
  StoreRig rig{settings};
  rig.open();
  const auto target = rig.create("target");
  const auto source = rig.create("source", {.forward_to = "target"});
  rig.send(source, "x");
  EXPECT_EQ(rig.store->counts(source)->active, 1u);
  EXPECT_EQ(rig.store->counts(source)->dead_letter, 0u);
  rig.owner->route = [&](ForwardRequest&) -> Result<std::optional<PartitionId>> {
    return std::optional{target};
  };
  rig.store->start_errands(rig.owner->clock);
  rig.turn();
  EXPECT_THAT(rig.peek(target), ElementsAre("x"));
  rig.send(source, "y");
  EXPECT_THAT(rig.peek(target), ElementsAre("x", "y"));
}

TEST(StoreForward, OwnerTakesWhatGoesElsewhere) {
  StoreRig rig;
  rig.open();
  const auto source = rig.create("source", {.forward_to = "far away"});
  std::vector<ForwardRequest> taken;
  rig.owner->route = [&](ForwardRequest& request) -> Result<std::optional<PartitionId>> {
    taken.push_back(std::move(request));
    return std::optional<PartitionId>{};
  };
  rig.send(source, "one");
  rig.send(source, "two");
  ASSERT_THAT(taken, SizeIs(2));
  Random random{1};
  const auto command = forward_command(taken[0], rig.ask(), random);
  ASSERT_TRUE(command);
  EXPECT_EQ(command->forwarded->sequence, 1);
  EXPECT_EQ(command->forwarded->hops, 1);
  EXPECT_EQ(RecordingStoreOwner::body_of(command->messages.at(0).bytes), "one");
  rig.store->forwarded(rig.owner->clock, source, taken[0].sequence, std::nullopt);
  rig.store->forwarded(rig.owner->clock, source, taken[1].sequence, Error{Errc::not_found, "no such queue"});
  rig.turn();
  EXPECT_EQ(rig.store->counts(source)->active, 0u);
  EXPECT_THAT(rig.peek(source, broker::SubQueue::dead_letter), ElementsAre("two"));
}

}  // namespace
}  // namespace omnibus::store
