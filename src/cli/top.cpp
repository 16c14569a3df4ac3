// `omnibus top`: how full the entities of a namespace are, how that changes, and what goes in and out, by
// asking again and again. What goes in and out is known where the broker has numbers for Prometheus, as ours
// has; elsewhere there is only the difference of two depths.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json.hpp>
#include <map>

#include "cli/exit_codes.hpp"
#include "cli/flows.hpp"
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
struct Sample {
  std::map<std::string, Row> rows{};  // by path
  std::optional<Flows> flows{};       // nothing: the server does not tell
  Tick taken{};
};

// The name of the namespace, when the server has numbers for Prometheus.
Result<std::optional<std::string>> find_flows(client::AdminClient& admin) {
  const auto text = admin.metrics();
  if (!text) return fail(text.error());
  if (!*text) return std::optional<std::string>{};
  const auto info = admin.namespace_info();
  if (!info) return fail(info.error());
  for (const auto& [name, value] : *info)
    if (name == "Name") return std::optional{value};
  return std::optional<std::string>{};
}

Result<std::map<std::string, Row>> list_rows(client::AdminClient& admin) {
  std::map<std::string, Row> out;
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

// `name_space` as find_flows() has it.
Result<Sample> take_sample(client::AdminClient& admin, const std::optional<std::string>& name_space) {
  Sample out;
  auto rows = list_rows(admin);
  if (!rows) return fail(rows.error());
  out.rows = *std::move(rows);
  out.taken = tick_now();
  if (!name_space) return out;
  const auto text = admin.metrics();
  if (!text) return fail(text.error());
  if (*text) out.flows = read_flows(**text, *name_space);
  return out;
}

struct Rates {
  double active = 0;
  double dead = 0;
  std::optional<double> in{};
  std::optional<double> out{};

  [[nodiscard]] double moved() const { return in.value_or(0) + out.value_or(0) + std::abs(active); }
};

// Two samples, and what happened between them.
class Look {
 public:
  Look(const Sample& now, const Sample& before)
      : now_(now),
        before_(before),
        seconds_(std::chrono::duration<double>(now.taken - before.taken).count()) {}

  [[nodiscard]] const Sample& now() const { return now_; }
  [[nodiscard]] Rates rates_of(const std::string& name, const Row& row) const {
    Rates rates;
    const auto found = before_.rows.find(name);
    if (found == before_.rows.end() || seconds_ <= 0) return rates;
    rates.active = per_second(row.counts.active, found->second.counts.active);
    rates.dead = per_second(row.counts.dead_letter, found->second.counts.dead_letter);
    if (!now_.flows || !before_.flows) return rates;
    const auto now = now_.flows->find(name);
    const auto then = before_.flows->find(name);
    if (now == now_.flows->end() || then == before_.flows->end()) return rates;
    // A broker that was started again counts from zero.
    rates.in = std::max(0.0, per_second(now->second.in, then->second.in));
    rates.out = std::max(0.0, per_second(now->second.out, then->second.out));
    return rates;
  }

 private:
  [[nodiscard]] double per_second(std::uint64_t now, std::uint64_t then) const {
    return (static_cast<double>(now) - static_cast<double>(then)) / seconds_;
  }

  const Sample& now_;
  const Sample& before_;
  double seconds_;
};

json::value json_of(const std::optional<double>& rate) { return rate ? json::value(*rate) : json::value(); }

std::string json_text(const Look& look) {
  json::array out;
  for (const auto& [name, row] : look.now().rows) {
    const Rates rates = look.rates_of(name, row);
    json::object one;
    one["name"] = name;
    one["kind"] = json::string_view(client::name_of(row.kind).data(), client::name_of(row.kind).size());
    one["active"] = row.counts.active;
    one["activePerSecond"] = rates.active;
    one["inPerSecond"] = json_of(rates.in);
    one["outPerSecond"] = json_of(rates.out);
    one["deadLetter"] = row.counts.dead_letter;
    one["deadLetterPerSecond"] = rates.dead;
    one["scheduled"] = row.counts.scheduled;
    one["sizeBytes"] = row.counts.size_bytes;
    out.push_back(std::move(one));
  }
  return json::serialize(out) + "\n";
}

std::string change_text(double rate) { return rate == 0 ? "" : fmt::format("{:+.0f}/s", rate); }
std::string rate_text(const std::optional<double>& rate) { return rate ? fmt::format("{:.0f}", *rate) : ""; }

std::string table_text(const Look& look, std::size_t lines) {
  struct Line {
    std::string name;
    Row row;
    Rates rates;
  };
  std::vector<Line> all;
  for (const auto& [name, row] : look.now().rows) all.push_back({name, row, look.rates_of(name, row)});
  // Where most happens stands first, then what is fullest.
  std::ranges::sort(all, [](const Line& a, const Line& b) {
    if (a.rates.moved() != b.rates.moved()) return a.rates.moved() > b.rates.moved();
    if (a.row.counts.active != b.row.counts.active) return a.row.counts.active > b.row.counts.active;
    return a.name < b.name;
  });
  if (lines > 0 && all.size() > lines) all.resize(lines);
  const bool has_flows = look.now().flows.has_value();
  std::vector<Table::Column> columns = {{"NAME"}, {"KIND"}, {"ACTIVE", true}};
  if (has_flows) columns.insert(columns.end(), {{"IN/s", true}, {"OUT/s", true}});
  columns.insert(columns.end(),
                 {{"CHANGE", true}, {"DEAD", true}, {"CHANGE", true}, {"SCHEDULED", true}, {"SIZE", true}});
  Table table(std::move(columns));
  for (const auto& [name, row, rates] : all) {
    std::vector<std::string> cells = {name, std::string(client::name_of(row.kind)),
                                      fmt::to_string(row.counts.active)};
    if (has_flows) cells.insert(cells.end(), {rate_text(rates.in), rate_text(rates.out)});
    cells.insert(cells.end(),
                 {change_text(rates.active), fmt::to_string(row.counts.dead_letter), change_text(rates.dead),
                  fmt::to_string(row.counts.scheduled), bytes_text(row.counts.size_bytes)});
    table.add(std::move(cells));
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
  const auto name_space = find_flows(*admin);
  if (!name_space) return complain(name_space.error());
  // On a screen that is written over it stands below the table.
  const std::string note =
      *name_space
          ? ""
          : "this server does not tell what goes in and out: CHANGE is the difference of two depths\n";
  if (!is_screen && !note.empty()) fmt::print(stderr, "omnibus: {}", note);
  const auto draw = [&](const Look& look) {
    if (is_screen) out.write("\x1b[2J\x1b[H");
    out.write(target.json ? json_text(look) : table_text(look, arguments.lines));
    if (is_screen) out.write(note);
  };
  auto before = take_sample(*admin, *name_space);
  if (!before) return complain(before.error());
  if (is_screen) draw(Look(*before, *before));
  while (out.flush() && !interrupted()) {
    pause_for(arguments.interval_seconds);
    if (interrupted()) break;
    auto sample = take_sample(*admin, *name_space);
    if (!sample) return complain(sample.error());
    draw(Look(*sample, *before));
    before = std::move(sample);
    if (arguments.once) break;
  }
  if (!out.flush()) return complain({Errc::io, "the output could not be written"});
  return exit_ok;
}

}  // namespace

void add_top(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("top", "Watch how full entities are, and what goes in and out.");
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
