// The world goes wrong: syncs fail, the disk fills up, bytes rot, somebody else has the store.
#include <gmock/gmock.h>

#include <algorithm>

#include "store/store_rig.hpp"

namespace omnibus::store {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(StoreFailure, FailedSyncRefusesWhatWaitedAndTheStoreComesBackByItself) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create("orders");
  rig.send(id, "kept");
  rig.disk->fail_next_sync();
  const auto lost = rig.start_send(id, {"lost"});
  rig.turn();
  EXPECT_EQ(rig.result(lost), Errc::internal_error);
  EXPECT_EQ(rig.store->state(), StoreState::failed);
  EXPECT_EQ(rig.owner->states.back().first, StoreState::failed);
  EXPECT_THAT(rig.owner->states.back().second, HasSubstr("io"));
  const auto meanwhile = rig.start_send(id, {"no"});
  EXPECT_EQ(rig.result(meanwhile), Errc::server_busy);
  const auto& refusal = std::get<broker::Refused>(rig.owner->answers.at(meanwhile).effect).error.detail;
  EXPECT_THAT(refusal, HasSubstr("the store of 'orders' is not available: io"));
  EXPECT_LE(rig.owner->deadline, rig.owner->clock + rig.settings.store.reopen_first)
      << "the owner is told when";

  rig.advance(rig.settings.store.reopen_first);
  EXPECT_EQ(rig.store->state(), StoreState::open);
  EXPECT_EQ(rig.send(id, "again"), std::nullopt);
  const auto bodies = rig.peek(id);
  EXPECT_EQ(bodies.front(), "kept");
  EXPECT_EQ(bodies.back(), "again");
  EXPECT_EQ(rig.store->stats().recoveries, 2u);
}

TEST(StoreFailure, PlainReceiversGoOnWithTheCreditTheyHaveLeft) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create("orders");
  const auto who = receiver(1);
  rig.attach(id, who);
  rig.credit(id, who, 5);
  for (int i = 0; i < 2; ++i) rig.send(id, fmt::format("m{}", i));
  EXPECT_EQ(rig.next(who)->body, "m0");
  EXPECT_EQ(rig.next(who)->body, "m1");
  rig.disk->fail_next_sync();
  rig.start_send(id, {"lost"});
  rig.turn();
  ASSERT_EQ(rig.store->state(), StoreState::failed);

  // While it is away links come, go, ask for more and drain.
  rig.attach(id, receiver(2));
  EXPECT_TRUE(rig.owner->attach_answers.contains(receiver(2)));
  rig.credit(id, receiver(2), 1);
  rig.attach(id, receiver(3));
  rig.credit(id, receiver(3), 4, true);
  EXPECT_EQ(rig.owner->drained[receiver(3)], 4u) << "nothing is there to be delivered";
  rig.attach(id, receiver(4));
  rig.apply(id, broker::CloseReceiver{receiver(4)});

  rig.advance(10s);
  ASSERT_EQ(rig.store->state(), StoreState::open);
  EXPECT_THAT(rig.owner->detached, IsEmpty());
  EXPECT_EQ(rig.store->counts(id)->receivers, 3u);
  for (int i = 0; i < 8; ++i) rig.send(id, fmt::format("n{}", i));
  EXPECT_EQ(rig.owner->deliveries[who].size(), 3u) << "five were granted, two came before";
  EXPECT_EQ(rig.owner->deliveries[receiver(2)].size(), 1u);
  // The link counts on as if nothing had been.
  rig.credit(id, who, 1);
  rig.turn();
  EXPECT_EQ(rig.owner->deliveries[who].size(), 4u);
  rig.credit(id, who, 10, true);
  rig.turn();
  EXPECT_EQ(rig.owner->drained[who], 16u);
}

