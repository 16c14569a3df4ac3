// A partitioned queue beside plain ones, in one run, with one shard and with two.
//
//   partition_load [--seconds S] [--rounds N] [--only PART]
//
// PART: one-shard, two-shards, slow-shards, or profile[-plain|-one][-two].
//
// Everything is measured in rounds of S seconds each; a ratio is that of one round, and what is told is the
// median of the rounds and how far they lie apart. The same 16 pairs of a sender and a receiver load 16 plain
// queues, one plain queue, and one queue of 16 partitions; then one pair at 100 messages per second looks at
// how long a message takes through each, where nothing else is to be waited for. `slow-shards` gives each
// shard no more than a part of a core and the rest to the load, so that the shards are the limit and not the
// machine. `profile` only loads the partitioned queue with one shard (`-plain`: the 16 plain ones, `-one`:
// one plain one, `-two`: two shards), for whoever looks at the broker meanwhile.
#include <fmt/format.h>

#include <vector>

#include "../broker/thread_quota.hpp"
#include "../load/options.hpp"
#include "../load/pairs.hpp"
#include "../load/rounds.hpp"

namespace omnibus::bench {
namespace {

constexpr int pairs = 16;
constexpr std::uint32_t window = 100;
// Two shards at this, with what the journal takes, leave more than the load needs on two cores.
constexpr double slow_share = 0.25;

const std::string partitioned = R"("EnablePartitioning": true, "MaxSizeInMegabytes": 5120)";

const std::vector<std::string> all_to_one(pairs, "bench");

std::string shards_setting(int shards) { return fmt::format(R"("Shards": {})", shards); }

struct Load {
  std::string config;
  std::vector<std::string> addresses;
};
Load sixteen_plain(const std::string& omnibus) {
  std::vector<std::string> names;
  std::vector<std::string> queues;
  for (int i = 0; i < pairs; ++i) {
    names.push_back(fmt::format("plain{}", i));
    queues.push_back(queue_of(names.back()));
  }
  return {config_of(queues, omnibus), names};
}

struct Figures {
  Rounds plain, sixteen, spread, of_sixteen, of_plain, spread_per_cpu, sixteen_per_cpu;
  Rounds plain_per_cpu, plain_cores, spread_cores, plain_busiest, spread_busiest, at_best, of_plain_alone;
  Rounds plain_p50, spread_p50, p50_ratio, plain_p99, spread_p99;
};

void measure(double seconds, int shards, Figures& f) {
  const std::string omnibus = shards_setting(shards);
  const Load plain_queues = sixteen_plain(omnibus);
  const std::string one = config_of({queue_of("bench")}, omnibus);
  const std::string many = config_of({queue_of("bench", partitioned)}, omnibus);

  const Flow sixteen = measure_flow(plain_queues.config, plain_queues.addresses, window, seconds);
  const Flow plain = measure_flow(one, all_to_one, window, seconds);
  const Flow spread = measure_flow(many, all_to_one, window, seconds);
  f.sixteen.add(sixteen.received_per_second);
  f.sixteen_per_cpu.add(sixteen.per_cpu_second);
  f.plain.add(plain.received_per_second);
  f.plain_per_cpu.add(plain.per_cpu_second);
  f.spread.add(spread.received_per_second);
  f.plain_cores.add(plain.cores);
  f.spread_cores.add(spread.cores);
  f.at_best.add(plain.busiest / (plain.shards / shards));
  f.plain_busiest.add(plain.busiest);
  f.spread_busiest.add(spread.busiest);
  f.of_plain_alone.add((spread.received_per_second / spread.busiest) /
                       (plain.received_per_second / plain.busiest));
  f.spread_per_cpu.add(spread.per_cpu_second);
  f.of_sixteen.add(spread.received_per_second / sixteen.received_per_second);
  f.of_plain.add(spread.received_per_second / plain.received_per_second);

  const Latency slow = measure_latency(one, "bench", seconds, 100);
  const Latency slow_spread = measure_latency(many, "bench", seconds, 100);
  f.plain_p50.add(slow.p50);
  f.spread_p50.add(slow_spread.p50);
  f.p50_ratio.add(slow_spread.p50 / slow.p50);
  f.plain_p99.add(slow.p99);
  f.spread_p99.add(slow_spread.p99);
}

// What is wanted is "profile", with "-plain" or "-one" for plain queues and "-two" for two shards.
int profile(std::string_view wanted, double seconds) {
  const std::string omnibus = shards_setting(wanted.ends_with("-two") ? 2 : 1);
  const std::string queue = wanted.contains("-one") ? queue_of("bench") : queue_of("bench", partitioned);
  const Load load =
      wanted.contains("-plain") ? sixteen_plain(omnibus) : Load{config_of({queue}, omnibus), all_to_one};
  const Flow flow = measure_flow(load.config, load.addresses, window, seconds);
  fmt::print(
      "{:.0f}/s, {:.0f} per broker CPU second; a shard {:.2f}, all {:.2f} cores; {:.0f} wait at the end\n",
      flow.received_per_second, flow.per_cpu_second, flow.busiest, flow.cores, flow.waiting);
  return 0;
}

struct SlowFigures {
  Rounds single, plain, spread, of_plain, of_single, plain_cores, spread_cores, at_best;
};

void measure_slow(double seconds, SlowFigures& f) {
  const auto flow = [seconds](int shards, const std::string& queue) {
    return measure_flow(config_of({queue}, shards_setting(shards)), all_to_one, window, seconds, slow_share);
  };
  const Flow single = flow(1, queue_of("bench"));
  const Flow plain = flow(2, queue_of("bench"));
  const Flow spread = flow(2, queue_of("bench", partitioned));
  f.single.add(single.received_per_second);
  f.plain.add(plain.received_per_second);
  f.spread.add(spread.received_per_second);
  f.of_plain.add(spread.received_per_second / plain.received_per_second);
  f.of_single.add(spread.received_per_second / single.received_per_second);
  f.plain_cores.add(plain.cores);
  f.spread_cores.add(spread.cores);
  f.at_best.add(plain.busiest / (plain.shards / 2));
}

void print_slow(const SlowFigures& f) {
  fmt::print("each shard held at {} of a core, 16+16, durable, 1 KiB:\n", slow_share);
  fmt::print("  one plain queue, one shard {}/s; two shards {}/s, {} cores busy\n", f.single.text(0),
             f.plain.text(0), f.plain_cores.text(2));
  fmt::print("  one queue of 16 partitions, two shards {}/s, {} cores busy\n", f.spread.text(0),
             f.spread_cores.text(2));
  fmt::print("    of one plain queue: {}; aim with two shards: clearly more than 1\n", f.of_plain.text(2));
  fmt::print("    the same, did the plain queue's work divide equally among the shards at no cost: {}\n",
             f.at_best.text(2));
  fmt::print("    of one plain queue with one shard: {}\n", f.of_single.text(2));
}

void print(int shards, const Figures& f) {
  fmt::print("{} shard{}, 16+16, durable, 1 KiB:\n", shards, shards == 1 ? "" : "s");
  fmt::print("  16 plain queues {}/s, {} per broker CPU second\n", f.sixteen.text(0),
             f.sixteen_per_cpu.text(0));
  fmt::print(
      "  one plain queue {}/s, {} per broker CPU second; broker and load keep {} cores busy, a shard {}\n",
      f.plain.text(0), f.plain_per_cpu.text(0), f.plain_cores.text(2), f.plain_busiest.text(2));
  fmt::print("  one queue of 16 partitions {}/s, {} per broker CPU second; {} cores, a shard {}\n",
             f.spread.text(0), f.spread_per_cpu.text(0), f.spread_cores.text(2), f.spread_busiest.text(2));
  fmt::print("    of 16 plain queues: {}; aim >= 0.9\n", f.of_sixteen.text(2));
  fmt::print("    of one plain queue: {}; aim with two shards: clearly more than 1\n", f.of_plain.text(2));
  fmt::print("    the same, were the busiest shard the limit and not the machine: {}\n",
             f.of_plain_alone.text(2));
  fmt::print("    the same, did the plain queue's work divide equally among the shards at no cost: {}\n",
             f.at_best.text(2));
  fmt::print("  end to end at 100/s: plain p50 {} ms, p99 {} ms; partitioned p50 {} ms, p99 {} ms\n",
             f.plain_p50.text(2), f.plain_p99.text(2), f.spread_p50.text(2), f.spread_p99.text(2));
  fmt::print("    p50 of that of a plain queue: {}; aim <= 1.5\n", f.p50_ratio.text(2));
}

}  // namespace
}  // namespace omnibus::bench

int main(int argc, char** argv) {
  using namespace omnibus::bench;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const LoadOptions options =
      read_options(argc, argv, {.rounds = 3},
                   {"one-shard", "two-shards", "slow-shards", "profile", "profile-plain", "profile-one",
                    "profile-two", "profile-plain-two", "profile-one-two"});
  if (options.only.starts_with("profile")) return profile(options.only, options.seconds);
  const std::string_view parts[] = {"one-shard", "two-shards"};
  const std::string trouble = ThreadQuota::trouble();
  const bool slow = options.wants("slow-shards") && trouble.empty();
  Figures figures[2];
  SlowFigures slow_figures;
  for (int round = 0; round < options.rounds; ++round) {
    for (int shards = 1; shards <= 2; ++shards)
      if (options.wants(parts[shards - 1])) measure(options.seconds, shards, figures[shards - 1]);
    if (slow) measure_slow(options.seconds, slow_figures);
  }
  for (int shards = 1; shards <= 2; ++shards)
    if (options.wants(parts[shards - 1])) print(shards, figures[shards - 1]);
  if (slow) print_slow(slow_figures);
  if (options.wants("slow-shards") && !slow) fmt::print("slow-shards not measured: {}\n", trouble);
}
