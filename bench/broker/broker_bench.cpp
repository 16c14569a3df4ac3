// Start-up time, idle memory, and what an idle connection costs, measured on the real binary from outside.
//
//   broker_bench [--connections N] [--starts N]
//
// An idle connection here has one session and two links (a $cbs pair), made by our own engine as client.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "amqp/codec/value.hpp"
#include "amqp/engine/connection.hpp"
#include "broker_process.hpp"
#include "net/connect.hpp"
#include "net/reactor.hpp"

namespace omnibus::bench {
namespace {

using namespace std::chrono_literals;

// Clients that come to stay: nobody is dropped for being idle or having no token.
constexpr const char* idle_config =
    R"({"Omnibus": {"Auth": "Off", "NoLinkSeconds": 0, "IdleConnectionSeconds": 0, "Quotas": {"Connections": 0}}})";

std::atomic<std::size_t> ready{0};
std::atomic<std::size_t> lost{0};

class IdleClient final : public net::StreamHandler, private amqp::Handler {
 public:
  explicit IdleClient(net::Stream& stream) : stream_(stream), engine_(options(), *this) {
    engine_.start(tick_now());
    stream_.wake();
  }
  void on_input(Bytes bytes) override {
    engine_.receive(bytes, tick_now());
    if (engine_.has_output()) stream_.wake();
  }
  std::size_t gather(std::span<iovec> out) override { return engine_.gather(out); }
  void wrote(std::size_t bytes) override { engine_.wrote(bytes, tick_now()); }
  void on_closed(const Error*) override { ++lost; }

 private:
  static amqp::ConnectionOptions options() {
    amqp::ConnectionOptions options;
    options.side = amqp::ConnectionOptions::Side::client;
    options.container_id = "idle";
    options.hostname = "localhost";
    options.idle_time_out = 0ms;
    options.sasl_mechanisms = {"ANONYMOUS"};
    return options;
  }
  void on_open(amqp::Connection& connection, const amqp::Open&) override {
    amqp::Session& session = connection.begin();
    const auto address = amqp::encode(amqp::Value{"$cbs"});
    amqp::Source source;
    source.address = {address};
    amqp::Target target;
    target.address = {address};
    const auto source_bytes = amqp::encode_composite(source);
    const auto target_bytes = amqp::encode_composite(target);
    for (const auto role : {amqp::Role::sender, amqp::Role::receiver}) {
      amqp::AttachRequest request;
      request.name = role == amqp::Role::sender ? "s" : "r";
      request.role = role;
      request.source = {source_bytes};
      request.target = {target_bytes};
      session.attach(request);
    }
  }
  void on_attached(amqp::Link&, const amqp::Attach&) override {
    if (++attached_ == 2) ++ready;
  }

  net::Stream& stream_;
  amqp::Connection engine_;
  int attached_ = 0;
};

double kib(double bytes) { return bytes / 1024; }

void measure_start(int starts) {
  std::vector<double> times;
  std::vector<double> memory;
  for (int i = 0; i < starts; ++i) {
    const BrokerProcess broker("{}");
    times.push_back(std::chrono::duration<double, std::milli>(broker.exec_to_answer()).count());
    memory.push_back(static_cast<double>(broker.rss_bytes()));
  }
  std::ranges::sort(times);
  std::ranges::sort(memory);
  fmt::print(
      "start, exec to first AMQP answer (first start of a data folder, {} times): median {:.0f} ms, worst "
      "{:.0f} ms; aim < 300 ms\n",
      starts, times[times.size() / 2], times.back());
  fmt::print("idle RSS: median {:.1f} MB; aim < 30 MB\n", memory[memory.size() / 2] / 1e6);
}

void measure_connections(std::size_t count) {
  BrokerProcess broker(idle_config);
  net::Reactor reactor("clients");
  reactor.start();
  const std::uint64_t before = broker.rss_bytes();
  const double cpu_before = broker.cpu_seconds();
  const Tick start = tick_now();
  for (std::size_t i = 0; i < count; ++i) {
    // A few hundred at a time: the listen backlog of the machine is not what is measured here.
    while (i >= ready + 256 && lost == 0) std::this_thread::sleep_for(100us);
    net::connect(reactor, {.host = "127.0.0.1", .port = broker.port()}, [](Result<net::Stream*> stream) {
      if (!stream) {
        fmt::print(stderr, "bench: {}\n", stream.error().detail);
        ++lost;
        return std::unique_ptr<net::StreamHandler>{};
      }
      return std::unique_ptr<net::StreamHandler>(std::make_unique<IdleClient>(**stream));
    });
  }
  const Tick deadline = tick_now() + 60s;
  while (ready < count && lost == 0 && tick_now() < deadline) std::this_thread::sleep_for(1ms);
  const double wall = std::chrono::duration<double>(tick_now() - start).count();
  if (ready < count || lost > 0) {
    fmt::print(stderr, "bench: only {} of {} connections came up, {} were lost\n", ready.load(), count,
               lost.load());
    std::exit(1);
  }
  const double cpu = broker.cpu_seconds() - cpu_before;
  const double each = static_cast<double>(broker.rss_bytes() - before) / static_cast<double>(count);
  fmt::print("{} idle connections (1 session, 2 links): {:.2f} KiB of RSS each; aim <= 20 KiB\n", count,
             kib(each));
  fmt::print("  opened at {:.0f}/s of wall time, {:.0f} per broker CPU second\n",
             static_cast<double>(count) / wall, static_cast<double>(count) / cpu);
  reactor.stop();
  reactor.join();
}

}  // namespace
}  // namespace omnibus::bench

int main(int argc, char** argv) {
  std::size_t connections = 10'000;
  int starts = 20;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--connections") == 0) connections = std::strtoul(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--starts") == 0) starts = std::atoi(argv[i + 1]);
  }
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < connections + 100) {
    fmt::print(stderr, "bench: {} open files are allowed, {} connections need more\n", files.rlim_cur,
               connections);
    return 1;
  }
  omnibus::bench::measure_start(starts);
  omnibus::bench::measure_connections(connections);
}