TEST(StoreFailure, ReceiversPastTheLimitAreRefused) {
  StoreRig rig{{.store = {.receivers_max = 2}}};
  rig.open();
  const auto id = rig.create("orders");
  for (std::uint32_t i = 1; i <= 3; ++i) rig.attach(id, receiver(i));
  EXPECT_EQ(rig.store->counts(id)->receivers, 2u);
  EXPECT_TRUE(rig.owner->attach_answers.contains(receiver(2)));
  EXPECT_FALSE(rig.owner->attach_answers.contains(receiver(3)));
  EXPECT_EQ(rig.owner->refused.find(receiver(3))->second.code, Errc::resource_limit_exceeded);
  rig.apply(id, broker::CloseReceiver{receiver(1)});
  rig.attach(id, receiver(4));
  EXPECT_TRUE(rig.owner->attach_answers.contains(receiver(4))) << "there is room again";
}

// What links to partitioned entities rely on: a partition that is away has nothing, and says so at once when
// it is back and has something.
TEST(StoreFailure, ReceiversThatWantToBeToldAreToldWhenTheStoreIsBack) {
  for (const bool by_administration : {false, true}) {
    StoreRig rig;
    rig.open();
    const auto id = rig.create("orders");
    const auto who = receiver(1);
    broker::AttachReceiver attach{who, broker::ConnectionId{1}, {}, broker::ReceiveMode::peek_lock, {}};
    attach.credit = broker::AttachReceiver::Credit::told;
    rig.apply(id, attach);
    rig.send(id, "kept");
    rig.send(id, "too");
    EXPECT_EQ(rig.owner->told[who], 1);
    rig.credit(id, who, 1, true);
    EXPECT_EQ(rig.next(who)->body, "kept");
    EXPECT_EQ(rig.owner->told[who], 2) << "there is more";

    if (by_administration) {
      rig.store->fail(rig.owner->clock, "test");
    } else {
      rig.disk->fail_next_sync();
      rig.start_send(id, {"lost"});
    }
    rig.turn();
    ASSERT_EQ(rig.store->state(), StoreState::failed);
    rig.credit(id, who, 3, true);
    EXPECT_EQ(rig.owner->drained[who], 4u) << "lent credit comes back";
    EXPECT_EQ(rig.owner->told[who], 2);

    if (by_administration) rig.store->restore(rig.owner->clock);
    rig.advance(10s);
    ASSERT_EQ(rig.store->state(), StoreState::open);
    EXPECT_EQ(rig.owner->told[who], 3);
    rig.credit(id, who, 2, true);
    rig.turn();  // it may have to be read back
    EXPECT_TRUE(
        std::ranges::any_of(rig.owner->deliveries[who], [](const auto& one) { return one.body == "too"; }));
    EXPECT_GE(rig.owner->drained[who], 6u) << "the link counts on as if nothing had been";
  }
}

TEST(StoreFailure, AReceiverOfSeveralPartitionsGoesOnWithTheCreditItHasLeft) {
  for (const bool by_administration : {false, true})
    for (const auto mode : {broker::ReceiveMode::peek_lock, broker::ReceiveMode::receive_and_delete}) {
      StoreRig rig;
      rig.open();
      const auto first = rig.create("orders", {.partition = 0, .is_partitioned = true, .partition_count = 2});
      const auto second =
          rig.create("orders", {.partition = 1, .is_partitioned = true, .partition_count = 2});
      const auto who = receiver(1);
      broker::AttachReceiver attach{who, broker::ConnectionId{1}, {}, mode, {}};
      attach.credit = broker::AttachReceiver::Credit::shared;
      attach.others = {static_cast<std::uint32_t>(second)};
      rig.apply(first, attach);
      EXPECT_EQ(rig.owner->attach_answers.size(), 1u);
      rig.credit(first, who, 5);
      rig.send(first, "a");
      rig.send(second, "b");
      rig.turn();
      EXPECT_EQ(rig.owner->deliveries[who].size(), 2u);

      // One is on its way out when the store goes.
      rig.start_send(second, {"c"});
      rig.store->end_turn(rig.owner->clock);
      if (by_administration) {
        rig.store->fail(rig.owner->clock, "test");
      } else {
        rig.disk->fail_next_sync();
      }
      rig.turn();
      ASSERT_EQ(rig.store->state(), StoreState::failed);
      EXPECT_EQ(rig.send(first, "busy"), Errc::server_busy);
      if (by_administration) rig.store->restore(rig.owner->clock);
      rig.advance(10s);
      ASSERT_EQ(rig.store->state(), StoreState::open);
      const std::size_t before = rig.owner->deliveries[who].size();
      EXPECT_LE(before, 3u);
      for (int i = 0; i < 4; ++i) rig.send(i % 2 == 0 ? first : second, "later");
      rig.turn();
      EXPECT_EQ(rig.owner->deliveries[who].size(), 5u) << "its credit, no less and no more";
      rig.credit(first, who, 3, true);
      rig.turn();
      rig.turn();
      EXPECT_EQ(rig.owner->drained[who], 8u) << "the link counts on as if nothing had been";
      EXPECT_TRUE(rig.owner->detached.empty());
    }
}

