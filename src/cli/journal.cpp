#include "cli/journal.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "journal/inspect.hpp"
#include "journal/posix_disk.hpp"
#include "node/store_folders.hpp"
#include "store/transaction_records.hpp"

namespace omnibus::cli {
namespace {

constexpr int exit_good = 0;
constexpr int exit_damage = 1;
constexpr int exit_trouble = 2;

struct JournalArguments {
  std::string data;
  std::optional<std::uint16_t> store;
  std::optional<std::uint64_t> limit;
};

int complain(const Error& error) {
  fmt::print(stderr, "omnibus: {}\n", error.detail);
  return exit_trouble;
}

// Looks at one store, with every record on stdout up to `limit` when it is a dump.
int look_at(const node::StoreFolder& store, bool dump, std::optional<std::uint64_t> limit) {
  const auto lock = node::ReadLock::take(store.path);
  if (!lock) return complain(lock.error());
  auto folder = journal::open_posix_folder(store.path.string());
  if (!folder) return complain(folder.error());
  std::uint64_t seen = 0;
  journal::EachRecord each;
  if (dump)
    each = [&](const journal::RecordView& record) {
      if (limit && seen++ >= *limit) return;
      const std::string says = store::describe_record(record.kind, record.body);
      fmt::print("{}{}{}\n", journal::to_text(record), says.empty() ? "" : " ", says);
    };
  fmt::print("{}:\n", store.path.filename().string());
  const auto report = journal::inspect(**folder, each);
  if (!report) {
    // A broker that died before its first record leaves a folder without a store in it.
    if (report.error().code != Errc::not_found) return complain(report.error());
    fmt::print("empty\n");
    return exit_good;
  }
  if (dump && limit && seen > *limit) fmt::print("... {} more\n", seen - *limit);
  fmt::print("{}", journal::to_text(*report));
  return report->good() ? exit_good : exit_damage;
}

int look(const JournalArguments& arguments, bool dump) {
  const std::filesystem::path data = arguments.data;
  std::error_code trouble;
  if (!std::filesystem::is_directory(data, trouble))
    return complain({Errc::io, fmt::format("'{}' is no folder", data.string())});
  const auto lock = node::ReadLock::take(data);
  if (!lock) return complain(lock.error());
  auto stores = node::list_stores(data);
  if (!stores) return complain(stores.error());
  if (arguments.store)
    std::erase_if(*stores, [&](const node::StoreFolder& store) { return store.number != *arguments.store; });
  if (stores->empty())
    return complain({Errc::io, fmt::format("there is no such store in '{}'", data.string())});
  int worst = exit_good;
  for (const auto& store : *stores) worst = std::max(worst, look_at(store, dump, arguments.limit));
  return worst;
}

}  // namespace

void add_journal(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("journal", "Look at the stores of a stopped broker; changes nothing.");
  command->require_subcommand(1);
  auto arguments = std::make_shared<JournalArguments>();
  const auto add = [&](const char* name, const char* what, bool dump) {
    CLI::App* verb = command->add_subcommand(name, what);
    verb->add_option("DATA", arguments->data, "The data folder.")->required();
    verb->add_option("--store", arguments->store, "Only DATA/store-N.")->type_name("N");
    if (dump) verb->add_option("--limit", arguments->limit, "Records of each store to show.")->type_name("N");
    verb->callback([arguments, dump, &status] { status = look(*arguments, dump); });
  };
  add("check", "Read every byte and say what is damaged: 0 good, 1 damage, 2 it could not be read.", false);
  add("dump", "The same, and a line for every record.", true);
}

}  // namespace omnibus::cli
