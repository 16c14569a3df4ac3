// Queues of the real binary under load, beside what the machine gives without a broker, in one run.
//
//   queue_load [--seconds S] [--data FOLDER] [--only raw|one|many|latency]
//
// 1. raw: append + fdatasync of the same bytes in batches; and AMQP over loopback TCP to a peer that only
//    accepts. The slower one bounds any durable broker.
// 2. one sender, one receiver, one queue; 100 queues with as many pairs on four connections' worth of
// threads.
// 3. end-to-end latency at 1,000 messages per second, beside the latency of one fdatasync.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "../broker/broker_process.hpp"
#include "../load/load_client.hpp"

namespace omnibus::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t body_bytes = 1024;

double seconds_since(Tick start) { return std::chrono::duration<double>(tick_now() - start).count(); }

std::string config_with(int queues) {
  std::string list;
  for (int i = 0; i < queues; ++i)
    list += fmt::format(R"({}{{"Name": "bench{}", "Properties": {{"MaxSizeInMegabytes": 81920}}}})",
                        i ? "," : "", i);
  return fmt::format(
      R"({{"UserConfig": {{"Namespaces": [{{"Name": "sbemulatorns", "Queues": [{}], "Topics": []}}],)"
      R"( "Logging": {{"Type": "Console"}}}}, "Omnibus": {{"Auth": "Off"}}}})",
      list);
}

// Messages per second that one thread appends and syncs in batches.
double raw_disk(const std::filesystem::path& folder, double seconds, std::uint32_t batch, Histogram& sync) {
  const std::string file = folder / "omnibus-raw";
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const std::vector<char> bytes(std::size_t{batch} * body_bytes, 'x');
  std::uint64_t messages = 0;
  std::uint64_t written = 0;
  const Tick start = tick_now();
  while (seconds_since(start) < seconds) {
    if (::write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
    const Tick before = tick_now();
    if (::fdatasync(fd) != 0) std::abort();
    sync.add(tick_now() - before);
    messages += batch;
    // As long as a segment, and then over it again: the journal writes into space it has reserved, too.
    written += bytes.size();
    if (written >= (64u << 20)) {
      written = 0;
      if (::lseek(fd, 0, SEEK_SET) != 0) std::abort();
    }
  }
  const double rate = static_cast<double>(messages) / seconds_since(start);
  ::close(fd);
  std::filesystem::remove(file);
  return rate;
}

double raw_loopback(double seconds) {
  net::ShardPool pool(1);
  ReceiverCounts sink;
  const SinkServer server(pool, sink);
  const std::uint16_t port = server.port();
  pool.start();
  net::Reactor reactor("sender");
  SenderCounts counts;
  start_sender(reactor, {port, "x"}, {.body_bytes = body_bytes}, counts);
  reactor.start();
  std::this_thread::sleep_for(300ms);
  const std::uint64_t before = counts.accepted;
  const Tick start = tick_now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double rate = static_cast<double>(counts.accepted - before) / seconds_since(start);
  end_load(reactor);
  // The sink's side of the connection has gone with it.
  std::this_thread::sleep_for(50ms);
  pool.stop();
  return rate;
}

struct Flow {
  double received_per_second = 0;
  double per_cpu_second = 0;
};

Flow flow(double seconds, int queues, int pairs) {
  BrokerProcess broker(config_with(queues));
  net::Reactor senders("senders");
  net::Reactor receivers("receivers");
  std::vector<std::unique_ptr<SenderCounts>> sent;
  std::vector<std::unique_ptr<ReceiverCounts>> received;
  for (int i = 0; i < pairs; ++i) {
    const LoadTarget target{broker.port(), fmt::format("bench{}", i % queues)};
    sent.push_back(std::make_unique<SenderCounts>());
    received.push_back(std::make_unique<ReceiverCounts>());
    const std::uint32_t window = std::max(1000 / static_cast<std::uint32_t>(pairs), 20u);
    start_receiver(receivers, target, window, *received.back());
    start_sender(senders, target, {.body_bytes = body_bytes, .window = window}, *sent.back());
  }
  receivers.start();
  senders.start();
  const auto total = [&] {
    std::uint64_t all = 0;
    for (const auto& one : received) all += one->received;
    return all;
  };
  std::this_thread::sleep_for(1s);
  const std::uint64_t before = total();
  const double cpu = broker.cpu_seconds();
  const Tick start = tick_now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const auto moved = static_cast<double>(total() - before);
  const Flow result{moved / seconds_since(start), moved / (broker.cpu_seconds() - cpu)};
  for (auto& one : sent) one->stop = true;
  std::this_thread::sleep_for(200ms);
  end_load(senders);
  end_load(receivers);
  return result;
}

void latency(double seconds, double rate, const Histogram& sync) {
  BrokerProcess broker(config_with(1));
  net::Reactor senders("sender");
  net::Reactor receivers("receiver");
  SenderCounts sent;
  ReceiverCounts received;
  const LoadTarget target{broker.port(), "bench0"};
  start_receiver(receivers, target, 1000, received);
  start_sender(senders, target, {.body_bytes = body_bytes, .rate = rate}, sent);
  receivers.start();
  senders.start();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double cpu = broker.cpu_seconds();
  end_load(senders);
  end_load(receivers);
  fmt::print(
      "latency at {:.0f}/s, {} messages: end to end p50 {:.2f} p99 {:.2f} p99.9 {:.2f} ms; outcome p99 "
      "{:.2f} ms\n",
      rate, received.latency.total(), received.latency.percentile(0.5), received.latency.percentile(0.99),
      received.latency.percentile(0.999), sent.outcome_after.percentile(0.99));
  fmt::print(
      "  one fdatasync of 1 KiB: p50 {:.2f} p99 {:.2f} ms; end to end p99 is {:.2f}x of it; aim < 3x\n",
      sync.percentile(0.5), sync.percentile(0.99), received.latency.percentile(0.99) / sync.percentile(0.99));
  fmt::print("  {:.0f} messages per broker CPU second\n",
             static_cast<double>(received.latency.total()) / cpu);
}

}  // namespace
}  // namespace omnibus::bench