// The disk has not answered yet when the store is switched off and on: what it brings then uses the credit of
// before.
TEST(StoreFailure, WhatIsOnItsWayOutlastsASwitch) {
  using Credit = broker::AttachReceiver::Credit;
  for (const Credit kind : {Credit::own, Credit::shared})
    for (const bool drains : {false, true}) {
      StoreRig rig;
      rig.open();
      const auto id = rig.create("orders");
      const auto who = receiver(1);
      broker::AttachReceiver attach{
          who, broker::ConnectionId{1}, {}, broker::ReceiveMode::receive_and_delete, {}};
      attach.credit = kind;
      rig.apply(id, attach);
      for (const auto* body : {"a", "b", "c", "d"}) rig.send(id, body);
      rig.credit(id, who, 1, drains);
      rig.store->end_turn(rig.owner->clock);
      rig.store->fail(rig.owner->clock, "test");
      rig.store->restore(rig.owner->clock);
      ASSERT_TRUE(rig.owner->deliveries[who].empty());
      EXPECT_TRUE(rig.store->comes_back());
      rig.turn();
      rig.turn();
      EXPECT_EQ(rig.store->state(), StoreState::open);
      EXPECT_EQ(rig.owner->deliveries[who].size(), 1u);
      EXPECT_EQ(rig.owner->drained[who], drains ? 1u : 0u);
      for (std::uint64_t more = 2; more <= 3; ++more) {
        rig.credit(id, who, 1, true);
        rig.turn();
        EXPECT_EQ(rig.owner->deliveries[who].size(), more);
        EXPECT_EQ(rig.owner->drained[who], more);
      }
    }
}

// It fails, or is switched off again, before it is back.
TEST(StoreFailure, ASwitchMayBeOvertaken) {
  for (const bool fails : {false, true}) {
    StoreRig rig;
    rig.open();
    const auto id = rig.create("orders");
    if (fails) rig.disk->fail_next_sync();
    rig.start_send(id, {"x"});
    rig.store->fail(rig.owner->clock, "test");
    rig.store->restore(rig.owner->clock);
    ASSERT_TRUE(rig.store->comes_back());
    if (!fails) rig.store->fail(rig.owner->clock, "again");
    rig.turn();
    EXPECT_FALSE(rig.store->comes_back());
    EXPECT_EQ(rig.store->state(), StoreState::failed);
    rig.advance(10s);
    EXPECT_EQ(rig.store->state(), fails ? StoreState::open : StoreState::failed) << "it opens by itself";
    if (!fails) rig.store->restore(rig.owner->clock);
    EXPECT_EQ(rig.send(id, "y"), std::nullopt);
  }
}

