// A new folder where the system keeps temporary ones, gone with whoever made it. Any thread.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.hpp"

namespace omnibus {

// Makes an empty folder, named `prefix` and something random, for its owner alone. Nobody removes it. Fails
// with `io`.
[[nodiscard]] Result<std::filesystem::path> make_temporary_folder(std::string_view prefix);

// One that is removed with all that is in it. For tests and tools: without a folder the process stops.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(std::string_view prefix = "omnibus-");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace omnibus
