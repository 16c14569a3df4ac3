#include "net/reactor.hpp"

#include <gtest/gtest.h>

#include <future>
#include <optional>

namespace omnibus::net {
namespace {

using namespace std::chrono_literals;

TEST(Reactor, RunsPostedTasksInOrderOnItsThread) {
  Reactor reactor;
  std::vector<int> order;
  std::vector<bool> inside;
  std::promise<void> done;
  for (int i = 0; i < 100; ++i)
    reactor.post([&, i] {
      order.push_back(i);
      inside.push_back(reactor.on_this_thread());
    });
  reactor.post([&] { done.set_value(); });
  EXPECT_FALSE(reactor.on_this_thread());
  reactor.start();
  done.get_future().wait();
  reactor.stop();
  reactor.join();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
    EXPECT_TRUE(inside[static_cast<std::size_t>(i)]);
  }
}

TEST(Timer, FiresInOrderOfTimeAndNeverEarly) {
  Reactor reactor;
  std::string order;
  Timer late(reactor);
  Timer early(reactor);
  const Tick start = reactor.now();
  bool too_early = false;
  late.arm(start + 20ms, [&] {
    order += "late";
    too_early |= reactor.now() < start + 20ms;
    reactor.stop();
  });
  early.arm(start + 5ms, [&] {
    order += "early ";
    too_early |= reactor.now() < start + 5ms;
  });
  reactor.run();
  EXPECT_EQ(order, "early late");
  EXPECT_FALSE(too_early);
}

// Both are due in the same turn; the first takes the second back before it runs.
TEST(Timer, CancelledCallbackDoesNotRunEvenWhenDue) {
  Reactor reactor;
  bool ran = false;
  Timer first(reactor);
  Timer second(reactor);
  Timer last(reactor);
  const Tick past = reactor.now() - 1s;
  first.arm(past, [&] { second.cancel(); });
  second.arm(past, [&] { ran = true; });
  last.arm(past, [&] { reactor.stop(); });
  reactor.run();
  EXPECT_FALSE(ran);
  EXPECT_FALSE(second.armed());
}

TEST(Timer, MayDestroyItselfAndMayArmItselfAgain) {
  Reactor reactor;
  std::optional<Timer> doomed;
  doomed.emplace(reactor);
  Timer repeating(reactor);
  int turns = 0;
  doomed->arm(reactor.now(), [&] { doomed.reset(); });
  std::function<void()> again = [&] {
    if (++turns == 5) return reactor.stop();
    repeating.arm(reactor.now() - 1s, [&] { again(); });
  };
  repeating.arm(reactor.now(), [&] { again(); });
  reactor.run();
  EXPECT_FALSE(doomed.has_value());
  EXPECT_EQ(turns, 5);
}

// A timer that re-arms itself in the past does not starve what was posted.
TEST(Timer, OverdueTimerLeavesRoomForOthers) {
  Reactor reactor;
  Timer greedy(reactor);
  std::function<void()> again = [&] { greedy.arm(reactor.now() - 1s, [&] { again(); }); };
  again();
  reactor.post([&] { reactor.post([&] { reactor.stop(); }); });
  reactor.run();
  SUCCEED();
}

TEST(Timer, MovingToAnEarlierTimeWorks) {
  Reactor reactor;
  Timer timer(reactor);
  std::string which;
  timer.arm(reactor.now() + 1h, [&] { which = "far"; });
  timer.arm(reactor.now() + 1ms, [&] {
    which = "near";
    reactor.stop();
  });
  reactor.run();
  EXPECT_EQ(which, "near");
}

TEST(ShardPool, StartsAndStops) {
  ShardPool pool(3);
  pool.start();
  std::vector<std::future<bool>> answers;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    auto answer = std::make_shared<std::promise<bool>>();
    answers.push_back(answer->get_future());
    pool[i].post([&pool, i, answer] { answer->set_value(pool[i].on_this_thread()); });
  }
  for (auto& answer : answers) EXPECT_TRUE(answer.get());
  pool.stop();
}

TEST(ShardPool, IsOnePerCoreWhenNotTold) { EXPECT_GE(ShardPool().size(), 1u); }

}  // namespace
}  // namespace omnibus::net