TEST(StoreFailure, AReceiverOfSeveralPartitionsIsGoneWhenOneOfThemIs) {
  StoreRig rig;
  rig.open();
  const auto first = rig.create("orders", {.partition = 0, .is_partitioned = true, .partition_count = 2});
  const auto second = rig.create("orders", {.partition = 1, .is_partitioned = true, .partition_count = 2});
  const auto who = receiver(1);
  broker::AttachReceiver attach{who, broker::ConnectionId{1}, {}, broker::ReceiveMode::peek_lock, {}};
  attach.credit = broker::AttachReceiver::Credit::shared;
  attach.others = {static_cast<std::uint32_t>(second)};
  rig.apply(first, attach);
  rig.credit(first, who, 5);
  EXPECT_TRUE(rig.remove(second));
  EXPECT_EQ(rig.owner->detached.count(who), 1u);
  rig.send(first, "x");
  EXPECT_TRUE(rig.owner->deliveries[who].empty());
  rig.apply(first, broker::CloseReceiver{who});
}

TEST(StoreFailure, SessionsEndWithTheStore) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create("orders", {.requires_session = true});
  rig.send(id, "x", 0, "s1");
  const auto holds = receiver(1), waits = receiver(2), late = receiver(3);
  const auto attach = [&](broker::ReceiverId who, bool named) {
    broker::AttachReceiver command{who, broker::ConnectionId{1}, {}, {}, {}};
    if (named)
      command.session = broker::AttachReceiver::NamedSession{"s1"};
    else
      command.session = broker::AttachReceiver::NextSession{rig.owner->clock + 60s};
    rig.apply(id, command);
  };
  attach(holds, true);
  attach(waits, false);
  rig.turn();
  EXPECT_EQ(rig.owner->sessions[holds], "s1");
  rig.disk->fail_next_sync();
  rig.start_send(id, {"lost"}, 0, "s1");
  rig.turn();
  EXPECT_EQ(rig.owner->detached.find(holds)->second.code, Errc::session_lock_lost);
  EXPECT_EQ(rig.owner->refused.find(waits)->second.code, Errc::server_busy);
  attach(late, true);
  EXPECT_EQ(rig.owner->refused.find(late)->second.code, Errc::server_busy);
  rig.advance(10s);
  attach(receiver(9), true);
  rig.turn();
  EXPECT_EQ(rig.owner->sessions[receiver(9)], "s1") << "nobody holds it any more";
}

TEST(StoreFailure, EachOfSeveralSinglesIsRefused) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create("orders");
  rig.store->fail(rig.owner->clock, "told to");
  const auto first = rig.ask();
  const auto second = rig.ask();
  rig.apply(id, broker::EnqueueEach{{first, second}, {broker::IncomingMessage{}, broker::IncomingMessage{}}});
  EXPECT_EQ(rig.result(first), Errc::server_busy);
  EXPECT_EQ(rig.result(second), Errc::server_busy);
}

TEST(StoreFailure, ChangesOfTheCatalogueThatWaitAreUnknown) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create("orders");
  rig.disk->fail_next_sync();
  std::optional<Errc> code;
  rig.store->create_partition(rig.owner->clock, PartitionId::none, "late", {},
                              [&](const Result<PartitionId>& made) { code = made.error().code; });
  rig.turn();
  EXPECT_EQ(code, Errc::internal_error);
  rig.store->create_partition(rig.owner->clock, PartitionId::none, "later", {},
                              [&](const Result<PartitionId>& made) { code = made.error().code; });
  EXPECT_EQ(code, Errc::server_busy);
  rig.disk->crash();  // the batch never reached the disk
  rig.advance(10s);
  EXPECT_TRUE(rig.store->find(id));
}

TEST(StoreFailure, ItTriesAgainEverLessOften) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create("orders");
  rig.send(id, "x");
  rig.disk->fail_writes(true);
  rig.start_send(id, {"y"});
  rig.turn();
  ASSERT_EQ(rig.store->state(), StoreState::failed);
  rig.advance(5min);
  const auto tries = std::count_if(rig.owner->states.begin(), rig.owner->states.end(),
                                   [](const auto& one) { return one.first == StoreState::opening; });
  EXPECT_GT(tries, 8);
  EXPECT_LT(tries, 25);
  rig.disk->fail_writes(false);
  rig.advance(30s);
  EXPECT_EQ(rig.store->state(), StoreState::open);
  EXPECT_THAT(rig.peek(id), Contains("x"));
}

