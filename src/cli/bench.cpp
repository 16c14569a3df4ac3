// `omnibus bench`: senders and receivers that load an entity, and what they see.
//
// Every message carries the run it belongs to and the moment it was sent; messages of others that a receiver
// meets are given back and not counted. Each sender and receiver has a thread and a connection of its own. A
// refused message or a lost connection ends the run without figures; Ctrl-C ends it with those it has so far.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <boost/json.hpp>
#include <mutex>
#include <thread>

#include "amqp/codec/wire.hpp"
#include "base/histogram.hpp"
#include "cli/exit_codes.hpp"
#include "cli/target.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "client/links.hpp"
#include "client/message.hpp"

namespace omnibus::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t stamp_bytes = 24;  // magic, run, moment

struct BenchArguments {
  std::string entity;
  std::string from;
  std::size_t senders = 1;
  std::size_t receivers = 1;
  std::size_t size = 1024;
  double seconds = 10;
  std::size_t window = 200;
  double rate = 0;  // of all senders together; 0: as fast as outcomes come
};

struct Shared {
  std::uint64_t run = 0;
  Tick began{};
  Tick until{};
  std::atomic<bool> stop{false};     // of the senders
  std::atomic<bool> is_over{false};  // of the receivers
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> received{0};
  std::atomic<std::uint64_t> foreign{0};
  std::mutex mutex;
  Histogram outcome_after;       // guarded
  Histogram latency;             // guarded
  std::optional<Error> trouble;  // guarded

  void give_up(const Error& why) {
    {
      const std::lock_guard lock(mutex);
      if (!trouble) trouble = why;
    }
    stop = true;
    is_over = true;
  }
};

constexpr std::uint64_t magic = 0x6f6d6e6962757321;  // "omnibus!"

Payload stamped(std::uint64_t run, Tick now, std::size_t size) {
  std::string body(std::max(size, stamp_bytes), 'x');
  auto* at = reinterpret_cast<std::uint8_t*>(body.data());
  amqp::store_be(at, magic);
  amqp::store_be(at + 8, run);
  amqp::store_be(at + 16, static_cast<std::uint64_t>(now.time_since_epoch().count()));
  client::Message message;
  message.body = client::DataBody{{std::move(body)}};
  return client::encode(message);
}

// When it was sent, if it is of this run.
std::optional<Tick> sent_at(const Payload& payload, std::uint64_t run) {
  const auto message = client::decode(payload);
  const auto* data = message ? std::get_if<client::DataBody>(&message->body) : nullptr;
  if (!data || data->sections.size() != 1 || data->sections[0].size() < stamp_bytes) return std::nullopt;
  const auto* at = reinterpret_cast<const std::uint8_t*>(data->sections[0].data());
  if (amqp::load_be<std::uint64_t>(at) != magic || amqp::load_be<std::uint64_t>(at + 8) != run)
    return std::nullopt;
  return Tick{std::chrono::nanoseconds{static_cast<std::int64_t>(amqp::load_be<std::uint64_t>(at + 16))}};
}

// Whether a wait ended because of Ctrl-C, which is no trouble.
bool is_stopped(const Error& error) { return interrupted() && error.code == Errc::timeout; }

