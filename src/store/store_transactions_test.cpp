// Transactions of several stores: all steps or none, wherever a crash comes and whoever crashes.
#include <gmock/gmock.h>

#include "store/transaction_rig.hpp"

namespace omnibus::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The message "old" of each store's queue is settled and another is sent to it.
struct Story {
  explicit Story(std::size_t count, std::uint64_t seed = 1, StoreSettings with = {},
                 std::chrono::milliseconds lock_duration = 5min)
      : rig(count, seed, with) {
    for (std::size_t i = 0; i < count; ++i) {
      queues.push_back(rig[i].create("q", {.lock_duration = lock_duration}));
      EXPECT_EQ(rig[i].send(queues[i], "old"), std::nullopt);
      const auto got = rig[i].receive(queues[i]);
      EXPECT_TRUE(got);
      locks.push_back(got ? got->effect.lock : broker::LockToken{});
    }
  }
  std::vector<broker::TransactionStep> steps() {
    std::vector<broker::TransactionStep> all;
    for (std::size_t i = 0; i < rig.size(); ++i) {
      all.push_back(StoresRig::sends(i, queues[i], "new"));
      all.push_back(StoresRig::settles(i, queues[i], locks[i]));
    }
    return all;
  }
  void start() { request = rig.start(0, steps()); }
  // What is in each store at the end, whatever was answered: everywhere the same, and nothing is held.
  void expect_agreement(std::optional<std::string> told) {
    rig.advance(10min);
    std::vector<std::string> first = rig[0].peek(queues[0]);
    EXPECT_TRUE(first == std::vector<std::string>{"new"} || first == std::vector<std::string>{"old"});
    const bool happened = first.at(0) == "new";
    for (std::size_t i = 0; i < rig.size(); ++i) {
      EXPECT_EQ(rig[i].peek(queues[i]), first) << "store " << i;
      EXPECT_THAT(rig[i].peek(queues[i], broker::SubQueue::dead_letter), IsEmpty());
      // Nothing is held: all of it can be taken.
      EXPECT_THAT(rig[i].take_all(queues[i]), ElementsAre(happened ? "new" : "old")) << "store " << i;
    }
    if (told == "done") EXPECT_TRUE(happened);
    if (told && told != "done" && told->find("may or may not") == std::string::npos) EXPECT_FALSE(happened);
    // And nothing is left to be decided.
    for (std::size_t i = 0; i < rig.size(); ++i) EXPECT_THAT(rig[i].owner->messages, IsEmpty());
    rig.advance(1h);
    EXPECT_EQ(rig.choices(), 0u);
  }

  StoresRig rig;
  std::vector<PartitionId> queues{};
  std::vector<broker::LockToken> locks{};
  broker::RequestId request{};
};

TEST(StoreTransactions, AllStoresDoTheirPart) {
  Story story{3};
  story.start();
  EXPECT_EQ(story.rig.answer(0, story.request), std::nullopt);
  story.rig.run();
  EXPECT_EQ(story.rig.answer(0, story.request), "done");
  for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(story.rig[i].peek(story.queues[i]), ElementsAre("new"));
  story.expect_agreement("done");
}

TEST(StoreTransactions, OneThatRefusesRollsAllBack) {
  for (std::size_t who = 0; who < 3; ++who) {
    Story story{3};
    auto steps = story.steps();
    steps.push_back(StoresRig::settles(who, story.queues[who], {}));
    story.request = story.rig.start(0, std::move(steps));
    story.rig.run();
    EXPECT_THAT(story.rig.answer(0, story.request).value(), HasSubstr("lock supplied is invalid"));
    // The locks of the others go on.
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(story.rig[i].settle(story.queues[i], story.locks[i]), std::nullopt);
      EXPECT_THAT(story.rig[i].peek(story.queues[i]), IsEmpty());
    }
  }
}

