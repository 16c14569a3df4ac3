#include <algorithm>
#include <unordered_set>

#include "base/check.hpp"
#include "broker/copy_edits.hpp"
#include "broker/topic_parts.hpp"

namespace omnibus::broker {

std::optional<Error> Topic::Parts::refuse_messages(std::span<const IncomingMessage> messages,
                                                   std::uint64_t promised) const {
  if (decided) return std::nullopt;
  if (failed) return recovering();
  if (!may_send(settings.status))
    return Error{Errc::entity_disabled, fmt::format("sending to '{}' is disabled", settings.name)};
  std::uint64_t bytes = promised;
  for (const auto& message : messages) {
    if (message.bytes.size() > settings.message_bytes_max)
      return Error{Errc::message_size_exceeded,
                   fmt::format("message of {} bytes, '{}' takes {}", message.bytes.size(), settings.name,
                               settings.message_bytes_max)};
    bytes += message.bytes.size();
  }
  if (size_bytes() + bytes > settings.size_bytes_max)
    return Error{Errc::resource_limit_exceeded, fmt::format("'{}' is full: {} of {} bytes", settings.name,
                                                            size_bytes(), settings.size_bytes_max)};
  return std::nullopt;
}

Result<bool> Topic::Parts::publish(std::span<const IncomingMessage> messages,
                                   const std::optional<ForwardedFrom>& forwarded, std::uint8_t steps,
                                   std::vector<SequenceNumber>* numbers, SequenceNumber reserved) {
  PublishedRecord record;
  record.first = reserved != 0 ? reserved : next_sequence;
  record.enqueued = now;
  std::vector<const Payload*> payloads;  // by item, null where nobody keeps it
  bool anybody = false;
  duplicates.assign(messages.size(), false);
  std::unordered_set<MessageIdHash> ids;  // of this transfer: the history takes them when all is decided
  const bool has_alternate = leads_on(steps);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& [facts, bytes] = messages[i];
    if (settings.requires_duplicate_detection && facts.message_id &&
        (history.seen(*facts.message_id, now, settings.duplicate_window) ||
         !ids.insert(*facts.message_id).second)) {
      duplicates[i] = true;
      continue;
    }
    auto& item = record.items.emplace_back();
    item.properties_bytes = facts.application_properties_bytes;
    if (settings.requires_duplicate_detection) item.message_id = facts.message_id;
    std::optional<std::string> key = facts.routing_key;
    if (forwarded) {
      item.hops = forwarded->hops;
      item.origin = forwarded->sequence;
      if (forwarded->changes) {
        MessageChanges with = *forwarded->changes;
        if (with.enqueue_sequence) item.origin = *with.enqueue_sequence;
        with.enqueue_sequence.reset();
        if (!key) key = with.routing_key;
        with.routing_key.reset();
        if (!with.empty()) item.changes = std::make_shared<const MessageChanges>(std::move(with));
      }
    }
    item.size = static_cast<std::uint32_t>(bytes.size());
    if (facts.scheduled && *facts.scheduled > now) {
      item.scheduled = facts.scheduled;
      item.routing_key = std::move(key);
      item.steps = steps;
      anybody = true;
    } else {
      const SharedChanges came_with = item.changes;
      const auto number = record.first + static_cast<SequenceNumber>(record.items.size()) - 1;
      // Whatever rules were added since a step of a transaction was judged: it was taken, and a subscription
      // whose rules cannot read it gets nothing.
      if (auto planned = plan_copies(messages[i], number, key, item); !planned && !decided)
        return fail(planned.error());
      if (!item.copies.empty()) {
        anybody = true;
      } else if (has_alternate) {
        // Should others of the transfer be kept, it is kept with them: as one that is due, and goes on when
        // all is durable.
        item.scheduled = now;
        item.changes = came_with;
        item.routing_key = std::move(key);
        item.steps = steps;
      } else {
        item.size = 0;  // nobody keeps it
      }
    }
    payloads.push_back(item.size > 0 ? &bytes : nullptr);
  }
  accessed = now;
  const bool wanted_elsewhere =
      has_alternate || (exchange && settings.unroutable == rules::Unroutable::release);
  // In a transaction there is no sender any more who could be told: it goes to the alternate by itself.
  if (wanted_elsewhere && !numbers && !decided && !record.items.empty() && !anybody) return false;
  std::erase(payloads, nullptr);
  totals.received += record.items.size();
  totals.duplicates += messages.size() - record.items.size();
  // A dropped duplicate gets a number of its own, behind the others, that never names a message.
  SequenceNumber stored = record.first;
  SequenceNumber spare = record.first + static_cast<SequenceNumber>(record.items.size());
  for (std::size_t i = 0; numbers && i < messages.size(); ++i)
    numbers->push_back(duplicates[i] ? spare++ : stored++);
  record.next = spare;
  if (reserved != 0 && record.items.empty()) return true;
  if (record.next > record.first) write(record, payloads);
  return true;
}

