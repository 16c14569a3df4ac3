#include "cli/terminal.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <utility>

#include "base/text.hpp"

namespace omnibus::cli {
namespace {

std::atomic<bool> was_interrupted{false};

void on_interrupt(int number) {
  was_interrupted = true;
  ::signal(number, SIG_DFL);
}

// Letters, not bytes: what follows the first byte of one takes no room.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string shown(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  return out;
}

}  // namespace

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const auto& column : columns_) widths.push_back(column.title.size());
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  std::string out;
  const auto line = [&](const auto& cells) {
    std::string one;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string cell = shown(cells(i));
      const std::string padding(widths[i] - width_of(cell), ' ');
      if (i > 0) one += "  ";
      one += columns_[i].is_number ? padding + cell : cell + padding;
    }
    while (one.ends_with(' ')) one.pop_back();
    out += one + "\n";
  };
  line([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& row : rows_) line([&](std::size_t i) -> const std::string& { return row[i]; });
  return out;
}

void Output::write(std::string_view text) {
  if (good_ && std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) good_ = false;
}

bool Output::flush() {
  if (good_ && std::fflush(stdout) != 0) good_ = false;
  return good_;
}

Progress::Progress(std::string what, std::uint64_t total)
    : what_(std::move(what)), total_(total), is_seen_(::isatty(STDERR_FILENO) == 1), began_(tick_now()) {}

Progress::~Progress() { wipe(); }

void Progress::wipe() {
  if (std::exchange(is_drawn_, false)) fmt::print(stderr, "\r\x1b[K");
}

void Progress::at(std::uint64_t done) {
  if (!is_seen_) return;
  const Tick now = tick_now();
  if (now - last_ < std::chrono::milliseconds{100}) return;
  last_ = now;
  draw(done);
}

void Progress::draw(std::uint64_t done) {
  is_drawn_ = true;
  const double seconds = std::max(0.001, std::chrono::duration<double>(tick_now() - began_).count());
  const auto rate = static_cast<std::uint64_t>(static_cast<double>(done) / seconds);
  if (total_ == 0) {
    fmt::print(stderr, "\r\x1b[K{}: {} ({}/s)", what_, done, rate);
  } else {
    constexpr std::size_t width = 30;
    const std::size_t filled = std::min<std::size_t>(width, width * done / total_);
    fmt::print(stderr, "\r\x1b[K{} [{}{}] {}/{} ({}/s)", what_, std::string(filled, '#'),
               std::string(width - filled, '.'), done, total_, rate);
  }
  std::fflush(stderr);
}

bool confirmed(std::string_view question, bool yes_given) {
  if (yes_given) return true;
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) {
    fmt::print(stderr, "omnibus: {} Nobody is there to be asked: --yes says so beforehand\n", question);
    return false;
  }
  fmt::print(stderr, "{} [y/N] ", question);
  std::fflush(stderr);
  std::array<char, 64> answer{};
  if (!std::fgets(answer.data(), static_cast<int>(answer.size()), stdin)) return false;
  const std::string_view said = answer.data();
  return equals_ignoring_case(said, "y\n") || equals_ignoring_case(said, "yes\n");
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units.at(unit));
}

std::string one_line(std::string_view text, std::size_t characters_max) {
  std::string out;
  std::size_t characters = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80 && ++characters > characters_max) return out + "...";
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return is_utf8(out) ? out : fmt::format("({} bytes)", text.size());
}

void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;  // without SA_RESTART: a wait ends
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return was_interrupted; }

}  // namespace omnibus::cli
