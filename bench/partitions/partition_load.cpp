// A partitioned queue beside plain ones, in one run, with one shard and with two.
//
//   partition_load [--seconds S] [--rounds N] [--only one-shard|two-shards|profile]
//
// Everything is measured in rounds of S seconds each; a ratio is that of one round, and what is told is the
// median of the rounds and how far they lie apart. The same 16 pairs of a sender and a receiver load 16 plain
// queues, one plain queue, and one queue of 16 partitions; then one pair at 100 messages per second looks at
// how long a message takes through each, where nothing else is to be waited for. `profile` only loads the
// partitioned queue with one shard, for whoever looks at the broker meanwhile.
#include <fmt/format.h>

#include <vector>

#include "../load/options.hpp"
#include "../load/pairs.hpp"
#include "../load/rounds.hpp"

namespace omnibus::bench {
namespace {

constexpr int pairs = 16;
constexpr std::uint32_t window = 100;

const std::string partitioned = R"("EnablePartitioning": true, "MaxSizeInMegabytes": 5120)";

struct Figures {
  Rounds plain, sixteen, spread, of_sixteen, of_plain, spread_per_cpu, sixteen_per_cpu;
  Rounds plain_cores, spread_cores, plain_busiest, spread_busiest, of_plain_alone;
  Rounds plain_p50, spread_p50, p50_ratio, plain_p99, spread_p99;
};

void measure(double seconds, int shards, Figures& f) {
  const std::string omnibus = fmt::format(R"("Shards": {})", shards);
  std::vector<std::string> names;
  std::vector<std::string> queues;
  for (int i = 0; i < pairs; ++i) {
    names.push_back(fmt::format("plain{}", i));
    queues.push_back(queue_of(names.back()));
  }
  const std::vector<std::string> all_to_one(pairs, "bench");
  const std::string one = config_of({queue_of("bench")}, omnibus);
  const std::string many = config_of({queue_of("bench", partitioned)}, omnibus);

  const Flow sixteen = measure_flow(config_of(queues, omnibus), names, window, seconds);
  const Flow plain = measure_flow(one, all_to_one, window, seconds);
  const Flow spread = measure_flow(many, all_to_one, window, seconds);
  f.sixteen.add(sixteen.received_per_second);
  f.sixteen_per_cpu.add(sixteen.per_cpu_second);
  f.plain.add(plain.received_per_second);
  f.spread.add(spread.received_per_second);
  f.plain_cores.add(plain.cores);
  f.spread_cores.add(spread.cores);
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

int profile(double seconds) {
  const Flow flow = measure_flow(config_of({queue_of("bench", partitioned)}, R"("Shards": 1)"),
                                 std::vector<std::string>(pairs, "bench"), window, seconds);
  fmt::print("one queue of 16 partitions {:.0f}/s, {:.0f} per broker CPU second\n", flow.received_per_second,
             flow.per_cpu_second);
  return 0;
}

void print(int shards, const Figures& f) {
  fmt::print("{} shard{}, 16+16, durable, 1 KiB:\n", shards, shards == 1 ? "" : "s");
  fmt::print("  16 plain queues {}/s, {} per broker CPU second\n", f.sixteen.text(0),
             f.sixteen_per_cpu.text(0));
  fmt::print("  one plain queue {}/s; broker and load keep {} cores busy, the broker's busiest thread {}\n",
             f.plain.text(0), f.plain_cores.text(2), f.plain_busiest.text(2));
  fmt::print("  one queue of 16 partitions {}/s, {} per broker CPU second; {} cores, the busiest thread {}\n",
             f.spread.text(0), f.spread_per_cpu.text(0), f.spread_cores.text(2), f.spread_busiest.text(2));
  fmt::print("    of 16 plain queues: {}; aim >= 0.9\n", f.of_sixteen.text(2));
  fmt::print("    of one plain queue: {}; aim with two shards: clearly more than 1\n", f.of_plain.text(2));
  fmt::print("    the same, were the busiest thread the limit and not the machine: {}\n",
             f.of_plain_alone.text(2));
  fmt::print("  end to end at 100/s: plain p50 {} ms, p99 {} ms; partitioned p50 {} ms, p99 {} ms\n",
             f.plain_p50.text(2), f.plain_p99.text(2), f.spread_p50.text(2), f.spread_p99.text(2));
  fmt::print("    p50 of that of a plain queue: {}; aim <= 1.5\n", f.p50_ratio.text(2));
}

}  // namespace
}  // namespace omnibus::bench

int main(int argc, char** argv) {
  using namespace omnibus::bench;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const LoadOptions options = read_options(argc, argv, {.rounds = 3}, {"one-shard", "two-shards", "profile"});
  if (options.only == "profile") return profile(options.seconds);
  const std::string_view parts[] = {"one-shard", "two-shards"};
  Figures figures[2];
  for (int round = 0; round < options.rounds; ++round)
    for (int shards = 1; shards <= 2; ++shards)
      if (options.wants(parts[shards - 1])) measure(options.seconds, shards, figures[shards - 1]);
  for (int shards = 1; shards <= 2; ++shards)
    if (options.wants(parts[shards - 1])) print(shards, figures[shards - 1]);
}
