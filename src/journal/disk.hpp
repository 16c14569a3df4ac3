// The few things a journal asks of a disk, so that a simulated one can stand in for the real one.
//
// Errors keep apart what callers must tell apart: `resource_limit_exceeded` is "no space",
// `not_found` is a missing file, `server_busy` a lock that somebody else holds; the rest is `io`.
// A write is only in the cache until sync() of the file returned; a created, renamed or removed name is
// only in the cache until sync() of the folder returned. After a failed sync nobody can say what is on
// the disk, and asking again gives no answer: the caller stops using the file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace omnibus::journal {

// One thread at a time, except reads and size(), which any thread may call at any time.
class File {
 public:
  virtual ~File() = default;
  // Returns how many bytes were read: fewer than asked only at the end of the file.
  [[nodiscard]] virtual Result<std::size_t> read(std::uint64_t offset, std::span<std::uint8_t> into) = 0;
  // The same, past what the system keeps in memory, as far as it lets go of it: whether the disk itself
  // answers.
  [[nodiscard]] virtual Result<std::size_t> read_from_disk(std::uint64_t offset,
                                                           std::span<std::uint8_t> into) {
    return read(offset, into);
  }
  // Writes all pieces one after the other from `offset`, or fails with any part of them written.
  [[nodiscard]] virtual Result<void> write(std::uint64_t offset, std::span<const Bytes> pieces) = 0;
  [[nodiscard]] virtual Result<void> sync() = 0;
  // Makes the file `size` long and reserves the space for it. A disk that cannot reserve only makes it
  // longer.
  [[nodiscard]] virtual Result<void> allocate(std::uint64_t size) = 0;
  [[nodiscard]] virtual Result<void> truncate(std::uint64_t size) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> size() = 0;
};

// Held while it lives.
class FolderLock {
 public:
  virtual ~FolderLock() = default;
};

// One folder, whose names have no slashes. Any thread.
class Folder {
 public:
  virtual ~Folder() = default;
  [[nodiscard]] virtual Result<std::vector<std::string>> list() = 0;
  // An existing file of that name is emptied.
  [[nodiscard]] virtual Result<std::unique_ptr<File>> create(std::string_view name) = 0;
  enum class Mode : std::uint8_t { read, write };
  [[nodiscard]] virtual Result<std::unique_ptr<File>> open(std::string_view name, Mode mode) = 0;
  [[nodiscard]] virtual Result<void> rename(std::string_view from, std::string_view to) = 0;
  [[nodiscard]] virtual Result<void> remove(std::string_view name) = 0;
  [[nodiscard]] virtual Result<void> sync() = 0;
  // Keeps every other opener out, of this process and of others, as long as the lock lives.
  [[nodiscard]] virtual Result<std::unique_ptr<FolderLock>> lock() = 0;
};

}  // namespace omnibus::journal
