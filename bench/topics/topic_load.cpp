// Publishing to a topic of the real binary, with more and more subscriptions, beside sending to a queue.
//
//   topic_load [--seconds S] [--rounds N] [--only queue|all|one|sql|exchange|flow]
//
// Everything is measured in rounds, one after another; a ratio is that of one round, and what is told is the
// median of the rounds and how far they lie apart. One sender, durable messages of 1 KiB; nobody receives,
// but in `flow`. Each of the kinds has 1, 10 and 1,000 subscriptions:
// queue     one sender, one queue: what publishing is compared with.
// all       every subscription takes every message: N copies of each.
// one       one takes them, the others have correlation filters that do not match: one copy of each.
// sql       the same with SQL filters that have to be evaluated one by one.
// exchange  a Topic exchange: one takes them by `#`, the others have routing keys that do not match.
// flow      1 and 10 subscriptions that take everything, with a receiver each.
// The environment's OMNIBUS_BINARY names another broker to load.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <thread>
#include <vector>

#include "../broker/broker_process.hpp"
#include "../load/load_client.hpp"
#include "../load/options.hpp"
#include "../load/rounds.hpp"

namespace omnibus::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t body_bytes = 1024;
constexpr int subscription_counts[] = {1, 10, 1000};

double seconds_since(Tick start) { return std::chrono::duration<double>(tick_now() - start).count(); }

enum class Kind { queue, all, one, sql, exchange };

std::string subscription(Kind kind, int index) {
  const bool takes = kind == Kind::all || index == 0;
  if (kind == Kind::exchange)
    return fmt::format(R"({{"Name": "s{}", "RoutingKey": "{}"}})", index,
                       takes ? std::string{"#"} : fmt::format("order.*.k{}.#", index));
  std::string rules;
  if (!takes && kind == Kind::one)
    rules = fmt::format(R"({{"FilterType": "Correlation", "CorrelationFilter": {{"Label": "k{}"}}}})", index);
  if (!takes && kind == Kind::sql)
    rules = fmt::format(
        R"({{"FilterType": "Sql", "SqlFilter": {{"SqlExpression": "sys.MessageId LIKE 'k{}-%'"}}}})", index);
  if (rules.empty()) return fmt::format(R"({{"Name": "s{}"}})", index);
  return fmt::format(R"({{"Name": "s{}", "Rules": [{{"Name": "r", "Properties": {}}}]}})", index, rules);
}

std::string config_of(Kind kind, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) list += (i ? "," : "") + subscription(kind, i);
  std::string queues;
  std::string topics;
  std::string exchanges;
  if (kind == Kind::queue)
    queues = R"({"Name": "bench", "Properties": {"MaxSizeInMegabytes": 81920}})";
  else if (kind == Kind::exchange)
    exchanges =
        fmt::format(R"({{"Name": "bench", "Type": "Topic", "Broker": {{"MaxSizeInMegabytes": 81920}},)"
                    R"( "Subscriptions": [{}]}})",
                    list);
  else
    topics = fmt::format(
        R"({{"Name": "bench", "Properties": {{"MaxSizeInMegabytes": 81920}}, "Subscriptions": [{}]}})", list);
  return fmt::format(
      R"({{"UserConfig": {{"Namespaces": [{{"Name": "sbemulatorns", "Queues": [{}], "Topics": [{}],)"
      R"( "Exchanges": [{}]}}], "Logging": {{"Type": "Console"}}}}, "Omnibus": {{"Auth": "Off"}}}})",
      queues, topics, exchanges);
}

struct Published {
  double per_second = 0;
  double per_cpu_second = 0;
  double rss_bytes_per_copy = 0;  // what the process grew by, caches included
};

Published publish(double seconds, Kind kind, int count) {
  BrokerProcess broker(config_of(kind, count));
  const auto rss = static_cast<double>(broker.rss_bytes());
  net::Reactor reactor("sender");
  SenderCounts counts;
  start_sender(reactor, {broker.port(), "bench"}, {.body_bytes = body_bytes}, counts);
  reactor.start();
  std::this_thread::sleep_for(300ms);
  const std::uint64_t before = counts.accepted;
  const double cpu = broker.cpu_seconds();
  const Tick start = tick_now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const auto accepted = static_cast<double>(counts.accepted - before);
  Published result{accepted / seconds_since(start), accepted / (broker.cpu_seconds() - cpu), 0};
  const double copies = static_cast<double>(counts.accepted) * (kind == Kind::all ? count : 1);
  result.rss_bytes_per_copy = (static_cast<double>(broker.rss_bytes()) - rss) / std::max(copies, 1.0);
  counts.stop = true;
  end_load(reactor);
  return result;
}

