// Reads the records of one segment in order, and finds its way past damaged bytes.
//
// Memory is bounded by the window and the largest record, work by a budget for candidates after damage.
// A record is only handed out when its checksum matches at its position. Any thread, one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "journal/disk.hpp"
#include "journal/journal.hpp"
#include "journal/segment_format.hpp"

namespace omnibus::journal {

// The header of the file, or nothing when it is not valid; an error only when the disk fails.
[[nodiscard]] Result<std::optional<SegmentHeader>> read_segment_header(File& file, std::uint32_t segment);

class SegmentReader {
 public:
  // A record with what only the journal needs to know of it. The body is good until the next call.
  struct Item {
    RecordView view;
    std::uint32_t batch = 0;
    std::uint16_t flags = 0;
  };
  // No record here, from `from` up to `to`, which is the next record, or the end when `at_end`. Zeros up
  // to an end that is not known are no gap, nor part of one; nor is what lies behind a mark of the end.
  struct Gap {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    bool at_end = false;
    std::optional<std::uint32_t> partition;
  };
  struct End {
    std::uint32_t at = 0;  // just past the last record
  };
  using Step = std::variant<Item, Gap, End>;

  // Reads up to `end`, or to the end of the file when that is 0.
  SegmentReader(File& file, std::uint64_t store, std::uint32_t segment, std::uint64_t end = 0);

  [[nodiscard]] Result<Step> next();

 private:
  [[nodiscard]] Result<Bytes> window(std::uint64_t offset, std::uint64_t bytes);
  // The record at `offset`, if there is a valid one.
  [[nodiscard]] Result<std::optional<Item>> try_record(std::uint64_t offset);
  [[nodiscard]] Result<bool> is_end_marked(std::uint64_t offset);
  [[nodiscard]] Result<Step> gap_from(std::uint64_t offset);

  File& file_;
  std::uint64_t store_;
  std::uint32_t segment_;
  std::uint64_t end_;
  bool end_known_;
  std::uint64_t offset_ = first_offset;
  std::uint32_t last_batch_ = 0;
  std::uint64_t budget_ = 0;  // bytes that may still be hashed for candidates after damage
  std::vector<std::uint8_t> buffer_;
  std::uint64_t buffer_offset_ = 0;
};

// What the newest segment of a store really holds. The batch with the highest number may have been in
// flight when the process died; every batch before it was durable, or it would not have been followed.
struct Tail {
  std::uint32_t end = first_offset;  // just past the last record that counts
  std::uint32_t last_batch = 0;      // its number; 0: the segment has no records
  std::uint32_t last_batch_from = first_offset;
  // The torn batch, if there is one: its bytes are cut off.
  std::uint32_t torn_to = 0;
  // Records of an earlier, durable batch are lost in what is cut off.
  bool damaged_before = false;
};
[[nodiscard]] Result<Tail> find_tail(File& file, std::uint64_t store, std::uint32_t segment);

}  // namespace omnibus::journal
