// A disk that cannot be read for a while: nothing is taken for lost, everything comes in its order when it
// can.
#include <gmock/gmock.h>

#include "store/store_rig.hpp"

namespace omnibus::store {
namespace {

using broker::ReceiveMode;
using broker::SubQueue;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Messages m0, m1, ... in a queue, none of them in memory.
struct ColdQueue : StoreRig {
  explicit ColdQueue(int messages = 3, RigSettings with = {}) : StoreRig(with) {
    open();
    id = create("orders");
    for (int i = 0; i < messages; ++i) send(id, fmt::format("m{}", i), 500);
    crash();
  }
  std::vector<std::string> bodies(broker::ReceiverId who) {
    std::vector<std::string> all;
    while (const auto got = next(who)) all.push_back(got->body);
    return all;
  }
  // Whatever waits for the disk, and what that leads to.
  void wait_for_reads() { advance(settings.store.read_retry_longest); }
  PartitionId id = PartitionId::none;
};

TEST(StoreReads, DeliveriesWaitInOrderUntilTheDiskCanBeReadAgain) {
  for (const ReceiveMode mode : {ReceiveMode::peek_lock, ReceiveMode::receive_and_delete}) {
    ColdQueue rig;
    const auto who = receiver(2);  // answers to sends are not behind it
    rig.disk->fail_cold_reads(true);
    rig.attach(rig.id, who, SubQueue::active, mode);
    rig.credit(rig.id, who, 10);
    rig.turn();
    // In memory, and behind those that are not.
    rig.send(rig.id, "warm");
    rig.advance(20s);
    EXPECT_THAT(rig.owner->deliveries[who], IsEmpty());
    EXPECT_EQ(rig.store->stats().reads_failing, 3u);
    ASSERT_THAT(rig.owner->reads, SizeIs(1)) << "told once";
    EXPECT_THAT(rig.owner->reads[0]->detail, HasSubstr("Input/output error"));
    EXPECT_EQ(rig.store->state(), StoreState::open);

    rig.disk->fail_cold_reads(false);
    rig.wait_for_reads();
    auto& got = rig.owner->deliveries[who];
    ASSERT_EQ(got.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(got[i].body, i < 3 ? fmt::format("m{}", i) : "warm");
      EXPECT_EQ(got[i].effect.status.sequence, static_cast<broker::SequenceNumber>(i + 1));
      if (mode == ReceiveMode::peek_lock) {
        EXPECT_EQ(rig.settle(rig.id, got[i].effect.lock), std::nullopt);
      }
    }
    EXPECT_EQ(rig.store->counts(rig.id)->active, 0u);
    EXPECT_EQ(rig.store->counts(rig.id)->dead_letter, 0u);
    EXPECT_THAT(rig.owner->damages, IsEmpty());
    EXPECT_EQ(rig.store->stats().damaged_records, 0u);
    EXPECT_EQ(rig.store->stats().reads_failing, 0u);
    ASSERT_THAT(rig.owner->reads, SizeIs(2));
    EXPECT_FALSE(rig.owner->reads[1]);
    EXPECT_EQ(rig.store->stats().journal.live_shares, 0u) << "what was put off is released in the end";
  }
}

// However long it takes: no attempt is counted for what the client never got, and its time with it is whole.
TEST(StoreReads, ALockBeginsWhenItsMessageLeaves) {
  ColdQueue rig;
  const auto who = receiver(2);  // answers to sends are not behind it
  rig.disk->fail_cold_reads(true);
  rig.attach(rig.id, who);
  rig.credit(rig.id, who, 10);
  rig.turn();
  rig.send(rig.id, "warm");
  rig.advance(1h);
  EXPECT_EQ(rig.store->counts(rig.id)->locked, 4u);
  rig.disk->fail_cold_reads(false);
  rig.wait_for_reads();
  const auto got = rig.owner->deliveries[who];
  ASSERT_EQ(got.size(), 4u) << "each once";
  EXPECT_EQ(got[3].body, "warm");
  const auto left = rig.owner->clock;
  for (const auto& one : got) {
    EXPECT_EQ(one.effect.status.delivery_count, 0u);
    EXPECT_GT(*one.effect.locked_until, left + 40s);
  }
  EXPECT_EQ(rig.settle(rig.id, got[0].effect.lock), std::nullopt);
  rig.crash();
  EXPECT_EQ(rig.settle(rig.id, got[1].effect.lock), std::nullopt) << "the new end is on the disk";
  rig.advance(61s);
  EXPECT_EQ(rig.store->counts(rig.id)->locked, 0u);
  EXPECT_EQ(rig.store->counts(rig.id)->active, 2u);
}

// The receiver is gone meanwhile: what comes too late for it is locked no longer than that.
TEST(StoreReads, AMessageForNobodyIsFreeAgain) {
  ColdQueue rig{1};
  rig.disk->fail_cold_reads(true);
  rig.attach(rig.id, receiver(2));
  rig.credit(rig.id, receiver(2), 1);
  rig.turn();
  rig.apply(rig.id, broker::CloseReceiver{receiver(2)});
  rig.advance(1h);
  rig.disk->fail_cold_reads(false);
  rig.wait_for_reads();
  rig.advance(61s);
  rig.attach(rig.id, receiver(3));
  rig.credit(rig.id, receiver(3), 1);
  rig.turn();
  EXPECT_THAT(rig.bodies(receiver(3)), ElementsAre("m0"));
}

// The machine is made anew while its message waits: so is what is known of the lock.
TEST(StoreReads, ALockWaitsOnWhenTheStoreWasClosedMeanwhile) {
  ColdQueue rig;
  const auto who = receiver(2);
  rig.attach(rig.id, who);
  rig.turn();
  rig.disk->fail_cold_reads(true);
  rig.credit(rig.id, who, 1);
  rig.turn();
  rig.advance(20s);
  rig.disk->fail_next_sync();
  rig.start_send(rig.id, {"lost"});
  rig.turn();
  ASSERT_EQ(rig.store->state(), StoreState::failed);
  rig.disk->fail_cold_reads(false);
  rig.advance(1min);
  ASSERT_EQ(rig.store->state(), StoreState::open);
  auto& got = rig.owner->deliveries[who];
  ASSERT_FALSE(got.empty());
  EXPECT_EQ(got[0].body, "m0");
  EXPECT_EQ(rig.store->counts(rig.id)->dead_letter, 0u);
}

TEST(StoreReads, ADeferredMessageIsLockedFromWhenItLeaves) {
  ColdQueue rig{1};
  const auto who = receiver(2);
  rig.attach(rig.id, who);
  rig.credit(rig.id, who, 1);
  rig.turn();
  const auto first = rig.next(who);
  ASSERT_TRUE(first);
  EXPECT_EQ(rig.settle(rig.id, first->effect.lock, broker::Defer{}), std::nullopt);
  rig.crash();
  rig.disk->fail_cold_reads(true);
  const auto request = rig.ask(3);  // answers to settlements are not behind it
  rig.apply(rig.id,
            broker::ReceiveDeferred{.request = request, .sequences = {first->effect.status.sequence}});
  rig.turn();
  rig.advance(1h);
  EXPECT_FALSE(rig.owner->answers.contains(request));
  rig.disk->fail_cold_reads(false);
  rig.wait_for_reads();
  ASSERT_TRUE(rig.owner->answers.contains(request));
  const auto& got = std::get<broker::Messages>(rig.owner->answers.at(request).effect).messages;
  ASSERT_EQ(got.size(), 1u);
  EXPECT_GT(*got[0].locked_until, rig.owner->clock + 40s);
  EXPECT_EQ(rig.settle(rig.id, *got[0].lock), std::nullopt);
}

TEST(StoreReads, ItTriesAgainEverLessOften) {
  ColdQueue rig{1};
  rig.disk->fail_cold_reads(true);
  rig.attach(rig.id, receiver(1));
  rig.credit(rig.id, receiver(1), 1);
  rig.turn();
  rig.advance(5min);
  EXPECT_GT(rig.store->stats().reads, 20u);
  EXPECT_LT(rig.store->stats().reads, 50u);
}

// Removed for good before the bytes are there: the record stays until they were handed out, whatever the
// journal does meanwhile, and the store itself.
TEST(StoreReads, ReceivedAndDeletedMessagesKeepTheirBytesUntilTheyWereRead) {
  ColdQueue rig{3, {.journal = {.segment_bytes = 8u << 10}}};
  const auto who = receiver(2);  // answers to sends are not behind it
  rig.disk->fail_cold_reads(true);
  rig.attach(rig.id, who, SubQueue::active, ReceiveMode::receive_and_delete);
  rig.credit(rig.id, who, 3);
  rig.turn();
  EXPECT_EQ(rig.store->counts(rig.id)->active, 0u);
  for (int i = 0; i < 40; ++i) rig.send(rig.id, "other", 1000);
  rig.store->checkpoint_soon(rig.owner->clock);
  rig.advance(1s);
  ASSERT_FALSE(rig.owner->checkpoints.empty());

  rig.disk->fail_next_sync();
  rig.start_send(rig.id, {"lost"});
  rig.turn();
  ASSERT_EQ(rig.store->state(), StoreState::failed);
  rig.advance(5s);
  EXPECT_EQ(rig.store->state(), StoreState::failed) << "it cannot be read";

  rig.disk->fail_cold_reads(false);
  rig.advance(1min);
  ASSERT_EQ(rig.store->state(), StoreState::open);
  EXPECT_THAT(rig.bodies(who), ElementsAre("m0", "m1", "m2"));
  EXPECT_EQ(rig.store->counts(rig.id)->dead_letter, 0u);
  EXPECT_THAT(rig.owner->damages, IsEmpty());
}

// After a crash, when nothing is in memory and nothing can be read.
void begin_to_forward_unread(StoreRig& rig, PartitionId target) {
  rig.disk->crash();
  rig.start();
  rig.owner->route = [target](ForwardRequest&) -> Result<std::optional<PartitionId>> {
    return std::optional{target};
  };
  rig.store->open();
  while (rig.store->state() != StoreState::open) ASSERT_TRUE(rig.io.step());
  rig.disk->fail_cold_reads(true);
  rig.store->start_errands(rig.owner->clock);
  rig.turn();
}

TEST(StoreReads, ForwardsWaitInOrderToo) {
  StoreRig rig{{.store = {.errands_wait = true}}};
  rig.open();
  const auto target = rig.create("target");
  const auto source = rig.create("source", {.forward_to = "target"});
  for (int i = 0; i < 3; ++i) rig.send(source, fmt::format("m{}", i), 500);
  ASSERT_NO_FATAL_FAILURE(begin_to_forward_unread(rig, target));
  rig.advance(20s);
  EXPECT_EQ(rig.store->stats().reads_failing, 3u);
  EXPECT_EQ(rig.store->counts(target)->active, 0u);
  EXPECT_EQ(rig.store->counts(source)->dead_letter, 0u);
  rig.disk->fail_cold_reads(false);
  rig.advance(rig.settings.store.read_retry_longest);
  EXPECT_THAT(rig.peek(target), ElementsAre("m0", "m1", "m2"));
  EXPECT_EQ(rig.store->counts(source)->active, 0u);
  EXPECT_EQ(rig.store->counts(source)->dead_letter, 0u);
}

// One queue has a message that cannot be read: what others forward goes on.
TEST(StoreReads, AForwardThatWaitsHoldsUpNoOtherQueue) {
  StoreRig rig{{.store = {.errands_wait = true}}};
  rig.open();
  const auto target = rig.create("target");
  const auto cold = rig.create("cold", {.forward_to = "target"});
  const auto warm = rig.create("warm", {.forward_to = "target"});
  rig.send(cold, "old", 500);
  ASSERT_NO_FATAL_FAILURE(begin_to_forward_unread(rig, target));
  rig.advance(1s);
  ASSERT_EQ(rig.store->stats().reads_failing, 1u);
  rig.send(warm, "new", 500);
  EXPECT_THAT(rig.peek(target), ElementsAre("new"));
  rig.disk->fail_cold_reads(false);
  rig.advance(rig.settings.store.read_retry_longest);
  EXPECT_THAT(rig.peek(target), ElementsAre("new", "old"));
}

// A spot that stays bad while the file around it can be read is lost: told as damage, and put aside.
TEST(StoreReads, ABadSpotIsDamageAfterManyTries) {
  ColdQueue rig;
  for (const auto& name : rig.disk->names()) {
    const auto* bytes = rig.disk->contents(name);
    const auto at = std::string(bytes->begin(), bytes->end()).find("      m1");
    if (at != std::string::npos) rig.disk->fail_reads_at(name, at, at + 8);
  }
  const auto who = receiver(1);
  rig.attach(rig.id, who);
  rig.credit(rig.id, who, 3);
  rig.turn();
  rig.advance(20s);
  EXPECT_THAT(rig.owner->damages, IsEmpty()) << "it may pass";
  rig.advance(2min);
  ASSERT_THAT(rig.owner->damages, SizeIs(1));
  EXPECT_THAT(rig.owner->damages[0].what, HasSubstr("Input/output error"));
  EXPECT_EQ(rig.store->counts(rig.id)->dead_letter, 1u);
  const auto bodies = rig.bodies(who);
  EXPECT_THAT(bodies, testing::Contains("m0"));
  EXPECT_THAT(bodies, testing::Contains("m2"));
  EXPECT_THAT(bodies, testing::Not(testing::Contains("m1")));
  EXPECT_FALSE(rig.owner->reads.back()) << "there is nothing left to be tried";
}

}  // namespace
}  // namespace omnibus::store
