// omnibus_sim: runs seeds of the simulator. Not part of the product.
//
//     omnibus_sim --seed N [--twice] [--trace]
//     omnibus_sim --runs N [--from SEED] [--hashes]
//
// Ends with 1 when a seed breaks a promise; the seed, what is wrong and the command to see it again are
// printed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "sim/simulation.hpp"

namespace {

using omnibus::sim::Report;

constexpr std::size_t shown_max = 20;

void show(const Report& report) {
  fmt::print("FAIL seed {}: {} violations in {}\n", report.seed, report.violations.size(), report.scenario);
  for (std::size_t i = 0; i < report.violations.size() && i < shown_max; ++i)
    fmt::print("  {}\n", report.violations[i]);
  if (report.violations.size() > shown_max)
    fmt::print("  ... and {} more\n", report.violations.size() - shown_max);
  fmt::print("  again: make sim SEED={}    with its history: build/release/omnibus_sim --seed {} --trace\n",
             report.seed, report.seed);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs the broker's code with simulated clients, network, disk and clock: docs/simulator.md",
               "omnibus_sim"};
  std::uint64_t seed = 0;
  std::uint64_t runs = 0;
  std::uint64_t from = 1;
  bool twice = false;
  bool trace = false;
  bool early = false;
  bool hashes = false;
  auto* one = app.add_option("--seed", seed, "run this seed");
  app.add_option("--runs", runs, "run so many seeds")->excludes(one);
  app.add_option("--from", from, "the first of them");
  app.add_flag("--twice", twice, "run each seed twice, and compare every byte by a hash");
  app.add_flag("--trace", trace, "print the history");
  app.add_flag("--hashes", hashes, "print the hash of each seed, to compare with another process");
  app.add_flag("--acknowledge-early", early, "break the journal on purpose");
  CLI11_PARSE(app, argc, argv);
  if (*one) {
    from = seed;
    runs = 1;
  }
  if (runs == 0) {
    fmt::print(stderr, "give --seed N or --runs N\n");
    return 2;
  }
  const auto began = std::chrono::steady_clock::now();
  const auto adjust = [&](omnibus::sim::Scenario& scenario) { scenario.acknowledges_early = early; };
  std::size_t failed = 0;
  std::uint64_t sends = 0;
  std::uint64_t deliveries = 0;
  std::uint64_t transactions = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    Report report = omnibus::sim::simulate(from + i, adjust);
    if (twice) {
      const Report again = omnibus::sim::simulate(from + i, adjust);
      if (again.hash != report.hash)
        report.violations.push_back(
            fmt::format("not the same run twice: {:016x} and {:016x}", report.hash, again.hash));
    }
    if (trace)
      for (const auto& event : report.history) fmt::print("{}\n", omnibus::sim::to_line(event));
    if (!report.violations.empty()) {
      show(report);
      ++failed;
    }
    if (*one)
      fmt::print("seed {}: {}\n{:016x}, {} events, {} sends, {} deliveries, {} transactions\n", report.seed,
                 report.scenario, report.hash, report.events, report.judgement.sends,
                 report.judgement.deliveries, report.judgement.transactions);
    if (hashes) fmt::print("hash {} {:016x}\n", report.seed, report.hash);
    sends += report.judgement.sends;
    deliveries += report.judgement.deliveries;
    transactions += report.judgement.transactions;
    if (!*one && ((i + 1) % 100 == 0 || i + 1 == runs))
      fmt::print("{} of {} seeds, {} failed, {} sends, {} deliveries, {} transactions, {:.1f} s\n", i + 1,
                 runs, failed, sends, deliveries, transactions,
                 std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    std::fflush(stdout);
  }
  fmt::print("{} passed, {} failed, 0 skipped\n", runs - failed, failed);
  return failed == 0 ? 0 : 1;
}
