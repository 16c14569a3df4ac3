// The records that share one write and one sync.
//
// Gathered on the owner's core, handed over as a whole, sealed (batch numbers are known at append,
// checksums are computed at seal()) and written by the thread that does the IO, then handed back and
// cleared for reuse. Only one thread has it at a time. A batch lies in one segment.
#pragma once

#include <cstdint>
#include <vector>

#include "journal/journal.hpp"
#include "journal/segment_format.hpp"

namespace omnibus::journal {

class Batch {
 public:
  // Where its first byte goes, and its number in that segment.
  void start(Position first, std::uint32_t number);
  void clear();

  void append(const Record& record, std::uint16_t more_flags = 0);

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::size_t records() const { return entries_.size(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint32_t segment() const { return first_.segment(); }
  [[nodiscard]] Position first() const { return first_; }
  // Of the last record.
  [[nodiscard]] Position last() const { return last_; }
  // Just past the last record.
  [[nodiscard]] std::uint32_t end() const { return first_.offset() + static_cast<std::uint32_t>(bytes_); }

  // Marks the last record and computes the checksums; then pieces() are the bytes to write at first(), and
  // behind them the mark of the end where that is wanted.
  enum class EndMark : std::uint8_t { without, with };
  void seal(std::uint64_t store, EndMark mark);
  [[nodiscard]] const std::vector<Bytes>& pieces() const { return pieces_; }

 private:
  // The header and the copied part of the body lie in flat_; the slices follow it on the disk, then the
  // padding, which starts the next run in flat_.
  struct Entry {
    std::uint64_t flat = 0;
    std::uint32_t copied = 0;
    std::uint32_t padding = 0;
    std::uint32_t slice_first = 0;
    std::uint32_t slice_count = 0;
  };
  void seal_entry(const Entry& entry, Position position, std::uint64_t store);

  Position first_;
  Position last_;
  std::uint32_t number_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<std::uint8_t> flat_;
  std::vector<Slice> slices_;
  std::vector<Entry> entries_;
  std::vector<Bytes> pieces_;
};

}  // namespace omnibus::journal
