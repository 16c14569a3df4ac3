#include "journal/memory_journal.hpp"

#include "base/check.hpp"
#include "journal/segment_format.hpp"

namespace omnibus::journal {

void MemoryJournal::post(Task task) {
  post_([task = std::move(task), alive = std::weak_ptr<char>(life_)]() mutable {
    if (alive.lock()) task();
  });
}

void MemoryJournal::open() {
  check(!open_, "the journal is closed");
  held_.clear();
  counted_.live_bytes = counted_.live_shares = 0;
  post([this] {
    open_ = true;
    Opened opened;
    opened.epoch = ++epoch_;
    opened.last = durable_ = Position{last_};
    owner_.on_opened(opened);
  });
}

void MemoryJournal::close(std::move_only_function<void()> done) {
  commit();
  post([this, done = std::move(done)]() mutable {
    open_ = false;
    done();
  });
}

Result<Position> MemoryJournal::append(const Record& record) {
  if (!open_) return fail(Errc::io, "the journal is not open");
  const std::size_t body = record.head.size() + (record.payload ? record.payload->size() : 0);
  if (body > body_bytes_max)
    return fail(Errc::message_size_exceeded, "a record of {} bytes; the journal takes {}", body,
                body_bytes_max);
  const Position position{++last_};
  ++counted_.records_written;
  counted_.bytes_written += body;
  if (record.life == Life::lasting) {
    StoredRecord stored{record.kind, record.partition, record.life, Payload::copy_of(record.head)};
    for (std::size_t i = 0; record.payload && i < record.payload->slice_count(); ++i)
      stored.body.append(record.payload->slice(i));
    held_.emplace(position, Held{std::move(stored), record.shares});
    counted_.live_bytes += record.held_bytes;
    counted_.live_shares += record.shares;
  }
  return position;
}

void MemoryJournal::commit() {
  if (commit_posted_ || durable_ == appended() || !open_) return;
  commit_posted_ = true;
  post([this, through = appended()] {
    commit_posted_ = false;
    durable_ = through;
    ++counted_.syncs;
    owner_.on_durable(through);
    // What was appended and committed meanwhile.
    if (open_ && durable_ < appended()) commit();
  });
}

void MemoryJournal::hold(Position, std::uint32_t) { check(false, "nothing is replayed from memory"); }

void MemoryJournal::release(Position position, std::uint32_t bytes) {
  const auto found = held_.find(position);
  check(found != held_.end() && counted_.live_bytes >= bytes, "a released record was held");
  if (--found->second.shares == 0) held_.erase(found);
  counted_.live_bytes -= bytes;
  --counted_.live_shares;
}

void MemoryJournal::read(Position position, ReadDone done) {
  post([this, position, done = std::move(done)]() mutable {
    const auto found = held_.find(position);
    if (found == held_.end())
      return done(fail(Errc::not_found, "there is no record at {}", to_string(position)));
    done(found->second.record);
  });
}

void MemoryJournal::end_checkpoint(Position covers) {
  post([this, covers] { owner_.on_checkpoint_end(covers); });
}

Stats MemoryJournal::stats() const { return counted_; }

}  // namespace omnibus::journal