int main(int argc, char** argv) {
  using namespace omnibus::bench;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  double seconds = 5;
  std::filesystem::path folder = std::filesystem::temp_directory_path();
  std::string only;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--data") == 0) folder = argv[i + 1];
    if (std::strcmp(argv[i], "--only") == 0) only = argv[i + 1];
  }
  const auto wanted = [&](std::string_view part) { return only.empty() || only == part; };
  Histogram single;
  Histogram batched;
  const double one_by_one = raw_disk(folder, wanted("latency") || wanted("raw") ? seconds : 0.5, 1, single);
  double bound = 0;
  if (wanted("raw")) {
    const double by_hundred = raw_disk(folder, seconds, 100, batched);
    const double loopback = raw_loopback(seconds);
    bound = std::min(by_hundred, loopback);
    fmt::print(
        "raw, 1 KiB: append + fdatasync one by one {:.0f}/s, by 100 {:.0f}/s; AMQP over loopback {:.0f}/s\n",
        one_by_one, by_hundred, loopback);
  }
  Flow one;
  if (wanted("one")) {
    one = flow(seconds, 1, 1);
    fmt::print(
        "1 queue, 1+1, durable, 1 KiB: {:.0f}/s, {:.2f} of the raw limit; aim >= 0.60; {:.0f} per broker CPU "
        "second\n",
        one.received_per_second, one.received_per_second / bound, one.per_cpu_second);
  }
  if (wanted("many")) {
    const Flow many = flow(seconds, 100, 100);
    fmt::print("100 queues, 100+100: {:.0f}/s, {:.2f} of one queue; aim >= 1; {:.0f} per broker CPU second\n",
               many.received_per_second, many.received_per_second / one.received_per_second,
               many.per_cpu_second);
  }
  if (wanted("latency")) latency(std::max(seconds, 5.0), 1000, single);
}
