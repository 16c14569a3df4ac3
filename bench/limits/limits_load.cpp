// Very many entities, very many connections, and the start with very many of the former.
//
//   limits_load [--only entities|connections|start]
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <thread>

#include "../broker/broker_process.hpp"
#include "../load/load_client.hpp"
#include "../load/options.hpp"
#include "base/random.hpp"

namespace omnibus::bench {
namespace {

using namespace std::chrono_literals;

constexpr int entities = 10'000;
constexpr int entities_used = 1'000;
constexpr int connections = 5'000;
constexpr int entities_at_start = 100'000;
constexpr int used_at_once = 50;

std::string name_of(int queue) { return fmt::format("queue-{:06}", queue); }

std::string config_of(int queues) {
  std::string list;
  for (int i = 0; i < queues; ++i)
    list += fmt::format(R"({}{{"Name": "{}"}})", i == 0 ? "" : ", ", name_of(i));
  return fmt::format(
      R"({{"UserConfig": {{"Namespaces": [{{"Name": "sbemulatorns", "Queues": [{}], "Topics": []}}],)"
      R"( "Logging": {{"Type": "Console"}}}}, "Omnibus": {{"Auth": "Off",)"
      R"( "Quotas": {{"Entities": 0, "Connections": 0}}}}}})",
      list);
}

double seconds_since(Tick start) { return std::chrono::duration<double>(tick_now() - start).count(); }
double seconds(Tick::duration time) { return std::chrono::duration<double>(time).count(); }
double megabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

template <class Holds>
void wait_until(const Holds& holds) {
  while (!holds()) std::this_thread::sleep_for(1ms);
}

// One message through each of a random thousand.
void use_entities() {
  BrokerProcess broker(config_of(entities));
  fmt::print("{} queues: made and ready in {:.2f} s, RSS {:.0f} MB\n", entities,
             seconds(broker.exec_to_answer()), megabytes(broker.rss_bytes()));
  std::vector<int> queues(entities);
  std::iota(queues.begin(), queues.end(), 0);
  Random random{1};
  for (std::size_t i = 0; i < entities_used; ++i)
    std::swap(queues[i], queues[i + random.below(static_cast<std::uint32_t>(entities - i))]);
  const Tick start = tick_now();
  for (int done = 0; done < entities_used; done += used_at_once) {
    net::Reactor reactor("load");
    std::deque<SenderCounts> sent(used_at_once);
    std::deque<ReceiverCounts> received(used_at_once);
    for (std::size_t i = 0; i < used_at_once; ++i) {
      const LoadTarget target{broker.port(), name_of(queues[static_cast<std::size_t>(done) + i])};
      start_sender(reactor, target, {.body_bytes = 100, .messages_max = 1}, sent[i]);
      start_receiver(reactor, target, 1, received[i]);
    }
    reactor.start();
    wait_until(
        [&] { return std::ranges::all_of(received, [](const auto& one) { return one.received == 1; }); });
    end_load(reactor);
  }
  fmt::print("one message through each of {} of them: {:.2f} s with {} connections, RSS {:.0f} MB\n",
             entities_used, seconds_since(start), 2 * entities_used, megabytes(broker.rss_bytes()));
}

// Each has a link and has sent one message; then they stay.
void use_connections() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < connections + 100) {
    fmt::print("{} open files are allowed here, {} connections are not possible\n", limit.rlim_cur,
               connections);
    return;
  }
  BrokerProcess broker(config_of(10));
  const std::uint64_t before = broker.rss_bytes();
  const double cpu_before = broker.cpu_seconds();
  net::Reactor reactor("load");
  std::deque<SenderCounts> sent(connections);
  reactor.start();
  const Tick start = tick_now();
  for (int i = 0; i < connections; ++i)
    reactor.post([&, i] {
      start_sender(reactor, {broker.port(), name_of(i % 10)}, {.body_bytes = 100, .messages_max = 1},
                   sent[static_cast<std::size_t>(i)]);
    });
  wait_until([&] { return std::ranges::all_of(sent, [](const auto& one) { return one.accepted == 1; }); });
  const double took = seconds_since(start);
  const std::uint64_t after = broker.rss_bytes();
  fmt::print("{} connections, a link and a message each: {:.2f} s, {:.2f} CPU s of the broker\n", connections,
             took, broker.cpu_seconds() - cpu_before);
  fmt::print("RSS {:.0f} -> {:.0f} MB: {:.1f} KB per connection\n", megabytes(before), megabytes(after),
             static_cast<double>(after - before) / connections / 1e3);
  end_load(reactor);
}

void start_with_many() {
  BrokerProcess broker(config_of(entities_at_start));
  fmt::print("{} queues: made and ready in {:.2f} s, RSS {:.0f} MB, disk {:.0f} MB\n", entities_at_start,
             seconds(broker.exec_to_answer()), megabytes(broker.rss_bytes()), megabytes(broker.disk_bytes()));
  for (const auto& [signal, name] : {std::pair{SIGTERM, "SIGTERM"}, {SIGKILL, "SIGKILL"}}) {
    broker.restart(signal);
    fmt::print("after {}: ready in {:.2f} s (aim < 3 s), {:.2f} CPU s, RSS {:.0f} MB\n", name,
               seconds(broker.exec_to_answer()), broker.cpu_seconds(), megabytes(broker.rss_bytes()));
  }
}

}  // namespace
}  // namespace omnibus::bench

int main(int argc, char** argv) {
  using namespace omnibus::bench;
  const LoadOptions options = read_options(argc, argv, {}, {"entities", "connections", "start"});
  if (options.wants("entities")) use_entities();
  if (options.wants("connections")) use_connections();
  if (options.wants("start")) start_with_many();
}
