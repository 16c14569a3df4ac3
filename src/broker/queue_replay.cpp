#include "broker/queue_parts.hpp"

namespace omnibus::broker {
namespace {

EntryState state_when_durable(const StoredRecord::Item& item) {
  return item.scheduled ? EntryState::scheduled : EntryState::available;
}

}  // namespace

// A record about a message that is not there is no error: a checkpoint that is younger than the record has
// already seen it go.
Result<void> Queue::Parts::repeat(const Record& record, Location at) {
  appended = durable = std::max(durable, at);
  auto done = std::visit(
      [&](const auto& one) -> Result<void> {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(one)>, StoredRecord>) {
          add_stored(one, at, state_when_durable);
          return {};
        } else if constexpr (std::is_same_v<std::remove_cvref_t<decltype(one)>, MovedRecord>) {
          return repeat(one, at);
        } else {
          return repeat(one);
        }
      },
      record);
  settle_touched();
  return done;
}

Result<std::uint32_t> Queue::Parts::find_to_repeat(SequenceNumber sequence) const {
  const std::uint32_t slot = find(sequence);
  if (slot != no_slot && entries[slot].state == EntryState::scheduled)
    return fail(Errc::decode_error, "queue '{}': message {} is scheduled and cannot be touched",
                settings.name, sequence);
  return slot;
}

Result<void> Queue::Parts::repeat(const RemovedRecord& record) {
  for (const SequenceNumber sequence : record.sequences) {
    const std::uint32_t slot = find(sequence);
    if (slot != no_slot) erase(slot);
  }
  return {};
}

Result<void> Queue::Parts::repeat(const LockedRecord& record) {
  for (const auto& item : record.items) {
    const auto slot = find_to_repeat(item.sequence);
    if (!slot) return fail(slot.error());
    if (*slot == no_slot) continue;
    const std::uint32_t held = locks.find(item.token);
    if (held != no_slot && locks[held].slot != *slot)
      return fail(Errc::decode_error, "queue '{}': one lock token on two messages", settings.name);
    lock(*slot, item.token, item.until, ReceiverId::none, false);
  }
  return {};
}

Result<void> Queue::Parts::repeat(const RenewedRecord& record) {
  for (const auto& [token, until] : record.items) {
    const std::uint32_t held = locks.find(token);
    if (held != no_slot) locks.renew(held, to_ms(until));
  }
  return {};
}

Result<void> Queue::Parts::repeat(const ReturnedRecord& record) {
  const auto slot = find_to_repeat(record.sequence);
  if (!slot) return fail(slot.error());
  if (*slot == no_slot) return {};
  Entry& entry = entries[*slot];
  const bool deferred = entry.state == EntryState::deferred ||
                        (entry.state == EntryState::locked && entry.has(Entry::was_deferred));
  entry.delivery_count = record.delivery_count;
  set_changes(*slot, record.changes);
  set_state(*slot, deferred ? EntryState::deferred : EntryState::available);
  entry.set(Entry::was_deferred, false);
  return {};
}

Result<void> Queue::Parts::repeat(const DeferredRecord& record) {
  const auto slot = find_to_repeat(record.sequence);
  if (!slot) return fail(slot.error());
  if (*slot == no_slot) return {};
  set_changes(*slot, record.changes);
  set_state(*slot, EntryState::deferred);
  entries[*slot].set(Entry::was_deferred, false);
  return {};
}

Result<void> Queue::Parts::repeat(const DeadLetteredRecord& record) {
  const auto slot = find_to_repeat(record.sequence);
  if (!slot) return fail(slot.error());
  if (*slot != no_slot) move_to_dead_letter(*slot, record.delivery_count, record.stays, record.changes);
  return {};
}

