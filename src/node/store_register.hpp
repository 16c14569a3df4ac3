// Which stores a data folder has had, and by which identity: DATA/stores.json.
//
// What is written here is never made anew: a store whose folder is empty, or holds another one, is away.
// Layout, and what to do when a disk is lost for good: docs/formats/stores.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace omnibus::node {

using KnownStores = std::map<std::uint16_t, std::uint64_t>;  // identity by number

inline constexpr const char* store_register_file = "stores.json";

[[nodiscard]] std::string write_store_register(const KnownStores& stores);
// `io` when it cannot be read as one.
[[nodiscard]] Result<KnownStores> read_store_register(std::string_view text);
// Of a data folder; no file: none are known.
[[nodiscard]] Result<KnownStores> load_store_register(const std::filesystem::path& data);

}  // namespace omnibus::node