TEST(StoreTransactions, StoreThatIsDownOrSilentRollsBack) {
  Story story{2};
  story.rig[1].store->fail(story.rig[1].owner->clock, "for a test");
  story.start();
  story.rig.run();
  EXPECT_THAT(story.rig.answer(0, story.request).value(), HasSubstr("for a test"));
  story.rig[1].store->restore(story.rig[1].owner->clock);
  story.start();
  story.rig[0].owner->messages.clear();  // the road is broken
  story.rig.advance(14s);
  EXPECT_EQ(story.rig.answer(0, story.request), std::nullopt);
  story.rig.advance(2s);
  EXPECT_THAT(story.rig.answer(0, story.request).value(), HasSubstr("no answer of store 1"));
  story.expect_agreement(story.rig.answer(0, story.request));
}

// Between the two phases a lock neither ends nor can it be used by others.
TEST(StoreTransactions, LockIsHeldWhileItIsPrepared) {
  Story story{2, 1, {}, 5s};
  auto& other = story.rig[1];
  story.start();
  story.rig.deliver(0);  // Prepare
  other.run();
  ASSERT_EQ(other.owner->messages.size(), 1u);  // Prepared
  EXPECT_EQ(other.settle(story.queues[1], story.locks[1]), Errc::message_lock_lost);
  EXPECT_EQ(other.command(story.queues[1], broker::RenewLocks{{}, {story.locks[1]}}),
            Errc::message_lock_lost);
  EXPECT_EQ(other.command(story.queues[1], broker::Purge{}), std::nullopt);
  other.advance(10s);
  EXPECT_FALSE(other.receive(story.queues[1])) << "its lock would have ended";
  other.crash();
  EXPECT_FALSE(other.receive(story.queues[1])) << "also after a crash";
  other.restart();
  EXPECT_FALSE(other.receive(story.queues[1])) << "and from a checkpoint";
  EXPECT_THAT(other.peek(story.queues[1]), ElementsAre("old"));
  story.expect_agreement(story.rig.answer(0, story.request));
}

// The coordinator crashed between the phases: it knows nothing, and that means no.
TEST(StoreTransactions, CoordinatorThatForgotMeansNo) {
  Story story{2};
  story.start();
  story.rig.deliver(0);
  story.rig[1].run();
  story.rig.crash(0);
  story.expect_agreement(std::nullopt);
  EXPECT_EQ(story.rig[1].store->stats().recoveries, 1u);
}

// Decided, and one store is away: the outcome is certain, and told; the store does its part later.
TEST(StoreTransactions, DecisionReachesAStoreThatWasAway) {
  Story story{2};
  auto& other = story.rig[1];
  story.start();
  story.rig.deliver(0);
  other.run();
  story.rig.deliver(1);
  story.rig[0].run();
  ASSERT_TRUE(std::holds_alternative<Decide>(story.rig[0].owner->messages.at(0).second));
  other.store->fail(other.owner->clock, "for a test");
  story.rig.advance(4s);
  EXPECT_EQ(story.rig.answer(0, story.request), std::nullopt);
  story.rig.advance(3s);
  EXPECT_EQ(story.rig.answer(0, story.request), "done");
  // Over restarts of both.
  story.rig[0].restart();
  story.rig[0].crash();
  other.store->restore(other.owner->clock);
  other.restart();
  story.expect_agreement("done");
}

// Between every two steps of anybody one store crashes, or all of them.
TEST(StoreTransactions, CrashAnywhereLeavesAllOrNothing) {
  for (std::size_t victim = 0; victim <= 3; ++victim) {
    for (int after = 0;; ++after) {
      SCOPED_TRACE(fmt::format("{} crashes after {} steps", victim == 3 ? "everybody" : "store", after));
      Story story{3};
      story.start();
      int steps = 0;
      for (; steps < after && story.rig.choices() > 0; ++steps) story.rig.take(0);
      const auto told = story.rig.answer(0, story.request);
      if (victim == 3)
        story.rig.crash_all();
      else
        story.rig.crash(victim);
      const auto after_crash = victim == 3 || victim == 0 ? told : story.rig.answer(0, story.request);
      story.expect_agreement(after_crash);
      if (victim != 0 && victim != 3) {
        EXPECT_TRUE(story.rig.answer(0, story.request));
      }
      if (testing::Test::HasFailure()) return;
      if (steps < after) break;
    }
  }
}

