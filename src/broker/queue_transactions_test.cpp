// Steps of transactions at one queue: judged without a trace, carried out without a second look, and what
// holds a lock in between.
#include <gmock/gmock.h>

#include "broker/queue_rig.hpp"

namespace omnibus::broker {
namespace {

using testing::SizeIs;

struct StepRig : QueueRig {
  using QueueRig::QueueRig;
  std::optional<Errc> judge(const TransactionWork& work) {
    const std::string before = queue->describe();
    const std::size_t records = journal.records.size();
    const auto error = queue->refusal(now, work, tally);
    EXPECT_EQ(queue->describe(), before);
    EXPECT_EQ(journal.records.size(), records);
    return error ? std::optional{error->code} : std::nullopt;
  }
  void carry_out(const TransactionWork& work) {
    Effects effects{journal};
    queue->carry_out(now, work, effects);
    sync();
  }
  void let_go(const std::vector<HeldLock>& held) {
    Effects effects{journal};
    queue->let_go(now, held, effects);
    for (const auto& effect : effects.list)
      if (const auto* one = std::get_if<Deliver>(&effect))
        deliveries[one->receiver].push_back({body_of(one->status.stored), one->lock, one->status.sequence,
                                             one->status.delivery_count + 1, one->locked_until, one->status});
    sync();
  }
  static TransactionWork sends(const std::string& body, const SendOptions& with = {}) {
    return Enqueue{RequestId::none, {message(body, with)}, {}};
  }
  static TransactionWork settles(const LockToken& token, Outcome outcome = Complete{}) {
    return Settle{RequestId::none, {token}, std::move(outcome), {}, ReceiverId::none};
  }
  TransactionTally tally{};
};

TEST(QueueTransactions, QuotaIsJudgedForAllStepsTogether) {
  StepRig rig{{.size_bytes_max = 10}};
  EXPECT_EQ(rig.judge(StepRig::sends("12345")), std::nullopt);
  EXPECT_EQ(rig.judge(StepRig::sends("123456")), Errc::resource_limit_exceeded);
  EXPECT_EQ(rig.judge(StepRig::sends("12345")), std::nullopt);
  // Once it was judged it is taken, whatever came meanwhile.
  EXPECT_EQ(rig.send("1234567890"), std::nullopt);
  rig.carry_out(StepRig::sends("12345"));
  EXPECT_THAT(rig.peek(), SizeIs(2));
}

TEST(QueueTransactions, LockIsJudgedByItsTimeAndOnce) {
  StepRig rig{{.lock_duration = 30s}};
  EXPECT_EQ(rig.send("a"), std::nullopt);
  const Got got = rig.receive();
  EXPECT_EQ(rig.judge(StepRig::settles({})), Errc::message_lock_lost);
  EXPECT_EQ(rig.judge(StepRig::settles(got.lock)), std::nullopt);
  EXPECT_EQ(rig.judge(StepRig::settles(got.lock)), Errc::message_lock_lost) << "settled twice";
  rig.now += 30s;
  rig.tally = {};
  EXPECT_EQ(rig.judge(StepRig::settles(got.lock)), Errc::message_lock_lost) << "it has ended";
}

TEST(QueueTransactions, OutcomeIsJudged) {
  StepRig rig;
  EXPECT_EQ(rig.send("a"), std::nullopt);
  const Got got = rig.receive();
  EXPECT_EQ(rig.judge(StepRig::settles(got.lock, Abandon{{0x40}})), Errc::argument_error);
  EXPECT_EQ(rig.settle(got.lock, DeadLetter{}), std::nullopt);
  const Got dead = rig.receive(SubQueue::dead_letter);
  rig.tally = {};
  EXPECT_EQ(rig.judge(StepRig::settles(dead.lock, DeadLetter{})), Errc::not_allowed);
}

// A held lock neither ends nor is it anybody else's; let go, it ends when it would have.
TEST(QueueTransactions, HeldLockEndsWithItsTransaction) {
  for (const bool commits : {true, false}) {
    StepRig rig{{.lock_duration = 30s}};
    EXPECT_EQ(rig.send("a"), std::nullopt);
    const Got got = rig.receive();
    ASSERT_EQ(rig.judge(StepRig::settles(got.lock)), std::nullopt);
    const auto held = rig.queue->hold({got.lock});
    ASSERT_THAT(held, SizeIs(1));
    EXPECT_EQ(held[0].sequence, got.sequence);
    EXPECT_EQ(rig.complete(got.lock), Errc::message_lock_lost);
    EXPECT_EQ(rig.renew(got.lock), Errc::message_lock_lost);
    rig.apply(Settle{RequestId::none, {got.lock}, Complete{}, {}, ReceiverId::none});
    rig.apply(Purge{rig.ask()});
    rig.advance(1h);
    EXPECT_FALSE(rig.try_receive());
    EXPECT_THAT(rig.peek(), SizeIs(1));
    if (commits) {
      rig.carry_out(StepRig::settles(got.lock));
      EXPECT_THAT(rig.peek(), SizeIs(0));
    } else {
      rig.let_go(held);
      EXPECT_EQ(rig.receive().attempts, 2u) << "its lock had ended long ago";
    }
  }
}

// Rolled back in time, a lock goes on: of a message, and of a session whose link is still there.
TEST(QueueTransactions, LockThatIsLetGoGoesOn) {
  StepRig rig{{.lock_duration = 30s, .requires_session = true}};
  EXPECT_EQ(rig.send("a", {.session = "s"}), std::nullopt);
  const ReceiverId link{7};
  rig.attach_session(link, "s");
  rig.credit(link, 1);
  const auto got = rig.next(link);
  ASSERT_TRUE(got);
  const auto held = rig.queue->hold({got->lock});
  EXPECT_TRUE(held.at(0).of_session);
  rig.let_go(held);
  EXPECT_EQ(rig.settle(got->lock, Complete{}, link), std::nullopt);
}

// The session is lost while its message is held: the message stays where it is until the decision.
TEST(QueueTransactions, SessionThatIsLostLeavesWhatIsHeld) {
  StepRig rig{{.lock_duration = 30s, .requires_session = true}};
  EXPECT_EQ(rig.send("a", {.session = "s"}), std::nullopt);
  const ReceiverId link{7};
  rig.attach_session(link, "s");
  rig.credit(link, 1);
  const auto got = rig.next(link);
  ASSERT_TRUE(got);
  const auto held = rig.queue->hold({got->lock});
  rig.apply(CloseReceiver{link});
  const ReceiverId other{8};
  rig.attach_session(other, "s");
  rig.credit(other, 1);
  EXPECT_FALSE(rig.next(other));
  rig.let_go(held);
  ASSERT_TRUE(rig.next(other)) << "given back, and delivered to the new holder";
}

// The same from records and from a checkpoint, where a session's lock is not written.
TEST(QueueTransactions, HeldAgainAfterRecovery) {
  StepRig rig{{.lock_duration = 30s}};
  EXPECT_EQ(rig.send("a"), std::nullopt);
  EXPECT_EQ(rig.send("b"), std::nullopt);
  const Got a = rig.receive();
  const HeldLock unknown{LockToken{{1, 2, 3}}, a.sequence + 1, rig.now + 30s, true};
  const auto held = rig.queue->hold({a.lock});
  SliceStore slices;
  rig.queue->begin_checkpoint();
  while (rig.queue->write_checkpoint(slices, 1)) {
  }
  for (const bool from_checkpoint : {false, true}) {
    rig.queue = from_checkpoint ? rig.rebuilt(&slices, rig.durable) : rig.rebuilt(nullptr, 0);
    rig.queue->hold_again(held.at(0));
    rig.queue->hold_again(unknown);
    rig.queue->hold_again({LockToken{{9}}, 1234, rig.now, false});  // of a message that is gone
    rig.limits.clear();
    rig.advance(1min);
    EXPECT_FALSE(rig.try_receive());
  }
  rig.carry_out(StepRig::settles(a.lock));
  rig.let_go({unknown});
  EXPECT_EQ(rig.receive().body, "b");
}

TEST(QueueTransfers, AreNeitherReceivedNorPeekedAndGoOn) {
  StepRig rig;
  const auto request = rig.ask();
  rig.apply(EnqueueTransfer{request, {QueueRig::message("a"), QueueRig::message("b")}, "to"});
  EXPECT_TRUE(rig.answer<Accepted>(request));
  EXPECT_THAT(rig.peek(), SizeIs(0));
  EXPECT_FALSE(rig.try_receive());
  EXPECT_EQ(rig.queue->counts().transfer, 2u);
  ASSERT_THAT(rig.forwards, SizeIs(2));
  EXPECT_EQ(rig.forwards[0].target, "to");
  EXPECT_TRUE(rig.forwards[0].transfer);
  EXPECT_FALSE(rig.forwards[0].changes->destination);
  rig.apply(Forwarded{rig.forwards[0].status.sequence, {}});
  rig.apply(Forwarded{rig.forwards[1].status.sequence, Error{Errc::resource_limit_exceeded, "full"}});
  EXPECT_EQ(rig.queue->counts().transfer, 1u);
  rig.forwards.clear();
  rig.advance(1s);
  ASSERT_THAT(rig.forwards, SizeIs(1)) << "tried again";
  rig.apply(Forwarded{rig.forwards[0].status.sequence, Error{Errc::entity_disabled, "off"}});
  EXPECT_EQ(rig.queue->counts().transfer, 0u);
  EXPECT_EQ(rig.queue->counts().transfer_dead_letter, 1u);
  EXPECT_EQ(rig.receive(SubQueue::transfer_dead_letter).body, "b");
}

// One destination that is full does not hold up the others.
TEST(QueueTransfers, FullDestinationIsPassedOver) {
  StepRig rig;
  for (int i = 0; i < 100; ++i)
    rig.apply(EnqueueTransfer{rig.ask(), {QueueRig::message("x")}, i < 80 ? "full" : "free"});
  int sent = 0;
  for (int rounds = 0; rounds < 5; ++rounds) {
    while (!rig.forwards.empty()) {
      const auto forwards = std::exchange(rig.forwards, {});
      for (const auto& one : forwards) {
        std::optional<Error> error;
        if (one.target == "full") error = Error{Errc::resource_limit_exceeded, "full"};
        sent += !error;
        rig.apply(Forwarded{one.status.sequence, error});
      }
    }
    rig.advance(1min);
  }
  EXPECT_EQ(sent, 20);
  EXPECT_EQ(rig.queue->counts().transfer, 80u);
}

}  // namespace
}  // namespace omnibus::broker
