// The bytes of a segment: 64 bytes of header, then records, each on a multiple of 8.
// Drawing and rules: docs/formats/journal.md. Everything is little-endian.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "journal/journal.hpp"

namespace omnibus::journal {

static_assert(std::endian::native == std::endian::little, "the format is written as it lies in memory");

constexpr std::uint64_t segment_magic = 0x314745534e4d4f1a;  // "\x1aOMNSEG1"
constexpr std::uint32_t format_version = 1;

struct SegmentHeader {
  std::uint64_t magic = segment_magic;
  std::uint32_t version = format_version;
  std::uint32_t segment = 0;
  std::uint64_t store = 0;
  Epoch epoch = 0;
  // The segment before this one and where its records end: this one exists only because all of those
  // were durable. Zero: this is the first.
  std::uint32_t previous = 0;
  std::uint32_t previous_end = 0;
  std::uint64_t reserved[2] = {};
  std::uint64_t checksum = 0;  // of everything above
};
static_assert(sizeof(SegmentHeader) == 64);

enum RecordFlag : std::uint16_t {
  flag_batch_begin = 1,
  flag_batch_end = 2,
  flag_lasting = 4,
  // Written by the journal for itself (the mark of a clean close), not shown to the owner.
  flag_internal = 8,
  flags_known = 15,
  // No record: what lies in front of it was the end of the log, whatever the bytes behind it are.
  flag_end_mark = 16,
};

struct RecordHeader {
  // XXH3-64 over the rest of the header and the body, seeded with store and position: bytes that lie in
  // the wrong place or come from another store never pass. Never zero, so that zeros are no record.
  std::uint64_t checksum = 0;
  std::uint32_t size = 0;  // of the body
  std::uint32_t partition = 0;
  std::uint32_t batch = 0;  // 1, 2, 3 ... within the segment: one batch, one sync
  std::uint16_t kind = 0;
  std::uint16_t flags = 0;
};
static_assert(sizeof(RecordHeader) == 24);

constexpr std::uint32_t record_alignment = 8;
constexpr std::uint32_t first_offset = sizeof(SegmentHeader);
// Offsets are 32 bits wide; a segment ends well before.
constexpr std::uint64_t segment_bytes_max = 0xffff0000;
constexpr std::uint32_t body_bytes_max = 1u << 30;

// What a record with such a body takes on the disk.
[[nodiscard]] constexpr std::uint64_t stride_of(std::uint64_t body_bytes) {
  return sizeof(RecordHeader) + (body_bytes + record_alignment - 1) / record_alignment * record_alignment;
}

[[nodiscard]] std::uint64_t hash_bytes(Bytes bytes, std::uint64_t seed);
[[nodiscard]] std::uint64_t record_seed(std::uint64_t store, Position position);
// `record` is the header and the whole body in one run.
[[nodiscard]] std::uint64_t record_checksum(Bytes record, std::uint64_t seed);

// What stands behind `batch` in a file that held another segment before, until the next batch takes its
// place.
[[nodiscard]] RecordHeader end_mark(std::uint64_t store, Position position, std::uint32_t batch);

[[nodiscard]] std::uint64_t header_checksum(const SegmentHeader& header);
[[nodiscard]] bool is_valid(const SegmentHeader& header);

// "0000002a.segment"
[[nodiscard]] std::string segment_name(std::uint32_t segment);
[[nodiscard]] std::optional<std::uint32_t> segment_of_name(std::string_view name);
// "000000000000002a.checkpoint"
[[nodiscard]] std::string checkpoint_name(std::uint64_t number);
[[nodiscard]] std::optional<std::uint64_t> checkpoint_of_name(std::string_view name);

// "0000002a.damaged": a dead segment in which damage was met, kept for people to look at.
[[nodiscard]] std::string damaged_name(std::uint32_t segment);
[[nodiscard]] std::optional<std::uint32_t> damaged_of_name(std::string_view name);
// "0000002a.damage": empty; it was met in the segment of that number.
[[nodiscard]] std::string damage_mark_name(std::uint32_t segment);
[[nodiscard]] std::optional<std::uint32_t> damage_mark_of_name(std::string_view name);

// Not yet part of the store: whatever a crash leaves under these names is removed at the next open.
constexpr std::string_view new_segment_name = "new-segment";
constexpr std::string_view new_checkpoint_name = "new-checkpoint";
// "00000001.spare"
[[nodiscard]] std::string spare_name(std::uint32_t number);
[[nodiscard]] bool is_leftover(std::string_view name);

template <class T>
[[nodiscard]] Bytes bytes_of(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const std::uint8_t*>(&value), sizeof(T)};
}

}  // namespace omnibus::journal
