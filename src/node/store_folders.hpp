// Which stores a data folder holds: DATA/store-0, DATA/store-1, ...
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "journal/disk.hpp"

namespace omnibus::node {

inline constexpr std::uint16_t stores_max = 1024;

struct StoreFolder {
  std::uint16_t number = 0;
  std::filesystem::path path;
};

[[nodiscard]] std::filesystem::path store_path(const std::filesystem::path& data, std::uint16_t number);
// Those that are there, by number. Names that only look like one ("store-01", "store-x") are passed over.
// `io` when the folder cannot be read or holds a number past stores_max.
[[nodiscard]] Result<std::vector<StoreFolder>> list_stores(const std::filesystem::path& data);

// Puts a store that is not there yet into a folder elsewhere, by a link in the data folder: whoever looks at
// the data folder finds it. `invalid_field` when it is there already, in another place. `is_known`: it was
// there before, so its folder is not made, and not looked at when the link is as it should be.
[[nodiscard]] Result<void> place_store(const std::filesystem::path& data, std::uint16_t number,
                                       const std::filesystem::path& folder, bool is_known = false);

// The identity of the store in a folder; 0: there is none yet. Reads the heads of its segments.
[[nodiscard]] Result<std::uint64_t> store_identity(journal::Folder& folder);

// Keeps a broker out of a folder while it is only looked at. Writes nothing: a folder without a lock file
// has no broker. `server_busy` when one has it.
class ReadLock {
 public:
  [[nodiscard]] static Result<ReadLock> take(const std::filesystem::path& folder);
  ReadLock(ReadLock&& other) noexcept;
  ReadLock& operator=(ReadLock&&) = delete;
  ~ReadLock();

 private:
  explicit ReadLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace omnibus::node
