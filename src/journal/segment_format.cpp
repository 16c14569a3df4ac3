#include "journal/segment_format.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <charconv>
#include <cstddef>

namespace omnibus::journal {
namespace {

template <class Number>
std::optional<Number> number_of_name(std::string_view name, std::size_t digits, std::string_view ending) {
  if (name.size() != digits + ending.size() || !name.ends_with(ending)) return std::nullopt;
  Number number = 0;
  const char* end = name.data() + digits;
  const auto [at, error] = std::from_chars(name.data(), end, number, 16);
  // Only the spelling we write ourselves: two names for one segment would be two segments.
  if (error != std::errc{} || at != end || number == 0) return std::nullopt;
  return number;
}

}  // namespace

std::uint64_t hash_bytes(Bytes bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t record_seed(std::uint64_t store, Position position) {
  return store ^ (position.value() * 0x9e3779b97f4a7c15);
}

std::uint64_t record_checksum(Bytes record, std::uint64_t seed) {
  const std::uint64_t sum = hash_bytes(record.subspan(sizeof(std::uint64_t)), seed);
  return sum == 0 ? 1 : sum;
}

RecordHeader end_mark(std::uint64_t store, Position position, std::uint32_t batch) {
  RecordHeader mark;
  mark.batch = batch;
  mark.flags = flag_end_mark;
  mark.checksum = record_checksum(bytes_of(mark), record_seed(store, position));
  return mark;
}

std::uint64_t header_checksum(const SegmentHeader& header) {
  return hash_bytes(bytes_of(header).first(offsetof(SegmentHeader, checksum)), segment_magic);
}

bool is_valid(const SegmentHeader& header) {
  return header.magic == segment_magic && header.checksum == header_checksum(header);
}

std::string segment_name(std::uint32_t segment) { return fmt::format("{:08x}.segment", segment); }

std::optional<std::uint32_t> segment_of_name(std::string_view name) {
  const auto number = number_of_name<std::uint32_t>(name, 8, ".segment");
  if (!number || segment_name(*number) != name) return std::nullopt;
  return number;
}

std::string checkpoint_name(std::uint64_t number) { return fmt::format("{:016x}.checkpoint", number); }

std::optional<std::uint64_t> checkpoint_of_name(std::string_view name) {
  const auto number = number_of_name<std::uint64_t>(name, 16, ".checkpoint");
  if (!number || checkpoint_name(*number) != name) return std::nullopt;
  return number;
}

std::string damaged_name(std::uint32_t segment) { return fmt::format("{:08x}.damaged", segment); }

std::optional<std::uint32_t> damaged_of_name(std::string_view name) {
  return number_of_name<std::uint32_t>(name, 8, ".damaged");
}

std::string damage_mark_name(std::uint32_t segment) { return fmt::format("{:08x}.damage", segment); }

std::optional<std::uint32_t> damage_mark_of_name(std::string_view name) {
  return number_of_name<std::uint32_t>(name, 8, ".damage");
}

std::string spare_name(std::uint32_t number) { return fmt::format("{:08x}.spare", number); }

bool is_leftover(std::string_view name) {
  return name == new_segment_name || name == new_checkpoint_name || name.ends_with(".spare");
}

}  // namespace omnibus::journal
