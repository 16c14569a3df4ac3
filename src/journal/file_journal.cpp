#include "journal/file_journal.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "journal/read_record.hpp"

namespace omnibus::journal {
namespace {

constexpr std::uint16_t kind_clean_close = 1;
constexpr std::size_t checkpoint_piece_bytes = 1u << 20;
constexpr std::uint32_t checkpoint_pieces_max = 4;
constexpr std::size_t read_files_max = 64;
// A place that cannot be read so often, while its segment can, is lost: a disk's bad spot. Who asks pauses in
// between, ever longer.
constexpr std::uint32_t place_tries_max = 10;

}  // namespace

FileJournal::FileJournal(std::shared_ptr<Folder> folder, FileJournalSettings settings, Runners runners,
                         JournalOwner& owner)
    : folder_(std::move(folder)),
      settings_(settings),
      runners_(std::move(runners)),
      owner_(owner),
      spares_(
          folder_, settings_.segment_bytes, runners_,
          [this](bool enough) {
            if (state_ == State::opening) return;  // on_opened() comes first
            maintain();
            owner_.on_space(enough);
          },
          [this](const std::string& what) { owner_.on_warning(what); }) {
  check(settings_.segment_bytes > first_offset && settings_.segment_bytes <= segment_bytes_max);
  check(settings_.record_bytes_max <= body_bytes_max);
}

FileJournal::~FileJournal() = default;

// Opening

void FileJournal::open() {
  check(state_ == State::closed || state_ == State::failed, "the journal is closed");
  state_ = State::opening;
  session_ = std::make_shared<char>();
  writer_.reset();
  segments_.clear();
  ghosts_.clear();
  ripe_.clear();
  read_files_.clear();
  relocation_.reset();
  checkpoint_.reset();
  gathered_.clear();
  gathered_bytes_ = 0;
  spares_.start(session_);
  flying_ = commit_wanted_ = mark_written_ = active_is_written_ = false;
  active_ = newest_ = offset_ = batch_number_ = 0;
  appended_ = durable_ = covers_ = Position{};
  auto recovery = std::make_shared<Recovery>(folder_, settings_.store);
  run(
      runners_.background, session_, [recovery] { return recovery->acquire(); },
      [this, recovery](const std::optional<Failure>& failure) {
        if (const Opened& so_far = recovery->opened(); so_far.torn_from) {
          // An opening before this one may have cut and then failed: what it cut is told with this.
          if (!cut_from_) cut_from_ = so_far.torn_from;
          cut_bytes_ += so_far.torn_bytes;
        }
        if (failure) return fail_with(*failure);
        for (const auto& [number, segment] : recovery->contents().segments)
          segments_[number].damaged = segment.damaged;
        recover_next(recovery);
      });
}

void FileJournal::recover_next(std::shared_ptr<Recovery> recovery) {
  run(
      runners_.background, session_, [recovery] { return recovery->next(); },
      [this, recovery](Recovery::Chunk chunk) { recovered(std::move(chunk), recovery); });
}

void FileJournal::recovered(Recovery::Chunk chunk, const std::shared_ptr<Recovery>& recovery) {
  if (chunk.failure) return fail_with(*chunk.failure);
  // The next piece is read while the owner takes this one up.
  if (!chunk.done) recover_next(recovery);
  for (const Damage& damage : chunk.records.damages()) met(damage);
  if (!chunk.checkpoint.empty()) owner_.on_checkpoint(chunk.checkpoint);
  for (std::size_t i = 0; i < chunk.records.records(); ++i) owner_.on_replay(chunk.records.record(i));
  if (!chunk.done) return;
  if (!settings_.preallocate) return start_writing(*recovery);
  // The first record needs a segment: whether there is room for it is known before any is taken.
  spares_.make(Spares::Least::small, [this, recovery] { start_writing(*recovery); });
}

void FileJournal::start_writing(Recovery& recovery) {
  const StoreContents& contents = recovery.contents();
  Opened opened = recovery.opened();
  opened.torn_from = std::exchange(cut_from_, Position{});
  opened.torn_bytes = std::exchange(cut_bytes_, 0);
  store_ = contents.store != 0 ? contents.store : settings_.store;
  covers_ = opened.checkpoint_covers;
  appended_ = durable_ = opened.last;
  checkpoint_number_ = contents.checkpoints.empty() ? 0 : contents.checkpoints.back();
  for (const auto& [number, on_disk] : contents.segments) {
    Segment& segment = segments_[number];
    segment.end_known = on_disk.end != 0;
    segment.end = segment.end_known
                      ? on_disk.end
                      : static_cast<std::uint32_t>(std::min(on_disk.file_bytes, segment_bytes_max));
    newest_ = number;
  }
  // Numbers are never used twice, even when every segment is gone.
  newest_ = std::max(newest_, covers_.segment());
  SegmentWriter::Start start;
  start.store = store_;
  start.epoch = opened.epoch;
  if (!segments_.empty()) {
    start.previous = segments_.rbegin()->first;
    start.previous_end = segments_.rbegin()->second.end;
  }
  start.segment_bytes = settings_.segment_bytes;
  start.preallocate = settings_.preallocate;
  writer_ = std::make_shared<SegmentWriter>(folder_, recovery.take_epoch(), recovery.take_lock(), start);
  state_ = State::open;
  owner_.on_opened(opened);
  // An owner that could not make sense of what it got has closed the journal: it holds nothing, and nothing
  // may go because of that.
  if (state_ != State::open) return;
  // Only now is it certain what the owner holds.
  for (const auto& [number, held] : ghosts_)
    owner_.on_damage({Position{number, first_offset},
                      0,
                      {},
                      fmt::format("{} messages are held in a segment that is missing", held)});
  for (const auto& [number, segment] : segments_) released_from(number);
  maintain();
  if (spares_.is_full()) owner_.on_space(false);
}

void FileJournal::fail_with(Failure failure) {
  if (state_ == State::closing) {
    state_ = State::failed;
    session_.reset();
    writer_.reset();
    owner_.on_failed(failure);
    if (closed_) std::exchange(closed_, nullptr)();
    return;
  }
  state_ = State::failed;
  // Whatever else is under way comes back to nobody.
  session_.reset();
  writer_.reset();
  gathered_.clear();
  gathered_bytes_ = 0;
  flying_ = false;
  relocation_.reset();
  checkpoint_.reset();
  spares_.start(nullptr);
  appended_ = durable_;
  owner_.on_failed(failure);
}

// Closing

void FileJournal::close(std::move_only_function<void()> done) {
  if (state_ != State::open) {
    session_.reset();
    writer_.reset();
    if (state_ != State::failed) state_ = State::closed;
    runners_.post(std::move(done));
    return;
  }
  closed_ = std::move(done);
  state_ = State::closing;
  relocation_.reset();
  checkpoint_.reset();
  commit_wanted_ = true;
  if (!flying_) go_on_closing();
}

void FileJournal::go_on_closing() {
  if (!gathered_.empty()) return submit();
  if (active_ != 0 && !mark_written_) {
    // A batch after the last one: from now on nobody can take that one for torn.
    mark_written_ = true;
    Record mark;
    mark.kind = kind_clean_close;
    append_to_batch(mark, stride_of(0), flag_internal);
    return submit();
  }
  run(
      runners_.write, session_,
      [writer = std::move(writer_), folder = folder_, spares = spares_.take_all()] {
        writer->finish();
        // Only space is at stake, and the next open tidies up as well.
        for (const Spare& spare : spares) static_cast<void>(folder->remove(spare.name));
        return true;
      },
      [this](bool) {
        state_ = State::closed;
        session_.reset();
        std::exchange(closed_, nullptr)();
      });
  writer_.reset();
}

// Appending

Result<Position> FileJournal::append(const Record& record) {
  if (state_ != State::open) return fail(Errc::io, "the journal is not open");
  const std::uint64_t body = record.head.size() + (record.payload ? record.payload->size() : 0);
  if (body > settings_.record_bytes_max)
    return fail(Errc::message_size_exceeded, "a record of {} bytes; the journal takes {}", body,
                settings_.record_bytes_max);
  const std::uint64_t stride = stride_of(body);
  if (gathered_bytes_ > 0 && gathered_bytes_ + stride > settings_.gathered_bytes_max)
    return fail(Errc::server_busy, "{} bytes wait for the disk already", gathered_bytes_);
  // Without a spare its size is 0.
  if (rolls_for(stride, record.with_previous) && spares_.is_full() && spares_.bytes() < first_offset + stride)
    return fail(Errc::resource_limit_exceeded, "the disk has no room for another segment");
  append_to_batch(record, stride, 0);
  return appended_;
}

bool FileJournal::rolls_for(std::uint64_t stride, bool with_previous) const {
  if (active_ == 0) return true;
  // Small batches move to a segment that is written as soon as there is one.
  if (spares_.should_be_written() && spares_.is_written() && !active_is_written_ && gathered_.empty())
    return true;
  if (offset_ + stride <= active_bytes_ || offset_ == first_offset) return false;
  return !with_previous || gathered_.empty() || offset_ + stride > segment_bytes_max;
}

void FileJournal::append_to_batch(const Record& record, std::uint64_t stride, std::uint16_t flags) {
  if (rolls_for(stride, record.with_previous)) {
    const std::uint32_t left = active_;
    active_ = ++newest_;
    offset_ = first_offset;
    batch_number_ = 0;
    active_is_written_ = spares_.is_written();
    active_bytes_ = spares_.is_there() ? spares_.bytes() : settings_.segment_bytes;
    segments_[active_];
    if (left != 0) released_from(left);
  }
  if (gathered_.empty() || gathered_.back()->segment() != active_) {
    if (free_batches_.empty()) free_batches_.push_back(std::make_unique<Batch>());
    gathered_.push_back(std::move(free_batches_.back()));
    free_batches_.pop_back();
    gathered_.back()->start(Position{active_, offset_}, ++batch_number_);
  }
  gathered_.back()->append(record, flags);
  gathered_bytes_ += stride;
  appended_ = Position{active_, offset_};
  offset_ += static_cast<std::uint32_t>(stride);
  Segment& segment = segments_[active_];
  segment.end = offset_;
  if (record.life == Life::lasting) {
    segment.live_shares += record.shares;
    segment.live_bytes += record.held_bytes;
    segment.held_bytes += record.held_bytes;
    segment.lasting_bytes += stride;
  }
}

void FileJournal::commit() {
  commit_wanted_ = true;
  if (state_ == State::open && !flying_ && !gathered_.empty()) submit();
}

void FileJournal::submit() {
  std::unique_ptr<Batch> batch = std::move(gathered_.front());
  gathered_.pop_front();
  gathered_bytes_ -= batch->bytes();
  // The last part of what was committed goes now; what is appended from here on waits for its commit.
  if (gathered_.empty()) commit_wanted_ = false;
  flying_ = true;
  Spare spare;
  if (batch->first().offset() == first_offset) spare = spares_.take();
  struct Outcome {
    std::unique_ptr<Batch> batch;
    std::optional<Failure> failure;
    std::chrono::nanoseconds took;
    LeftSegment left;
  };
  run(
      runners_.write, session_,
      [writer = writer_, batch = std::move(batch), spare = std::move(spare),
       clock = runners_.clock]() mutable {
        const Tick began = clock ? clock() : Tick{};
        auto failure = writer->write(*batch, std::move(spare));
        return Outcome{std::move(batch), std::move(failure), clock ? clock() - began : Tick::duration{},
                       writer->take_left()};
      },
      [this](Outcome outcome) {
        if (runners_.clock && !outcome.failure)
          counted_.sync_us.add(static_cast<std::uint64_t>(outcome.took / std::chrono::microseconds{1}));
        if (outcome.left.file)
          runners_.background([left = std::move(outcome.left)]() mutable { left.cut(); });
        written(std::move(outcome.batch), outcome.failure);
      });
}

void FileJournal::written(std::unique_ptr<Batch> batch, const std::optional<Failure>& failure) {
  flying_ = false;
  if (failure) return fail_with(*failure);
  durable_ = batch->last();
  ++counted_.syncs;
  counted_.records_written += batch->records();
  counted_.bytes_written += batch->bytes();
  counted_.batch_records.add(batch->records());
  counted_.batch_bytes.add(batch->bytes());
  spares_.count(batch->bytes());
  batch->clear();
  if (free_batches_.size() < 2) free_batches_.push_back(std::move(batch));
  // The disk is not kept waiting while the owner hears of it.
  if (state_ == State::open && commit_wanted_ && !gathered_.empty()) submit();
  if (state_ == State::open) {
    install_checkpoint();
    prepare_spare();
    maintain();
  }
  owner_.on_durable(durable_);
  if (state_ == State::closing && !flying_) go_on_closing();
}

// Reading

void FileJournal::read(Position position, ReadDone done) {
  const std::uint32_t number = position.segment();
  if (position > durable_ || position.offset() < first_offset) {
    runners_.post([done = std::move(done), position, alive = std::weak_ptr<char>(life_)]() mutable {
      if (!alive.lock()) return;
      done(fail(Errc::argument_error, "{} is not the place of a durable record", to_string(position)));
    });
    return;
  }
  reads_under_way_.push_back(number);
  std::shared_ptr<File> file;
  if (const auto found = read_files_.find(number); found != read_files_.end()) file = found->second;
  run(
      runners_.read, life_,
      [folder = folder_, file = std::move(file), store = store_, position,
       most = settings_.record_bytes_max]() { return read_record(*folder, file, store, position, most); },
      [this, number, position, done = std::move(done)](ReadOutcome outcome) mutable {
        reads_under_way_.erase(std::ranges::find(reads_under_way_, number));
        if (!outcome.file) {
          read_files_.erase(number);
        } else if (segments_.contains(number)) {
          if (read_files_.size() >= read_files_max) read_files_.erase(read_files_.begin());
          read_files_[number] = std::move(outcome.file);
        }
        if (outcome.trouble == ReadTrouble::place && ++bad_places_[position] >= place_tries_max) {
          outcome.trouble = ReadTrouble::damaged;
          outcome.record = fail(Errc::decode_error, "{} cannot be read, but its segment elsewhere: {}",
                                to_string(position), outcome.record.error().detail);
        }
        if (outcome.record) bad_places_.erase(position);
        if (outcome.trouble == ReadTrouble::damaged) met({position, 0, {}, outcome.record.error().detail});
        done(std::move(outcome.record));
      });
}

// Checkpoints

void FileJournal::begin_checkpoint() {
  check(!checkpoint_, "one checkpoint at a time");
  if (state_ != State::open) return;
  checkpoint_.emplace();
  checkpoint_->writer = std::make_shared<CheckpointWriter>(folder_, store_, ++checkpoint_number_);
}

bool FileJournal::checkpoint_ready() const {
  return checkpoint_ && checkpoint_->pieces_under_way < checkpoint_pieces_max;
}

void FileJournal::checkpoint_append(Bytes piece) {
  if (!checkpoint_) return;  // the journal failed meanwhile; the owner hears of it
  check(!checkpoint_->ended);
  while (!piece.empty()) {
    const std::size_t part = std::min(piece.size(), checkpoint_piece_bytes - checkpoint_->buffer.size());
    checkpoint_->buffer.insert(checkpoint_->buffer.end(), piece.begin(),
                               piece.begin() + static_cast<std::ptrdiff_t>(part));
    piece = piece.subspan(part);
    if (checkpoint_->buffer.size() == checkpoint_piece_bytes) send_checkpoint_piece();
  }
}

void FileJournal::send_checkpoint_piece() {
  ++checkpoint_->pieces_under_way;
  run(
      runners_.background, session_,
      [writer = checkpoint_->writer, piece = std::exchange(checkpoint_->buffer, {})] {
        return writer->append(piece);
      },
      [this](const Result<void>&) {
        // An error stays with the writer and comes out at the end.
        if (checkpoint_) --checkpoint_->pieces_under_way;
      });
}

void FileJournal::end_checkpoint(Position covers) {
  if (!checkpoint_) return;
  check(!checkpoint_->ended && covers <= appended_);
  if (!checkpoint_->buffer.empty()) send_checkpoint_piece();
  checkpoint_->ended = true;
  checkpoint_->covers = covers;
  // It may show what was appended up to now. Installed before that is durable, a crash would leave a
  // checkpoint that knows more than the log.
  checkpoint_->wait_for = appended_;
  install_checkpoint();
}

void FileJournal::install_checkpoint() {
  if (!checkpoint_ || !checkpoint_->ended || checkpoint_->installing || checkpoint_->wait_for > durable_)
    return;
  checkpoint_->installing = true;
  run(
      runners_.background, session_,
      [writer = checkpoint_->writer, covers = checkpoint_->covers] { return writer->install(covers); },
      [this](const Result<void>& installed) {
        const Position covers = checkpoint_->covers;
        checkpoint_.reset();
        if (!installed) {
          // It may have lacked the space that is kept here.
          spares_.give_back();
          return owner_.on_checkpoint_end(fail(installed.error()));
        }
        covers_ = covers;
        try_stuck_again();
        maintain();
        owner_.on_checkpoint_end(covers);
      });
}

Stats FileJournal::stats() const {
  Stats now = counted_;
  now.gathered_bytes = gathered_bytes_;
  now.segments = segments_.size();
  for (const auto& [number, segment] : segments_) {
    now.disk_bytes += segment.end;
    now.live_bytes += segment.live_bytes;
    now.live_shares += segment.live_shares;
    if (number > covers_.segment())
      now.bytes_since_checkpoint += segment.end;
    else if (number == covers_.segment() && segment.end > covers_.offset())
      now.bytes_since_checkpoint += segment.end - covers_.offset();
  }
  return now;
}

}  // namespace omnibus::journal
