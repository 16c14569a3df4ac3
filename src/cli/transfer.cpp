#include "cli/transfer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>

#include "cli/exit_codes.hpp"
#include "cli/target.hpp"
#include "cli/terminal.hpp"
#include "node/config_json.hpp"
#include "transfer/exporting.hpp"
#include "transfer/importing.hpp"

namespace omnibus::cli {
namespace {

namespace json = boost::json;

struct ImportArguments {
  std::string file{};
  std::vector<std::string> parameters{};
  transfer::ImportOptions options{};
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

int run_export(const Target& target, const std::string& file) {
  auto client = target.admin();
  if (!client) return complain_about_usage(client.error().detail);
  Line line;
  const auto result =
      transfer::export_namespace(*client, [&](const std::string& entity) { line.say(entity); });
  line.clear();
  if (!result) return complain(result.error());
  say(result->notes, client->where().host);
  const std::string text = transfer::pretty_json(result->config);
  Output out;
  if (file.empty()) {
    out.write(text);
  } else if (auto written = write_secret(file, text); !written) {
    return complain(written.error());
  }
  json::object counts;
  counts["queues"] = result->queues;
  counts["topics"] = result->topics;
  counts["subscriptions"] = result->subscriptions;
  counts["rules"] = result->rules;
  counts["exchanges"] = result->exchanges;
  const std::string json_counts = json::serialize(counts) + "\n";
  if (target.json && !file.empty())
    out.write(json_counts);
  else if (target.json)
    fmt::print(stderr, "{}", json_counts);
  else
    fmt::print(stderr, "{} queues, {} topics, {} subscriptions, {} rules, {} exchanges\n", result->queues,
               result->topics, result->subscriptions, result->rules, result->exchanges);
  return out.flush() ? exit_ok : complain({Errc::io, "the output could not be written"});
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

std::string_view name_of(transfer::ImportAction action) {
  using enum transfer::ImportAction;
  switch (action) {
    case created:
      return "created";
    case updated:
      return "updated";
    case unchanged:
      return "unchanged";
    case refused:
      return "refused";
    case warned:
      break;
  }
  return "warned";
}

json::string_view json_view(std::string_view text) { return {text.data(), text.size()}; }

int run_import(const Target& target, const ImportArguments& arguments) {
  std::map<std::string, std::string> parameters;
  for (const std::string& one : arguments.parameters) {
    const auto equals = one.find('=');
    if (equals == std::string::npos || equals == 0) return complain_about_usage("--parameter is NAME=VALUE");
    parameters[one.substr(0, equals)] = one.substr(equals + 1);
  }
  const auto text = read_text(arguments.file);
  if (!text) return complain_about_usage(text.error().detail);
  const auto source = transfer::read_source(*text, parameters);
  say(source.notes, arguments.file);
  if (!source.config) return exit_wrong_usage;
  if (const auto chosen = transfer::find_namespace(*source.config, arguments.options.name_space); !chosen)
    return complain_about_usage(chosen.error().detail);
  auto client = target.admin();
  if (!client) return complain_about_usage(client.error().detail);
  Line line;
  Output out;
  json::array entities;
  const bool is_dry = arguments.options.dry_run;
  const auto told = [&](transfer::ImportAction action, const std::string& entity, const std::string& what) {
    using enum transfer::ImportAction;
    if (target.json)
      entities.push_back(
          {{"action", json_view(name_of(action))}, {"entity", json_view(entity)}, {"text", json_view(what)}});
    if (action == unchanged) return line.say(entity);
    line.clear();
    if (action == refused || action == warned)
      fmt::print(stderr, "{}: {}: {}\n", action == refused ? "error" : "warning", entity, what);
    else if (!target.json)
      out.write(fmt::format("{}{} {}{}{}\n", is_dry ? "would be " : "", name_of(action), entity,
                            what.empty() ? "" : ": ", what));
  };
  const auto report = transfer::import_namespace(*client, source, arguments.options, told);
  line.clear();
  if (!report) {
    if (!out.flush()) return complain({Errc::io, "the output could not be written"});
    return complain(report.error());
  }
  if (target.json) {
    json::object all;
    all["source"] = json_view(transfer::name_of(source.kind));
    all["dryRun"] = is_dry;
    all["created"] = report->created;
    all["updated"] = report->updated;
    all["unchanged"] = report->unchanged;
    all["refused"] = report->refused;
    all["entities"] = std::move(entities);
    out.write(json::serialize(all) + "\n");
  } else {
    out.write(fmt::format("{}: {} created, {} updated, {} unchanged, {} refused{}\n",
                          transfer::name_of(source.kind), report->created, report->updated, report->unchanged,
                          report->refused, is_dry ? " (nothing was changed)" : ""));
  }
  if (!out.flush()) return complain({Errc::io, "the output could not be written"});
  return report->refused == 0 ? exit_ok : exit_failed;
}

}  // namespace

void add_transfer(CLI::App& app, int& status) {
  CLI::App* one = app.add_subcommand("export", "Write a whole namespace as Config.json.");
  auto file = std::make_shared<std::string>();
  auto from = add_target(*one, "The counts as JSON: on stdout with --out, otherwise on stderr.");
  one->add_option("--out", *file, "A file, readable by its owner alone; else stdout.")->type_name("FILE");
  on_run(*one, status, [from, file] { return run_export(*from, *file); });

  CLI::App* other = app.add_subcommand(
      "import", "Make the entities of a Config.json, an ARM template or a listing of az in a namespace.");
  auto importing = std::make_shared<ImportArguments>();
  auto to = add_target(*other, "What was done as JSON.");
  other->add_option("FILE", importing->file, "The file; - is stdin.")->required();
  other
      ->add_option("--namespace", importing->options.name_space,
                   "Which namespace of the file, when it has several.")
      ->type_name("NAME");
  other->add_option("--parameter", importing->parameters, "A parameter of a template; may be repeated.")
      ->type_name("NAME=VALUE")
      ->take_all();
  other->add_flag("--replace-rules", importing->options.replace_rules,
                  "Remove rules that the file does not name, of subscriptions whose rules it names.");
  other->add_flag("--dry-run", importing->options.dry_run, "Say what would be done, and do nothing.");
  on_run(*other, status, [to, importing] { return run_import(*to, *importing); });
}

}  // namespace omnibus::cli
