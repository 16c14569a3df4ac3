#include "broker/duplicate_history.hpp"

#include <gtest/gtest.h>

#include <set>

namespace omnibus::broker {
namespace {

using namespace std::chrono_literals;

MessageIdHash id(std::uint64_t number) { return {number, (number + 1) * 0x9e3779b97f4a7c15}; }

// A checkpoint visits in steps while ids come in; a table that grows in between puts them elsewhere.
TEST(DuplicateHistory, AVisitInStepsMissesNoIdThatWasThereWhenItBegan) {
  const Instant now{1'000'000ms};
  for (std::uint64_t present : {3u, 11u, 12u, 20u, 23u}) {
    for (std::size_t step = 1; step <= 6; ++step) {
      DuplicateHistory history;
      std::uint64_t next = 0;
      while (next < present) history.add(id(next++), now, 10min);
      std::set<MessageIdHash> visited;
      std::uint64_t at = 0;
      do {
        at = history.visit(at, step, [&](const MessageIdHash& one, std::int64_t) { visited.insert(one); });
        if (next < 200) history.add(id(next++), now, 10min);
      } while (at != 0);
      for (std::uint64_t number = 0; number < present; ++number)
        EXPECT_TRUE(visited.contains(id(number))) << number << " of " << present << " by " << step;
    }
  }
}

TEST(DuplicateHistory, AtTheLimitEveryIdIsKnownAndOnePastItTheOldestQuarterGoes) {
  const Instant now{1'000'000ms};
  DuplicateHistory history{64};
  for (std::uint64_t number = 0; number < 64; ++number) history.add(id(number), now, 10min);
  for (std::uint64_t number = 0; number < 64; ++number) EXPECT_TRUE(history.seen(id(number), now, 10min));
  EXPECT_EQ(history.size(), 64u);
  EXPECT_EQ(history.gone_early(), 0u);

  history.add(id(64), now, 10min);
  for (std::uint64_t number = 0; number <= 64; ++number)
    EXPECT_EQ(history.seen(id(number), now, 10min), number >= 16) << number;
  EXPECT_EQ(history.size(), 49u);
  EXPECT_EQ(history.gone_early(), 16u);
}

TEST(DuplicateHistory, WhatNoWindowReachesDoesNotGoEarly) {
  DuplicateHistory history{64};
  for (std::uint64_t number = 0; number < 64; ++number) history.add(id(number), Instant{1'000'000ms}, 10min);
  history.add(id(64), Instant{1'000'000ms} + 10min, 10min);
  EXPECT_EQ(history.size(), 49u);
  EXPECT_EQ(history.gone_early(), 0u);
}

TEST(DuplicateHistory, AWeekOfAMillionIdsTakesLessThan64BytesEach) {
  const auto week = std::chrono::hours{24 * 7};
  const Instant begin{1'000'000'000ms};
  constexpr std::uint64_t ids = 1'000'000;
  const auto at = [&](std::uint64_t number) { return begin + number * (week - 1ms) / ids; };
  DuplicateHistory history;
  for (std::uint64_t number = 0; number < ids; ++number) history.add(id(number), at(number), week);
  EXPECT_EQ(history.size(), ids);
  EXPECT_LT(history.bytes(), ids * 64);
  const Instant end = begin + week;
  for (std::uint64_t number = 1; number < ids; number += 997)
    EXPECT_TRUE(history.seen(id(number), end, week));
  EXPECT_FALSE(history.seen(id(0), end, week)) << "to the millisecond";
  EXPECT_FALSE(history.seen(id(ids), end, week));
  history.forget(end + week, week);
  EXPECT_EQ(history.size(), 0u);
  EXPECT_EQ(history.bytes(), 0u);
}

}  // namespace
}  // namespace omnibus::broker
