// What the slowest messages waited for: 1,000 per second through one queue, and every sync of the broker.
//
//   slow_messages [--seconds S]
//
// The broker runs with sync_log beside it. Of each message of the slowest percent it is reckoned for how much
// of its time, from send to receipt, a sync was under way, and whether one single sync took more than half.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "../broker/broker_process.hpp"
#include "../load/load_client.hpp"
#include "../load/options.hpp"
#include "../load/pairs.hpp"
#include "base/temporary_folder.hpp"

namespace omnibus::bench {
namespace {

using namespace std::chrono_literals;

struct Span {
  Tick from;
  Tick to;
  [[nodiscard]] double ms() const { return std::chrono::duration<double, std::milli>(to - from).count(); }
  auto operator<=>(const Span&) const = default;
};

std::vector<Span> read_syncs(const std::string& file) {
  std::vector<Span> syncs;
  std::ifstream in(file);
  for (std::int64_t from = 0, to = 0; in >> from >> to;)
    syncs.push_back({Tick{std::chrono::nanoseconds{from}}, Tick{std::chrono::nanoseconds{to}}});
  std::ranges::sort(syncs);
  return syncs;
}

// How long the longest of the quickest `share` took.
double percentile(std::vector<Span> spans, double share) {
  std::ranges::sort(spans, {}, &Span::ms);
  return spans[static_cast<std::size_t>(share * static_cast<double>(spans.size() - 1))].ms();
}

void judge(const std::vector<Span>& messages, const std::vector<Span>& syncs) {
  const double limit = percentile(messages, 0.99);
  double waited = 0;
  double covered = 0;
  std::size_t slow = 0;
  std::size_t by_one = 0;
  std::set<Tick> which;
  for (const Span& message : messages) {
    if (message.ms() < limit) continue;
    ++slow;
    waited += message.ms();
    double longest = 0;
    Tick longest_from{};
    Tick counted_to = message.from;  // syncs of several files may be under way at once
    for (const Span& sync : syncs) {
      const Span common{std::max(sync.from, message.from), std::min(sync.to, message.to)};
      if (common.to <= common.from) continue;
      covered += Span{std::max(common.from, counted_to), std::max(common.to, counted_to)}.ms();
      counted_to = std::max(counted_to, common.to);
      if (common.ms() <= longest) continue;
      longest = common.ms();
      longest_from = sync.from;
    }
    if (longest <= message.ms() / 2) continue;
    ++by_one;
    which.insert(longest_from);
  }
  fmt::print(
      "{} messages: p50 {:.2f} ms, p99 {:.2f} ms; {} syncs: p50 {:.2f} ms, p99 {:.2f} ms, longest {:.1f} "
      "ms\n",
      messages.size(), percentile(messages, 0.5), limit, syncs.size(), percentile(syncs, 0.5),
      percentile(syncs, 0.99), percentile(syncs, 1));
  fmt::print(
      "the slowest percent, {} messages: a sync was under way for {:.0f} % of their time; for {} of them one "
      "single sync took more than half, {} different ones\n",
      slow, 100 * covered / waited, by_one, which.size());
}

}  // namespace
}  // namespace omnibus::bench

int main(int argc, char** argv) {
  using namespace omnibus;
  using namespace omnibus::bench;
  const LoadOptions options = read_options(argc, argv, {.seconds = 10});
  const auto folder = make_temporary_folder("omnibus-slow-");
  if (!folder) {
    fmt::print(stderr, "bench: {}\n", folder.error().detail);
    return 1;
  }
  const std::string log = *folder / "syncs";
  ReceiverCounts received;
  std::vector<Arrival> arrivals;
  received.arrivals = &arrivals;
  {
    // Only the broker's process is to have it, so it is gone from here once that runs.
    ::setenv("OMNIBUS_SYNC_LOG", log.c_str(), 1);
    ::setenv("LD_PRELOAD", OMNIBUS_SYNC_LOG_LIBRARY, 1);
    BrokerProcess broker(config_of({queue_of("bench")}));
    ::unsetenv("LD_PRELOAD");
    net::Reactor senders("sender");
    net::Reactor receivers("receiver");
    SenderCounts sent;
    const LoadTarget target{broker.port(), "bench"};
    start_receiver(receivers, target, 1000, received);
    start_sender(senders, target, {.body_bytes = body_bytes, .rate = 1000}, sent);
    receivers.start();
    senders.start();
    std::this_thread::sleep_for(warm_up + std::chrono::duration<double>(options.seconds));
    end_load(senders);
    end_load(receivers);
  }
  std::vector<Span> messages;
  for (const Arrival& one : arrivals)
    if (one.sent > arrivals.front().sent + warm_up) messages.push_back({one.sent, one.received});
  const auto syncs = read_syncs(log);
  std::error_code left;  // a leftover in the temporary folder spoils no figure
  std::filesystem::remove_all(*folder, left);
  if (messages.empty() || syncs.empty()) {
    fmt::print(stderr, "bench: {} messages and {} syncs were seen\n", messages.size(), syncs.size());
    return 1;
  }
  judge(messages, syncs);
}
