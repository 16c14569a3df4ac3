// Output for people and programs: tables, progress, questions, and a stdout whose failures are noticed. One
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace omnibus::cli {

// Columns as wide as they need to be; those of numbers stand right.
class Table {
 public:
  struct Column {
    std::string title;
    bool is_number = false;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  // Lines with their ends; control characters are shown as '?'.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Writes to stdout. Once something could not be written (a closed pipe, a full disk) nothing more is.
class Output {
 public:
  void write(std::string_view text);
  // All that was written has left this process.
  [[nodiscard]] bool flush();
  [[nodiscard]] bool good() const { return good_; }

 private:
  bool good_ = true;
};

// A line on stderr that is written over and over, only where a person looks at it.
class Progress {
 public:
  // `total` 0: nobody knows.
  Progress(std::string what, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void at(std::uint64_t done);
  // Before something else is said.
  void wipe();

 private:
  void draw(std::uint64_t done);
  std::string what_;
  std::uint64_t total_;
  bool is_seen_;
  bool is_drawn_ = false;
  Tick began_;
  Tick last_{};
};

// Asks on the terminal; without one the answer is no, and stderr says that --yes is needed.
[[nodiscard]] bool confirmed(std::string_view question, bool yes_given);

[[nodiscard]] std::string bytes_text(std::uint64_t bytes);  // "1.5 MiB"
[[nodiscard]] std::string one_line(std::string_view text, std::size_t characters_max);

// Ctrl-C and SIGTERM are noticed instead of ending the process; the second time they end it.
void catch_interrupts();
[[nodiscard]] bool interrupted();

}  // namespace omnibus::cli
