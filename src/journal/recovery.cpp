#include "journal/recovery.hpp"

#include <algorithm>

namespace omnibus::journal {
namespace {

Failure failure_of(Error error) {
  FailureKind kind = FailureKind::io;
  if (error.code == Errc::resource_limit_exceeded) kind = FailureKind::no_space;
  if (error.code == Errc::server_busy) kind = FailureKind::in_use;
  if (error.code == Errc::not_implemented || error.code == Errc::decode_error) kind = FailureKind::damaged;
  return Failure{kind, std::move(error)};
}

// Writes the same bytes once more, so that the sync that follows vouches for them.
Result<void> write_again(File& file, std::uint32_t from, std::uint32_t to) {
  std::vector<std::uint8_t> buffer;
  while (from < to) {
    buffer.resize(std::min<std::uint32_t>(to - from, 1u << 20));
    const auto got = file.read(from, buffer);
    if (!got) return fail(got.error());
    if (*got != buffer.size())
      return fail(Errc::io, "segment ended at byte {} while it was read", from + *got);
    const Bytes piece{buffer};
    const auto put = file.write(from, {&piece, 1});
    if (!put) return put;
    from += static_cast<std::uint32_t>(buffer.size());
  }
  return {};
}

}  // namespace

Result<StoreContents> look_at_store(Folder& folder, EpochFile* epoch) {
  StoreContents found;
  const auto names = folder.list();
  if (!names) return fail(names.error());
  for (const std::string& name : *names) {
    if (const auto segment = segment_of_name(name)) found.segments[*segment];
    if (const auto number = checkpoint_of_name(name)) found.checkpoints.push_back(*number);
    if (is_leftover(name)) found.leftovers.push_back(name);
    if (const auto number = damaged_of_name(name)) found.set_aside.push_back(*number);
  }
  for (const std::string& name : *names) {
    const auto number = damage_mark_of_name(name);
    if (!number) continue;
    if (const auto segment = found.segments.find(*number); segment != found.segments.end())
      segment->second.damaged = true;
    else
      found.leftovers.push_back(name);
  }
  std::sort(found.set_aside.begin(), found.set_aside.end());
  std::sort(found.checkpoints.begin(), found.checkpoints.end());
  if (epoch) {
    auto state = epoch->load();
    if (!state) return fail(state.error());
    found.epoch = *state;
  }
  if (found.epoch) {
    found.store = found.epoch->store;
    found.epoch_seen = found.epoch->epoch;
  }
  SegmentOnDisk* previous = nullptr;
  std::uint32_t previous_number = 0;
  for (auto& [number, segment] : found.segments) {
    const auto file = folder.open(segment_name(number), Folder::Mode::read);
    if (!file) return fail(file.error());
    const auto size = (*file)->size();
    if (!size) return fail(size.error());
    segment.file_bytes = *size;
    const auto header = read_segment_header(**file, number);
    if (!header) return fail(header.error());
    segment.header = *header;
    if (segment.header) {
      found.epoch_seen = std::max(found.epoch_seen, segment.header->epoch);
      if (found.store == 0) found.store = segment.header->store;
      if (segment.header->store != found.store)
        return fail(Errc::decode_error, "segment {} belongs to store {:016x}, this is store {:016x}", number,
                    segment.header->store, found.store);
      if (previous && segment.header->previous == previous_number)
        previous->end = segment.header->previous_end;
    }
    previous = &segment;
    previous_number = number;
  }
  return found;
}

std::vector<Damage> gaps_between(const StoreContents& contents, std::uint32_t first) {
  std::vector<Damage> damages;
  for (const auto& [number, segment] : contents.segments) {
    if (number < first) continue;
    if (!segment.header) {
      damages.push_back({Position{number, 0}, sizeof(SegmentHeader), {}, "the segment's header is damaged"});
      continue;
    }
    const std::uint32_t before = segment.header->previous;
    if (before == 0 || before < first || contents.segments.contains(before)) continue;
    damages.push_back({Position{before, first_offset},
                       segment.header->previous_end - first_offset,
                       {},
                       "the segment is missing"});
  }
  return damages;
}

Damage damage_of(const SegmentReader::Gap& gap, std::uint32_t segment) {
  return {Position{segment, gap.from}, gap.to - gap.from, gap.partition,
          gap.at_end ? "the segment should hold records up to its end" : "no valid record here"};
}

Recovery::Recovery(std::shared_ptr<Folder> folder, std::uint64_t store)
    : folder_(std::move(folder)), store_(store) {}

Result<void> Recovery::remove_leftovers() {
  for (const std::string& name : contents_.leftovers) {
    const auto removed = folder_->remove(name);
    if (!removed) return removed;
  }
  return {};
}

Result<void> Recovery::choose_checkpoint() {
  std::optional<Error> trouble;
  for (auto number = contents_.checkpoints.rbegin(); number != contents_.checkpoints.rend(); ++number) {
    auto reader = CheckpointReader::open(*folder_, store_, *number);
    if (reader) {
      opened_.checkpoint_covers = reader->summary().covers;
      checkpoint_.emplace(std::move(*reader));
      break;
    }
    if (!trouble) trouble = reader.error();
  }
  if (!trouble) return {};
  // An older one serves only as long as every record after it is still there.
  const std::uint32_t from = opened_.checkpoint_covers.segment();
  const auto first = contents_.segments.lower_bound(std::max(from, 1u));
  const bool complete =
      first != contents_.segments.end() &&
      (checkpoint_ ? first->first == from : first->second.header && first->second.header->previous == 0);
  if (!complete || !gaps_between(contents_, from).empty())
    return fail(Errc::decode_error, "{}; the records it covers are no longer in the log", trouble->detail);
  damages_.push_back({Position{}, 0, {}, trouble->detail});
  return {};
}

// What lies behind the known end of a segment is reserved space, or a torn batch that a crash kept from
// being cut off. It goes now: once the segment behind is deleted, nobody knows the end any more.
Result<void> Recovery::cut_ends() {
  for (auto& [number, segment] : contents_.segments) {
    if (segment.end == 0 || segment.file_bytes <= segment.end) continue;
    const auto file = folder_->open(segment_name(number), Folder::Mode::write);
    if (!file) return fail(file.error());
    auto cut = (*file)->truncate(segment.end);
    if (cut) cut = (*file)->sync();
    if (!cut) return cut;
    segment.file_bytes = segment.end;
  }
  return {};
}

Result<void> Recovery::mend_tail() {
  if (contents_.segments.empty()) return {};
  auto& [number, newest] = *contents_.segments.rbegin();
  const auto file = folder_->open(segment_name(number), Folder::Mode::write);
  if (!file) return fail(file.error());
  const auto tail = find_tail(**file, store_, number);
  if (!tail) return fail(tail.error());
  newest.end = tail->end;
  if (tail->torn_to > tail->end) {
    opened_.torn_from = Position{number, tail->end};
    opened_.torn_bytes = tail->torn_to - tail->end;
    if (tail->damaged_before)
      damages_.push_back({opened_.torn_from,
                          opened_.torn_bytes,
                          {},
                          "records of a durable batch are lost together with a torn one"});
  }
  if (tail->last_batch != 0) {
    auto again = write_again(**file, tail->last_batch_from, tail->end);
    if (again) again = (*file)->sync();
    if (!again) return again;
  }
  // The torn batch is what proves that the ones before it were durable. Before it is cut off, a segment
  // behind this one has to say so.
  if (opened_.torn_from && tail->end > first_offset) {
    const auto sealed = seal_behind(number, tail->end);
    if (!sealed) return sealed;
  }
  if (newest.file_bytes > tail->end) {
    const auto cut = (*file)->truncate(tail->end);
    if (!cut) return cut;
    newest.file_bytes = tail->end;
  }
  return (*file)->sync();
}

Result<void> Recovery::seal_behind(std::uint32_t previous, std::uint32_t previous_end) {
  SegmentHeader header;
  header.segment = previous + 1;
  header.store = store_;
  header.epoch = opened_.epoch;
  header.previous = previous;
  header.previous_end = previous_end;
  header.checksum = header_checksum(header);
  const Bytes bytes = bytes_of(header);
  const auto file = folder_->create(new_segment_name);
  if (!file) return fail(file.error());
  auto done = (*file)->write(0, {&bytes, 1});
  if (done) done = (*file)->sync();
  if (done) done = folder_->rename(new_segment_name, segment_name(header.segment));
  if (done) done = folder_->sync();
  if (done) contents_.segments[header.segment] = SegmentOnDisk{header, first_offset, sizeof(header)};
  return done;
}

std::optional<Failure> Recovery::acquire() {
  auto lock = folder_->lock();
  if (!lock) return failure_of(lock.error());
  lock_ = std::move(*lock);
  auto epoch = EpochFile::open(*folder_);
  if (!epoch) return failure_of(epoch.error());
  epoch_ = std::move(*epoch);
  auto looked = look_at_store(*folder_, epoch_.get());
  if (!looked) return failure_of(looked.error());
  contents_ = std::move(*looked);
  if (contents_.store == 0) {
    contents_.store = store_;
    if (store_ == 0) return Failure{FailureKind::damaged, {Errc::argument_error, "there is no store here"}};
  }
  if (store_ != 0 && store_ != contents_.store)
    return Failure{FailureKind::damaged,
                   {Errc::argument_error,
                    fmt::format("the folder holds store {:016x}, not {:016x}", contents_.store, store_)}};
  store_ = contents_.store;
  opened_.epoch = contents_.epoch_seen + 1;
  auto done = epoch_->save({store_, opened_.epoch});
  if (done) done = remove_leftovers();
  // A name that a dead process left in the cache only: what is built on it must not outlive it.
  if (done) done = folder_->sync();
  // Raised first, looked at then: what another writer made durable before it was fenced is seen.
  if (done) {
    looked = look_at_store(*folder_, epoch_.get());
    if (!looked) return failure_of(looked.error());
    contents_ = std::move(*looked);
    done = choose_checkpoint();
  }
  if (done) done = cut_ends();
  if (done) done = mend_tail();
  if (!done) return failure_of(done.error());
  const std::uint32_t first = opened_.checkpoint_covers.segment();
  for (Damage& damage : gaps_between(contents_, first)) damages_.push_back(std::move(damage));
  for (const auto& [number, segment] : contents_.segments)
    if (number >= first) to_read_.push_back(number);
  opened_.last = opened_.checkpoint_covers;
  return std::nullopt;
}

Result<void> Recovery::read_records(RecordChunk& into, bool& done) {
  while (!into.full()) {
    if (!reader_) {
      if (to_read_.empty()) {
        done = true;
        return {};
      }
      auto file = folder_->open(segment_name(to_read_.front()), Folder::Mode::read);
      if (!file) return fail(file.error());
      file_ = std::move(*file);
      reader_.emplace(*file_, store_, to_read_.front(), contents_.segments[to_read_.front()].end);
      ++opened_.segments_read;
    }
    const auto step = reader_->next();
    if (!step) return fail(step.error());
    if (const auto* item = std::get_if<SegmentReader::Item>(&*step)) {
      if (item->view.position <= opened_.checkpoint_covers) continue;
      opened_.last = item->view.position;
      if ((item->flags & flag_internal) != 0) continue;
      ++opened_.records_replayed;
      opened_.bytes_replayed += item->view.body.size();
      into.add(item->view);
    } else if (const auto* gap = std::get_if<SegmentReader::Gap>(&*step)) {
      ++opened_.damages;
      into.add(damage_of(*gap, to_read_.front()));
    } else {
      const std::uint32_t end = std::get<SegmentReader::End>(*step).at;
      auto& segment = contents_.segments[to_read_.front()];
      if (segment.end == 0) segment.end = end;
      reader_.reset();
      file_.reset();
      to_read_.pop_front();
    }
  }
  return {};
}

Recovery::Chunk Recovery::next() {
  Chunk chunk;
  for (Damage& damage : damages_) {
    ++opened_.damages;
    chunk.records.add(std::move(damage));
  }
  damages_.clear();
  if (checkpoint_) {
    const auto piece = checkpoint_->next();
    if (!piece) {
      chunk.failure = failure_of(piece.error());
      return chunk;
    }
    if (!piece->empty()) {
      chunk.checkpoint.assign(piece->begin(), piece->end());
      return chunk;
    }
    checkpoint_.reset();
  }
  const auto read = read_records(chunk.records, chunk.done);
  if (!read) chunk.failure = failure_of(read.error());
  return chunk;
}

}  // namespace omnibus::journal
