#include "base/check.hpp"
#include "broker/queue_parts.hpp"
#include "broker/schedule_check.hpp"

namespace omnibus::broker {

std::optional<Error> Queue::Parts::refuse_messages(std::span<const IncomingMessage> messages,
                                                   bool without_sessions, std::uint64_t promised) const {
  if (decided) return std::nullopt;
  if (failed) return Error{Errc::server_busy, fmt::format("the store of '{}' is recovering", settings.name)};
  if (!may_send(settings.status))
    return Error{Errc::entity_disabled, fmt::format("sending to '{}' is disabled", settings.name)};
  std::uint64_t bytes = promised;
  for (const auto& message : messages) {
    if (settings.requires_session && !message.facts.session_id && !without_sessions)
      return Error{Errc::not_allowed,
                   fmt::format("'{}' requires a SessionId on every message", settings.name)};
    if (message.bytes.size() > settings.message_bytes_max)
      return Error{Errc::message_size_exceeded,
                   fmt::format("message of {} bytes, '{}' takes {}", message.bytes.size(), settings.name,
                               settings.message_bytes_max)};
    bytes += message.bytes.size();
  }
  if (size_bytes + bytes > settings.size_bytes_max)
    return Error{Errc::resource_limit_exceeded, fmt::format("'{}' is full: {} of {} bytes", settings.name,
                                                            size_bytes, settings.size_bytes_max)};
  return std::nullopt;
}

Instant Queue::Parts::expiry(Instant enqueued, std::uint64_t ttl_ms) const {
  auto ttl = settings.default_time_to_live;
  if (ttl_ms != 0) ttl = std::min(ttl, std::chrono::milliseconds{ttl_ms});
  return ttl >= unlimited ? never : enqueued + ttl;
}

void Queue::Parts::fill_item(StoredRecord::Item& item, const IncomingMessage& message) const {
  const auto& [facts, bytes] = message;
  item.size = static_cast<std::uint32_t>(bytes.size());
  item.properties_bytes = facts.application_properties_bytes;
  item.message_id = settings.requires_duplicate_detection ? facts.message_id : std::nullopt;
  item.scheduled = facts.scheduled && *facts.scheduled > now;
  item.due = item.scheduled ? *facts.scheduled : expiry(now, facts.ttl_ms.value_or(0));
  if (item.scheduled) item.ttl_ms = facts.ttl_ms.value_or(0);
  if (settings.requires_session) item.session_id = facts.session_id;
}

void Queue::Parts::append_stored(StoredRecord& record) {
  writer.clear();
  encode_record(writer, record);
  record.head_bytes = static_cast<std::uint32_t>(writer.size());
  appended = effects->sink.append(writer.bytes(), bodies);
  totals.received += record.items.size();
  add_stored(record, appended, [](const StoredRecord::Item&) { return EntryState::pending; });
}

void Queue::Parts::store(std::span<const IncomingMessage> messages,
                         const std::optional<ForwardedFrom>& forwarded,
                         std::vector<SequenceNumber>* numbers) {
  active_now();
  StoredRecord& record = stored_record;
  record.items.clear();
  record.first = next_sequence;
  record.enqueued = now;
  bodies.clear();
  dropped.assign(messages.size(), 0);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& [facts, bytes] = messages[i];
    if (settings.requires_duplicate_detection && facts.message_id) {
      if (history.seen(*facts.message_id, now, settings.duplicate_window)) {
        dropped[i] = 1;
        ++totals.duplicates;
        continue;
      }
      history.add(*facts.message_id, now, settings.duplicate_window);
    }
    auto& item = record.items.emplace_back();
    fill_item(item, messages[i]);
    if (forwarded) {
      item.hops = forwarded->hops;
      MessageChanges with = forwarded->changes ? *forwarded->changes : MessageChanges{};
      if (!with.enqueue_sequence && forwarded->sequence != 0) with.enqueue_sequence = forwarded->sequence;
      if (settings.requires_session && !facts.session_id) {
        item.sub_queue = SubQueue::dead_letter;
        ++totals.dead_lettered;
        item.scheduled = false;
        with.dead_letter_reason = no_session_reason;
        with.dead_letter_description = no_session_description;
      }
      item.changes = intern(std::move(with));
    }
    bodies.push_back(&bytes);
  }
  // A dropped duplicate gets a number of its own, behind the others, that never names a message.
  SequenceNumber stored = record.first;
  SequenceNumber spare = record.first + static_cast<SequenceNumber>(record.items.size());
  for (std::size_t i = 0; numbers && i < messages.size(); ++i)
    numbers->push_back(dropped[i] != 0 ? spare++ : stored++);
  record.next = spare;
  if (record.items.empty() && record.next == record.first) return;
  append_stored(record);
}

// Messages whose numbers their sender knows already: one record for each, because one that is dropped as a
// duplicate leaves a gap.
void Queue::Parts::store_reserved(const Schedule& command) {
  active_now();
  StoredRecord& record = stored_record;
  record.enqueued = now;
  for (std::size_t i = 0; i < command.messages.size(); ++i) {
    const auto& id = command.messages[i].facts.message_id;
    if (settings.requires_duplicate_detection && id) {
      if (history.seen(*id, now, settings.duplicate_window)) {
        ++totals.duplicates;
        continue;
      }
      history.add(*id, now, settings.duplicate_window);
    }
    record.items.clear();
    record.first = knows(command.reserved[i]) ? next_sequence : command.reserved[i];
    record.next = record.first + 1;
    fill_item(record.items.emplace_back(), command.messages[i]);
    bodies.assign(1, &command.messages[i].bytes);
    append_stored(record);
  }
}

