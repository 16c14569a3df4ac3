// Loads any AMQP 1.0 broker, or none, and tells what came through as one line of JSON.
//
//   peer_load --port P [--user U --password W] [--send ADDRESS]... [--receive ADDRESS]...
//             [--senders N] [--receivers N] [--bytes B] [--window W] [--rate R] [--backlog M]
//             [--warm-up S] [--seconds S]
//   peer_load --port P ... --send ADDRESS --messages N      sends N, waits for their outcomes
//   peer_load --port P ... --receive ADDRESS --messages N   takes N
//   peer_load --port P ... --send ADDRESS --idle N          holds N idle connections until its input ends
//   peer_load --sink ...                                    loads the generator's own peer, which only
//   accepts
//
// Sender i sends to the i-th address (around again when there are fewer), receiver i takes from the i-th.
// Every message is durable, sent unsettled and counted when its outcome is `accepted`; a receiver accepts
// each one. `window` bounds what a sender has without an outcome, `backlog` what all of them have sent and
// nobody has received: a broker whose receivers are slower than its senders is measured by its receivers.
// `rate` is for all senders together; messages then carry the moment they were due.
//
// On stdout, a line each: {"event": "begin"} and {"event": "end"} around the measured seconds, so that
// whoever looks at the broker from outside looks at the same time, and the result. Any trouble with the
// broker ends it with a message and 1: figures of a run with errors are none.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../load/load_client.hpp"
#include "../load/own_cpu.hpp"

namespace omnibus::bench {
namespace {

using namespace std::chrono_literals;

struct Options {
  LoadTarget broker;
  std::vector<std::string> send, receive;
  std::size_t senders = 0, receivers = 0;  // 0: one for each address
  std::uint32_t bytes = 1024, window = 1000;
  std::uint64_t backlog = 0, messages = 0, idle = 0;
  double rate = 0, warm_up = 1, seconds = 2;
  bool sink = false;
};

[[noreturn]] void stop(const std::string& why, int code) {
  fmt::print(stderr, "peer_load: {}\n", why);
  std::_Exit(code);
}

Options read(int argc, char** argv) {
  Options options;
  const auto number = [](const char* text) {
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    if (*end != 0 || end == text || value < 0) stop(fmt::format("'{}' is no number", text), 2);
    return value;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--sink") {
      options.sink = true;
      continue;
    }
    if (++i == argc) stop(fmt::format("'{}' lacks its value", name), 2);
    const char* value = argv[i];
    if (name == "--port")
      options.broker.port = static_cast<std::uint16_t>(number(value));
    else if (name == "--user")
      options.broker.user = value;
    else if (name == "--password")
      options.broker.password = value;
    else if (name == "--send")
      options.send.emplace_back(value);
    else if (name == "--receive")
      options.receive.emplace_back(value);
    else if (name == "--senders")
      options.senders = static_cast<std::size_t>(number(value));
    else if (name == "--receivers")
      options.receivers = static_cast<std::size_t>(number(value));
    else if (name == "--bytes")
      options.bytes = static_cast<std::uint32_t>(number(value));
    else if (name == "--window")
      options.window = static_cast<std::uint32_t>(number(value));
    else if (name == "--backlog")
      options.backlog = static_cast<std::uint64_t>(number(value));
    else if (name == "--messages")
      options.messages = static_cast<std::uint64_t>(number(value));
    else if (name == "--idle")
      options.idle = static_cast<std::uint64_t>(number(value));
    else if (name == "--rate")
      options.rate = number(value);
    else if (name == "--warm-up")
      options.warm_up = number(value);
    else if (name == "--seconds")
      options.seconds = number(value);
    else
      stop(fmt::format("'{}' is no option", name), 2);
  }
  if (options.sink) options.send = {"sink"};
  if (options.send.empty() && options.receive.empty()) stop("neither --send nor --receive is there", 2);
  if (options.senders == 0) options.senders = options.send.size();
  if (options.receivers == 0) options.receivers = options.receive.size();
  if (options.send.empty()) options.senders = 0;
  if (options.receive.empty()) options.receivers = 0;
  return options;
}

double seconds_since(Tick start) { return std::chrono::duration<double>(tick_now() - start).count(); }

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

std::string percentiles(const Histogram& seen) {
  return fmt::format(R"({{"count": {}, "p50": {:.4f}, "p99": {:.4f}, "p999": {:.4f}}})", seen.total(),
                     seen.percentile(0.5), seen.percentile(0.99), seen.percentile(0.999));
}

class Load {
 public:
  explicit Load(const Options& options) : options_(options) {
    for (std::size_t i = 0; i < options.senders; ++i) sent_.push_back(std::make_unique<SenderCounts>());
    for (std::size_t i = 0; i < options.receivers; ++i)
      received_.push_back(std::make_unique<ReceiverCounts>());
  }
  // Fan-out: every message comes to each receiver.
  void copies(std::uint64_t each) { copies_ = each; }

