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

// What was sent last has arrived after this, unless the disk stands still.
constexpr auto rest = 50ms;

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

struct PacedPair::Parts {
  explicit Parts(const std::string& config) : broker(config) {}
  BrokerProcess broker;
  net::Reactor senders{"sender"};
  net::Reactor receivers{"receiver"};
  SenderCounts sent;
  ReceiverCounts received;
  double cpu = 0;
};

PacedPair::PacedPair(const std::string& config, const std::string& address, double rate)
    : parts_(std::make_unique<Parts>(config)) {
  Parts& parts = *parts_;
  const LoadTarget target{parts.broker.port(), address};
  start_receiver(parts.receivers, target, 1000, parts.received);
  start_sender(parts.senders, target, {.body_bytes = body_bytes, .rate = rate}, parts.sent);
  parts.receivers.start();
  parts.senders.start();
  std::this_thread::sleep_for(paced_warm_up);
  parts.sent.pause = true;
  std::this_thread::sleep_for(rest);
  for (auto [mutex, histogram] : {std::pair{&parts.received.mutex, &parts.received.latency},
                                  {&parts.sent.mutex, &parts.sent.outcome_after}}) {
    const std::lock_guard guard(*mutex);
    *histogram = {};
  }
}

PacedPair::~PacedPair() {
  end_load(parts_->senders);
  end_load(parts_->receivers);
}

void PacedPair::run(double seconds) {
  const double before = parts_->broker.cpu_seconds();
  parts_->sent.pause = false;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  parts_->sent.pause = true;
  std::this_thread::sleep_for(rest);
  parts_->cpu += parts_->broker.cpu_seconds() - before;
}

Latency PacedPair::seen() {
  const std::lock_guard received(parts_->received.mutex);
  const std::lock_guard sent(parts_->sent.mutex);
  const Histogram& latency = parts_->received.latency;
  return {latency.percentile(0.5), latency.percentile(0.99), parts_->sent.outcome_after.percentile(0.99),
          static_cast<double>(latency.total()) / parts_->cpu, latency};
}

Latency measure_latency(const std::string& config, const std::string& address, double seconds, double rate) {
  PacedPair pair(config, address, rate);
  pair.run(seconds);
  return pair.seen();
}

}  // namespace omnibus::bench
