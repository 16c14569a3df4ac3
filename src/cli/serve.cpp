#include "cli/serve.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <memory>

#include "base/clock.hpp"
#include "cli/log_format.hpp"
#include "node/config.hpp"
#include "node/server.hpp"

namespace omnibus::cli {
namespace {

using namespace std::chrono_literals;

constexpr int exit_usage = 2;    // the command line or a file it names is wrong
constexpr int exit_trouble = 1;  // the world is: an address in use, a disk
constexpr int exit_interrupted = 143;
// Clients get so long to answer our close before they are cut off.
constexpr auto goodbye_max = 10s;
constexpr auto closing_max = 30s;

struct ServeArguments {
  std::string config;
  std::string data = "omnibus-data";
  std::vector<std::string> listen;
  bool ephemeral = false;
  bool test_clock = false;
  std::string log_level = "info";
  std::string log_format = "text";
};

std::string_view word_of(node::Finding::Severity severity) {
  return severity == node::Finding::Severity::error ? "error" : "warning";
}

// Reads a configuration and says what was found on stderr. Nothing when there is an error among it.
std::optional<node::Config> load_config(const std::string& file, node::FindingsKept kept) {
  auto reading = node::read_config_file(file, kept);
  if (!reading) {
    fmt::print(stderr, "omnibus: {}\n", reading.error().detail);
    return std::nullopt;
  }
  for (const auto& finding : reading->findings)
    fmt::print(stderr, "{}: {}: {}\n", file, word_of(finding.severity), node::to_text(finding));
  return std::move(reading->config);
}

// The same as one JSON object on stdout. False when there is an error among it.
bool print_findings(const std::string& file) {
  const auto view = [](std::string_view text) { return boost::json::string_view(text.data(), text.size()); };
  boost::json::array findings;
  bool is_good = false;
  if (const auto reading = node::read_config_file(file, node::FindingsKept::all)) {
    is_good = reading->config.has_value();
    for (const auto& finding : reading->findings) {
      boost::json::object one;
      one["severity"] = view(word_of(finding.severity));
      if (finding.line != 0) one["line"] = finding.line;
      if (!finding.key.empty()) one["key"] = finding.key;
      if (!finding.code.empty()) one["code"] = view(finding.code);
      one["text"] = finding.text;
      findings.push_back(std::move(one));
    }
  } else {
    findings.push_back({{"severity", "error"}, {"text", reading.error().detail}});
  }
  boost::json::object all;
  all["file"] = file;
  all["good"] = is_good;
  all["findings"] = std::move(findings);
  fmt::print("{}\n", boost::json::serialize(all));
  return is_good;
}

sigset_t end_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// Until it is done or the time is up; a second signal ends the process at once.
template <class IsDone>
void wait_for(const sigset_t& signals, std::chrono::seconds longest, const IsDone& is_done) {
  const Tick deadline = tick_now() + longest;
  while (!is_done() && tick_now() < deadline) {
    const timespec moment{0, 10'000'000};
    if (sigtimedwait(&signals, nullptr, &moment) > 0) {
      fmt::print(stderr, "omnibus: told twice, gone at once\n");
      _exit(exit_interrupted);
    }
  }
}

void announce(const node::Server& server, Tick started) {
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(tick_now() - started);
  fmt::print("omnibus {} is ready after {} ms\n", OMNIBUS_VERSION, took.count());
  fmt::print("  listening on       {}\n", fmt::join(server.addresses(), ", "));
  fmt::print("  data in            {}\n", server.data().string());
  fmt::print("  connection string  {}\n", server.connection_string());
  if (const std::string hint = server.key_hint(); !hint.empty())
    fmt::print("                     ({})\n", hint);
  std::fflush(stdout);
}

int serve(const ServeArguments& arguments) {
  const Tick started = tick_now();
  auto logger = spdlog::stderr_color_mt("omnibus");
  spdlog::set_default_logger(logger);
  spdlog::set_level(spdlog::level::from_str(arguments.log_level));
  if (arguments.log_format == "json")
    spdlog::set_formatter(json_log_format());
  else
    spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v");

  node::ServeOptions options;
  if (!arguments.config.empty()) {
    auto config = load_config(arguments.config, node::FindingsKept::first);
    if (!config) return exit_usage;
    options.config = *std::move(config);
  }
  options.data = arguments.data;
  options.listen = arguments.listen;
  options.ephemeral = arguments.ephemeral;
  options.test_clock = arguments.test_clock;

  // Blocked before any thread is made: they inherit it, and only this thread waits for the end.
  const sigset_t signals = end_signals();
  // A service hears by SIGHUP that its files were rotated; a terminal that closes ends its programs.
  sigset_t all = signals;
  if (isatty(STDIN_FILENO) == 0) sigaddset(&all, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  signal(SIGPIPE, SIG_IGN);
  options.give_up = [&signals] {
    const timespec no_time{0, 0};
    return sigtimedwait(&signals, nullptr, &no_time) > 0;
  };

  auto server = node::Server::start(std::move(options));
  if (!server) {
    fmt::print(stderr, "omnibus: {}\n", server.error().detail);
    return server.error().code == Errc::argument_error ? exit_usage : exit_trouble;
  }
  announce(**server, started);

  int signal_number = 0;
  while (sigwait(&all, &signal_number) == 0 && signal_number == SIGHUP) (*server)->reopen_logs();
  spdlog::info("SIG{}: closing connections and going", sigabbrev_np(signal_number));
  (*server)->begin_shutdown();
  wait_for(signals, goodbye_max, [&] { return (*server)->drained(); });
  if (!(*server)->drained()) spdlog::warn("some clients did not answer our close and are cut off");
  (*server)->close_stores();
  wait_for(signals, closing_max, [&] { return (*server)->stores_closed(); });
  if (!(*server)->stores_closed())
    spdlog::warn("the stores take too long to close: the next start recovers them");
  server->reset();
  spdlog::info("gone");
  return 0;
}

}  // namespace

void add_serve(CLI::App& app, int& status) {
  auto arguments = std::make_shared<ServeArguments>();
  CLI::App* command = app.add_subcommand("serve", "Run the broker until SIGTERM or Ctrl-C.");
  command->add_option("--config", arguments->config, "The emulator's Config.json, with our keys.")
      ->type_name("FILE");
  command->add_option("--data", arguments->data, "The folder for what survives a restart.")
      ->type_name("DIR")
      ->capture_default_str();
  command
      ->add_option("--listen", arguments->listen,
                   "An address; may be repeated and replaces the defaults localhost:5672, :5671 and :5300. "
                   "Port 0 picks one; DATA/listen.json tells which.")
      ->type_name("HOST:PORT")
      ->take_all();
  command->add_flag("--ephemeral", arguments->ephemeral, "Keep everything in memory; nothing survives.");
  command->add_flag("--test-clock", arguments->test_clock,
                    "Let POST /$omnibus/clock move the time of messages forward; for tests.");
  command->add_option("--log-level", arguments->log_level, "What is worth a line.")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
  command->add_option("--log-format", arguments->log_format, "Lines for people, or one JSON object per line.")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->callback([arguments, &status] { status = serve(*arguments); });
}

void add_config(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("config", "Look at configuration files.");
  command->require_subcommand(1);
  auto file = std::make_shared<std::string>();
  CLI::App* check = command->add_subcommand("check", "Say every mistake of a file, with line and key.");
  check->add_option("FILE", *file, "As for serve --config.")->required();
  auto json = std::make_shared<bool>(false);
  check->add_flag("--json", *json, "The findings as JSON.");
  check->callback([file, json, &status] {
    const bool is_good =
        *json ? print_findings(*file) : load_config(*file, node::FindingsKept::all).has_value();
    if (is_good && !*json) fmt::print("{}: good\n", *file);
    status = is_good ? 0 : exit_usage;
  });
}

}  // namespace omnibus::cli
