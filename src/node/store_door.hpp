// The folder of a store whose disk may be away.
//
// lock() is where a journal begins. It opens the folder by its path each time, on whichever thread the
// journal uses, so that nobody else waits for a disk that hangs, and a disk that comes back later is found. A
// store that was there before is not made anew: a folder that is missing, empty, or holds another store (a
// disk that is not mounted) is `io`, and the store tries again. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "journal/disk.hpp"

namespace omnibus::node {

class StoreDoor final : public journal::Folder {
 public:
  using Open = std::function<Result<std::shared_ptr<journal::Folder>>(const std::string&)>;
  // `identity` is not 0. `is_new`: there is none yet, so it may be made.
  StoreDoor(std::string path, std::uint64_t identity, bool is_new, Open open);

  [[nodiscard]] std::uint64_t identity() const { return identity_; }
  [[nodiscard]] bool is_new() const { return is_new_; }
  // It has been made: from now on it has to be there.
  void made() { is_new_ = false; }

  Result<std::vector<std::string>> list() override;
  Result<std::unique_ptr<journal::File>> create(std::string_view name) override;
  Result<std::unique_ptr<journal::File>> open(std::string_view name, Mode mode) override;
  Result<void> rename(std::string_view from, std::string_view to) override;
  Result<void> remove(std::string_view name) override;
  Result<void> sync() override;
  Result<std::unique_ptr<journal::FolderLock>> lock() override;

 private:
  [[nodiscard]] Result<std::shared_ptr<journal::Folder>> enter() const;
  [[nodiscard]] Result<std::shared_ptr<journal::Folder>> inside() const;

  const std::string path_;
  const std::uint64_t identity_;
  std::atomic<bool> is_new_;
  std::atomic<bool> was_locked_{false};
  const Open open_;
  mutable std::mutex mutex_;
  std::shared_ptr<journal::Folder> inside_;  // as it was last locked
};

}  // namespace omnibus::node
