#include "journal/segment_reader.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.hpp"

namespace omnibus::journal {
namespace {

constexpr std::uint64_t window_bytes = 1u << 20;
// How much may be hashed in search of the next good record: a tenth of a second.
constexpr std::uint64_t budget_bytes = 512u << 20;

// The first place in `bytes`, which start at `at`, where a record could begin: a word that is not zero.
std::uint64_t next_nonzero(Bytes bytes, std::uint64_t at) {
  std::size_t i = 0;
  for (; i + record_alignment <= bytes.size(); i += record_alignment) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, sizeof(word));
    if (word != 0) return at + i;
  }
  for (std::size_t j = i; j < bytes.size(); ++j)
    if (bytes[j] != 0) return at + i;
  return at + (bytes.size() + record_alignment - 1) / record_alignment * record_alignment;
}

}  // namespace

Result<std::optional<SegmentHeader>> read_segment_header(File& file, std::uint32_t segment) {
  std::array<std::uint8_t, sizeof(SegmentHeader)> bytes{};
  const auto got = file.read(0, bytes);
  if (!got) return fail(got.error());
  if (*got != sizeof(SegmentHeader)) return std::nullopt;
  SegmentHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (!is_valid(header) || header.segment != segment) return std::nullopt;
  if (header.version != format_version)
    return fail(Errc::not_implemented, "segment {} has format version {}, this program reads {}", segment,
                header.version, format_version);
  return header;
}

SegmentReader::SegmentReader(File& file, std::uint64_t store, std::uint32_t segment, std::uint64_t end)
    : file_(file), store_(store), segment_(segment), end_(end), end_known_(end != 0) {}

Result<Bytes> SegmentReader::window(std::uint64_t offset, std::uint64_t bytes) {
  if (offset < buffer_offset_ || offset + bytes > buffer_offset_ + buffer_.size()) {
    const std::uint64_t wanted = std::min(std::max(bytes, window_bytes), end_ - offset);
    buffer_.resize(wanted);
    buffer_offset_ = offset;
    const auto got = file_.read(offset, buffer_);
    if (!got) {
      buffer_.clear();
      return fail(got.error());
    }
    // A file shorter than its end: what is missing reads as zeros, which are no record.
    std::fill(buffer_.begin() + static_cast<std::ptrdiff_t>(*got), buffer_.end(), std::uint8_t{0});
  }
  return Bytes{buffer_}.subspan(offset - buffer_offset_, bytes);
}

Result<std::optional<SegmentReader::Item>> SegmentReader::try_record(std::uint64_t offset) {
  if (offset + sizeof(RecordHeader) > end_) return std::nullopt;
  auto bytes = window(offset, sizeof(RecordHeader));
  if (!bytes) return fail(bytes.error());
  RecordHeader header;
  std::memcpy(&header, bytes->data(), sizeof(header));
  if (header.checksum == 0 || header.batch == 0 || (header.flags & ~flags_known) != 0) return std::nullopt;
  if (header.size > body_bytes_max || offset + stride_of(header.size) > end_) return std::nullopt;
  // After damage: a batch that cannot be here saves the work of hashing its body.
  const std::uint64_t batches_lost_max = (offset - offset_) / sizeof(RecordHeader);
  if (header.batch < last_batch_ || header.batch > last_batch_ + batches_lost_max + 1) return std::nullopt;
  bytes = window(offset, sizeof(header) + header.size);
  if (!bytes) return fail(bytes.error());
  budget_ -= std::min<std::uint64_t>(budget_, bytes->size());
  const Position position{segment_, static_cast<std::uint32_t>(offset)};
  if (record_checksum(*bytes, record_seed(store_, position)) != header.checksum) return std::nullopt;
  Item item;
  item.view.position = position;
  item.view.kind = header.kind;
  item.view.partition = header.partition;
  item.view.life = (header.flags & flag_lasting) != 0 ? Life::lasting : Life::log;
  item.view.body = bytes->subspan(sizeof(header));
  item.batch = header.batch;
  item.flags = header.flags;
  return item;
}

Result<bool> SegmentReader::is_end_marked(std::uint64_t offset) {
  if (offset + sizeof(RecordHeader) > end_) return false;
  const auto bytes = window(offset, sizeof(RecordHeader));
  if (!bytes) return fail(bytes.error());
  const RecordHeader mark =
      end_mark(store_, Position{segment_, static_cast<std::uint32_t>(offset)}, last_batch_);
  return std::memcmp(bytes->data(), &mark, sizeof(mark)) == 0;
}

