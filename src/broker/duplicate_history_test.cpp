#include "broker/duplicate_history.hpp"

#include <gtest/gtest.h>

#include <set>

namespace omnibus::broker {
namespace {

using namespace std::chrono_literals;

MessageIdHash id(std::uint64_t number) {
  return MessageIdHash::of({reinterpret_cast<const std::uint8_t*>(&number), sizeof number});
}

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

}  // namespace
}  // namespace omnibus::broker
