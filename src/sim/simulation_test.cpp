#include "sim/simulation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace omnibus::sim {
namespace {

using namespace std::chrono_literals;

std::string all(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Small, so that it takes a moment with sanitizers too.
void make_short(Scenario& scenario) { scenario.duration = std::min<Nanos>(scenario.duration, 8s); }

// An answer is told in the words of the settlement that was begun. Counts them by kind of client.
void count_answers(const History& history, std::map<char, std::size_t>& answers) {
  std::multiset<std::tuple<std::string, std::string, std::string, std::int64_t, std::optional<How>>> begun;
  for (const Event& event : history) {
    const auto one = std::tuple{event.who, event.id, event.entity, event.seq, event.how};
    if (event.what == Do::settle) begun.insert(one);
    if (event.what != Do::settled) continue;
    const auto found = begun.find(one);
    ASSERT_NE(found, begun.end()) << to_line(event);
    begun.erase(found);
    EXPECT_TRUE(event.how && event.result) << to_line(event);
    ++answers[event.who.front()];
  }
}

TEST(Simulation, SameSeedIsTheSameRun) {
  for (const std::uint64_t seed : {3, 7}) {
    const Report first = simulate(seed, make_short);
    const Report second = simulate(seed, make_short);
    EXPECT_EQ(first.hash, second.hash) << "seed " << seed;
    EXPECT_EQ(first.history, second.history) << "seed " << seed;
    EXPECT_GT(first.judgement.sends, 0u) << "seed " << seed;
  }
  EXPECT_NE(simulate(1, make_short).hash, simulate(2, make_short).hash);
}

TEST(Simulation, SeedsKeepEveryPromise) {
  std::size_t deliveries = 0;
  std::size_t transactions = 0;
  std::map<char, std::size_t> answers;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Report report = simulate(seed, make_short);
    EXPECT_TRUE(report.violations.empty()) << "seed " << seed << "\n" << all(report.violations);
    deliveries += report.judgement.deliveries;
    transactions += report.judgement.transactions;
    count_answers(report.history, answers);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
  EXPECT_GT(deliveries, 100u);
  EXPECT_GT(transactions, 10u);
  // Receivers, those of sessions, and who takes within transactions.
  for (const char kind : {'r', 'q', 't'}) EXPECT_GT(answers[kind], 0u) << kind;
}

// A journal that says "durable" before it is: a simulator that does not notice would be of no use.
TEST(Simulation, AcknowledgementBeforeTheDiskIsNoticed) {
  const auto break_it = [](Scenario& scenario) {
    scenario.acknowledges_early = true;
    scenario.disk.slowest = 30ms;
    scenario.faults = {};
    scenario.faults.crash = 1;
    scenario.faults.longest = 2s;
    make_short(scenario);
  };
  std::size_t noticed = 0;
  for (std::uint64_t seed = 1; seed <= 10 && noticed == 0; ++seed)
    noticed += !simulate(seed, break_it).violations.empty();
  EXPECT_GT(noticed, 0u);
}

// Only bits that change, again and again.
void make_flips(Scenario& scenario) {
  make_short(scenario);
  scenario.faults = {};
  scenario.faults.flip = 1;
  scenario.faults.longest = 2s;
}

TEST(Simulation, FlippedBitsCostOnlyWhatWasTold) {
  std::size_t flipped = 0;
  std::size_t excused = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Report report = simulate(seed, make_flips);
    EXPECT_TRUE(report.violations.empty()) << "seed " << seed << "\n" << all(report.violations);
    flipped += report.has_flipped;
    excused += !report.excused.empty();
    EXPECT_TRUE(report.has_flipped || report.excused.empty()) << "seed " << seed;
  }
  EXPECT_GT(flipped, 0u);
  EXPECT_GT(excused, 0u) << "and something was told";
}

TEST(Simulation, DamageThatNobodyTellsIsNoticed) {
  const auto break_it = [](Scenario& scenario) {
    make_flips(scenario);
    scenario.hides_damage = true;
  };
  std::size_t noticed = 0;
  for (std::uint64_t seed = 1; seed <= 20 && noticed == 0; ++seed)
    noticed += !simulate(seed, break_it).violations.empty();
  EXPECT_GT(noticed, 0u);
}

// A broker that refuses what another partition could have taken.
TEST(Simulation, ARefusalThatNeedNotBeIsNoticed) {
  const auto take_stores_down = [](Scenario& scenario) {
    make_short(scenario);
    scenario.stores = 3;
    for (SimEntity& entity : scenario.entities)
      if (!entity.settings.requires_session) entity.partitions = 4;
    scenario.faults = {};
    scenario.faults.down = 1;
    scenario.faults.longest = 2s;
  };
  const auto break_it = [&](Scenario& scenario) {
    take_stores_down(scenario);
    scenario.gives_up_early = true;
  };
  std::size_t noticed = 0;
  for (std::uint64_t seed = 1; seed <= 10 && noticed == 0; ++seed)
    for (const std::string& one : simulate(seed, break_it).violations)
      noticed += one.contains("could have taken it");
  EXPECT_GT(noticed, 0u);
  const Report good = simulate(1, take_stores_down);
  EXPECT_TRUE(good.violations.empty()) << all(good.violations);
}

}  // namespace
}  // namespace omnibus::sim
