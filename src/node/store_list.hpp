// What a store had when it was last seen, kept outside of it: DATA/store-N.entities.
//
// Read when the store is not there, so that its entities are known without it. A copy, at most a moment old:
// what the store itself says replaces it. Layout: docs/formats/stores.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "store/partition.hpp"

namespace omnibus::node {

inline constexpr std::uint64_t store_list_seed = 0x4f4d424c49535431;  // of its checksum

[[nodiscard]] std::string store_list_file(std::uint16_t number);
[[nodiscard]] std::string write_store_list(std::uint64_t store,
                                           const std::vector<store::PartitionInfo>& partitions);
// By ascending id. `decode_error` when it is damaged, or the list of another store.
[[nodiscard]] Result<std::vector<store::PartitionInfo>> read_store_list(std::uint64_t store, Bytes bytes);
// Of a data folder; no file: an empty list.
[[nodiscard]] Result<std::vector<store::PartitionInfo>> load_store_list(const std::filesystem::path& data,
                                                                        std::uint16_t number,
                                                                        std::uint64_t store);

}  // namespace omnibus::node
