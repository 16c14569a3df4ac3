#include "pairs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "../broker/broker_process.hpp"
#include "../broker/thread_quota.hpp"
#include "load_client.hpp"
#include "own_cpu.hpp"

namespace omnibus::bench {
namespace {

using namespace std::chrono_literals;

double seconds_since(Tick start) { return std::chrono::duration<double>(tick_now() - start).count(); }

}  // namespace

std::string queue_of(const std::string& name, const std::string& more) {
  return fmt::format(R"({{"Name": "{}", "Properties": {{{}}}}})", name,
                     more.empty() ? R"("MaxSizeInMegabytes": 81920)" : more);
}

std::string config_of(const std::vector<std::string>& queues, const std::string& omnibus) {
  return fmt::format(
      R"({{"UserConfig": {{"Namespaces": [{{"Name": "sbemulatorns", "Queues": [{}], "Topics": []}}],)"
      R"( "Logging": {{"Type": "Console"}}}}, "Omnibus": {{"Auth": "Off"{}{}}}}})",
      fmt::join(queues, ", "), omnibus.empty() ? "" : ", ", omnibus);
}

Flow measure_flow(const std::string& config, const std::vector<std::string>& addresses, std::uint32_t window,
                  double seconds, std::optional<double> shard_share) {
  BrokerProcess broker(config);
  std::optional<ThreadQuota> quota;
  if (shard_share) quota.emplace(broker.pid(), "shard-", *shard_share);
  net::Reactor senders("senders");
  net::Reactor receivers("receivers");
  std::vector<std::unique_ptr<SenderCounts>> sent;
  std::vector<std::unique_ptr<ReceiverCounts>> received;
  for (const std::string& address : addresses) {
    const LoadTarget target{broker.port(), address};
    sent.push_back(std::make_unique<SenderCounts>());
    received.push_back(std::make_unique<ReceiverCounts>());
    start_receiver(receivers, target, window, *received.back());
    start_sender(senders, target, {.body_bytes = body_bytes, .window = window}, *sent.back());
  }
  receivers.start();
  // Shards take connections by turns: receivers come first, so that each shard has as many of them and of
  // senders as the next, in every run.
  std::this_thread::sleep_for(100ms);
  senders.start();
  const auto total = [&] {
    std::uint64_t all = 0;
    for (const auto& one : received) all += one->received;
    return all;
  };
  std::this_thread::sleep_for(warm_up);
  const std::uint64_t before = total();
  const double cpu = broker.cpu_seconds();
  const double load_cpu = own_cpu_seconds();
  const auto shards_before = broker.shard_seconds();
  const Tick start = tick_now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const auto moved = static_cast<double>(total() - before);
  const double took = seconds_since(start);
  const double used = broker.cpu_seconds() - cpu;
  std::uint64_t accepted = 0;
  for (const auto& one : sent) accepted += one->accepted;
  const auto waiting = static_cast<double>(accepted) - static_cast<double>(total());
  Flow result{moved / took, moved / used, (used + own_cpu_seconds() - load_cpu) / took};
  result.waiting = waiting;
  for (const auto& [shard, now] : broker.shard_seconds()) {
    const double share = (now - shards_before.at(shard)) / took;
    result.busiest = std::max(result.busiest, share);
    result.shards += share;
  }
  for (auto& one : sent) one->stop = true;
  std::this_thread::sleep_for(200ms);
  end_load(senders);
  end_load(receivers);
  return result;
}

Latency measure_latency(const std::string& config, const std::string& address, double seconds, double rate) {
  BrokerProcess broker(config);
  net::Reactor senders("sender");
  net::Reactor receivers("receiver");
  SenderCounts sent;
  ReceiverCounts received;
  const LoadTarget target{broker.port(), address};
  start_receiver(receivers, target, 1000, received);
  start_sender(senders, target, {.body_bytes = body_bytes, .rate = rate}, sent);
  receivers.start();
  senders.start();
  std::this_thread::sleep_for(warm_up);
  const double cpu_before = broker.cpu_seconds();
  for (auto [mutex, histogram] :
       {std::pair{&received.mutex, &received.latency}, {&sent.mutex, &sent.outcome_after}}) {
    const std::lock_guard guard(*mutex);
    *histogram = {};
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double cpu = broker.cpu_seconds() - cpu_before;
  end_load(senders);
  end_load(receivers);
  return {received.latency.percentile(0.5), received.latency.percentile(0.99),
          sent.outcome_after.percentile(0.99), static_cast<double>(received.latency.total()) / cpu,
          received.latency};
}

}  // namespace omnibus::bench