  void start() {
    for (std::size_t i = 0; i < received_.size(); ++i)
      start_receiver(receivers_, at(options_.receive, i), std::max(options_.window, 1u), *received_[i]);
    receivers_.start();
    // Nothing is sent before the receivers had time to attach: a topic without subscribers drops it.
    if (!received_.empty()) std::this_thread::sleep_for(200ms);
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      SenderLoad load{.body_bytes = options_.bytes, .window = options_.window};
      load.durable = true;
      load.stamp_due = true;
      load.rate = options_.rate / static_cast<double>(sent_.size());
      if (options_.messages > 0)
        load.messages_max = options_.messages / sent_.size() + (i < options_.messages % sent_.size() ? 1 : 0);
      if (options_.backlog > 0) load.room = [this] { return room(); };
      start_sender(senders_, at(options_.send, i), load, *sent_[i]);
    }
    senders_.start();
  }
  [[nodiscard]] std::uint64_t accepted() const {
    std::uint64_t all = 0;
    for (const auto& one : sent_) all += one->accepted;
    return all;
  }
  [[nodiscard]] std::uint64_t received() const {
    std::uint64_t all = 0;
    for (const auto& one : received_) all += one->received;
    return all;
  }
  void forget_latencies() {
    for (const auto& one : sent_) {
      const std::lock_guard lock(one->mutex);
      one->outcome_after = {};
    }
    for (const auto& one : received_) {
      const std::lock_guard lock(one->mutex);
      one->latency = {};
    }
  }
  [[nodiscard]] Histogram outcomes() const {
    Histogram all;
    for (const auto& one : sent_) {
      const std::lock_guard lock(one->mutex);
      all.add(one->outcome_after);
    }
    return all;
  }
  [[nodiscard]] Histogram latencies() const {
    Histogram all;
    for (const auto& one : received_) {
      const std::lock_guard lock(one->mutex);
      all.add(one->latency);
    }
    return all;
  }
  // Waits until nothing is under way, at most so long; says whether it was so.
  bool settle(std::chrono::seconds at_most) {
    for (const auto& one : sent_) one->stop = true;
    const Tick start = tick_now();
    const auto done = [this] {
      std::uint64_t sent = 0;
      for (const auto& one : sent_) sent += one->sent;
      return accepted() >= sent && (received_.empty() || received() >= sent * copies_);
    };
    while (!done() && tick_now() - start < at_most) std::this_thread::sleep_for(5ms);
    return done();
  }
  void end() {
    end_load(senders_);
    end_load(receivers_);
  }

 private:
  [[nodiscard]] LoadTarget at(const std::vector<std::string>& addresses, std::size_t index) const {
    LoadTarget target = options_.broker;
    target.address = addresses[index % addresses.size()];
    return target;
  }
  [[nodiscard]] std::uint32_t room() const {
    std::uint64_t sent = 0;
    for (const auto& one : sent_) sent += one->sent;
    const std::uint64_t came = received() / copies_;
    const std::uint64_t open = sent > came ? sent - came : 0;
    if (open >= options_.backlog) return 0;
    return static_cast<std::uint32_t>((options_.backlog - open) / sent_.size());
  }

  const Options& options_;
  std::uint64_t copies_ = 1;
  std::vector<std::unique_ptr<SenderCounts>> sent_;
  std::vector<std::unique_ptr<ReceiverCounts>> received_;
  net::Reactor receivers_{"receivers"};
  net::Reactor senders_{"senders"};
};

