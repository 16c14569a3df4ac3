// The key of the default rule, and the only two functions of this room that touch the disk.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace omnibus::auth {

// The key every local connection string of the official emulator holds.
inline constexpr std::string_view loopback_key = "SAS_KEY_VALUE";
inline constexpr std::size_t key_file_bytes_max = 4096;

struct KeyFile {
  std::string key;
  bool readable_by_others = false;  // the caller warns; refusing would lock out mounted volumes
};

// `not_found` when there is no such file; `io` when it cannot be read, is too long or holds no key. A
// damaged file is never taken for a missing one: a new key would lock out every client.
[[nodiscard]] Result<KeyFile> read_key_file(const std::filesystem::path& path);
// Leaves a file only its owner may read (0600), complete and on disk, or none at all.
[[nodiscard]] Result<void> write_key_file(const std::filesystem::path& path, std::string_view key);

struct DefaultKey {
  std::string key{};
  bool newly_generated = false;  // show it, this once
  bool readable_by_others = false;
};

// While only loopback is listened on the key is the literal of the emulator and no file is touched.
// Otherwise it is the secret in the file `path`, made on the first start and reused from then on.
[[nodiscard]] Result<DefaultKey> default_key(bool only_loopback, const std::filesystem::path& path);

}  // namespace omnibus::auth