TEST(StoreFailure, StoreThatSomebodyElseHasIsNotTriedAgain) {
  StoreRig rig;
  rig.open();
  journal::StepRunner io;
  RecordingStoreOwner other_owner;
  Store other{rig.settings.store, other_owner, [&](journal::JournalOwner& of) {
                return std::make_unique<journal::FileJournal>(
                    rig.disk->folder(), rig.settings.journal,
                    journal::Runners{io.runner(), io.runner(), io.runner(), io.runner()}, of);
              }};
  other.open();
  while (io.step()) {
  }
  EXPECT_EQ(other.state(), StoreState::failed);
  EXPECT_THAT(other_owner.states.back().second, HasSubstr("in_use"));
  EXPECT_EQ(other.next_deadline(), broker::never);
}

TEST(StoreFailure, FullDiskRefusesSendsAndSettlementsGoOn) {
  StoreRig rig{{.journal = {.segment_bytes = 32u << 10}}};
  rig.open();
  const auto id = rig.create("orders");
  rig.disk->set_capacity(rig.disk->bytes_used() + (80u << 10));
  int sent = 0;
  while (rig.owner->space.empty() && sent < 1000) {
    EXPECT_EQ(rig.send(id, fmt::format("m{}", sent), 900), std::nullopt);
    ++sent;
  }
  ASSERT_THAT(rig.owner->space, ElementsAre(false));
  const auto refused = rig.start_send(id, {"no"});
  EXPECT_EQ(rig.result(refused), Errc::server_busy);
  EXPECT_THAT(std::get<broker::Refused>(rig.owner->answers.at(refused).effect).error.detail,
              HasSubstr("the disk is full"));
  EXPECT_TRUE(rig.store->stats().full);
  for (int i = 0; i < sent; ++i) {
    const auto got = rig.receive(id);
    ASSERT_TRUE(got) << i;
    EXPECT_EQ(got->body, fmt::format("m{}", i));
    EXPECT_EQ(rig.settle(id, got->effect.lock), std::nullopt);
  }
  rig.disk->set_capacity(UINT64_MAX);
  rig.advance(rig.settings.store.space_probe);
  EXPECT_TRUE(rig.owner->space.back());
  EXPECT_EQ(rig.send(id, "yes"), std::nullopt);
  EXPECT_THAT(rig.peek(id), ElementsAre("yes"));
  EXPECT_EQ(rig.store->stats().recoveries, 1u) << "it never failed";
}

// Not even a settlement fits any more: the store closes, and opens when there is room.
TEST(StoreFailure, DiskWithoutAnyRoomClosesTheStore) {
  StoreRig rig{{.journal = {.segment_bytes = 8u << 10}}};
  rig.open();
  const auto id = rig.create("orders", {.lock_duration = 5min, .delivery_count_max = 2000});
  for (int i = 0; i < 6; ++i) rig.send(id, fmt::format("m{}", i), 900);
  rig.disk->set_capacity(rig.disk->bytes_used());
  const auto who = receiver(1);
  rig.attach(id, who);
  for (int i = 0; i < 400 && rig.store->state() == StoreState::open; ++i) {
    rig.credit(id, who, 1);
    rig.turn();
    while (auto got = rig.next(who)) {
      rig.apply(id, broker::Settle{broker::RequestId::none, {got->effect.lock}, broker::Abandon{}, {}, who});
      rig.turn();
    }
  }
  EXPECT_EQ(rig.store->state(), StoreState::failed);
  EXPECT_EQ(rig.send(id, "no"), Errc::server_busy);
  rig.disk->set_capacity(UINT64_MAX);
  rig.advance(30s);
  EXPECT_EQ(rig.store->state(), StoreState::open);
  rig.advance(5min);
  EXPECT_EQ(rig.peek(id).size() + rig.peek(id, broker::SubQueue::dead_letter).size(), 6u);
}