void Queue::Parts::on(const Enqueue& command) {
  check(!command.forwarded || command.messages.size() == 1, "a forwarded message comes alone");
  if (auto error = refuse_messages(command.messages, command.forwarded.has_value()))
    return refuse(command.request, std::move(*error));
  store(command.messages, command.forwarded, nullptr);
  // Also when all were duplicates: the first of their kind may not be durable yet.
  if (command.request != RequestId::none) emit_when_durable(Accepted{command.request});
}

void Queue::Parts::on(const EnqueueEach& command) {
  check(command.requests.size() == command.messages.size() && !command.messages.empty(),
        "each message has its request");
  if (!refuse_messages(command.messages, false)) {
    store(command.messages, std::nullopt, nullptr);
    const auto& requests = command.requests;
    return emit_when_durable(AcceptedEach{requests.front(), {requests.begin() + 1, requests.end()}});
  }
  for (std::size_t i = 0; i < command.messages.size(); ++i) {
    const std::span one{&command.messages[i], 1};
    if (auto error = refuse_messages(one, false)) {
      refuse(command.requests[i], std::move(*error));
    } else {
      store(one, std::nullopt, nullptr);
      emit_when_durable(Accepted{command.requests[i]});
    }
  }
}

std::optional<Error> Queue::Parts::schedule_refusal(const Schedule& command) const {
  return broker::schedule_refusal(command, settings.name, sequence_base(settings.partition), next_sequence,
                                  [this](SequenceNumber number) { return knows(number); });
}

void Queue::Parts::on(const Schedule& command) {
  if (auto error = schedule_refusal(command); error && !decided)
    return refuse(command.request, std::move(*error));
  if (auto error = refuse_messages(command.messages, false))
    return refuse(command.request, std::move(*error));
  Scheduled answer{command.request, command.reserved};
  if (command.reserved.empty())
    store(command.messages, std::nullopt, &answer.sequences);
  else
    store_reserved(command);
  if (command.request != RequestId::none) emit_when_durable(std::move(answer));
}

void Queue::Parts::on(const CancelScheduled& command) {
  if (failed || !may_send(settings.status))
    return refuse(command.request,
                  {Errc::entity_disabled, fmt::format("sending to '{}' is disabled", settings.name)});
  RemovedRecord record;
  std::vector<std::uint32_t> slots;
  for (const SequenceNumber sequence : command.sequences) {
    const std::uint32_t slot = lanes[0].find(sequence);
    if (slot == no_slot || entries[slot].state != EntryState::scheduled ||
        std::find(slots.begin(), slots.end(), slot) != slots.end())
      return refuse(command.request,
                    {Errc::message_not_found,
                     fmt::format("no message {} is scheduled in '{}'", sequence, settings.name)});
    slots.push_back(slot);
    record.sequences.push_back(sequence);
  }
  active_now();
  if (!slots.empty()) append(record);
  for (const std::uint32_t slot : slots) release(erase(slot));
  done_when_durable(command.request);
}

void Queue::Parts::on(const EnqueueTransferDeadLetter& command) {
  if (failed)
    return refuse(command.request,
                  {Errc::server_busy, fmt::format("the store of '{}' is recovering", settings.name)});
  StoredRecord& record = stored_record;
  record.items.clear();
  record.first = take_number();
  record.next = next_sequence;
  record.enqueued = now;
  auto& item = record.items.emplace_back();
  item.size = static_cast<std::uint32_t>(command.message->bytes.size());
  item.properties_bytes = command.message->facts.application_properties_bytes;
  item.sub_queue = SubQueue::transfer_dead_letter;
  ++totals.dead_lettered;
  MessageChanges with;
  with.dead_letter_reason = truncated(command.reason, dead_letter_text_chars_max);
  with.dead_letter_description = truncated(command.description, dead_letter_text_chars_max);
  item.changes = intern(std::move(with));
  bodies.assign(1, &command.message->bytes);
  append_stored(record);
  if (command.request != RequestId::none) emit_when_durable(Accepted{command.request});
}

// A record without messages says that the numbers are taken. It is awaited: a store that fails and comes back
// would otherwise give them to others, while whoever asked is still there.
void Queue::Parts::on(const ReserveNumbers& command) {
  if (auto error = refuse_messages({}, false)) return refuse(command.request, std::move(*error));
  if (command.count > reserved_max)
    return refuse(command.request,
                  {Errc::argument_out_of_range, fmt::format("at most {} numbers at once", reserved_max)});
  Scheduled answer{command.request, {}};
  StoredRecord& record = stored_record;
  record.items.clear();
  record.first = next_sequence;
  record.enqueued = now;
  for (std::uint32_t i = 0; i < command.count; ++i) answer.sequences.push_back(take_number());
  record.next = next_sequence;
  bodies.clear();
  if (command.count > 0) append_stored(record);
  if (command.request != RequestId::none) emit_when_durable(std::move(answer));
}

void Queue::Parts::on(const Transact& command) {
  refuse(command.request, {Errc::not_allowed, "a transaction is asked of the store, not of an entity"});
}

}  // namespace omnibus::broker
