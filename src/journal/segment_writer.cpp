#include "journal/segment_writer.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace omnibus::journal {

SegmentWriter::SegmentWriter(std::shared_ptr<Folder> folder, std::unique_ptr<EpochFile> epoch,
                             std::unique_ptr<FolderLock> lock, Start start)
    : folder_(std::move(folder)), epoch_(std::move(epoch)), lock_(std::move(lock)), start_(start) {}

Failure SegmentWriter::closed_by(Error error) {
  FailureKind kind = FailureKind::io;
  if (error.code == Errc::resource_limit_exceeded) kind = FailureKind::no_space;
  if (error.code == Errc::not_allowed) kind = FailureKind::fenced;
  closed_ = Failure{kind, std::move(error)};
  file_.reset();
  return *closed_;
}

Result<std::string> SegmentWriter::roll(const Batch& batch, Spare spare) {
  // Reserving what is reserved already would make the sync below wait for the file system's own records.
  const bool is_reserved = spare.file && batch.end() <= spare.bytes;
  std::uint64_t wanted =
      std::max<std::uint64_t>(spare.file ? spare.bytes : start_.segment_bytes, batch.end());
  if (spare.used_before) wanted += sizeof(RecordHeader);  // the end mark behind the last batch
  left_ = {std::move(file_), end_};
  if (!spare.file) {
    spare.name = new_segment_name;
    auto made = folder_->create(spare.name);
    if (!made) return fail(made.error());
    spare.file = std::move(*made);
  }
  Result<void> done;
  if (start_.preallocate && !is_reserved) done = spare.file->allocate(wanted);
  SegmentHeader header;
  header.segment = batch.segment();
  header.store = start_.store;
  header.epoch = start_.epoch;
  header.previous = start_.previous;
  header.previous_end = start_.previous_end;
  header.checksum = header_checksum(header);
  const Bytes bytes = bytes_of(header);
  if (done) done = spare.file->write(0, {&bytes, 1});
  if (!done) return fail(done.error());
  file_ = std::move(spare.file);
  segment_ = batch.segment();
  end_ = first_offset;
  end_mark_ = spare.used_before ? Batch::EndMark::with : Batch::EndMark::without;
  return std::move(spare.name);
}

std::optional<Failure> SegmentWriter::write(Batch& batch, Spare spare) {
  if (closed_) return closed_;
  const auto before = epoch_->still(start_.epoch);
  if (!before) return closed_by(before.error());
  std::string passing_name;
  if (batch.segment() != segment_) {
    auto name = roll(batch, std::move(spare));
    if (!name) return closed_by(name.error());
    passing_name = std::move(*name);
  }
  check(batch.first().offset() == end_, "batches follow each other");
  batch.seal(start_.store, end_mark_);
  auto done = file_->write(batch.first().offset(), batch.pieces());
  if (done) done = file_->sync();
  const bool is_there = done || passing_name.empty();
  // The name appears only when header and batch are safe: a segment that exists proves that all before it
  // were durable.
  if (done && !passing_name.empty()) {
    done = folder_->rename(passing_name, segment_name(segment_));
    if (done) done = folder_->sync();
  }
  if (done) done = epoch_->still(start_.epoch);
  if (!done) {
    Failure failure = closed_by(done.error());
    // "No space" promises that nothing was written; here a part of the batch may be.
    if (is_there && failure.kind == FailureKind::no_space) closed_->kind = failure.kind = FailureKind::io;
    return failure;
  }
  end_ = batch.end();
  start_.previous = segment_;
  start_.previous_end = end_;
  return std::nullopt;
}

LeftSegment SegmentWriter::take_left() { return std::exchange(left_, {}); }

void SegmentWriter::finish() { LeftSegment{std::move(file_), end_}.cut(); }

void LeftSegment::cut() {
  // Only space is at stake: readers know the end from the next segment's header or find it by scanning.
  if (file && end > 0) static_cast<void>(file->truncate(end));
  file.reset();
}

}  // namespace omnibus::journal