TEST(StoreFailure, UnreadableMessageIsReportedOnceAndPutAside) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create("orders");
  rig.send(id, "rotten", 500);
  rig.send(id, "good", 500);
  rig.crash();
  // The bytes on the platter change after recovery has read them.
  for (const auto& name : rig.disk->names())
    if (auto* bytes = rig.disk->contents(name)) {
      const std::string text(bytes->begin(), bytes->end());
      const auto at = text.find("  rotten");
      if (at != std::string::npos) (*bytes)[at] ^= 0x40;
    }
  rig.attach(id, receiver(1));
  rig.credit(id, receiver(1), 2);
  rig.turn();
  EXPECT_EQ(rig.next(receiver(1))->body, "(unreadable)") << "it counts against the credit, in its place";
  EXPECT_EQ(rig.next(receiver(1))->body, "good");
  EXPECT_THAT(rig.owner->damages, SizeIs(1));
  EXPECT_EQ(rig.store->counts(id)->dead_letter, 1u);
  EXPECT_EQ(rig.store->counts(id)->active, 1u);
  const auto dead = rig.receive(id, broker::SubQueue::dead_letter);
  EXPECT_EQ(dead->body, "(unreadable)");
  EXPECT_EQ(dead->effect.status.changes->dead_letter_reason, "StoreDamaged");
  EXPECT_FALSE(rig.receive(id, broker::SubQueue::dead_letter)) << "it does not go round there either";
  EXPECT_THAT(rig.owner->damages, SizeIs(1)) << "told once";
  EXPECT_EQ(rig.peek(id, broker::SubQueue::dead_letter).at(0), "(unreadable)");
}

TEST(StoreFailure, DamagedRecordIsReportedAndTheRestIsServed) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create("orders");
  for (const auto* body : {"first", "broken", "last"}) rig.send(id, body, 200);
  for (const auto& name : rig.disk->names())
    if (auto* bytes = rig.disk->contents(name)) {
      const std::string text(bytes->begin(), bytes->end());
      const auto at = text.find("  broken");
      if (at != std::string::npos) (*bytes)[at] ^= 0x40;
    }
  rig.disk->kill();
  rig.start();
  rig.open();
  EXPECT_THAT(rig.owner->damages, SizeIs(1));
  EXPECT_EQ(rig.owner->damages[0].partition, static_cast<std::uint32_t>(id));
  EXPECT_THAT(rig.peek(id), ElementsAre("first", "last"));
}

// The last batch, damaged after it was durable, cannot be told from one that was never written to its end.
TEST(StoreFailure, WhatIsCutOffAtTheEndIsTold) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create("orders");
  for (const auto* body : {"first", "broken"}) rig.send(id, body, 200);
  for (const auto& name : rig.disk->names())
    if (auto* bytes = rig.disk->contents(name)) {
      const auto at = std::string(bytes->begin(), bytes->end()).find("  broken");
      if (at != std::string::npos) (*bytes)[at] ^= 0x40;
    }
  rig.disk->kill();
  rig.start();
  rig.open();
  EXPECT_THAT(rig.peek(id), ElementsAre("first"));
  ASSERT_THAT(rig.owner->cuts, SizeIs(1));
  EXPECT_GT(rig.owner->cuts[0].second, 200u);
  EXPECT_EQ(rig.store->stats().cut_bytes, rig.owner->cuts[0].second);
  rig.crash();
  EXPECT_THAT(rig.owner->cuts, IsEmpty()) << "it is gone";
}

TEST(StoreFailure, FailingCheckpointIsToldAndTriedAgain) {
  StoreRig rig;
  rig.open();
  const auto id = rig.create("orders");
  rig.send(id, "x");
  rig.disk->set_capacity(rig.disk->bytes_used());
  rig.store->checkpoint_soon(rig.owner->clock);
  rig.advance(1s);
  ASSERT_THAT(rig.owner->checkpoints, SizeIs(1));
  EXPECT_FALSE(rig.owner->checkpoints[0]);
  rig.disk->set_capacity(UINT64_MAX);
  rig.advance(rig.settings.store.checkpoint_retry);
  ASSERT_THAT(rig.owner->checkpoints, SizeIs(2));
  EXPECT_TRUE(rig.owner->checkpoints[1]);
  rig.crash();
  EXPECT_THAT(rig.peek(id), ElementsAre("x"));
}

