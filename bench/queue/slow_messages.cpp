// What the slowest messages waited for: 1,000 per second through one queue, and every call of the broker that
// touches the journal's files.
//
//   slow_messages [--seconds S]
//
// The broker runs with sync_log beside it. Of each message of the slowest percent it is reckoned for how much
// of its time, from send to receipt, a sync was under way, for how much else a write or another call was, and
// whether one single sync took more than half.
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

// What the broker did with its files, each kind by when it began.
struct Calls {
  std::vector<Span> syncs, writes, others;
};

Calls read_calls(const std::string& file) {
  Calls calls;
  std::ifstream in(file);
  char kind = 0;
  for (std::int64_t from = 0, to = 0; in >> kind >> from >> to;) {
    auto& spans = kind == 's' ? calls.syncs : kind == 'w' ? calls.writes : calls.others;
    spans.push_back({Tick{std::chrono::nanoseconds{from}}, Tick{std::chrono::nanoseconds{to}}});
  }
  for (auto* spans : {&calls.syncs, &calls.writes, &calls.others}) std::ranges::sort(*spans);
  return calls;
}

// How long the longest of the quickest `share` took.
double percentile(std::vector<Span> spans, double share) {
  std::ranges::sort(spans, {}, &Span::ms);
  return spans[static_cast<std::size_t>(share * static_cast<double>(spans.size() - 1))].ms();
}

// For how much of a message's time one of the calls was under way; those of several files may be at once.
double covered_ms(const Span& message, const std::vector<Span>& calls) {
  double covered = 0;
  Tick counted_to = message.from;
  for (const Span& call : calls) {
    const Span common{std::max(call.from, message.from), std::min(call.to, message.to)};
    if (common.to <= common.from) continue;
    covered += Span{std::max(common.from, counted_to), std::max(common.to, counted_to)}.ms();
    counted_to = std::max(counted_to, common.to);
  }
  return covered;
}

void judge(const std::vector<Span>& messages, const Calls& calls) {
  const double limit = percentile(messages, 0.99);
  std::vector<Span> all = calls.syncs;
  all.insert(all.end(), calls.writes.begin(), calls.writes.end());
  std::ranges::sort(all);
  std::vector<Span> any = all;
  any.insert(any.end(), calls.others.begin(), calls.others.end());
  std::ranges::sort(any);
  double waited = 0;
  double in_syncs = 0;
  double in_writes = 0;
  double in_others = 0;
  std::size_t slow = 0;
  std::size_t by_one = 0;
  std::set<Tick> which;
  for (const Span& message : messages) {
    if (message.ms() < limit) continue;
    ++slow;
    waited += message.ms();
    const double syncs = covered_ms(message, calls.syncs);
    const double syncs_and_writes = covered_ms(message, all);
    in_syncs += syncs;
    in_writes += syncs_and_writes - syncs;
    in_others += covered_ms(message, any) - syncs_and_writes;
    const auto part = [&](const Span& sync) {
      return Span{std::max(sync.from, message.from), std::min(sync.to, message.to)}.ms();
    };
    const auto longest = std::ranges::max_element(calls.syncs, {}, part);
    if (part(*longest) <= message.ms() / 2) continue;
    ++by_one;
    which.insert(longest->from);
  }
  fmt::print(
      "{} messages: p50 {:.2f} ms, p99 {:.2f} ms; {} syncs: p50 {:.2f} ms, p99 {:.2f} ms, longest {:.1f} ms; "
      "longest of {} writes {:.1f} ms\n",
      messages.size(), percentile(messages, 0.5), limit, calls.syncs.size(), percentile(calls.syncs, 0.5),
      percentile(calls.syncs, 0.99), percentile(calls.syncs, 1), calls.writes.size(),
      percentile(calls.writes, 1));
  fmt::print(
      "the slowest percent, {} messages: a sync was under way for {:.0f} % of their time, else a write for "
      "{:.0f} %, else another call for {:.0f} %; for {} of them one single sync took more than half, {} "
      "different ones\n",
      slow, 100 * in_syncs / waited, 100 * in_writes / waited, 100 * in_others / waited, by_one,
      which.size());
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
    std::this_thread::sleep_for(paced_warm_up + std::chrono::duration<double>(options.seconds));
    end_load(senders);
    end_load(receivers);
  }
  std::vector<Span> messages;
  for (const Arrival& one : arrivals)
    if (one.sent > arrivals.front().sent + paced_warm_up) messages.push_back({one.sent, one.received});
  const Calls calls = read_calls(log);
  std::error_code left;  // a leftover in the temporary folder spoils no figure
  std::filesystem::remove_all(*folder, left);
  if (messages.empty() || calls.syncs.empty() || calls.writes.empty()) {
    fmt::print(stderr, "bench: {} messages, {} syncs and {} writes were seen\n", messages.size(),
               calls.syncs.size(), calls.writes.size());
    return 1;
  }
  judge(messages, calls);
}