Result<void> send_load(const Target& target, const BenchArguments& arguments, Shared& shared) {
  const auto unless_stopped = [](const Error& error) -> Result<void> {
    if (is_stopped(error)) return {};
    return fail(error);
  };
  auto amqp = target.amqp();
  if (!amqp) return unless_stopped(amqp.error());
  Histogram outcome_after;
  std::optional<Error> refused;
  auto sender = client::Sender::open(**amqp, arguments.entity, [&](std::uint64_t sent, const Error* why) {
    if (why) {
      if (!refused) refused = *why;
      return;
    }
    outcome_after.add(tick_now() - Tick{std::chrono::nanoseconds{static_cast<std::int64_t>(sent)}});
    ++shared.accepted;
  });
  if (!sender) return unless_stopped(sender.error());
  const double rate = arguments.rate / static_cast<double>(arguments.senders);
  std::uint64_t sent = 0;
  while (!shared.stop && tick_now() < shared.until && !interrupted() && !refused) {
    if (rate > 0) {
      const Tick due = shared.began + std::chrono::nanoseconds{
                                          static_cast<std::int64_t>(static_cast<double>(sent) / rate * 1e9)};
      // Outcomes are taken while waiting for the next turn.
      auto waited = (*amqp)->until([&] { return tick_now() >= due; }, std::min(due, shared.until));
      if (!waited) return fail(waited.error());
      if (tick_now() >= shared.until || interrupted()) break;
    }
    auto room = (*sender)->wait_for_outcomes(arguments.window - 1);
    if (!room && is_stopped(room.error())) break;
    if (!room) return room;
    const Tick now = tick_now();
    auto done = (*sender)->send(stamped(shared.run, now, arguments.size), 0,
                                static_cast<std::uint64_t>(now.time_since_epoch().count()));
    if (!done && is_stopped(done.error())) break;
    if (!done) return done;
    ++sent;
  }
  (*amqp)->ignore_interrupts();
  auto outcomes = (*sender)->wait_for_outcomes();
  if (!outcomes) return outcomes;
  if (refused) return fail(*refused);
  const std::lock_guard lock(shared.mutex);
  shared.outcome_after.add(outcome_after);
  return {};
}

Result<void> receive_load(const Target& target, const BenchArguments& arguments, const std::string& from,
                          Shared& shared) {
  auto amqp = target.amqp(false);
  if (!amqp) return fail(amqp.error());
  auto receiver = client::Receiver::open(**amqp, from, {});
  if (!receiver) return fail(receiver.error());
  Histogram latency;
  const auto window = static_cast<std::uint32_t>(arguments.window);
  while (!shared.is_over) {
    if ((*receiver)->credit() <= window / 2) (*receiver)->grant(window - (*receiver)->credit());
    auto next = (*receiver)->next(tick_now() + 100ms);
    if (!next) return fail(next.error());
    if (!*next) continue;
    const auto moment = sent_at((*next)->payload, shared.run);
    if (moment) {
      latency.add(tick_now() - *moment);
      ++shared.received;
      (*receiver)->settle((*next)->id, client::Receiver::Verdict::complete);
    } else {
      // Somebody else's: it comes back when this receiver is gone. Released now, it would come again at once.
      ++shared.foreign;
      if (shared.foreign > 10'000)
        return fail(Errc::not_allowed, "'{}' holds messages of others: take an empty one", from);
    }
    if ((*receiver)->refusal()) return fail(*(*receiver)->refusal());
  }
  auto stopped = (*receiver)->stop();
  const std::lock_guard lock(shared.mutex);
  shared.latency.add(latency);
  return stopped;
}

void report(const Target& target, const BenchArguments& arguments, Shared& shared, double sending,
            double all) {
  const std::lock_guard lock(shared.mutex);
  const auto per_second = [](std::uint64_t count, double seconds) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  };
  const double sent_rate = per_second(shared.accepted, sending);
  const double received_rate = per_second(shared.received, all);
  if (target.json) {
    const auto percentiles = [](const Histogram& histogram) {
      boost::json::object out;
      out["p50"] = histogram.percentile(0.5);
      out["p90"] = histogram.percentile(0.9);
      out["p99"] = histogram.percentile(0.99);
      out["max"] = histogram.percentile(1);
      return out;
    };
    boost::json::object out;
    out["seconds"] = sending;
    out["bodyBytes"] = std::max(arguments.size, stamp_bytes);
    out["accepted"] = shared.accepted.load();
    out["acceptedPerSecond"] = sent_rate;
    out["received"] = shared.received.load();
    out["receivedPerSecond"] = received_rate;
    out["foreign"] = shared.foreign.load();
    out["outcomeMilliseconds"] = percentiles(shared.outcome_after);
    out["latencyMilliseconds"] = percentiles(shared.latency);
    fmt::print("{}\n", boost::json::serialize(out));
    return;
  }
  Table table({{""},
               {"MESSAGES", true},
               {"PER SECOND", true},
               {"P50 MS", true},
               {"P90 MS", true},
               {"P99 MS", true},
               {"MAX MS", true}});
  const auto add = [&](const char* name, std::uint64_t count, double rate, const Histogram& h) {
    table.add({name, fmt::to_string(count), fmt::format("{:.0f}", rate),
               fmt::format("{:.2f}", h.percentile(0.5)), fmt::format("{:.2f}", h.percentile(0.9)),
               fmt::format("{:.2f}", h.percentile(0.99)), fmt::format("{:.2f}", h.percentile(1))});
  };
  if (arguments.senders > 0) add("accepted", shared.accepted, sent_rate, shared.outcome_after);
  if (arguments.receivers > 0) add("received", shared.received, received_rate, shared.latency);
  fmt::print("{}", table.text());
}

