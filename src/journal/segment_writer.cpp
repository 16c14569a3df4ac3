#include "journal/segment_writer.hpp"

#include <algorithm>
#include <array>
#include <span>

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

std::optional<Failure> SegmentWriter::roll(const Batch& batch, Spare given) {
  std::uint64_t wanted =
      std::max<std::uint64_t>(given.file ? given.bytes : start_.segment_bytes, batch.end());
  if (given.used_before) wanted += sizeof(RecordHeader);  // the end mark behind the last batch
  std::unique_ptr<File> spare = std::move(given.file);
  finish();
  if (!spare) {
    given.name = new_segment_name;
    auto made = folder_->create(given.name);
    if (!made) return closed_by(made.error());
    spare = std::move(*made);
  }
  if (start_.preallocate) {
    const auto reserved = spare->allocate(wanted);
    if (!reserved) return closed_by(reserved.error());
  }
  SegmentHeader header;
  header.segment = batch.segment();
  header.store = start_.store;
  header.epoch = start_.epoch;
  header.previous = start_.previous;
  header.previous_end = start_.previous_end;
  header.checksum = header_checksum(header);
  // Without records it is empty, whatever lies behind.
  const RecordHeader mark = end_mark(header.store, Position{header.segment, first_offset}, 0);
  const std::array<Bytes, 2> pieces{bytes_of(header), bytes_of(mark)};
  // The name appears only when the header is safe: a segment that exists proves that all before it were
  // durable.
  auto done = spare->write(0, std::span{pieces}.first(given.used_before ? 2 : 1));
  if (done) done = spare->sync();
  if (done) done = folder_->rename(given.name, segment_name(batch.segment()));
  if (done) done = folder_->sync();
  if (!done) return closed_by(done.error());
  file_ = std::move(spare);
  segment_ = batch.segment();
  end_ = first_offset;
  end_mark_ = given.used_before ? Batch::EndMark::with : Batch::EndMark::without;
  return std::nullopt;
}

std::optional<Failure> SegmentWriter::write(Batch& batch, Spare spare) {
  if (closed_) return closed_;
  const auto before = epoch_->still(start_.epoch);
  if (!before) return closed_by(before.error());
  if (batch.segment() != segment_) {
    auto failure = roll(batch, std::move(spare));
    if (failure) return failure;
  }
  check(batch.first().offset() == end_, "batches follow each other");
  batch.seal(start_.store, end_mark_);
  auto done = file_->write(batch.first().offset(), batch.pieces());
  if (done) done = file_->sync();
  if (done) done = epoch_->still(start_.epoch);
  if (!done) {
    Failure failure = closed_by(done.error());
    // "No space" promises that nothing was written; here a part of the batch may be.
    if (failure.kind == FailureKind::no_space) closed_->kind = failure.kind = FailureKind::io;
    return failure;
  }
  end_ = batch.end();
  start_.previous = segment_;
  start_.previous_end = end_;
  return std::nullopt;
}

void SegmentWriter::finish() {
  // Only space is at stake: readers know the end from the next segment's header or find it by scanning.
  if (file_ && end_ > 0) static_cast<void>(file_->truncate(end_));
  file_.reset();
}

}  // namespace omnibus::journal
