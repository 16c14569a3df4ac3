#include "base/check.hpp"
#include "broker/queue_parts.hpp"

namespace omnibus::broker {
namespace {

std::size_t index(SubQueue sub_queue) { return static_cast<std::size_t>(sub_queue); }
std::size_t index(EntryState state) { return static_cast<std::size_t>(state); }

// Expiry concerns the active sub-queue alone: elsewhere messages have no time to live [contract 9.2].
bool waits_for_expiry(const Entry& entry) {
  return entry.sub_queue == SubQueue::active && entry.due != never_ms;
}

}  // namespace

std::uint32_t Queue::Parts::find(SequenceNumber sequence) const {
  for (const auto& lane : lanes) {
    const std::uint32_t slot = lane.find(sequence);
    if (slot != no_slot) return slot;
  }
  return no_slot;
}

std::uint32_t Queue::Parts::find_stored(SequenceNumber sequence) const {
  const std::uint32_t slot = find(sequence);
  if (slot != no_slot) return slot;
  const auto activated = origins.find(sequence);
  return activated == origins.end() ? no_slot : activated->second;
}

void Queue::Parts::place(std::uint32_t slot) {
  const Entry& entry = entries[slot];
  lanes[index(entry.sub_queue)].insert(slot);
  if (entry.session != no_slot) {
    sessions[entry.session].lane.insert(slot);
    touch(entry.session);
  }
}

void Queue::Parts::displace(std::uint32_t slot) {
  Entry& entry = entries[slot];
  lanes[index(entry.sub_queue)].remove(slot);
  if (entry.session != no_slot) {
    sessions[entry.session].lane.remove(slot);
    touch(entry.session);
  }
}

void Queue::Parts::set_state(std::uint32_t slot, EntryState to) {
  Entry& entry = entries[slot];
  const auto set_available = [&](bool available) {
    if (entry.session == no_slot) {
      lanes[index(entry.sub_queue)].set_available(slot, available);
    } else {
      sessions[entry.session].lane.set_available(slot, available);
      touch(entry.session);
    }
  };
  switch (entry.state) {
    case EntryState::available:
      set_available(false);
      if (waits_for_expiry(entry)) deadlines.remove(slot);
      break;
    case EntryState::scheduled:
      deadlines.remove(slot);
      break;
    case EntryState::locked: {
      const std::uint32_t lock = entry.link;
      if (locks[lock].of_session) leave_session(lock);
      if (receivers.is_limited())
        if (const Receiver* holder = receivers.let_go(locks[lock].receiver, entry.size);
            holder && holder->session != no_slot)
          touch(holder->session);
      locks.remove(lock);
      break;
    }
    default:
      break;
  }
  auto& counts = state_counts[index(entry.sub_queue)];
  if (entry.state != EntryState::free) --counts[index(entry.state)];
  entry.state = to;
  if (to != EntryState::free) ++counts[index(to)];
  switch (to) {
    case EntryState::available:
      set_available(true);
      if (waits_for_expiry(entry)) deadlines.add(slot);
      if (entry.sub_queue == SubQueue::dead_letter && !entry.has(Entry::stays))
        dead_letter_forward_from = std::min(dead_letter_forward_from, entry.sequence);
      break;
    case EntryState::scheduled:
      deadlines.add(slot);
      break;
    default:
      break;
  }
}

void Queue::Parts::lock(std::uint32_t slot, const LockToken& token, Instant until, ReceiverId receiver,
                        bool of_session) {
  Entry& entry = entries[slot];
  const bool deferred = entry.state == EntryState::deferred ||
                        (entry.state == EntryState::locked && entry.has(Entry::was_deferred));
  set_state(slot, EntryState::locked);
  entry.set(Entry::was_deferred, deferred);
  entry.link = locks.add({token, to_ms(until), receiver, slot, no_slot, of_session});
  if (of_session) join_session(entry.link, entry.session);
}

void Queue::Parts::grow(std::int64_t own) {
  size_bytes = static_cast<std::uint64_t>(static_cast<std::int64_t>(size_bytes) + own);
  own_bytes = static_cast<std::uint64_t>(static_cast<std::int64_t>(own_bytes) + own);
  if (payloads) payloads->own_bytes(own);
}

void Queue::Parts::set_changes(std::uint32_t slot, SharedChanges to) {
  Entry& entry = entries[slot];
  if (entry.has(Entry::changed)) {
    const auto present = changes.find(slot);
    grow(-static_cast<std::int64_t>(present->second->bytes()));
    changes.erase(present);
  }
  entry.set(Entry::changed, to != nullptr);
  if (!to) return;
  grow(static_cast<std::int64_t>(to->bytes()));
  changes.emplace(slot, std::move(to));
}

SharedChanges Queue::Parts::changes_of(std::uint32_t slot) const {
  return entries[slot].has(Entry::changed) ? changes.at(slot) : nullptr;
}

// Messages that expired or failed too often have the same words: they share one copy.
SharedChanges Queue::Parts::intern(MessageChanges what) {
  if (what.empty()) return nullptr;
  if (!last_interned || !(*last_interned == what))
    last_interned = std::make_shared<const MessageChanges>(std::move(what));
  return last_interned;
}

StoredMessage Queue::Parts::erase(std::uint32_t slot) {
  set_state(slot, EntryState::free);
  displace(slot);
  set_changes(slot, nullptr);
  Entry& entry = entries[slot];
  if (!entry.has(Entry::is_scheduled) && !entry.has(Entry::is_copy) && entry.ttl_or_origin != 0)
    origins.erase(entry.ttl_or_origin);
  size_bytes -= entry.size;
  const StoredMessage dead = stored(slot);
  entries.remove(slot);
  return dead;
}

void Queue::Parts::move_to_dead_letter(std::uint32_t slot, std::uint16_t delivery_count, bool stays,
                                       SharedChanges with) {
  set_state(slot, EntryState::pending);
  displace(slot);
  Entry& entry = entries[slot];
  --state_counts[index(entry.sub_queue)][index(EntryState::pending)];
  entry.session = no_slot;
  entry.sub_queue =
      entry.sub_queue == SubQueue::transfer ? SubQueue::transfer_dead_letter : SubQueue::dead_letter;
  entry.delivery_count = delivery_count;
  entry.set(Entry::stays, stays);
  entry.set(Entry::was_deferred, false);
  set_changes(slot, std::move(with));
  place(slot);
  entry.state = EntryState::free;  // it counts from here on in its new sub-queue
  set_state(slot, EntryState::available);
}

void Queue::Parts::activate(std::uint32_t slot, SequenceNumber sequence, Instant enqueued, Instant expires) {
  Entry& entry = entries[slot];
  set_state(slot, EntryState::pending);
  displace(slot);
  entry.ttl_or_origin = entry.sequence;
  origins.emplace(entry.sequence, slot);
  entry.sequence = sequence;
  entry.enqueued = to_ms(enqueued);
  entry.due = to_ms(expires);
  entry.set(Entry::is_scheduled, false);
  place(slot);
}

void Queue::Parts::add_stored(const StoredRecord& record, Location at,
                              EntryState (*state_of)(const StoredRecord::Item&)) {
  std::uint32_t offset = record.head_bytes;
  for (std::size_t i = 0; i < record.items.size(); ++i) {
    const auto& item = record.items[i];
    const SequenceNumber sequence = record.first + static_cast<SequenceNumber>(i);
    const std::uint32_t item_offset = offset;
    offset += item.size;
    if (item.message_id && settings.requires_duplicate_detection)
      history.add(*item.message_id, record.enqueued, settings.duplicate_window);
    // A checkpoint taken later than this record knows the message already.
    if (!effects && find_stored(sequence) != no_slot) continue;
    const std::uint32_t slot = entries.add();
    Entry& entry = entries[slot];
    entry.sequence = sequence;
    entry.record = at.value;
    entry.enqueued = to_ms(record.enqueued);
    entry.due = to_ms(item.due);
    entry.offset = item_offset;
    entry.size = item.size;
    entry.hops = item.hops;
    entry.sub_queue = item.sub_queue;
    entry.properties_bytes =
        static_cast<std::uint16_t>(std::min<std::uint32_t>(item.properties_bytes, 0xffff));
    if (item.scheduled) {
      entry.set(Entry::is_scheduled, true);
      entry.ttl_or_origin = item.ttl_ms;
    }
    if (item.session_id && settings.requires_session && item.sub_queue == SubQueue::active)
      entry.session = sessions.find_or_add(*item.session_id);
    size_bytes += item.size;
    if (payloads && effects) payloads->added(stored(slot), 1);
    set_changes(slot, item.changes);
    place(slot);
    set_state(slot, state_of(item));
    if (entry.state == EntryState::pending) {
      fresh.emplace_back(at, slot);
      sync_wanted = true;
    }
  }
  next_sequence = std::max(next_sequence, record.next);
}

MessageStatus Queue::Parts::status_of(std::uint32_t slot) const {
  const Entry& entry = entries[slot];
  MessageStatus status;
  status.stored = stored(slot);
  status.sequence = entry.sequence;
  status.enqueued = to_instant(entry.enqueued);
  if (entry.has(Entry::is_scheduled)) {
    const Instant expires = expiry(status.enqueued, static_cast<std::uint64_t>(entry.ttl_or_origin));
    if (expires != never) status.expires = expires;
    status.state = MessageState::scheduled;
  } else {
    if (entry.due != never_ms) status.expires = to_instant(entry.due);
    if (entry.state == EntryState::deferred ||
        (entry.state == EntryState::locked && entry.has(Entry::was_deferred)))
      status.state = MessageState::deferred;
  }
  status.delivery_count = entry.delivery_count;
  status.sub_queue = entry.sub_queue;
  if (settings.is_partitioned) status.partition = static_cast<std::int16_t>(settings.partition);
  if (entry.has(Entry::is_copy)) {
    status.enqueue_sequence = entry.ttl_or_origin;
    status.exchange = exchange;
  }
  status.changes = changes_of(slot);
  return status;
}

void Queue::Parts::touch(std::uint32_t session) {
  if (touched.empty() || touched.back() != session) touched.push_back(session);
}

void Queue::Parts::settle_touched() {
  for (const std::uint32_t session : touched)
    if (sessions.exists(session)) sessions.refresh(session);
  touched.clear();
}

}  // namespace omnibus::broker