// A store that is closed and opened in the middle, with a checkpoint in between.
TEST(StoreTransactions, CheckpointInTheMiddleKeepsThePrepared) {
  for (std::size_t victim = 0; victim < 2; ++victim) {
    for (int after = 0;; ++after) {
      SCOPED_TRACE(fmt::format("store {} after {}", victim, after));
      Story story{2};
      story.start();
      int steps = 0;
      for (; steps < after && story.rig.choices() > 0; ++steps) story.rig.take(0);
      story.rig[victim].restart();
      story.rig[victim].crash();
      story.expect_agreement(std::nullopt);
      if (testing::Test::HasFailure()) return;
      if (steps < after) break;
    }
  }
}

// The journal's space comes back while a transaction waits, and it is still there afterwards.
TEST(StoreTransactions, PreparedOneOutlivesTheSegmentsAroundIt) {
  Story story{2};
  auto& other = story.rig[1];
  story.start();
  story.rig.deliver(0);
  other.run();
  story.rig.deliver(1);
  story.rig[0].run();  // decided; the other does not hear of it
  story.rig[0].owner->messages.clear();
  const auto busy = other.create("busy");
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(other.send(busy, "x", 2000), std::nullopt);
    const auto got = other.receive(busy);
    ASSERT_TRUE(got);
    EXPECT_EQ(other.settle(busy, got->effect.lock), std::nullopt);
    if (i % 50 == 49) {
      other.store->checkpoint_soon(other.owner->clock);
      for (int turns = 0; turns < 20; ++turns) {
        other.store->wake(other.owner->clock);
        other.turn();
      }
    }
  }
  EXPECT_GT(other.store->stats().checkpoints, 3u);
  EXPECT_LT(other.store->stats().journal.disk_bytes, 400u << 10) << "space came back";
  other.crash();
  story.expect_agreement("done");
}

// A store that closes answers whoever waits for it, in every phase.
TEST(StoreTransactions, ClosingStoreAnswers) {
  for (int after = 0; after < 12; ++after) {
    SCOPED_TRACE(after);
    Story story{2};
    story.start();
    for (int i = 0; i < after && story.rig.choices() > 0; ++i) story.rig.take(0);
    story.rig[0].close();
    const auto told = story.rig.answer(0, story.request);
    ASSERT_TRUE(told);
    story.rig[0].start();
    story.rig[0].open();
    story.expect_agreement(told);
  }
}

// An entity that is deleted while it is prepared takes its steps along; the others happen.
TEST(StoreTransactions, DeletedEntityTakesItsStepsAlong) {
  StoresRig rig{2};
  const auto a = rig[0].create("a");
  const auto b = rig[1].create("b");
  const auto c = rig[1].create("c");
  const auto request =
      rig.start(0, {StoresRig::sends(0, a, "1"), StoresRig::sends(1, b, "2"), StoresRig::sends(1, c, "3")});
  rig.deliver(0);
  rig[1].run();
  EXPECT_TRUE(rig[1].remove(b));
  rig.run();
  EXPECT_EQ(rig.answer(0, request), "done");
  EXPECT_THAT(rig[0].peek(a), ElementsAre("1"));
  EXPECT_THAT(rig[1].peek(c), ElementsAre("3"));
}

// What changes between the phases does not undo a promise: status, quota, a rule of that name.
TEST(StoreTransactions, PreparedStepsAreNotJudgedAgain) {
  StoresRig rig{2};
  const auto a = rig[0].create("a");
  const auto b = rig[1].create("b");
  const auto t = rig[1].topic("t");
  const auto s = rig[1].subscribe(t, "t/Subscriptions/s");
  const auto request =
      rig.start(0, {StoresRig::sends(0, a, "1"), StoresRig::sends(1, b, "2"),
                    StoresRig::step(1, s, broker::AddRule{{}, TopicStoreRig::rule("r", "n = 1")}),
                    StoresRig::step(1, s, broker::RemoveRule{{}, std::string{rules::default_rule_name}})});
  rig.deliver(0);
  rig[1].run();
  std::optional<Result<void>> updated;
  rig[1].store->update_partition(
      rig[1].owner->clock, b,
      {.name = "b", .size_bytes_max = 1, .status = broker::EntityStatus::send_disabled},
      [&](Result<void> done) { updated = std::move(done); });
  rig[1].turn();
  ASSERT_TRUE(updated && *updated);
  EXPECT_EQ(rig[1].command(s, broker::AddRule{{}, TopicStoreRig::rule("r", "n = 9")}), std::nullopt);
  EXPECT_EQ(rig[1].command(s, broker::RemoveRule{{}, std::string{rules::default_rule_name}}), std::nullopt);
  rig.run();
  EXPECT_EQ(rig.answer(0, request), "done");
  EXPECT_THAT(rig[1].peek(b), ElementsAre("2"));
  EXPECT_THAT(rig[1].rules_of(s), ElementsAre("r"));
  rig.crash(1);
  EXPECT_THAT(rig[1].peek(b), ElementsAre("2"));
  EXPECT_EQ(rig[1].publish(t, 1), std::nullopt);
  EXPECT_THAT(rig[1].peek(s), ElementsAre("m1"));
}

