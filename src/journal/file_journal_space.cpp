// Which segments are dead, which are emptied, and what becomes of their files.
#include <algorithm>

#include "base/check.hpp"
#include "journal/file_journal.hpp"
#include "journal/quarantine.hpp"
#include "journal/relocation_scan.hpp"

namespace omnibus::journal {
namespace {

// What a share takes in its segment beside its own bytes, about: a part of the record's frame and head. Only
// relocation asks, and it must never take a segment full of tiny messages for a dead one.
constexpr std::uint64_t share_overhead_bytes = 48;

}  // namespace

void FileJournal::hold(Position position, std::uint32_t bytes) {
  const auto found = segments_.find(position.segment());
  if (found == segments_.end()) {
    ++ghosts_[position.segment()];
    return;
  }
  ++found->second.live_shares;
  found->second.live_bytes += bytes;
}

void FileJournal::release(Position position, std::uint32_t bytes) {
  const auto found = segments_.find(position.segment());
  if (found == segments_.end()) {
    auto& held = ghosts_[position.segment()];
    check(held > 0, "a released record was held");
    if (--held == 0) ghosts_.erase(position.segment());
    return;
  }
  Segment& segment = found->second;
  check(segment.live_shares > 0 && segment.live_bytes >= bytes, "a released record was held");
  --segment.live_shares;
  segment.live_bytes -= bytes;
  // Whatever was decided before this call must be durable before the bytes may go.
  segment.release_mark = appended_;
  if (state_ == State::open) released_from(position.segment());
}

bool FileJournal::is_ripe(std::uint32_t number, const Segment& segment) const {
  if (number == active_) return false;
  if (segment.live_shares == 0) return true;
  // Heads may be larger than what they tell of (one small message, a thousand copies). They move along: were
  // they counted as dead, such records would be moved again and again.
  auto live = static_cast<double>(segment.live_bytes);
  if (segment.held_bytes > 0)
    live *= static_cast<double>(segment.lasting_bytes) / static_cast<double>(segment.held_bytes);
  live += static_cast<double>(segment.live_shares * share_overhead_bytes);
  return segment.stuck == Segment::Stuck::no &&
         live < settings_.relocate_below * static_cast<double>(segment.end);
}

void FileJournal::released_from(std::uint32_t number) {
  if (is_ripe(number, segments_[number])) ripe_.insert(number);
}

void FileJournal::maintain() {
  end_relocation();
  for (auto at = ripe_.begin(); at != ripe_.end() && *at < covers_.segment();) {
    const std::uint32_t number = *at;
    const Segment& segment = segments_[number];
    if (segment.live_shares == 0) {
      if (segment.release_mark > durable_ || (relocation_ && relocation_->segment == number)) {
        ++at;
        continue;
      }
      at = ripe_.erase(at);
      remove_segment(number);
      continue;
    }
    if (!is_ripe(number, segment)) {
      at = ripe_.erase(at);
      continue;
    }
    if (!relocation_ && !spares_.is_full()) {
      relocation_.emplace();
      relocation_->segment = number;
      relocation_->scan = std::make_shared<RelocationScan>(
          folder_, store_, number, segment.end_known ? segment.end : 0, settings_.relocate_bytes);
    }
    ++at;
  }
  relocate_next();
}

void FileJournal::remove_segment(std::uint32_t number) {
  const std::uint32_t bytes = segments_[number].end;
  const bool is_damaged = segments_[number].damaged;
  segments_.erase(number);
  read_files_.erase(number);
  bad_places_.erase(bad_places_.lower_bound(Position{number, 0}),
                    bad_places_.lower_bound(Position{number + 1, 0}));
  if (is_damaged) {
    run(
        runners_.background, session_, [folder = folder_, number] { return set_aside(*folder, number); },
        [this](const std::vector<std::string>& lines) {
          for (const std::string& line : lines) owner_.on_warning(line);
          probe_space();
        });
    return;
  }
  // Who reads it gets the bytes of its record or none, never those of another segment. What is much shorter
  // than a segment, or longer, would have to be made one.
  const bool is_read = std::ranges::find(reads_under_way_, number) != reads_under_way_.end();
  const bool is_good = settings_.preallocate && !is_read && bytes >= settings_.segment_bytes / 2 &&
                       bytes <= settings_.segment_bytes;
  if (is_good && spares_.wants_more())
    spares_.use_again(number, [this] { probe_space(); });
  else
    spares_.remove(number, [this] { probe_space(); });
}

void FileJournal::end_relocation() {
  if (!relocation_ || relocation_->reading || relocation_->wait_for > durable_) return;
  Segment& segment = segments_[relocation_->segment];
  if (!relocation_->ended && segment.live_shares > 0 && !spares_.is_full()) return;
  // Records that are held and did not come up are damaged; they keep their segment.
  if (relocation_->ended && segment.live_shares > 0)
    segment.stuck = relocation_->failed ? Segment::Stuck::until_checkpoint : Segment::Stuck::for_good;
  relocation_.reset();
}

void FileJournal::relocate_next() {
  if (!relocation_ || relocation_->reading || relocation_->wait_for > durable_) return;
  relocation_->reading = true;
  run(
      runners_.background, session_, [scan = relocation_->scan] { return scan->next(); },
      [this](const RelocationScan::Chunk& chunk) {
        if (!relocation_) return;
        relocation_->reading = false;
        if (chunk.failed) relocation_failed(*chunk.failed);
        relocate_chunk(chunk.records, chunk.ended);
      });
}

void FileJournal::relocate_chunk(const RecordChunk& chunk, bool ended) {
  for (const Damage& damage : chunk.damages()) met(damage);
  for (std::size_t i = 0; i < chunk.records(); ++i) owner_.relocate(chunk.record(i));
  if (!relocation_) return;
  relocation_->ended = ended;
  // The next stretch is read when these are safe, so relocation never runs ahead of the disk.
  relocation_->wait_for = appended_;
  commit();
  maintain();
}

void FileJournal::met(const Damage& damage) {
  const auto found = segments_.find(damage.from.segment());
  if (found != segments_.end() && !std::exchange(found->second.damaged, true))
    run(
        runners_.background, life_,
        [folder = folder_, number = found->first] { return mark_damaged(*folder, number); },
        [this, number = found->first](const Result<void>& marked) {
          // Until the next open it is known without.
          if (!marked)
            owner_.on_warning(
                fmt::format("damaged segment {} cannot be marked: {}", number, marked.error().detail));
        });
  owner_.on_damage(damage);
}

// What cannot be read for now is not lost: a relocation only waits.
void FileJournal::relocation_failed(const Error& error) {
  relocation_->failed = true;
  owner_.on_warning(fmt::format("segment {} cannot be read to be emptied, it is tried again later: {}",
                                relocation_->segment, error.detail));
}

void FileJournal::try_stuck_again() {
  for (auto& [number, segment] : segments_) {
    if (segment.stuck != Segment::Stuck::until_checkpoint) continue;
    segment.stuck = Segment::Stuck::no;
    released_from(number);
  }
}

void FileJournal::prepare_spare() {
  if (!settings_.preallocate || state_ != State::open || active_ == 0) return;
  if (offset_ < active_bytes_ / 2) {
    const bool better_soon = spares_.should_be_written() && !active_is_written_;
    if (!better_soon || spares_.is_full()) return;
  }
  // A full disk is asked again by probe_space(); only for a small segment a second one is found in time.
  const bool is_small = active_bytes_ < settings_.segment_bytes;
  if (spares_.is_full() && (!is_small || spares_.is_there() || spares_.is_exhausted())) return;
  spares_.make(is_small ? Spares::Least::small : Spares::Least::whole);
}

void FileJournal::probe_space() {
  if (!spares_.is_full() || state_ != State::open) return;
  const bool needs_any = active_ == 0 || active_bytes_ < settings_.segment_bytes;
  spares_.make(needs_any ? Spares::Least::small : Spares::Least::whole);
}

}  // namespace omnibus::journal
