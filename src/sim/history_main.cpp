// omnibus_history: judges what clients of a real broker wrote down. Not part of the product.
//
//     omnibus_history FILE... [--slack-ms N] [--late-ms N] [--dedup ENTITY]... [--retries]
//
// Files are merged by time. Ends with 0 when nothing is wrong, 1 when something is, 2 when a file cannot be
// read or holds nothing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "sim/checker.hpp"
#include "sim/history.hpp"

namespace {

constexpr std::uintmax_t file_bytes_max = std::uintmax_t{2} << 30;
constexpr std::size_t shown_max = 100;

bool read_file(const std::string& path, omnibus::sim::History& history) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error || size > file_bytes_max) {
    fmt::print(stderr, "{}: {}\n", path, error ? error.message() : "is too large");
    return false;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.good() && !file.eof()) {
    fmt::print(stderr, "{}: cannot be read\n", path);
    return false;
  }
  const auto read = omnibus::sim::read_history(text, history);
  if (!read) fmt::print(stderr, "{}: {}\n", path, read.error().detail);
  return read.has_value();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Judges the history of a run: docs/formats/history.md", "omnibus_history"};
  std::vector<std::string> files;
  std::vector<std::string> dedup;
  std::int64_t slack_ms = 0;
  std::int64_t late_ms = 0;
  omnibus::sim::CheckerOptions options;
  app.add_option("FILE", files, "what clients wrote down")->required();
  app.add_option("--slack-ms", slack_ms, "how far clocks may be apart")->check(CLI::NonNegativeNumber);
  app.add_option("--late-ms", late_ms, "how long a delivery may be under way")->check(CLI::NonNegativeNumber);
  app.add_option("--dedup", dedup, "an entity that looks for duplicates, over the whole run");
  app.add_flag("--retries", options.retries, "clients may send again what they have sent");
  CLI11_PARSE(app, argc, argv);

  omnibus::sim::History history;
  for (const std::string& file : files)
    if (!read_file(file, history)) return 2;
  if (history.empty()) {
    fmt::print(stderr, "there is no event in {}\n", fmt::join(files, ", "));
    return 2;
  }
  omnibus::sim::sort_by_time(history);
  options.slack = slack_ms * 1000;
  options.late = late_ms * 1000;
  options.dedup.insert(dedup.begin(), dedup.end());
  const auto judged = omnibus::sim::judge(history, options);
  for (std::size_t i = 0; i < judged.violations.size() && i < shown_max; ++i)
    fmt::print("{}\n", omnibus::sim::to_string(judged.violations[i]));
  if (judged.violations.size() > shown_max) fmt::print("... and more\n");
  fmt::print("{} events, {} sends, {} deliveries, {} transactions, {} not looked for: {} violations\n",
             history.size(), judged.sends, judged.deliveries, judged.transactions, judged.unchecked,
             judged.violations.size());
  return judged.violations.empty() ? 0 : 1;
}
