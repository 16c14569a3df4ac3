#include "cli/target.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/exit_codes.hpp"
#include "cli/terminal.hpp"

namespace omnibus::cli {
namespace {

std::filesystem::path config_file() {
  if (const char* xdg = std::getenv("XDG_CONFIG_HOME"); xdg && *xdg)
    return std::filesystem::path(xdg) / "omnibus";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".config/omnibus";
  return {};
}

// Nothing when there is no such file.
Result<std::optional<std::string>> line_of_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::is_regular_file(path, ignored)) return std::optional<std::string>{};
  std::ifstream in(path);
  if (!in) return fail(Errc::argument_error, "'{}' cannot be read", path.string());
  std::string line;
  while (std::getline(in, line)) {
    const auto first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    return std::optional<std::string>{line.substr(first)};
  }
  return fail(Errc::argument_error, "'{}' holds no connection string", path.string());
}

struct Source {
  std::string text;
  std::string name;
};

Result<Source> find_source(const std::string& given) {
  if (!given.empty()) return Source{given, "--connection"};
  for (const char* name : {"OMNIBUS_CONNECTION", "SERVICEBUS_CONNECTION_STRING"})
    if (const char* value = std::getenv(name); value && *value) return Source{value, name};
  const auto path = config_file();
  auto line = line_of_file(path);
  if (!line) return fail(line.error());
  if (*line) return Source{**line, path.string()};
  return Source{std::string(client::local_connection_string), "the local broker"};
}

int exit_of(Errc code) {
  switch (code) {
    case Errc::not_found:
    case Errc::message_not_found:
    case Errc::session_not_found:
      return exit_not_found;
    default:
      return exit_failed;
  }
}

}  // namespace

Result<client::ConnectionString> Target::where() const {
  auto source = find_source(connection);
  if (!source) return fail(source.error());
  auto parsed = client::parse_connection_string(source->text);
  if (!parsed) return fail(Errc::argument_error, "{} (from {})", parsed.error().detail, source->name);
  return parsed;
}

Result<client::AdminClient> Target::admin() const {
  auto found = where();
  if (!found) return fail(found.error());
  client::AdminOptions options;
  options.trust = {.ca_file = ca, .verify = !insecure};
  options.patience = std::chrono::milliseconds{static_cast<std::int64_t>(timeout_seconds * 1000)};
  return client::AdminClient(*std::move(found), std::move(options));
}

Result<std::unique_ptr<client::AmqpClient>> Target::amqp(bool interruptible) const {
  auto found = where();
  if (!found) return fail(found.error());
  client::AmqpOptions options;
  options.trust = {.ca_file = ca, .verify = !insecure};
  options.patience = std::chrono::milliseconds{static_cast<std::int64_t>(timeout_seconds * 1000)};
  if (interruptible) options.interrupted = [] { return interrupted(); };
  return client::AmqpClient::connect(*std::move(found), std::move(options));
}

Result<std::string> Target::entity(const std::string& given) const {
  if (!given.empty()) return given;
  auto found = where();
  if (!found) return fail(found.error());
  if (found->entity_path.empty())
    return fail(Errc::argument_error, "which entity? Name a queue, a topic or TOPIC/Subscriptions/NAME");
  return found->entity_path;
}

std::shared_ptr<Target> add_target(CLI::App& verb, const char* json_text) {
  auto target = std::make_shared<Target>();
  verb.add_option(
          "--connection", target->connection,
          "The connection string. Otherwise OMNIBUS_CONNECTION, SERVICEBUS_CONNECTION_STRING, the file "
          "~/.config/omnibus, or a local broker.")
      ->type_name("STRING");
  verb.add_option("--ca", target->ca, "Certificates to trust besides the system's.")->type_name("FILE");
  verb.add_flag("--insecure", target->insecure, "Take any certificate.");
  verb.add_option("--timeout", target->timeout_seconds, "How long to wait for an answer.")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  if (json_text) verb.add_flag("--json", target->json, json_text);
  return target;
}

int complain(const Error& error) {
  fmt::print(stderr, "omnibus: {}\n", error.detail);
  if (error.code == Errc::auth_failed || error.code == Errc::unauthorized_access)
    fmt::print(stderr,
               "omnibus: look at SharedAccessKeyName and SharedAccessKey of the connection string, and at "
               "the rights "
               "of that rule\n");
  return exit_of(error.code);
}

int complain_about(const Error& error, const Target& target, const std::string& entity) {
  const int code = complain(error);
  if (code != exit_not_found) return code;
  auto admin = target.admin();
  if (!admin) return code;
  // With a key that may not list there is nothing to suggest.
  std::vector<std::string> names;
  const auto parts = entity.find("/Subscriptions/");
  const std::string topic = entity.substr(0, parts);
  for (const auto kind : {client::EntityKind::queue, client::EntityKind::topic})
    if (const auto listed = admin->list(kind))
      for (const auto& one : *listed) names.push_back(one.name());
  if (parts != std::string::npos && std::ranges::find(names, topic) != names.end()) {
    names.clear();
    if (const auto listed = admin->list(client::EntityKind::subscription, topic))
      for (const auto& one : *listed) names.push_back(fmt::format("{}/Subscriptions/{}", topic, one.name()));
  }
  if (const std::string close = client::closest_name(entity, names); !close.empty() && close != entity)
    fmt::print(stderr, "omnibus: did you mean '{}'?\n", close);
  else if (names.empty())
    fmt::print(stderr, "omnibus: nothing is there yet: `omnibus queue create NAME` makes a queue\n");
  return code;
}

int complain_about_usage(std::string_view what) {
  fmt::print(stderr, "omnibus: {}\n", what);
  return exit_wrong_usage;
}

void on_run(CLI::App& verb, int& status, std::function<int()> run) {
  verb.callback([run = std::move(run), &status] {
    ::signal(SIGPIPE, SIG_IGN);
    status = run();
  });
}

}  // namespace omnibus::cli