Result<void> Topic::Parts::plan_copies(const IncomingMessage& message, SequenceNumber number,
                                       const std::optional<std::string>& routing_key,
                                       PublishedRecord::Item& item) {
  const auto view = amqp::MessageView::parse(message.bytes);
  if (!view) return fail(view.error());
  rules::BrokerFacts facts;
  facts.sequence_number = number;
  facts.enqueued_sequence_number = item.origin != 0 ? item.origin : number;
  facts.enqueued = now;
  auto ttl = settings.default_time_to_live;
  if (ttl < unlimited) facts.default_time_to_live = ttl;
  if (message.facts.ttl_ms) ttl = std::min(ttl, std::chrono::milliseconds{*message.facts.ttl_ms});
  if (ttl < unlimited) facts.expires = now + ttl;
  if (item.changes && item.changes->dead_letter_source)
    facts.dead_letter_source = *item.changes->dead_letter_source;
  rules::MessageFields fields{*view, facts};
  if (exchange) {
    std::string key;
    if (routing_key) {
      key = *routing_key;
      // Not in the message, and shown to receivers: all copies have it from here.
      MessageChanges with = item.changes ? *item.changes : MessageChanges{};
      with.routing_key = key;
      item.changes = std::make_shared<const MessageChanges>(std::move(with));
    } else if (const auto subject = fields.system(rules::SystemField::label);
               subject.kind == rules::Scalar::Kind::text) {
      key = subject.view();
    }
    if (auto matched = exchange->match(key, fields, reached); !matched) return fail(matched.error());
    for (const SubscriptionId id : reached) plan_copy(id, message, nullptr, nullptr, item);
    return {};
  }
  if (auto matched = rule_set.match(fields, random, matches); !matched) return fail(matched.error());
  for (const auto& copy : matches.copies)
    plan_copy(copy.subscription, message, copy.rule ? &copy.edits : nullptr, nullptr, item);
  for (const auto& failure : matches.failures)
    plan_copy(failure.subscription, message, nullptr, &failure, item);
  return {};
}

void Topic::Parts::plan_copy(SubscriptionId id, const IncomingMessage& message,
                             const rules::MessageEdits* edits, const rules::Failure* failure,
                             PublishedRecord::Item& item) {
  const auto found = subscriptions.find(id);
  if (found == subscriptions.end() || !found->second.queue) return;
  const QueueSettings& target = found->second.queue->settings();
  // One that is disabled still gets its copies [contract 9.11].
  if (target.status == EntityStatus::send_disabled) return;
  if (failure && !target.dead_letter_on_filter_error) return;
  auto& copy = item.copies.emplace_back();
  copy.subscription = id;
  std::optional<std::string> session = message.facts.session_id;
  std::optional<std::uint64_t> ttl_ms;
  if (message.facts.ttl_ms) ttl_ms = *message.facts.ttl_ms;
  if (edits) {
    if (const auto* edit = edits->find(rules::SystemField::session_id)) {
      const auto text = edit->value.as_text();
      session = text ? std::optional<std::string>{*text} : std::nullopt;
    }
    if (const auto* edit = edits->find(rules::SystemField::time_to_live)) ttl_ms = edit->value.as_unsigned();
  }
  auto ttl = std::min(settings.default_time_to_live, target.default_time_to_live);
  if (ttl_ms) ttl = std::min(ttl, std::chrono::milliseconds{*ttl_ms});
  copy.expires = ttl >= unlimited ? never : now + ttl;

  const bool no_session = !failure && target.requires_session && !session;
  if (failure || no_session) copy.sub_queue = SubQueue::dead_letter;
  if (target.requires_session && !failure) copy.session_id = std::move(session);
  if (!failure && !no_session && !(edits && !edits->empty())) return;
  MessageChanges with = item.changes ? *item.changes : MessageChanges{};
  if (edits && !edits->empty()) with.edits = encode_edits(*edits);
  if (failure) {
    with.dead_letter_reason = rules::dead_letter_reason(*failure);
    with.dead_letter_description =
        truncated(rules::dead_letter_description(*failure), dead_letter_text_chars_max);
  } else if (no_session) {
    with.dead_letter_reason = no_session_reason;
    with.dead_letter_description = no_session_description;
  }
  copy.changes = std::make_shared<const MessageChanges>(std::move(with));
}

