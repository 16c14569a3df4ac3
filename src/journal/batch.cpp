#include "journal/batch.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "base/check.hpp"

namespace omnibus::journal {
namespace {

// Below this a copy costs less than one more piece for the kernel to gather and a streamed checksum.
constexpr std::size_t copy_bytes_max = 2048;
// A buffer that one burst made large is not kept for ever.
constexpr std::size_t keep_bytes_max = 4u << 20;

}  // namespace

void Batch::start(Position first, std::uint32_t number) {
  check(empty());
  first_ = first;
  last_ = Position{};
  number_ = number;
}

void Batch::clear() {
  bytes_ = 0;
  if (flat_.capacity() > keep_bytes_max) flat_ = {};
  flat_.clear();
  slices_.clear();
  entries_.clear();
  pieces_.clear();
}

void Batch::append(const Record& record, std::uint16_t more_flags) {
  const std::size_t payload_bytes = record.payload ? record.payload->size() : 0;
  const std::size_t body_bytes = record.head.size() + payload_bytes;
  check(body_bytes <= body_bytes_max);
  const bool copy = payload_bytes <= copy_bytes_max;
  last_ = Position{first_.segment(), end()};

  RecordHeader header;
  header.size = static_cast<std::uint32_t>(body_bytes);
  header.partition = record.partition;
  header.batch = number_;
  header.kind = record.kind;
  header.flags = more_flags;
  if (entries_.empty()) header.flags |= flag_batch_begin;
  if (record.life == Life::lasting) header.flags |= flag_lasting;

  Entry entry;
  entry.flat = flat_.size();
  entry.slice_first = static_cast<std::uint32_t>(slices_.size());
  const std::size_t copied = sizeof(header) + record.head.size() + (copy ? payload_bytes : 0);
  entry.copied = static_cast<std::uint32_t>(copied);
  entry.padding = static_cast<std::uint32_t>(stride_of(body_bytes) - sizeof(header) - body_bytes);
  flat_.resize(flat_.size() + copied + entry.padding);
  std::uint8_t* to = flat_.data() + entry.flat;
  std::memcpy(to, &header, sizeof(header));
  to += sizeof(header);
  if (!record.head.empty()) std::memcpy(to, record.head.data(), record.head.size());
  to += record.head.size();
  for (std::size_t i = 0; payload_bytes > 0 && i < record.payload->slice_count(); ++i) {
    const Slice& slice = record.payload->slice(i);
    if (copy) {
      std::memcpy(to, slice.bytes().data(), slice.size);
      to += slice.size;
    } else {
      slices_.push_back(slice);
      ++entry.slice_count;
    }
  }
  entries_.push_back(entry);
  bytes_ += stride_of(body_bytes);
}

void Batch::seal_entry(const Entry& entry, Position position, std::uint64_t store) {
  std::uint8_t* at = flat_.data() + entry.flat;
  const std::uint64_t seed = record_seed(store, position);
  std::uint64_t sum = 0;
  if (entry.slice_count == 0) {
    sum = record_checksum({at, entry.copied}, seed);
  } else {
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset_withSeed(&state, seed);
    XXH3_64bits_update(&state, at + sizeof(sum), entry.copied - sizeof(sum));
    for (std::uint32_t i = 0; i < entry.slice_count; ++i) {
      const Bytes part = slices_[entry.slice_first + i].bytes();
      XXH3_64bits_update(&state, part.data(), part.size());
    }
    sum = XXH3_64bits_digest(&state);
    if (sum == 0) sum = 1;
  }
  std::memcpy(at, &sum, sizeof(sum));
}

void Batch::seal(std::uint64_t store, EndMark mark) {
  check(!empty());
  RecordHeader last;
  std::uint8_t* last_at = flat_.data() + entries_.back().flat;
  std::memcpy(&last, last_at, sizeof(last));
  last.flags |= flag_batch_end;
  std::memcpy(last_at, &last, sizeof(last));
  if (mark == EndMark::with) {
    const RecordHeader end = end_mark(store, Position{first_.segment(), this->end()}, number_);
    const Bytes bytes = bytes_of(end);
    flat_.insert(flat_.end(), bytes.begin(), bytes.end());
  }

  pieces_.clear();
  std::uint64_t run = 0;  // where the run of flat bytes that is not yet a piece begins
  std::uint64_t offset = first_.offset();
  for (const Entry& entry : entries_) {
    seal_entry(entry, Position{first_.segment(), static_cast<std::uint32_t>(offset)}, store);
    RecordHeader header;
    std::memcpy(&header, flat_.data() + entry.flat, sizeof(header));
    offset += stride_of(header.size);
    if (entry.slice_count == 0) continue;
    const std::uint64_t run_end = entry.flat + entry.copied;
    pieces_.emplace_back(flat_.data() + run, run_end - run);
    for (std::uint32_t i = 0; i < entry.slice_count; ++i)
      pieces_.push_back(slices_[entry.slice_first + i].bytes());
    run = run_end;
  }
  if (run < flat_.size()) pieces_.emplace_back(flat_.data() + run, flat_.size() - run);
}

}  // namespace omnibus::journal
