// The folder that holds what survives a restart. One process at a time: a second one is refused.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace omnibus::node {

class DataFolder {
 public:
  // Makes the folder (0700) when it is missing and takes its lock. Fails with `io`; the detail says which
  // path and why, a folder in use included.
  [[nodiscard]] static Result<std::unique_ptr<DataFolder>> open(const std::filesystem::path& path);
  // A folder of its own under the system's temporary one, removed with all it holds at the end.
  [[nodiscard]] static Result<std::unique_ptr<DataFolder>> temporary();

  ~DataFolder();
  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Replaces a file whole: readers see the old or the new content, never a part.
  [[nodiscard]] Result<void> write_file(const std::string& name, std::string_view content) const;
  // The same, and on the disk when it returns; only its owner may read it.
  [[nodiscard]] Result<void> write_durable(const std::string& name, std::string_view content) const;
  void remove_file(const std::string& name) const;

 private:
  DataFolder(std::filesystem::path path, int lock, bool temporary)
      : path_(std::move(path)), lock_(lock), temporary_(temporary) {}
  std::filesystem::path path_;
  int lock_;
  bool temporary_;
};

}  // namespace omnibus::node
