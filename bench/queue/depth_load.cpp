// A queue with very many waiting messages: memory, disk, and the way back after a stop and after a kill.
//
//   depth_load [--messages N] [--bytes B]
#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "../broker/broker_process.hpp"
#include "../load/load_client.hpp"

namespace omnibus::bench {
namespace {

using namespace std::chrono_literals;

constexpr const char* config =
    R"({"UserConfig": {"Namespaces": [{"Name": "sbemulatorns", "Queues": [{"Name": "deep", "Properties":)"
    R"( {"MaxSizeInMegabytes": 81920, "DefaultMessageTimeToLive": "P10D"}}], "Topics": []}],)"
    R"( "Logging": {"Type": "Console"}}, "Omnibus": {"Auth": "Off"}})";

double seconds_since(Tick start) { return std::chrono::duration<double>(tick_now() - start).count(); }

void fill(BrokerProcess& broker, std::uint64_t messages, std::uint32_t bytes) {
  net::Reactor reactor("sender");
  SenderCounts counts;
  start_sender(reactor, {broker.port(), "deep"}, {.body_bytes = bytes, .messages_max = messages}, counts);
  reactor.start();
  const Tick start = tick_now();
  Tick told = start;
  while (counts.accepted < messages) {
    std::this_thread::sleep_for(50ms);
    if (tick_now() - told < 10s) continue;
    told = tick_now();
    fmt::print("  {:.1f} M accepted, {:.0f} MB RSS\n", static_cast<double>(counts.accepted) / 1e6,
               static_cast<double>(broker.rss_bytes()) / 1e6);
    std::fflush(stdout);
  }
  fmt::print("filled {} messages of {} bytes in {:.1f} s ({:.0f}/s)\n", messages, bytes, seconds_since(start),
             static_cast<double>(messages) / seconds_since(start));
  end_load(reactor);
}

void report(const BrokerProcess& broker, const char* when, std::uint64_t messages) {
  fmt::print("{}: RSS {:.2f} GiB; aim < 2 GiB at 10 million; disk {:.2f} GiB, {:.0f} bytes per message\n",
             when, static_cast<double>(broker.rss_bytes()) / (1 << 30),
             static_cast<double>(broker.disk_bytes()) / (1 << 30),
             static_cast<double>(broker.disk_bytes()) / static_cast<double>(messages));
}

void back_after(BrokerProcess& broker, int signal, const char* name, std::uint64_t messages) {
  broker.restart(signal);
  const Tick ready = tick_now();
  net::Reactor reactor("receiver");
  ReceiverCounts counts;
  start_receiver(reactor, {broker.port(), "deep"}, 1, counts);
  reactor.start();
  while (counts.received == 0) std::this_thread::sleep_for(200us);
  const double first = seconds_since(ready);
  end_load(reactor);
  fmt::print("after {}: ready in {:.2f} s, first message {:.0f} ms later; aim < 20 s; {:.1f} CPU s\n", name,
             std::chrono::duration<double>(broker.exec_to_answer()).count(), first * 1e3,
             broker.cpu_seconds());
  report(broker, "  then", messages);
}

}  // namespace
}  // namespace omnibus::bench

int main(int argc, char** argv) {
  using namespace omnibus::bench;
  std::uint64_t messages = 10'000'000;
  std::uint32_t bytes = 1024;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--messages") == 0) messages = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--bytes") == 0) bytes = static_cast<std::uint32_t>(std::atoi(argv[i + 1]));
  }
  BrokerProcess broker(config);
  fill(broker, messages, bytes);
  report(broker, "full", messages);
  back_after(broker, SIGKILL, "SIGKILL", messages);
  back_after(broker, SIGTERM, "SIGTERM", messages);
}
