#include "cli/transfer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>

#include "client/admin_client.hpp"
#include "node/config_json.hpp"
#include "transfer/exporting.hpp"
#include "transfer/importing.hpp"

namespace omnibus::cli {
namespace {

constexpr int exit_good = 0;
constexpr int exit_trouble = 1;
constexpr int exit_usage = 2;

struct Where {
  std::string connection{};
  std::string ca{};
};
struct ExportArguments {
  Where where{};
  std::string out{};
};
struct ImportArguments {
  Where where{};
  std::string file{};
  std::vector<std::string> parameters{};
  bool dry_run = false;
};

// What is said over and over where a person looks, and nowhere else.
class Line {
 public:
  ~Line() { clear(); }
  void say(std::string_view text) {
    if (!is_seen_) return;
    fmt::print(stderr, "\r\x1b[K{}", text.substr(0, 100));
    is_drawn_ = true;
  }
  void clear() {
    if (std::exchange(is_drawn_, false)) fmt::print(stderr, "\r\x1b[K");
  }

 private:
  const bool is_seen_ = ::isatty(STDERR_FILENO) == 1;
  bool is_drawn_ = false;
};

int complain(const Error& error, int code) {
  fmt::print(stderr, "omnibus: {}\n", error.detail);
  return code;
}

Result<client::AdminClient> connect(const Where& where) {
  std::string text = where.connection;
  for (const char* name : {"OMNIBUS_CONNECTION", "SERVICEBUS_CONNECTION_STRING"})
    if (const char* value = text.empty() ? std::getenv(name) : nullptr) text = value;
  if (text.empty()) text = client::local_connection_string;
  auto parsed = client::parse_connection_string(text);
  if (!parsed) return fail(parsed.error());
  return client::AdminClient(*std::move(parsed), {.trust = {.ca_file = where.ca}});
}

// For its owner alone: there are keys in it. Whole or not at all.
Result<void> write_secret(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const auto trouble = [&]() -> Result<void> {
    return fail(Errc::io, "'{}' cannot be written: {}", path, std::strerror(errno));
  };
  if (file < 0) return trouble();
  std::size_t written = 0;
  while (written < text.size()) {
    const auto n = ::write(file, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    written += static_cast<std::size_t>(n);
  }
  const bool good = written == text.size() && ::fsync(file) == 0;
  if (::close(file) != 0 || !good || ::rename(part.c_str(), path.c_str()) != 0) {
    auto result = trouble();
    ::unlink(part.c_str());
    return result;
  }
  return {};
}

void say(const transfer::Notes& notes, const std::string& about) {
  for (const transfer::Note& note : notes.all())
    fmt::print(stderr, "{}: {}: {}{}{}\n", about, note.is_error ? "error" : "warning", note.path,
               note.path.empty() ? "" : ": ", note.text);
}

int run_export(const ExportArguments& arguments) {
  auto client = connect(arguments.where);
  if (!client) return complain(client.error(), exit_usage);
  Line line;
  const auto result =
      transfer::export_namespace(*client, [&](const std::string& entity) { line.say(entity); });
  line.clear();
  if (!result) return complain(result.error(), exit_trouble);
  say(result->notes, client->where().host);
  const std::string text = transfer::pretty_json(result->config);
  if (arguments.out.empty()) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
      return complain({Errc::io, "stdout cannot be written"}, exit_trouble);
  } else if (auto written = write_secret(arguments.out, text); !written) {
    return complain(written.error(), exit_trouble);
  }
  fmt::print(stderr, "{} queues, {} topics, {} subscriptions, {} rules, {} exchanges\n", result->queues,
             result->topics, result->subscriptions, result->rules, result->exchanges);
  return exit_good;
}

Result<std::string> read_text(const std::string& path) {
  if (path == "-") {
    std::string text;
    char part[65536];
    while (const auto n = std::fread(part, 1, sizeof part, stdin)) {
      text.append(part, n);
      if (text.size() > node::json_bytes_max) break;
    }
    return text;
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(Errc::io, "'{}' cannot be read", path);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return fail(Errc::io, "'{}' cannot be read", path);
  return text;
}

int run_import(const ImportArguments& arguments) {
  std::map<std::string, std::string> parameters;
  for (const std::string& one : arguments.parameters) {
    const auto equals = one.find('=');
    if (equals == std::string::npos || equals == 0)
      return complain({Errc::argument_error, "--parameter is NAME=VALUE"}, exit_usage);
    parameters[one.substr(0, equals)] = one.substr(equals + 1);
  }
  const auto text = read_text(arguments.file);
  if (!text) return complain(text.error(), exit_usage);
  const auto source = transfer::read_source(*text, parameters);
  say(source.notes, arguments.file);
  if (!source.config) return exit_usage;
  auto client = connect(arguments.where);
  if (!client) return complain(client.error(), exit_usage);
  Line line;
  const auto told = [&](transfer::ImportAction action, const std::string& entity, const std::string& what) {
    using enum transfer::ImportAction;
    if (action == unchanged) return line.say(entity);
    line.clear();
    if (action == refused || action == warned)
      fmt::print(stderr, "{}: {}: {}\n", action == refused ? "error" : "warning", entity, what);
    else
      fmt::print("{}{} {}{}{}\n", arguments.dry_run ? "would be " : "",
                 action == created ? "created" : "updated", entity, what.empty() ? "" : ": ", what);
  };
  const auto report = transfer::import_namespace(*client, source, {.dry_run = arguments.dry_run}, told);
  line.clear();
  if (!report) return complain(report.error(), exit_trouble);
  fmt::print("{}: {} created, {} updated, {} unchanged, {} refused{}\n", transfer::name_of(source.kind),
             report->created, report->updated, report->unchanged, report->refused,
             arguments.dry_run ? " (nothing was changed)" : "");
  return report->refused == 0 ? exit_good : exit_trouble;
}

void add_where(CLI::App& verb, Where& where) {
  verb.add_option(
          "--connection", where.connection,
          "A connection string; else OMNIBUS_CONNECTION, SERVICEBUS_CONNECTION_STRING, or the local broker.")
      ->type_name("TEXT");
  verb.add_option("--ca", where.ca, "A file with certificates to trust besides the system's.")
      ->type_name("FILE");
}

}  // namespace

void add_transfer(CLI::App& app, int& status) {
  auto exporting = std::make_shared<ExportArguments>();
  CLI::App* one = app.add_subcommand("export", "Write a whole namespace as Config.json.");
  add_where(*one, exporting->where);
  one->add_option("--out", exporting->out, "A file, readable by its owner alone; else stdout.")
      ->type_name("FILE");
  one->callback([exporting, &status] { status = run_export(*exporting); });

  auto importing = std::make_shared<ImportArguments>();
  CLI::App* other = app.add_subcommand(
      "import", "Make the entities of a Config.json, an ARM template or a listing of az in a namespace.");
  other->add_option("FILE", importing->file, "The file; - is stdin.")->required();
  add_where(*other, importing->where);
  other->add_option("--parameter", importing->parameters, "A parameter of a template; may be repeated.")
      ->type_name("NAME=VALUE")
      ->take_all();
  other->add_flag("--dry-run", importing->dry_run, "Say what would be done, and do nothing.");
  other->callback([importing, &status] { status = run_import(*importing); });
}

}  // namespace omnibus::cli
