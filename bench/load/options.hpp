// What every load program can be told: --seconds S, --rounds N, --only PART, --data FOLDER.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

namespace omnibus::bench {

struct LoadOptions {
  double seconds = 2;  // of each round
  int rounds = 5;
  std::string only{};  // a part of the program; empty: all
  std::filesystem::path folder = std::filesystem::temp_directory_path();

  [[nodiscard]] bool wants(std::string_view part) const { return only.empty() || only == part; }
};

// Stops the program at an option that nobody knows: figures of a run that was meant otherwise are none.
// `parts` are what --only may name.
[[nodiscard]] inline LoadOptions read_options(int argc, char** argv, LoadOptions options = {},
                                              std::initializer_list<std::string_view> parts = {}) {
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (value && name == "--seconds") {
      options.seconds = std::atof(value);
    } else if (value && name == "--rounds") {
      options.rounds = std::atoi(value);
    } else if (value && name == "--only") {
      options.only = value;
    } else if (value && name == "--data") {
      options.folder = value;
    } else {
      fmt::print(stderr, "'{}' is no option, or lacks its value\n", name);
      std::exit(2);
    }
  }
  if (!options.only.empty() && std::ranges::find(parts, options.only) == parts.end()) {
    fmt::print(stderr, "'{}' is no part of this program\n", options.only);
    std::exit(2);
  }
  return options;
}

}  // namespace omnibus::bench
