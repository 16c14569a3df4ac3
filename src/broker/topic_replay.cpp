#include "broker/topic_parts.hpp"

namespace omnibus::broker {

Result<void> Topic::replay(Bytes bytes, Location at) {
  auto record = decode_topic_record(bytes);
  if (!record) return fail(record.error());
  Parts& parts = *parts_;
  parts.judge_rules(false);
  parts.appended = parts.durable = std::max(parts.durable, at);
  return std::visit([&](const auto& one) { return parts.repeat(one, at); }, *record);
}

void Topic::replay_settings(TopicSettings settings) { parts_->settings = std::move(settings); }

Result<void> Topic::Parts::repeat(const PublishedRecord& record, Location at) {
  std::uint32_t offset = record.head_bytes;
  for (std::size_t i = 0; i < record.items.size(); ++i) {
    const auto& item = record.items[i];
    const StoredMessage stored{at, offset, item.size};
    offset += item.size;
    if (item.message_id && settings.requires_duplicate_detection)
      history.add(*item.message_id, record.enqueued, settings.duplicate_window);
    if (item.activates != 0)
      if (const auto was = scheduled.find(item.activates); was != scheduled.end()) unschedule(was);
    if (item.scheduled) {
      const SequenceNumber number = record.first + static_cast<SequenceNumber>(i);
      // A checkpoint taken later than this record knows it already, perhaps at a later place.
      if (scheduled.emplace(number, scheduled_of(record, i, stored)).second) scheduled_bytes += stored.size;
    }
    for (const auto& copy : item.copies) {
      const auto found = subscriptions.find(copy.subscription);
      // One that is not there was deleted afterwards.
      if (found == subscriptions.end() || !found->second.queue) continue;
      found->second.queue->replay_copy(copy_of(record, i, copy, stored));
    }
  }
  next_sequence = std::max(next_sequence, record.next);
  return {};
}

Result<void> Topic::Parts::repeat(const CancelledRecord& record, Location) {
  for (const SequenceNumber sequence : record.sequences)
    if (const auto found = scheduled.find(sequence); found != scheduled.end()) unschedule(found);
  return {};
}

Result<void> Topic::Parts::repeat(const TopicMovedRecord& record, Location at) {
  std::uint32_t offset = record.head_bytes;
  const auto wrong_size = [&](SequenceNumber number) {
    return fail(Errc::decode_error, "topic '{}': message {} moved with another size", settings.name, number);
  };
  for (const auto& item : record.items) {
    const StoredMessage to{at, offset, item.size};
    offset += item.size;
    // A checkpoint that is younger knows a later place.
    if (const auto found = scheduled.find(item.scheduled);
        found != scheduled.end() && found->second.stored.record < at) {
      if (found->second.stored.size != item.size) return wrong_size(item.scheduled);
      found->second.stored = to;
    }
    for (const auto& copy : item.copies) {
      const auto found = subscriptions.find(copy.subscription);
      if (found == subscriptions.end() || !found->second.queue) continue;
      const auto present = found->second.queue->find_copy(copy.number);
      if (!present || present->record >= at) continue;
      if (present->size != item.size) return wrong_size(copy.number);
      found->second.queue->move_copy(copy.number, to);
    }
  }
  return {};
}

Result<void> Topic::Parts::repeat(const RulesAddedRecord& record, Location) {
  if (exchange) return fail(Errc::decode_error, "exchange '{}' has a record of rules", settings.name);
  for (const auto& rule : record.rules) {
    // Limits were kept when it was accepted; a checkpoint that is younger may have more than there were.
    if (auto error = take_rule(record.subscription, rule, true))
      return fail(Errc::decode_error, "topic '{}': rule '{}': {}", settings.name, rule.name, error->detail);
    subscriptions[record.subscription];
  }
  return {};
}

Result<void> Topic::Parts::repeat(const RuleRemovedRecord& record, Location) {
  std::ignore = rule_set.remove(record.subscription, record.name);  // it may be gone already
  return {};
}

Result<void> Topic::Parts::repeat(const BindingSetRecord& record, Location) {
  if (!exchange) return fail(Errc::decode_error, "topic '{}' has a record of a binding", settings.name);
  if (auto set = exchange->set(record.subscription, record.binding); !set)
    return fail(Errc::decode_error, "exchange '{}': {}", settings.name, set.error().detail);
  subscriptions[record.subscription].binding = record.binding;
  return {};
}

void Topic::recovered(Instant now) {
  Parts& parts = *parts_;
  parts.now = now;
  parts.judge_rules(true);
  parts.accessed = std::max(parts.accessed, now);
  // Rules of subscriptions that were deleted before their turn in the checkpoint.
  for (auto one = parts.subscriptions.begin(); one != parts.subscriptions.end();) {
    const auto [id, subscription] = *one++;
    if (!subscription.queue) parts.forget(id);
  }
  parts.shared->count_anew();
  for (const auto& [id, subscription] : parts.subscriptions) {
    subscription.queue->visit_messages(
        [&](const StoredMessage& message) { std::ignore = parts.shared->count(message); });
    parts.shared->own_bytes(static_cast<std::int64_t>(subscription.queue->own_bytes()));
  }
  parts.shared->counted();
  for (auto& [number, message] : parts.scheduled)
    if (message.state == Parts::Scheduled::State::pending) parts.wait_until(message.due, number, message);
}

bool Topic::relocate(Bytes bytes, Location from, RecordSink& sink) {
  Parts& parts = *parts_;
  const auto record = decode_topic_record(bytes);
  if (!record) return false;
  TopicMovedRecord moved;
  std::vector<StoredMessage> old;
  std::vector<Payload> payloads;
  std::uint32_t offset = 0;
  const auto look = [&](SequenceNumber number, std::uint32_t size, const auto& copies) {
    const StoredMessage here{from, offset, size};
    offset += size;
    TopicMovedRecord::Item item{size, 0, {}};
    if (const auto found = parts.scheduled.find(number);
        found != parts.scheduled.end() && found->second.stored == here)
      item.scheduled = number;
    for (const auto& copy : copies) {
      const auto found = parts.subscriptions.find(copy.subscription);
      if (found == parts.subscriptions.end() || !found->second.queue) continue;
      if (found->second.queue->find_copy(copy.number) == here)
        item.copies.push_back({copy.subscription, copy.number});
    }
    if (item.scheduled == 0 && item.copies.empty()) return;
    if (bytes.size() < here.offset || bytes.size() - here.offset < size) return;
    moved.items.push_back(std::move(item));
    old.push_back(here);
    payloads.push_back(Payload::copy_of(bytes.subspan(here.offset, size)));
  };
  if (const auto* published = std::get_if<PublishedRecord>(&*record)) {
    offset = published->head_bytes;
    SequenceNumber number = published->first;
    for (const auto& item : published->items) look(number++, item.size, item.copies);
  } else if (const auto* earlier = std::get_if<TopicMovedRecord>(&*record)) {
    offset = earlier->head_bytes;
    for (const auto& item : earlier->items) look(item.scheduled, item.size, item.copies);
  }
  if (moved.items.empty()) return false;
  std::vector<const Payload*> pointers;
  for (const Payload& payload : payloads) pointers.push_back(&payload);
  parts.writer.clear();
  encode_topic_record(parts.writer, TopicRecord{moved});
  const Location to = sink.append(parts.writer.bytes(), pointers);
  auto next = static_cast<std::uint32_t>(parts.writer.size());
  for (std::size_t i = 0; i < moved.items.size(); ++i) {
    const auto& item = moved.items[i];
    const StoredMessage there{to, next, item.size};
    next += item.size;
    if (item.scheduled != 0) {
      parts.scheduled.at(item.scheduled).stored = there;
      sink.release(old[i]);
      continue;
    }
    // A copy that is gone but still on its way out may need the old place longer than these.
    bool last = false;
    for (const auto& copy : item.copies) {
      parts.subscriptions.at(copy.subscription).queue->move_copy(copy.number, there);
      last = parts.shared->let_go(old[i]);
    }
    if (last) sink.release(old[i]);
    parts.shared->added(there, static_cast<std::uint32_t>(item.copies.size()));
  }
  return true;
}

}  // namespace omnibus::broker