// Two changes of one rule in two stores: a decision that is lost is told again, later than the next one would
// be. So the next one waits for it, and both stores end with the same.
TEST(StoreTransactions, ARuleThatIsBeingChangedIsNotChangedByAnother) {
  StoresRig rig{2};
  std::vector<PartitionId> t;
  std::vector<PartitionId> s;
  for (std::size_t i : {0, 1}) {
    t.push_back(rig[i].topic("t"));
    s.push_back(rig[i].subscribe(t.back(), "t/Subscriptions/s", {TopicStoreRig::rule("r", "n = 1")}));
  }
  const auto replace = [&](const std::string& filter) {
    broker::AddRule add{{}, TopicStoreRig::rule("R", filter)};
    add.replaces = true;
    auto first = StoresRig::step(0, s[0], add);
    add.follows = true;
    return rig.start(0, {first, StoresRig::step(1, s[1], add)});
  };
  const auto first = replace("n = 2");
  rig.deliver(0);
  rig[1].run();
  rig.deliver(1);
  rig[0].run();
  ASSERT_EQ(rig[0].owner->messages.size(), 1u) << "the decision";
  rig[0].owner->messages.clear();
  const auto second = replace("n = 3");
  rig.run();
  EXPECT_THAT(rig.answer(0, second).value_or(""), HasSubstr("another change of the rule"));
  rig.advance(3s);
  EXPECT_EQ(rig.answer(0, first), "done");
  for (std::size_t i : {0, 1}) {
    for (const int n : {1, 2, 3}) EXPECT_EQ(rig[i].publish(t[i], n), std::nullopt);
    EXPECT_THAT(rig[i].peek(s[i]), ElementsAre("m2")) << i;
  }
  const auto third = replace("n = 3");
  rig.run();
  EXPECT_EQ(rig.answer(0, third), "done") << "once it is decided";
}

// The first partition knows whether the rule is there; others that differ, as older versions could leave
// them, end with what it says.
TEST(StoreTransactions, APartitionThatFollowsEndsWithWhatIsWanted) {
  StoresRig rig{2};
  const auto t0 = rig[0].topic("t");
  const auto t1 = rig[1].topic("t");
  const auto s0 = rig[0].subscribe(t0, "t/Subscriptions/s", {TopicStoreRig::rule("only first", "n = 1")});
  const auto s1 = rig[1].subscribe(t1, "t/Subscriptions/s", {TopicStoreRig::rule("only second", "n = 1")});
  const auto change = [&](auto command) {
    command.by_administrator = true;
    auto first = StoresRig::step(0, s0, command);
    command.follows = true;
    const auto request = rig.start(0, {first, StoresRig::step(1, s1, command)});
    rig.run();
    return rig.answer(0, request).value_or("");
  };
  EXPECT_EQ(change(broker::RemoveRule{{}, "only first"}), "done");
  EXPECT_THAT(change(broker::RemoveRule{{}, "only second"}), HasSubstr("no rule"));
  EXPECT_EQ(change(broker::AddRule{{}, TopicStoreRig::rule("only second", "n = 2")}), "done");
  EXPECT_THAT(change(broker::AddRule{{}, TopicStoreRig::rule("only second", "n = 2")}), HasSubstr("already"));
  EXPECT_THAT(rig[0].rules_of(s0), ElementsAre("only second"));
  EXPECT_THAT(rig[1].rules_of(s1), ElementsAre("only second"));
  EXPECT_EQ(rig[1].publish(t1, 2), std::nullopt);
  EXPECT_THAT(rig[1].peek(s1), ElementsAre("m2"));
}