// Copies that `count` receivers got, one per subscription, while one sender published.
Published flow(double seconds, int count) {
  BrokerProcess broker(config_of(Kind::all, count));
  net::Reactor sender("sender");
  net::Reactor receivers("receivers");
  SenderCounts sent;
  std::vector<std::unique_ptr<ReceiverCounts>> received;
  for (int i = 0; i < count; ++i) {
    received.push_back(std::make_unique<ReceiverCounts>());
    start_receiver(receivers, {broker.port(), fmt::format("bench/Subscriptions/s{}", i)}, 1000,
                   *received.back());
  }
  start_sender(sender, {broker.port(), "bench"}, {.body_bytes = body_bytes}, sent);
  receivers.start();
  sender.start();
  const auto total = [&] {
    std::uint64_t all = 0;
    for (const auto& one : received) all += one->received;
    return all;
  };
  std::this_thread::sleep_for(500ms);
  const std::uint64_t before = total();
  const double cpu = broker.cpu_seconds();
  const Tick start = tick_now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const auto moved = static_cast<double>(total() - before);
  const Published result{moved / seconds_since(start), moved / (broker.cpu_seconds() - cpu), 0};
  sent.stop = true;
  std::this_thread::sleep_for(100ms);
  end_load(sender);
  end_load(receivers);
  return result;
}

struct Figures {
  Rounds per_second, per_cpu, of_queue, rss_per_copy;
  void add(const Published& one, double queue_per_second) {
    per_second.add(one.per_second);
    per_cpu.add(one.per_cpu_second);
    if (queue_per_second > 0) of_queue.add(one.per_second / queue_per_second);
    rss_per_copy.add(one.rss_bytes_per_copy);
  }
};

}  // namespace
}  // namespace omnibus::bench

int main(int argc, char** argv) {
  using namespace omnibus::bench;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const LoadOptions options =
      read_options(argc, argv, {.seconds = 1}, {"queue", "all", "one", "sql", "exchange", "flow"});
  const double seconds = options.seconds;
  const std::pair<const char*, Kind> kinds[] = {
      {"all", Kind::all}, {"one", Kind::one}, {"sql", Kind::sql}, {"exchange", Kind::exchange}};
  Figures queue;
  std::map<std::pair<int, int>, Figures> published;  // by index of the kind, and subscriptions
  std::map<int, Figures> flows;
  for (int round = 0; round < options.rounds; ++round) {
    double alone = 0;
    if (options.wants("queue")) {
      const auto one = publish(seconds, Kind::queue, 0);
      alone = one.per_second;
      queue.add(one, 0);
    }
    for (int kind = 0; kind < static_cast<int>(std::size(kinds)); ++kind)
      for (const int count : subscription_counts)
        if (options.wants(kinds[kind].first))
          published[{kind, count}].add(publish(seconds, kinds[kind].second, count), alone);
    for (const int count : {1, 10})
      if (options.wants("flow")) flows[count].add(flow(seconds, count), 0);
  }
  if (options.wants("queue"))
    fmt::print("queue: {}/s; {} per broker CPU second\n", queue.per_second.text(0), queue.per_cpu.text(0));
  for (const auto& [which, figures] : published)
    fmt::print(
        "{}, {} subscriptions: {}/s, of the queue {}; {} per broker CPU second; {} bytes of RSS per copy\n",
        kinds[which.first].first, which.second, figures.per_second.text(0), figures.of_queue.text(2),
        figures.per_cpu.text(0), figures.rss_per_copy.text(0));
  for (const auto& [count, figures] : flows)
    fmt::print("flow, {} subscriptions and receivers: {} copies/s; {} per broker CPU second\n", count,
               figures.per_second.text(0), figures.per_cpu.text(0));
}