Result<void> Queue::Parts::repeat(const ActivatedRecord& record) {
  next_sequence = std::max(next_sequence, record.activated + 1);
  const std::uint32_t slot = find(record.sequence);
  if (slot == no_slot) return {};
  if (entries[slot].state != EntryState::scheduled || record.activated <= record.sequence)
    return fail(Errc::decode_error, "queue '{}': message {} cannot become {}", settings.name, record.sequence,
                record.activated);
  if (find(record.activated) != no_slot) {  // known already by its new number
    erase(slot);
    return {};
  }
  activate(slot, record.activated, record.enqueued, record.expires);
  set_state(slot, EntryState::available);
  return {};
}

Result<void> Queue::Parts::repeat(const SessionStateRecord& record) {
  if (settings.requires_session) set_session_state(record);
  return {};
}

Result<void> Queue::Parts::repeat(const MovedRecord& record, Location at) {
  std::uint32_t offset = record.head_bytes;
  for (const auto& item : record.items) {
    const std::uint32_t slot = find_stored(item.stored);
    // A checkpoint that is younger knows a later place.
    if (slot != no_slot && entries[slot].record < at.value) {
      if (entries[slot].size != item.size)
        return fail(Errc::decode_error, "queue '{}': message {} has {} bytes and moved with {}",
                    settings.name, item.stored, entries[slot].size, item.size);
      entries[slot].record = at.value;
      entries[slot].offset = offset;
    }
    offset += item.size;
  }
  return {};
}

Result<void> Queue::replay(Bytes bytes, Location at) {
  auto record = decode_record(bytes);
  if (!record) return fail(record.error());
  return parts_->repeat(*record, at);
}

void Queue::replay_settings(QueueSettings settings) { parts_->settings = std::move(settings); }

void Queue::recovered(Instant now) {
  parts_->now = now;
  parts_->accessed = std::max(parts_->accessed, now);
  parts_->dead_letter_forward_from = 0;
}

bool Queue::relocate(Bytes bytes, Location from, RecordSink& sink) {
  auto& parts = *parts_;
  const auto record = decode_record(bytes);
  if (!record) return false;
  MovedRecord copy;
  std::vector<std::uint32_t> slots;
  std::vector<Payload> payloads;
  const auto look = [&](SequenceNumber stored, std::uint32_t offset, std::uint32_t size) {
    // Where an effect still wants the bytes of a message that is gone, they are released soon: no copy.
    const std::uint32_t slot = parts.find_stored(stored);
    if (slot == no_slot || parts.entries[slot].record != from.value) return;
    if (bytes.size() < offset || bytes.size() - offset < size) return;
    copy.items.push_back({stored, size});
    slots.push_back(slot);
    payloads.push_back(Payload::copy_of(bytes.subspan(offset, size)));
  };
  if (const auto* stored = std::get_if<StoredRecord>(&*record)) {
    std::uint32_t offset = stored->head_bytes;
    SequenceNumber number = stored->first;
    for (const auto& item : stored->items) {
      look(number++, offset, item.size);
      offset += item.size;
    }
  } else if (const auto* moved = std::get_if<MovedRecord>(&*record)) {
    std::uint32_t offset = moved->head_bytes;
    for (const auto& item : moved->items) {
      look(item.stored, offset, item.size);
      offset += item.size;
    }
  }
  if (slots.empty()) return false;
  std::vector<const Payload*> pointers;
  for (const Payload& payload : payloads) pointers.push_back(&payload);
  parts.writer.clear();
  encode_record(parts.writer, Record{copy});
  const Location to = sink.append(parts.writer.bytes(), pointers);
  auto offset = static_cast<std::uint32_t>(parts.writer.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const StoredMessage old = parts.stored(slots[i]);
    if (!parts.payloads || parts.payloads->let_go(old)) sink.release(old);
    parts.entries[slots[i]].record = to.value;
    parts.entries[slots[i]].offset = offset;
    if (parts.payloads) parts.payloads->added(parts.stored(slots[i]), 1);
    offset += copy.items[i].size;
  }
  return true;
}

}  // namespace omnibus::broker
