#include "node/store_list.hpp"

#include <fmt/format.h>

#include <concepts>
#include <fstream>
#include <iterator>
#include <optional>

#include "journal/segment_format.hpp"
#include "store/catalogue_records.hpp"

namespace omnibus::node {
namespace {

constexpr std::string_view magic = "OMBLIST1";

template <std::unsigned_integral T>
void put(std::string& to, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) to.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

// Nothing: there are not so many bytes left.
template <std::unsigned_integral T>
std::optional<T> take(Bytes& from) {
  if (from.size() < sizeof(T)) return std::nullopt;
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(T{from[i]} << (8 * i));
  from = from.subspan(sizeof(T));
  return value;
}

std::unexpected<Error> damaged(std::string_view what) {
  return fail(Errc::decode_error, "the list of a store's entities is damaged: {}", what);
}

}  // namespace

std::string store_list_file(std::uint16_t number) { return fmt::format("store-{}.entities", number); }

std::string write_store_list(std::uint64_t store, const std::vector<store::PartitionInfo>& partitions) {
  std::string text{magic};
  put(text, store);
  put(text, static_cast<std::uint32_t>(partitions.size()));
  for (const auto& info : partitions) {
    const auto bytes = store::encode_partition(info);
    put(text, static_cast<std::uint32_t>(info.id));
    put(text, static_cast<std::uint32_t>(bytes.size()));
    text += as_text(bytes);
  }
  put(text, journal::hash_bytes(as_bytes(text), store_list_seed));
  return text;
}

Result<std::vector<store::PartitionInfo>> read_store_list(std::uint64_t store, Bytes bytes) {
  if (bytes.size() < magic.size() + sizeof(std::uint64_t) || as_text(bytes.first(magic.size())) != magic)
    return damaged("it is no such list");
  Bytes end = bytes.last(sizeof(std::uint64_t));
  bytes = bytes.first(bytes.size() - end.size());
  if (take<std::uint64_t>(end) != journal::hash_bytes(bytes, store_list_seed))
    return damaged("its checksum is wrong");
  bytes = bytes.subspan(magic.size());
  const auto whose = take<std::uint64_t>(bytes);
  const auto count = take<std::uint32_t>(bytes);
  if (!whose || !count) return damaged("it is cut off");
  if (*whose != store)
    return fail(Errc::decode_error, "the list is of store {:016x}, not of {:016x}", *whose, store);
  std::vector<store::PartitionInfo> all;
  for (std::uint32_t i = 0; i < *count; ++i) {
    const auto id = take<std::uint32_t>(bytes);
    const auto size = take<std::uint32_t>(bytes);
    if (!id || !size || *size > bytes.size()) return damaged("it is cut off");
    if (*id <= (all.empty() ? 0 : static_cast<std::uint32_t>(all.back().id)))
      return damaged("its entities are in no order");
    auto info = store::decode_partition(store::PartitionId{*id}, bytes.first(*size));
    if (!info) return fail(info.error());
    all.push_back(*std::move(info));
    bytes = bytes.subspan(*size);
  }
  if (!bytes.empty()) return damaged("there is more than it says");
  return all;
}

Result<std::vector<store::PartitionInfo>> load_store_list(const std::filesystem::path& data,
                                                          std::uint16_t number, std::uint64_t store) {
  const auto path = data / store_list_file(number);
  std::error_code trouble;
  if (!std::filesystem::exists(path, trouble)) {
    if (trouble) return fail(Errc::io, "cannot look at '{}': {}", path.string(), trouble.message());
    return std::vector<store::PartitionInfo>{};
  }
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) return fail(Errc::io, "cannot read '{}'", path.string());
  auto list = read_store_list(store, as_bytes(text));
  if (!list) return fail(list.error().code, "'{}': {}", path.string(), list.error().detail);
  return list;
}

}  // namespace omnibus::node