int measure(const Options& options) {
  Load load(options);
  // One address to send to and several to take from: a topic.
  if (options.send.size() == 1 && options.receive.size() > 1) load.copies(options.receive.size());
  load.start();
  std::this_thread::sleep_for(std::chrono::duration<double>(options.warm_up));
  say(R"({"event": "begin"})");
  load.forget_latencies();
  const std::uint64_t accepted = load.accepted();
  const std::uint64_t received = load.received();
  const double cpu = own_cpu_seconds();
  const Tick start = tick_now();
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  const auto accepted_now = static_cast<double>(load.accepted() - accepted);
  const auto received_now = static_cast<double>(load.received() - received);
  const double seconds = seconds_since(start);
  const double own = own_cpu_seconds() - cpu;
  const std::string latency = percentiles(load.latencies());
  const std::string outcome = percentiles(load.outcomes());
  say(R"({"event": "end"})");
  const bool all = load.settle(20s);
  load.end();
  say(fmt::format(R"({{"event": "result", "seconds": {:.4f}, "accepted": {:.0f}, "received": {:.0f},)"
                  R"( "latency_ms": {}, "outcome_ms": {}, "generator_cpu_seconds": {:.3f},)"
                  R"( "all_came": {}}})",
                  seconds, accepted_now, received_now, latency, outcome, own, all));
  return 0;
}

// A number of messages in or out of a queue, as fast as it goes.
int move(const Options& options) {
  Load load(options);
  const Tick start = tick_now();
  say(R"({"event": "begin"})");
  load.start();
  const bool in = !options.send.empty();
  std::uint64_t last = 0;
  Tick moved = tick_now();
  for (;;) {
    const std::uint64_t now = in ? load.accepted() : load.received();
    if (now >= options.messages) break;
    if (now != last) moved = tick_now();
    last = now;
    if (tick_now() - moved > 30s) stop(fmt::format("nothing moves after {} messages", now), 1);
    std::this_thread::sleep_for(2ms);
  }
  const double seconds = seconds_since(start);
  say(R"({"event": "end"})");
  // The last accepts of a receiver have to leave.
  std::this_thread::sleep_for(100ms);
  load.end();
  say(fmt::format(R"({{"event": "result", "seconds": {:.4f}, "messages": {}}})", seconds, options.messages));
  return 0;
}

int idle(const Options& options) {
  net::Reactor reactor("idle");
  IdleCounts counts;
  LoadTarget target = options.broker;
  target.address = options.send.front();
  reactor.start();
  say(R"({"event": "begin"})");
  const Tick start = tick_now();
  Tick moved = start;
  std::uint64_t last = 0;
  std::uint64_t tried = 0;
  while (counts.attached < options.idle) {
    const std::uint64_t attached = counts.attached;
    const std::uint64_t refused = counts.refused;
    if (attached != last) moved = tick_now();
    last = attached;
    if (tick_now() - moved > 30s)
      stop(fmt::format("only {} of {} connections came up", attached, options.idle), 1);
    // Under haste a broker may end a few that it would take a moment later; more than a few is trouble.
    if (refused > 20 + options.idle / 20)
      stop(fmt::format("{} connections were refused, {} came up", refused, attached), 1);
    // A few at a time: how long the queue of the listening socket is, is not what is measured here.
    if (tried < options.idle + refused && tried < attached + refused + 16) {
      start_idle(reactor, target, counts);
      ++tried;
    } else {
      std::this_thread::sleep_for(100us);
    }
  }
  const double seconds = seconds_since(start);
  say(R"({"event": "end"})");
  say(fmt::format(R"({{"event": "result", "seconds": {:.4f}, "connections": {}, "refused": {}}})", seconds,
                  options.idle, counts.refused.load()));
  while (std::getchar() != EOF) {
  }
  end_load(reactor);
  return 0;
}

int sink(Options options) {
  net::ShardPool pool(1);
  ReceiverCounts taken;
  const SinkServer server(pool, taken);
  options.broker.port = server.port();
  pool.start();
  options.receive.clear();
  options.receivers = 0;
  const int code = measure(options);
  std::this_thread::sleep_for(50ms);
  pool.stop();
  return code;
}

}  // namespace
}  // namespace omnibus::bench

int main(int argc, char** argv) {
  using namespace omnibus::bench;
  const Options options = read(argc, argv);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  if (options.sink) return sink(options);
  if (options.idle > 0) return idle(options);
  if (options.messages > 0) return move(options);
  return measure(options);
}
