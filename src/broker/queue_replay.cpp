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
    if (slot != no_slot) std::ignore = erase(slot);
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
    std::ignore = erase(slot);
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

Result<void> Queue::replay(Bytes bytes, Location at) {
  auto record = decode_record(bytes);
  if (!record) return fail(record.error());
  return parts_->repeat(*record, at);
}

void Queue::recovered(Instant now) {
  parts_->now = now;
  parts_->accessed = std::max(parts_->accessed, now);
  parts_->dead_letter_forward_from = 0;
}

bool Queue::relocate(Bytes bytes, Location from, Location to) {
  auto& parts = *parts_;
  const auto record = decode_record(bytes);
  const auto* stored = record ? std::get_if<StoredRecord>(&*record) : nullptr;
  if (!stored) return false;
  bool needed = false;
  for (std::size_t i = 0; i < stored->items.size(); ++i) {
    const SequenceNumber sequence = stored->first + static_cast<SequenceNumber>(i);
    std::uint32_t slot = parts.find(sequence);
    if (slot == no_slot) {
      const auto activated = parts.origins.find(sequence);
      if (activated != parts.origins.end()) slot = activated->second;
    }
    if (slot == no_slot || parts.entries[slot].record != from.value) continue;
    parts.entries[slot].record = to.value;
    needed = true;
  }
  if (auto shared = parts.shared_records.extract(from.value)) {
    shared.key() = to.value;
    parts.shared_records.insert(std::move(shared));
  }
  // Deliveries whose removal is not durable yet still want the bytes.
  for (auto& one : parts.waiting) {
    if (one.release == from) one.release = to, needed = true;
    if (!one.effect) continue;
    if (auto* deliver = std::get_if<Deliver>(&*one.effect))
      if (deliver->status.stored.record == from) deliver->status.stored.record = to, needed = true;
    if (auto* messages = std::get_if<Messages>(&*one.effect))
      for (auto& message : messages->messages)
        if (message.status.stored.record == from) message.status.stored.record = to, needed = true;
  }
  return needed;
}

}  // namespace omnibus::broker