int bench(const Target& target, BenchArguments arguments) {
  const auto entity = target.entity(arguments.entity);
  if (!entity) return complain_about_usage(entity.error().detail);
  if (const auto where = target.where(); !where) return complain_about_usage(where.error().detail);
  arguments.entity = *entity;
  const std::string from = arguments.from.empty() ? *entity : arguments.from;
  if (arguments.senders == 0) return complain_about_usage("without senders there is nothing to measure");
  catch_interrupts();
  Shared shared;
  shared.run = static_cast<std::uint64_t>(wall_now().time_since_epoch().count()) * 1'000'003 +
               static_cast<std::uint64_t>(::getpid());
  shared.began = tick_now();
  shared.until = shared.began + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                    std::chrono::duration<double>(arguments.seconds));
  const auto run = [&shared](auto work) {
    return std::thread([&shared, work] {
      if (const auto done = work(); !done) shared.give_up(done.error());
    });
  };
  std::vector<std::thread> receivers;
  std::vector<std::thread> senders;
  for (std::size_t i = 0; i < arguments.receivers; ++i)
    receivers.push_back(run([&] { return receive_load(target, arguments, from, shared); }));
  for (std::size_t i = 0; i < arguments.senders; ++i)
    senders.push_back(run([&] { return send_load(target, arguments, shared); }));
  {
    Progress progress("accepted", 0);
    while (!shared.stop && tick_now() < shared.until && !interrupted()) {
      ::usleep(50'000);
      progress.at(shared.accepted);
    }
  }
  for (auto& one : senders) one.join();
  const double sending = std::chrono::duration<double>(tick_now() - shared.began).count();
  // Receivers get what is still on its way, as long as something comes.
  std::uint64_t last = shared.received;
  Tick quiet_since = tick_now();
  while (arguments.receivers > 0 && !shared.is_over && shared.received < shared.accepted &&
         tick_now() - quiet_since < 5s) {
    ::usleep(10'000);
    if (shared.received == last) continue;
    last = shared.received;
    quiet_since = tick_now();
  }
  const double all = std::chrono::duration<double>(tick_now() - shared.began).count();
  shared.is_over = true;
  for (auto& one : receivers) one.join();
  if (shared.trouble) return complain_about(*shared.trouble, target, *entity);
  report(target, arguments, shared, sending, all);
  return interrupted() ? exit_stopped : exit_ok;
}

}  // namespace

void add_bench(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("bench", "Load an entity and measure throughput and latency.");
  auto arguments = std::make_shared<BenchArguments>();
  auto target = add_target(*verb, "The figures as JSON.");
  verb->add_option("ENTITY", arguments->entity, "A queue or topic that nobody else uses.");
  verb->add_option("--from", arguments->from, "Where receivers look, for a topic: TOPIC/Subscriptions/NAME.")
      ->type_name("ENTITY");
  verb->add_option("--senders", arguments->senders, "Connections that send.")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  verb->add_option("--receivers", arguments->receivers, "Connections that receive.")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  verb->add_option("--size", arguments->size, "Bytes of a body, 24 at least.")
      ->check(CLI::Range(1, 100 * 1024 * 1024))
      ->capture_default_str();
  verb->add_option("--duration", arguments->seconds, "How long to send.")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  verb->add_option("--window", arguments->window, "Messages without an outcome, for each sender.")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  verb->add_option("--rate", arguments->rate, "Messages per second of all senders; 0: as fast as it goes.")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  on_run(*verb, status, [target, arguments] { return bench(*target, *arguments); });
}

}  // namespace omnibus::cli