Result<SegmentReader::Step> SegmentReader::gap_from(std::uint64_t offset) {
  const auto is_marked = is_end_marked(offset);
  if (!is_marked) return fail(is_marked.error());
  budget_ = budget_bytes;
  Gap gap;
  gap.from = static_cast<std::uint32_t>(offset);
  // Where the damaged header says the next record is. Not to be trusted: a flipped bit of the size can
  // lead to a later record, past good ones.
  RecordHeader claimed;
  std::uint64_t claimed_next = 0;
  if (offset + sizeof(RecordHeader) <= end_) {
    const auto bytes = window(offset, sizeof(RecordHeader));
    if (!bytes) return fail(bytes.error());
    std::memcpy(&claimed, bytes->data(), sizeof(claimed));
    claimed_next = offset + stride_of(claimed.size);
  }
  const auto found_at = [&](std::uint64_t next, std::uint32_t batch) {
    last_batch_ = batch;
    gap.to = static_cast<std::uint32_t>(next);
    if (next == claimed_next) gap.partition = claimed.partition;
    offset_ = next;
    return Step{gap};
  };
  std::uint64_t used = offset;  // just past the last byte that is not zero
  for (std::uint64_t at = offset; at < end_;) {
    // What is left of the window, or the next one.
    const std::uint64_t window_end = buffer_offset_ + buffer_.size();
    const bool inside = at >= buffer_offset_ && at < window_end;
    const auto bytes = window(at, inside ? window_end - at : std::min(window_bytes, end_ - at));
    if (!bytes) return fail(bytes.error());
    const std::uint64_t candidate = next_nonzero(*bytes, at);
    if (candidate >= at + bytes->size()) {
      at = candidate;
      continue;
    }
    at = candidate + record_alignment;
    used = std::min(at, end_);
    if (candidate == offset || budget_ == 0) continue;
    const auto found = try_record(candidate);
    if (!found) return fail(found.error());
    if (*found) return found_at(candidate, (*found)->batch);
  }
  if (budget_ == 0 && claimed_next > offset) {
    // Too many bytes here look like records without being one. One more try where it was said to be.
    const auto found = try_record(claimed_next);
    if (!found) return fail(found.error());
    if (*found) return found_at(claimed_next, (*found)->batch);
  }
  offset_ = end_;
  // Zeros up to the end are space that was reserved and never used, unless the end is known to be here.
  if ((used == offset || *is_marked) && !end_known_) return Step{End{gap.from}};
  gap.to = static_cast<std::uint32_t>(end_known_ ? end_ : used);
  gap.at_end = true;
  return Step{gap};
}

Result<SegmentReader::Step> SegmentReader::next() {
  if (end_ == 0) {
    const auto size = file_.size();
    if (!size) return fail(size.error());
    end_ = std::min(*size, segment_bytes_max);
  }
  if (offset_ >= end_)
    return Step{End{static_cast<std::uint32_t>(std::max<std::uint64_t>(end_, first_offset))}};
  budget_ = UINT64_MAX;
  const auto item = try_record(offset_);
  if (!item) return fail(item.error());
  if (!*item) return gap_from(offset_);
  offset_ += stride_of((*item)->view.body.size());
  last_batch_ = (*item)->batch;
  return Step{**item};
}

Result<Tail> find_tail(File& file, std::uint64_t store, std::uint32_t segment) {
  Tail tail;
  SegmentReader reader{file, store, segment};
  std::uint32_t batch = 0;  // the highest number seen
  std::uint32_t batch_from = first_offset;
  std::uint32_t last_record_end = first_offset;
  bool whole = true;       // the batch was seen from its begin without a gap
  bool ended = true;       // ... and up to its end
  bool gap_since = false;  // a gap lies right before here
  std::uint32_t gap_from = 0;
  std::uint32_t torn_to = 0;
  std::uint32_t before_batch = 0;  // the batch before it, and where that began
  std::uint32_t before_from = first_offset;
  bool before_ended = true;
  bool begin_lost = false;
  for (;;) {
    const auto step = reader.next();
    if (!step) return fail(step.error());
    if (const auto* gap = std::get_if<SegmentReader::Gap>(&*step)) {
      gap_since = true;
      gap_from = gap->from;
      torn_to = gap->to;
      // Damaged after its end, or before: either the next batch is torn here or this one is broken.
      if (!ended) whole = false;
      continue;
    }
    if (const auto* item = std::get_if<SegmentReader::Item>(&*step)) {
      const bool begins = (item->flags & flag_batch_begin) != 0;
      if (item->batch != batch) {
        before_ended = ended;
        before_batch = batch;
        before_from = batch_from;
        batch = item->batch;
        // When its first record is lost, it starts somewhere in the gap; after a batch that ended, that
        // is where the gap starts.
        begin_lost = gap_since && !begins;
        batch_from = begin_lost ? gap_from : item->view.position.offset();
        whole = begins;
      }
      ended = (item->flags & flag_batch_end) != 0;
      last_record_end =
          item->view.position.offset() + static_cast<std::uint32_t>(stride_of(item->view.body.size()));
      torn_to = last_record_end;
      gap_since = false;
      continue;
    }
    break;
  }
  if (batch == 0) {
    // Nothing but perhaps a torn first batch.
    if (gap_since) tail.torn_to = torn_to;
    return tail;
  }
  if (whole && ended) {
    tail.end = last_record_end;
    tail.last_batch = batch;
    tail.last_batch_from = batch_from;
    if (gap_since) tail.torn_to = torn_to;
    return tail;
  }
  tail.end = batch_from;
  // The torn batch would not have been started before the one before it was durable, to its end.
  // What it lost before the cut is found when the records are read.
  tail.damaged_before = begin_lost && (!before_ended || batch != before_batch + 1);
  tail.last_batch = before_batch;
  tail.last_batch_from = before_from;
  tail.torn_to = std::max(torn_to, last_record_end);
  return tail;
}

}  // namespace omnibus::journal