TEST(StoreFailure, AdministrationCanTakeItDownAndNothingIsLost) {
  for (const bool memory : {false, true}) {
    StoreRig rig{{.memory = memory}};
    rig.open();
    const auto id = rig.create("orders", {.lock_duration = 30s});
    rig.attach(id, receiver(1));
    rig.credit(id, receiver(1), 3);
    rig.send(id, "m0");
    const auto waits = rig.start_send(id, {"m1"});
    rig.store->fail(rig.owner->clock, "an exercise");
    EXPECT_EQ(rig.store->state(), StoreState::failed);
    EXPECT_EQ(rig.owner->states.back().second, "an exercise");
    rig.turn();
    EXPECT_EQ(rig.result(waits), std::nullopt) << "it was taken before";
    EXPECT_EQ(rig.send(id, "no"), Errc::server_busy);
    EXPECT_EQ(rig.settle(id, rig.next(receiver(1))->effect.lock), Errc::server_busy);
    EXPECT_FALSE(rig.next(receiver(1)));
    rig.advance(5s);
    rig.store->restore(rig.owner->clock);
    rig.turn();
    EXPECT_EQ(rig.owner->states.back().first, StoreState::open);
    EXPECT_EQ(rig.next(receiver(1))->body, "m1");
    rig.send(id, "m2");
    EXPECT_EQ(rig.next(receiver(1))->body, "m2");
    rig.send(id, "m3");
    EXPECT_FALSE(rig.next(receiver(1))) << "its credit is used up";
    EXPECT_THAT(rig.owner->detached, IsEmpty());
  }
}

TEST(StoreFailure, MessageIdsThatAreForgottenEarlyAreToldOnce) {
  StoreRig rig{{.store = {.duplicate_ids_max = 8}}};
  rig.open();
  const auto id = rig.create("orders", {.requires_duplicate_detection = true});
  const auto checkpoint = [&] {
    rig.store->checkpoint_soon(rig.owner->clock);
    rig.advance(1s);
  };
  for (int i = 0; i < 8; ++i) rig.send(id, fmt::format("m{}", i));
  checkpoint();
  EXPECT_THAT(rig.owner->warnings, IsEmpty()) << "at the limit";
  rig.send(id, "m0");
  EXPECT_EQ(rig.store->counts(id)->active, 8u) << "all of them are known";
  rig.send(id, "m8");
  checkpoint();
  EXPECT_THAT(rig.owner->warnings, ElementsAre(HasSubstr("'orders' gets more than 8 message-ids")));
  rig.send(id, "m0");
  EXPECT_EQ(rig.store->counts(id)->active, 10u) << "it was forgotten";
  for (int i = 10; i < 30; ++i) rig.send(id, fmt::format("m{}", i));
  checkpoint();
  EXPECT_THAT(rig.owner->warnings, SizeIs(1));
}

TEST(StoreFailure, BacklogAndTransferAreBounded) {
  StoreRig rig{{.store = {.backlog_bytes_max = 5000, .transfer_bytes_max = 3000}}};
  rig.open();
  const auto id = rig.create("orders");
  const auto at = rig.start_send(id, {"a", "b"}, 1400);
  const auto past = rig.start_send(id, {"a", "b", "c"}, 1400);
  EXPECT_EQ(rig.result(past), Errc::message_size_exceeded);
  const auto fits = rig.start_send(id, {"a"}, 1400);
  const auto too_much = rig.start_send(id, {"a"}, 1400);
  EXPECT_EQ(rig.result(too_much), Errc::server_busy);
  rig.turn();
  EXPECT_EQ(rig.result(at), std::nullopt);
  EXPECT_EQ(rig.result(fits), std::nullopt);
  EXPECT_EQ(rig.send(id, "a", 1400), std::nullopt) << "the disk has caught up";
}

}  // namespace
}  // namespace omnibus::store
