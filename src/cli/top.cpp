// `omnibus top`: how full the entities of a namespace are and how that changes, by listing them again and
// again.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json.hpp>
#include <map>

#include "cli/exit_codes.hpp"
#include "cli/target.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace omnibus::cli {
namespace {

using client::EntityKind;
namespace json = boost::json;

struct TopArguments {
  double interval_seconds = 1;
  bool once = false;
  std::size_t lines = 0;  // 0: all, or what the screen has
};

struct Row {
  EntityKind kind = EntityKind::queue;
  client::EntityCounts counts{};
};
using Sample = std::map<std::string, Row>;  // by path

Result<Sample> take_sample(client::AdminClient& admin) {
  Sample out;
  const auto queues = admin.list(EntityKind::queue);
  if (!queues) return fail(queues.error());
  for (const auto& one : *queues) out[one.name()] = {EntityKind::queue, one.counts()};
  const auto topics = admin.list(EntityKind::topic);
  if (!topics) return fail(topics.error());
  for (const auto& topic : *topics) {
    out[topic.name()] = {EntityKind::topic, topic.counts()};
    if (topic.get("SubscriptionCount") == "0") continue;
    const auto subscriptions = admin.list(EntityKind::subscription, topic.name());
    if (!subscriptions) {
      if (subscriptions.error().code == Errc::not_found) continue;  // gone meanwhile
      return fail(subscriptions.error());
    }
    for (const auto& one : *subscriptions)
      out[fmt::format("{}/Subscriptions/{}", topic.name(), one.name())] = {EntityKind::subscription,
                                                                           one.counts()};
  }
  return out;
}

struct Rates {
  double active = 0;
  double dead = 0;
};
Rates rates_of(const std::string& name, const Row& row, const Sample& before, double seconds) {
  const auto found = before.find(name);
  if (found == before.end() || seconds <= 0) return {};
  const auto per_second = [&](std::uint64_t now, std::uint64_t then) {
    return (static_cast<double>(now) - static_cast<double>(then)) / seconds;
  };
  return {per_second(row.counts.active, found->second.counts.active),
          per_second(row.counts.dead_letter, found->second.counts.dead_letter)};
}

std::string json_text(const Sample& sample, const Sample& before, double seconds) {
  json::array out;
  for (const auto& [name, row] : sample) {
    const Rates rates = rates_of(name, row, before, seconds);
    json::object one;
    one["name"] = name;
    one["kind"] = json::string_view(client::name_of(row.kind).data(), client::name_of(row.kind).size());
    one["active"] = row.counts.active;
    one["activePerSecond"] = rates.active;
    one["deadLetter"] = row.counts.dead_letter;
    one["deadLetterPerSecond"] = rates.dead;
    one["scheduled"] = row.counts.scheduled;
    one["sizeBytes"] = row.counts.size_bytes;
    out.push_back(std::move(one));
  }
  return json::serialize(out) + "\n";
}

std::string change_text(double rate) { return rate == 0 ? "" : fmt::format("{:+.0f}/s", rate); }

std::string table_text(const Sample& sample, const Sample& before, double seconds, std::size_t lines) {
  std::vector<std::pair<std::string, Row>> rows(sample.begin(), sample.end());
  // What changes most stands first, then what is fullest.
  std::ranges::sort(rows, [&](const auto& a, const auto& b) {
    const double left = std::abs(rates_of(a.first, a.second, before, seconds).active);
    const double right = std::abs(rates_of(b.first, b.second, before, seconds).active);
    if (left != right) return left > right;
    if (a.second.counts.active != b.second.counts.active)
      return a.second.counts.active > b.second.counts.active;
    return a.first < b.first;
  });
  Table table({{"NAME"},
               {"KIND"},
               {"ACTIVE", true},
               {"CHANGE", true},
               {"DEAD", true},
               {"CHANGE", true},
               {"SCHEDULED", true},
               {"SIZE", true}});
  std::size_t shown = 0;
  for (const auto& [name, row] : rows) {
    if (lines > 0 && shown++ >= lines) break;
    const Rates rates = rates_of(name, row, before, seconds);
    table.add({name, std::string(client::name_of(row.kind)), fmt::to_string(row.counts.active),
               change_text(rates.active), fmt::to_string(row.counts.dead_letter), change_text(rates.dead),
               fmt::to_string(row.counts.scheduled), bytes_text(row.counts.size_bytes)});
  }
  return table.text();
}

void pause_for(double seconds) {
  const Tick until = tick_now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                      std::chrono::duration<double>(seconds));
  while (!interrupted() && tick_now() < until)
    ::usleep(static_cast<useconds_t>(std::clamp<std::int64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(until - tick_now()).count(), 0, 100'000)));
}

int top(const Target& target, const TopArguments& arguments) {
  auto admin = target.admin();
  if (!admin) return complain_about_usage(admin.error().detail);
  catch_interrupts();
  const bool is_screen = ::isatty(STDOUT_FILENO) == 1 && !arguments.once && !target.json;
  Output out;
  auto before = take_sample(*admin);
  if (!before) return complain(before.error());
  Tick taken = tick_now();
  if (is_screen) out.write("\x1b[2J\x1b[H" + table_text(*before, {}, 0, arguments.lines));
  while (out.flush() && !interrupted()) {
    pause_for(arguments.interval_seconds);
    if (interrupted()) break;
    auto sample = take_sample(*admin);
    if (!sample) return complain(sample.error());
    const Tick now = tick_now();
    const double seconds = std::chrono::duration<double>(now - taken).count();
    if (is_screen) out.write("\x1b[2J\x1b[H");
    out.write(target.json ? json_text(*sample, *before, seconds)
                          : table_text(*sample, *before, seconds, arguments.lines));
    before = std::move(sample);
    taken = now;
    if (arguments.once) break;
  }
  if (!out.flush()) return complain({Errc::io, "the output could not be written"});
  return exit_ok;
}

}  // namespace

void add_top(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("top", "Watch how full entities are, and how that changes.");
  auto arguments = std::make_shared<TopArguments>();
  auto target = add_target(*verb, "One line of JSON for each look.");
  verb->add_option("--interval", arguments->interval_seconds, "Time between two looks.")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  verb->add_flag("--once", arguments->once, "Two looks, one answer.");
  verb->add_option("--lines", arguments->lines, "So many entities; those that change most.")->type_name("N");
  on_run(*verb, status, [target, arguments] { return top(*target, *arguments); });
}

}  // namespace omnibus::cli
