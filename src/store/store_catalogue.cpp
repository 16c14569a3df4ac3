#include <algorithm>

#include "base/check.hpp"
#include "store/store_parts.hpp"

namespace omnibus::store {

void Store::create_partition(Instant now, PartitionId id, std::string name,
                             const broker::QueueSettings& settings, Created done, std::string notes,
                             std::uint32_t name_space, PartitionState state) {
  parts_->now = now;
  PartitionInfo info;
  info.id = id;
  info.name = std::move(name);
  info.name_space = name_space;
  info.settings = settings;
  info.notes = std::move(notes);
  info.state = state;
  parts_->create(std::move(info), std::move(done));
  parts_->settle(false);
}

void Store::update_partition(Instant now, PartitionId id, const broker::QueueSettings& settings, Changed done,
                             Beside beside) {
  parts_->now = now;
  parts_->update(id, settings, std::move(beside), std::move(done));
  parts_->settle(false);
}

void Store::delete_partition(Instant now, PartitionId id, Changed done) {
  parts_->now = now;
  auto partition = parts_->find_to_change(id);
  if (!partition) return done(omnibus::fail(std::move(partition.error())));
  parts_->remove(**partition, std::move(done));
  parts_->settle(false);
}

void Store::expect(std::vector<PartitionInfo> partitions) {
  check(parts_->state == StoreState::closed, "what is expected is told before the store opens");
  for (PartitionInfo& info : partitions) parts_->partitions.add(std::move(info));
}

std::vector<PartitionInfo> Store::partitions() const {
  std::vector<PartitionInfo> all;
  for (const Partition* partition : parts_->partitions.by_ascending_id()) all.push_back(partition->info);
  return all;
}

std::optional<PartitionInfo> Store::find(PartitionId id) const {
  const Partition* partition = parts_->partitions.find(id);
  return partition ? std::optional{partition->info} : std::nullopt;
}

std::optional<broker::QueueCounts> Store::counts(PartitionId id) const {
  const Partition* partition = parts_->partitions.find(id);
  if (!partition || !partition->queue) return std::nullopt;
  return partition->queue->counts();
}

std::size_t Store::visit_numbers(std::size_t from, std::size_t slots,
                                 const std::function<void(const PartitionNumbers&)>& visit) const {
  const auto& table = parts_->partitions;
  const std::size_t end = std::min(table.slots(), from + slots);
  for (; from < end; ++from) {
    const Partition* partition = table.at(from);
    if (partition == nullptr || partition->deleting) continue;
    PartitionNumbers numbers{partition->info.id, partition->info.kind};
    // While the store is not open there are no machines, and nobody knows.
    if (partition->queue) {
      numbers.queue = partition->queue->counts();
      numbers.totals = partition->queue->totals();
    } else if (partition->topic) {
      numbers.topic = partition->topic->counts();
      numbers.totals = partition->topic->totals();
    }
    visit(numbers);
  }
  return from < table.slots() ? from : 0;
}

std::optional<broker::TopicCounts> Store::topic_counts(PartitionId id) const {
  const Partition* partition = parts_->partitions.find(id);
  if (!partition || !partition->topic) return std::nullopt;
  return partition->topic->counts();
}

std::string Store::describe(PartitionId id) const {
  const Partition* partition = parts_->partitions.find(id);
  if (partition && partition->topic) return partition->topic->describe();
  return partition && partition->queue ? partition->queue->describe() : std::string{};
}

std::optional<Error> Store::Parts::change_refused(std::string_view entity) const {
  if (!is_open()) return busy(entity);
  return std::nullopt;
}

void Store::Parts::when_durable(Changed done) {
  if (done) completions.push_back({journal->appended(), std::move(done)});
}

Result<Partition*> Store::Parts::find_to_change(PartitionId id) {
  Partition* partition = partitions.find(id);
  const std::string name =
      partition ? partition->info.name : fmt::format("partition {}", static_cast<std::uint32_t>(id));
  if (auto error = change_refused(name)) return omnibus::fail(std::move(*error));
  if (!partition) return omnibus::fail(not_found(name));
  return partition;
}

std::optional<Error> Store::Parts::create_refused(std::string_view name) const {
  if (auto error = change_refused(name)) return error;
  if (full)
    return Error{Errc::server_busy, fmt::format("the disk is full: '{}' cannot be created for now", name)};
  return std::nullopt;
}

void Store::Parts::when_created(PartitionId id, Created done) {
  when_durable([done = std::move(done), id](Result<void> result) mutable {
    if (result)
      done(id);
    else
      done(omnibus::fail(std::move(result.error())));
  });
}

void Store::Parts::make_machine(Partition& partition) {
  const PartitionInfo& info = partition.info;
  if (info.kind == PartitionKind::topic)
    partition.topic =
        std::make_unique<broker::Topic>(info.topic_settings, random, info.created, settings.rule_limits);
  else
    partition.queue = std::make_unique<broker::Queue>(info.settings, random, info.created);
  if (partition.topic) partition.topic->set_duplicate_ids_max(settings.duplicate_ids_max);
  if (partition.queue) partition.queue->set_duplicate_ids_max(settings.duplicate_ids_max);
}

Partition* Store::Parts::add(PartitionInfo info) {
  const std::vector<std::uint8_t> bytes = encode_partition(info);
  journal::Record record;
  record.kind = static_cast<std::uint16_t>(RecordKind::created);
  record.partition = static_cast<std::uint32_t>(info.id);
  record.head = bytes;
  const broker::Location at = append(record);
  if (broken) return nullptr;
  next_partition = record.partition + 1;
  Partition& partition = partitions.add(std::move(info));
  partition.known = true;
  partition.appended = at;
  make_machine(partition);
  partitions.reschedule(partition);
  return &partition;
}

void Store::Parts::create(PartitionInfo info, Created done) {
  if (auto error = create_refused(info.name)) return done(omnibus::fail(std::move(*error)));
  if (auto error = broker::check_settings(info.settings)) return done(omnibus::fail(std::move(*error)));
  if (info.id == PartitionId::none) info.id = static_cast<PartitionId>(next_partition);
  const PartitionId id = info.id;
  if (static_cast<std::uint32_t>(id) < next_partition)
    return done(omnibus::fail(Errc::entity_already_exists, "partition {} is there or was there before",
                              static_cast<std::uint32_t>(id)));
  info.created = now;
  if (!add(std::move(info))) return done(omnibus::fail(*broken));
  when_created(id, std::move(done));
}

void Store::Parts::take(Beside&& beside, PartitionInfo& info) {
  if (beside.notes) info.notes = *std::move(beside.notes);
  if (beside.document) info.document = *std::move(beside.document);
  info.state = beside.state.value_or(info.state);
  info.revision = beside.revision.value_or(info.revision);
}

bool Store::Parts::rewrite(Partition& partition, PartitionInfo info) {
  const std::vector<std::uint8_t> bytes = encode_partition(info);
  journal::Record record;
  record.kind = static_cast<std::uint16_t>(RecordKind::updated);
  record.partition = static_cast<std::uint32_t>(info.id);
  record.head = bytes;
  std::ignore = append(record);
  if (broken) return false;
  partition.info = std::move(info);
  return true;
}

void Store::Parts::update(PartitionId id, const broker::QueueSettings& with, Beside beside, Changed done) {
  auto found = find_to_change(id);
  if (!found) return done(omnibus::fail(std::move(found.error())));
  Partition& partition = **found;
  if (partition.topic)
    return done(
        omnibus::fail(Errc::not_allowed, "'{}' is a topic and has no such settings", partition.info.name));
  if (auto error = broker::check_update(partition.info.settings, with))
    return done(omnibus::fail(std::move(*error)));
  const auto number = static_cast<broker::SubscriptionId>(id);
  Partition* topic = topic_of(partition);
  if (beside.binding) {
    if (!topic) return done(omnibus::fail(Errc::not_allowed, "'{}' is no subscription", partition.info.name));
    if (auto error = topic->topic->binding_refused(number, *beside.binding))
      return done(omnibus::fail(std::move(*error)));
  }
  PartitionInfo info = partition.info;
  info.settings = with;
  take(std::move(beside), info);
  // The catalogue's record and the topic's go in one batch: a document never comes back with other routing.
  joining = beside.binding.has_value();
  joined_any = false;
  const bool rewritten = rewrite(partition, std::move(info));
  if (rewritten && beside.binding)
    ask(*topic, [&] {
      topic->topic->apply_for(
          now, number, broker::SetBinding{broker::RequestId::none, *std::move(beside.binding)}, effects);
    });
  joining = false;
  if (broken) return done(omnibus::fail(*broken));
  run(partition, broker::UpdateSettings{broker::RequestId::none, with});
  when_durable(std::move(done));
}

// A topic and its subscriptions go in one batch: a crash leaves all or none.
void Store::Parts::remove(Partition& partition, Changed done) {
  const std::vector<Partition*> going = with_subscriptions(partition);
  joining = true;
  joined_any = false;
  for (Partition* one : going) {
    journal::Record record;
    record.kind = static_cast<std::uint16_t>(RecordKind::deleted);
    record.partition = static_cast<std::uint32_t>(one->info.id);
    // Sends that wait are answered when they are durable; what it holds goes after that.
    if (const broker::Location at = append(record); !broken) one->appended = at;
  }
  joining = false;
  if (broken) {
    if (done) done(omnibus::fail(*broken));
    return;
  }
  for (Partition* one : going) bury(*one);
  when_durable(std::move(done));
}

void Store::Parts::bury(Partition& partition) {
  leave_topic(partition);
  partitions.start_deleting(partition);
  std::vector<broker::Effect> answers;
  const std::vector<broker::ReceiverId> ids = partition.receivers.ids();
  partition.receivers.detach_all(not_found(partition.info.name), answers);
  for (const broker::ReceiverId receiver : ids) run(partition, broker::CloseReceiver{receiver});
  for (auto& answer : answers) post(partition.info.id, std::move(answer));
  mark_dirty(partition);
  graves.push_back(partition.slot);
}

void Store::Parts::reclaim(std::uint32_t messages_max) {
  if (graves.empty() || broken) return;
  std::uint64_t left = messages_max;
  while (left > 0 && !graves.empty() && !broken) {
    Partition& partition = partitions[graves.front()];
    if (partition.dirty) break;
    std::uint64_t gone = 0;
    if (partition.topic) {
      gone = partition.topic->drop_scheduled(left, sink);
    } else {
      // Not by what is released: other subscriptions may still need every byte of it.
      const std::uint64_t before = messages_in(*partition.queue);
      for (const auto sub_queue :
           {broker::SubQueue::active, broker::SubQueue::dead_letter, broker::SubQueue::transfer_dead_letter})
        run(partition, broker::Purge{broker::RequestId::none, sub_queue, static_cast<std::uint32_t>(left)});
      gone = before - messages_in(*partition.queue);
      // The rest was on its way elsewhere.
      if (gone == 0) partition.queue->abandon_messages(sink);
    }
    left -= std::min(left, gone + 1);
    if (gone > 0) continue;
    partitions.remove(partition);
    graves.erase(graves.begin());
  }
  let_go();
}

}  // namespace omnibus::store