AdoptedCopy Topic::Parts::copy_of(const PublishedRecord& record, std::size_t index,
                                  const PublishedRecord::Copy& copy, const StoredMessage& stored) const {
  const auto& item = record.items[index];
  AdoptedCopy adopted;
  adopted.number = copy.number;
  adopted.stored = stored;
  adopted.enqueued = record.enqueued;
  adopted.expires = copy.expires;
  adopted.origin = item.origin != 0 ? item.origin : record.first + static_cast<SequenceNumber>(index);
  adopted.properties_bytes = item.properties_bytes;
  adopted.sub_queue = copy.sub_queue;
  adopted.hops = item.hops;
  adopted.session_id = copy.session_id;
  adopted.changes = copy.changes ? copy.changes : item.changes;
  return adopted;
}

Topic::Parts::Scheduled Topic::Parts::scheduled_of(const PublishedRecord& record, std::size_t index,
                                                   const StoredMessage& stored) {
  const auto& item = record.items[index];
  Scheduled message;
  message.due = *item.scheduled;
  message.enqueued = record.enqueued;
  message.stored = stored;
  message.properties_bytes = item.properties_bytes;
  message.hops = item.hops;
  message.changes = item.changes;
  message.origin = item.origin;
  message.routing_key = item.routing_key;
  message.steps = item.steps;
  return message;
}

void Topic::Parts::write(PublishedRecord& record, std::span<const Payload* const> payloads) {
  for (auto& item : record.items)
    for (auto& copy : item.copies) copy.number = subscriptions.at(copy.subscription).queue->take_number();
  writer.clear();
  encode_topic_record(writer, record);
  record.head_bytes = static_cast<std::uint32_t>(writer.size());
  appended = effects->sink.append(writer.bytes(), payloads);
  next_sequence = std::max(next_sequence, record.next);

  std::uint32_t offset = record.head_bytes;
  for (std::size_t i = 0; i < record.items.size(); ++i) {
    const auto& item = record.items[i];
    const StoredMessage stored{appended, offset, item.size};
    offset += item.size;
    if (item.message_id) history.add(*item.message_id, now, settings.duplicate_window);
    if (item.scheduled) {
      const SequenceNumber number = record.first + static_cast<SequenceNumber>(i);
      scheduled.emplace(number, scheduled_of(record, i, stored));
      scheduled_bytes += stored.size;
      fresh.emplace_back(appended, number);
    }
    if (!item.copies.empty()) shared->added(stored, static_cast<std::uint32_t>(item.copies.size()));
    for (const auto& copy : item.copies) {
      subscriptions.at(copy.subscription).queue->adopt(copy_of(record, i, copy, stored));
      touched.push_back(copy.subscription);
    }
  }
}

void Topic::distribute(Instant now, SequenceNumber sequence, Result<IncomingMessage> message,
                       Effects& effects) {
  Parts& parts = *parts_;
  const auto found = parts.scheduled.find(sequence);
  // Cancelled meanwhile, or asked for by a topic that was made anew since.
  if (parts.failed || found == parts.scheduled.end() ||
      found->second.state != Parts::Scheduled::State::distributing)
    return;
  parts.now = now;
  parts.effects = &effects;
  Parts::Scheduled& was = found->second;
  PublishedRecord record;
  record.first = parts.next_sequence;
  record.next = record.first + 1;
  record.enqueued = now;
  auto& item = record.items.emplace_back();
  item.activates = sequence;
  item.properties_bytes = was.properties_bytes;
  item.hops = was.hops;
  item.changes = was.changes;
  item.origin = was.origin;
  bool readable = message.has_value();
  if (readable) readable = parts.plan_copies(*message, record.first, was.routing_key, item).has_value();
  if (readable && item.copies.empty() && parts.leads_on(was.steps) &&
      parts.leave(sequence, was, message->facts)) {
    parts.effects = nullptr;
    return;
  }
  if (readable) {
    std::vector<const Payload*> payloads;
    if (!item.copies.empty()) {
      item.size = static_cast<std::uint32_t>(message->bytes.size());
      payloads.push_back(&message->bytes);
    }
    parts.write(record, payloads);
  } else {
    parts.append(CancelledRecord{{sequence}});
  }
  effects.sink.release(parts.unschedule(found));
  parts.effects = nullptr;
}

}  // namespace omnibus::broker