// A session's lock is written nowhere else: the prepared record brings it back.
TEST(StoreTransactions, SessionLockIsHeldToo) {
  for (const int fate : {0, 1, 2, 3}) {  // bit 0: a crash in the middle; bit 1: it is rolled back
    SCOPED_TRACE(fate);
    StoresRig rig{2};
    const auto a = rig[0].create("a");
    const auto b = rig[1].create("b", {.lock_duration = 10s, .requires_session = true});
    auto& other = rig[1];
    EXPECT_EQ(other.send(b, "old", 0, "s"), std::nullopt);
    const auto who = receiver(9);
    other.apply(
        b, broker::AttachReceiver{who, broker::ConnectionId{9}, broker::SubQueue::active,
                                  broker::ReceiveMode::peek_lock, broker::AttachReceiver::NamedSession{"s"}});
    other.credit(b, who, 1);
    other.turn();
    const auto got = other.next(who);
    ASSERT_TRUE(got);
    std::vector<broker::TransactionStep> steps{StoresRig::sends(0, a, "1"),
                                               StoresRig::settles(1, b, got->effect.lock)};
    const auto request = rig.start(0, std::move(steps));
    rig.deliver(0);
    other.run();
    if (fate & 1) {
      other.crash();
      rig.advance(0s);
    } else {
      other.advance(11s);  // its session's lock has ended
      EXPECT_EQ(other.owner->detached.count(who), 1u);
      EXPECT_THAT(other.peek(b), ElementsAre("old"));
      rig[0].owner->clock = other.owner->clock;
    }
    if (fate & 2) {
      rig.crash(0);
      rig.advance(1min);
      EXPECT_THAT(rig[0].peek(a), IsEmpty());
      EXPECT_THAT(other.peek(b), ElementsAre("old"));
    } else if (!(fate & 1)) {
      rig.run();
      EXPECT_EQ(rig.answer(0, request), "done");
      EXPECT_THAT(other.peek(b), IsEmpty());
    }
    rig.advance(1min);
    // Whatever it was, nothing is held.
    const auto next = receiver(9, 77);
    other.apply(
        b, broker::AttachReceiver{next, broker::ConnectionId{9}, broker::SubQueue::active,
                                  broker::ReceiveMode::peek_lock, broker::AttachReceiver::NamedSession{"s"}});
    other.credit(b, next, 1);
    other.turn();
    EXPECT_EQ(other.next(next).has_value(), other.store->counts(b)->active == 1);
  }
}

// Any order of steps, messages and crashes.
TEST(StoreTransactions, RandomHistoriesAgree) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random{seed};
    const std::size_t count = 2 + random.below(2);
    Story story{count, seed};
    story.start();
    bool coordinator_crashed = false;
    std::optional<std::string> told;
    for (int i = 0; i < 60; ++i) {
      if (!coordinator_crashed) told = story.rig.answer(0, story.request);
      const auto dice = random.below(20);
      if (dice == 0) {
        const std::size_t victim = random.below(count);
        coordinator_crashed |= victim == 0;
        story.rig.crash(victim);
      } else if (dice == 1) {
        story.rig.advance(std::chrono::milliseconds{random.below(3000)});
      } else if (dice == 2) {
        auto& messages = story.rig[random.below(count)].owner->messages;
        // Lost on the way; only what is asked again may be.
        if (!messages.empty()) messages.pop_front();
      } else if (const std::size_t choices = story.rig.choices()) {
        story.rig.take(random.below(choices));
      }
    }
    if (!coordinator_crashed) {
      story.rig.advance(30s);
      told = story.rig.answer(0, story.request);
      EXPECT_TRUE(told) << "nobody told the client";
    }
    story.expect_agreement(told);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace omnibus::store
