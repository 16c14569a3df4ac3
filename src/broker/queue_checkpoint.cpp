#include "broker/checkpoint_slice.hpp"
#include "broker/queue_parts.hpp"

// A slice is a kind byte, a count and that many items. Everything is told by its present value, and the
// records that follow the checkpoint's beginning are replayed over it: a message that changed after its slice
// was written is brought up to date by them. Messages only ever move forward in the order in which slices are
// written (a later number, a later sub-queue), so none is missed between two slices; one that moved in
// between is written twice, and the later slice is right. So transfers come before their dead letters.

namespace omnibus::broker {
namespace {

enum class SliceKind : std::uint8_t { head = 1, sessions = 2, messages = 3, history = 4, copies = 5 };

enum MessageFlag : std::uint8_t {
  in_session = 1,
  with_changes = 2,
  is_locked = 4,
  was_deferred = 8,
  // 16 is free: older checkpoints say by it that a record holds several messages.
  stays_here = 32,
  is_deferred = 64,
  is_scheduled = 128,
};

constexpr std::array<SubQueue, sub_queue_count> slice_order{
    SubQueue::active, SubQueue::dead_letter, SubQueue::transfer, SubQueue::transfer_dead_letter};

}  // namespace

void Queue::begin_checkpoint() {
  parts_->checkpoint = {};
  parts_->checkpoint.phase = Parts::Checkpoint::Phase::head;
}

bool Queue::write_checkpoint(CheckpointSink& sink, std::size_t messages_max) {
  return parts_->write_slice(sink, std::max<std::size_t>(1, messages_max));
}

Result<void> Queue::read_checkpoint(Bytes slice) {
  auto read = parts_->read_slice(slice);
  parts_->settle_touched();
  return read;
}

void Queue::Parts::write_message(RecordWriter& out, std::uint32_t slot) const {
  const Entry& entry = entries[slot];
  std::uint8_t flags = 0;
  const Lock* lock =
      entry.state == EntryState::locked && !locks[entry.link].of_session ? &locks[entry.link] : nullptr;
  const bool deferred = entry.state == EntryState::deferred ||
                        (entry.state == EntryState::locked && entry.has(Entry::was_deferred));
  if (entry.session != no_slot) flags |= in_session;
  if (entry.has(Entry::changed)) flags |= with_changes;
  if (lock) flags |= is_locked;
  if (lock && deferred) flags |= was_deferred;
  if (!lock && deferred) flags |= is_deferred;
  if (entry.has(Entry::stays)) flags |= stays_here;
  if (entry.has(Entry::is_scheduled)) flags |= is_scheduled;
  out.put(flags);
  out.put(static_cast<std::uint8_t>(entry.sub_queue));
  out.put(entry.hops);
  out.put(entry.sequence);
  out.put(entry.record);
  out.put(entry.offset);
  out.put(entry.size);
  out.put(entry.enqueued);
  out.put(entry.due);
  out.put(entry.ttl_or_origin);
  out.put(entry.delivery_count);
  out.put(entry.properties_bytes);
  if (entry.session != no_slot) out.put_text(sessions[entry.session].id);
  if (flags & with_changes) out.put_changes(*changes.at(slot));
  if (lock) {
    out.put_token(lock->token);
    out.put(lock->until);
  }
}

bool Queue::Parts::write_slice(CheckpointSink& sink, std::size_t messages_max) {
  using Phase = Checkpoint::Phase;
  auto& at = checkpoint;
  RecordWriter out;
  std::uint32_t count = 0;
  const auto begin = [&](SliceKind kind) { begin_slice(out, kind); };
  const auto end = [&] { end_slice(out, count, sink); };
  switch (at.phase) {
    case Phase::head:
      begin(SliceKind::head);
      out.put(next_sequence);
      count = 1;
      end();
      at.phase = Phase::sessions;
      return true;
    case Phase::sessions: {
      begin(SliceKind::sessions);
      auto next = at.session_id ? sessions.by_id().upper_bound(*at.session_id) : sessions.by_id().begin();
      for (std::size_t seen = 0; next != sessions.by_id().end() && seen < messages_max; ++next, ++seen) {
        at.session_id = next->first;
        const auto& session = sessions[next->second];
        if (!session.state) continue;
        out.put_text(session.id);
        out.put(to_ms(session.state_set));
        out.put_optional_text(session.state);
        ++count;
      }
      if (next == sessions.by_id().end()) at.phase = Phase::messages;
      end();
      return true;
    }
    case Phase::messages: {
      begin(payloads ? SliceKind::copies : SliceKind::messages);
      while (count < messages_max) {
        const auto lane = static_cast<std::size_t>(slice_order.at(at.sub_queue));
        const std::uint32_t slot = lanes[lane].at_or_after(at.sequence);
        if (slot != no_slot) {
          if (payloads) out.put(static_cast<std::uint8_t>(entries[slot].has(Entry::is_copy)));
          write_message(out, slot);
          at.sequence = entries[slot].sequence + 1;
          ++count;
        } else if (++at.sub_queue == sub_queue_count) {
          at.phase = Phase::history;
          break;
        } else {
          at.sequence = 0;
        }
      }
      end();
      return true;
    }
    case Phase::history:
      begin(SliceKind::history);
      at.history = put_history(out, history, at.history, messages_max, count);
      end();
      if (at.history == 0) at.phase = Phase::done;
      return at.history != 0;
    case Phase::done:
      return false;
  }
  return false;
}

bool Queue::Parts::read_message(RecordReader& in, bool copy) {
  const auto flags = in.get<std::uint8_t>();
  const auto sub_queue = in.get<std::uint8_t>();
  Entry read{};
  read.hops = in.get<std::uint8_t>();
  read.sequence = in.get_sequence();
  read.record = in.get<std::uint64_t>();
  read.offset = in.get<std::uint32_t>();
  read.size = in.get<std::uint32_t>();
  read.enqueued = in.get_ms();
  read.due = in.get_due_ms();
  read.ttl_or_origin = in.get<std::int64_t>();
  read.delivery_count = in.get<std::uint16_t>();
  read.properties_bytes = in.get<std::uint16_t>();
  std::string session_id;
  if (flags & in_session) session_id = in.get_text();
  MessageChanges with;
  if (flags & with_changes) with = in.get_changes();
  LockToken token;
  std::int64_t until = 0;
  if (flags & is_locked) {
    token = in.get_token();
    until = in.get_ms();
  }
  if (!in.ok() || sub_queue >= sub_queue_count ||
      ((flags & is_scheduled) && (read.ttl_or_origin < 0 || read.ttl_or_origin > 0xffffffff)))
    return false;
  read.sub_queue = static_cast<SubQueue>(sub_queue);
  if ((flags & in_session) && read.sub_queue != SubQueue::active) return false;
  // What is kept for another entity is only that, and knows for which.
  if (read.sub_queue == SubQueue::transfer &&
      (copy || !with.destination || (flags & (is_locked | is_deferred | is_scheduled | was_deferred))))
    return false;
  if ((flags & is_scheduled) && (copy || (flags & (is_locked | is_deferred)))) return false;
  // It may have been written in an earlier slice, before it moved; this one is younger.
  const SequenceNumber earlier[] = {read.sequence, (flags & is_scheduled) || copy ? 0 : read.ttl_or_origin};
  for (const SequenceNumber sequence : earlier) {
    const std::uint32_t known = sequence == 0 ? no_slot : find(sequence);
    if (known != no_slot) erase(known);
  }
  if ((flags & is_locked) && locks.find(token) != no_slot) return false;

  const std::uint32_t slot = entries.add();
  Entry& entry = entries[slot];
  const std::uint32_t link = entry.link;
  entry = read;
  entry.link = link;
  entry.session = (flags & in_session) ? sessions.find_or_add(session_id) : no_slot;
  entry.set(Entry::stays, (flags & stays_here) != 0);
  entry.set(Entry::is_scheduled, (flags & is_scheduled) != 0);
  entry.set(Entry::is_copy, copy);
  if (!copy && !entry.has(Entry::is_scheduled) && entry.ttl_or_origin != 0)
    origins.emplace(entry.ttl_or_origin, slot);
  size_bytes += entry.size;
  if (flags & with_changes) set_changes(slot, intern(std::move(with)));
  place(slot);
  if (flags & is_scheduled) {
    set_state(slot, EntryState::scheduled);
  } else if (flags & (is_deferred | was_deferred)) {
    set_state(slot, EntryState::deferred);
  } else {
    set_state(slot, EntryState::available);
  }
  if (flags & is_locked) lock(slot, token, to_instant(until), ReceiverId::none, false);
  return true;
}

Result<void> Queue::Parts::read_slice(Bytes slice) {
  RecordReader in{slice};
  const auto damaged = [&] {
    return fail(Errc::decode_error, "a checkpoint of queue '{}' is damaged", settings.name);
  };
  if (in.get<std::uint8_t>() != slice_version) return damaged();
  const auto kind = static_cast<SliceKind>(in.get<std::uint8_t>());
  const auto count = in.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count; ++i) {
    switch (kind) {
      case SliceKind::head:
        next_sequence = std::max(next_sequence, in.get_sequence());
        break;
      case SliceKind::sessions: {
        SessionStateRecord record;
        record.id = in.get_text();
        record.set = in.get_instant();
        record.state = in.get_optional_text();
        if (in.ok()) set_session_state(record);
        break;
      }
      case SliceKind::messages:
        if (!read_message(in, false)) return damaged();
        break;
      case SliceKind::copies: {
        const bool copy = in.get_flag();
        if (!read_message(in, copy)) return damaged();
        break;
      }
      case SliceKind::history: {
        const auto high = in.get<std::uint64_t>();
        const auto low = in.get<std::uint64_t>();
        const auto accepted = in.get_ms();
        if (in.ok()) history.add({high, low}, to_instant(accepted), settings.duplicate_window);
        break;
      }
      default:
        return damaged();
    }
    if (!in.ok()) return damaged();
  }
  return in.left() == 0 ? Result<void>{} : damaged();
}

}  // namespace omnibus::broker
