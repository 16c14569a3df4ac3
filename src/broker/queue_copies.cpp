#include "broker/queue_parts.hpp"

namespace omnibus::broker {

void Queue::share(std::shared_ptr<SharedPayloads> with, std::shared_ptr<const std::string> exchange) {
  parts_->payloads = std::move(with);
  parts_->exchange = std::move(exchange);
}
void Queue::abandon_messages(RecordSink& sink) {
  visit_messages([&](const StoredMessage& message) {
    if (!parts_->payloads || parts_->payloads->let_go(message)) sink.release(message);
  });
}
SequenceNumber Queue::take_number() { return parts_->take_number(); }
std::uint64_t Queue::own_bytes() const { return parts_->own_bytes; }
void Queue::touch(Instant now) { parts_->accessed = std::max(parts_->accessed, now); }

void Queue::Parts::add_copy(const AdoptedCopy& copy, EntryState state) {
  const std::uint32_t slot = entries.add();
  Entry& entry = entries[slot];
  entry.sequence = copy.number;
  entry.record = copy.stored.record.value;
  entry.offset = copy.stored.offset;
  entry.size = copy.stored.size;
  entry.enqueued = to_ms(copy.enqueued);
  entry.due = to_ms(copy.expires);
  entry.ttl_or_origin = copy.origin;
  entry.session = no_slot;
  entry.hops = copy.hops;
  entry.sub_queue = copy.sub_queue;
  entry.properties_bytes = static_cast<std::uint16_t>(std::min<std::uint32_t>(copy.properties_bytes, 0xffff));
  entry.set(Entry::is_copy, true);
  if (copy.session_id && settings.requires_session && copy.sub_queue == SubQueue::active)
    entry.session = sessions.find_or_add(*copy.session_id);
  size_bytes += copy.stored.size;
  set_changes(slot, copy.changes);
  place(slot);
  set_state(slot, state);
  if (state == EntryState::pending) fresh.emplace_back(copy.stored.record, slot);
  next_sequence = std::max(next_sequence, copy.number + 1);
}

void Queue::adopt(const AdoptedCopy& copy) {
  parts_->appended = std::max(parts_->appended, copy.stored.record);
  parts_->add_copy(copy, EntryState::pending);
  ++parts_->totals.received;
  if (copy.sub_queue == SubQueue::dead_letter) ++parts_->totals.dead_lettered;
  parts_->settle_touched();
}

void Queue::replay_copy(const AdoptedCopy& copy) {
  auto& parts = *parts_;
  parts.appended = parts.durable = std::max(parts.durable, copy.stored.record);
  parts.next_sequence = std::max(parts.next_sequence, copy.number + 1);
  // A checkpoint taken later than the record knows it already.
  if (parts.knows(copy.number)) return;
  parts.add_copy(copy, EntryState::available);
  parts.settle_touched();
}

std::optional<StoredMessage> Queue::find_copy(SequenceNumber number) const {
  const std::uint32_t slot = parts_->find_stored(number);
  if (slot == no_slot) return std::nullopt;
  return parts_->stored(slot);
}

void Queue::move_copy(SequenceNumber number, const StoredMessage& to) {
  const std::uint32_t slot = parts_->find_stored(number);
  if (slot == no_slot) return;
  parts_->entries[slot].record = to.record.value;
  parts_->entries[slot].offset = to.offset;
}

Error Queue::Parts::no_rules() const {
  return {Errc::not_allowed, fmt::format("'{}' is no subscription and has no rules", settings.name)};
}

void Queue::Parts::on(const AddRule& command) { refuse(command.request, no_rules()); }
void Queue::Parts::on(const RemoveRule& command) { refuse(command.request, no_rules()); }
void Queue::Parts::on(const ListRules& command) { refuse(command.request, no_rules()); }
void Queue::Parts::on(const SetBinding& command) { refuse(command.request, no_rules()); }
void Queue::Parts::on(const UpdateTopic& command) { refuse(command.request, no_rules()); }

}  // namespace omnibus::broker
