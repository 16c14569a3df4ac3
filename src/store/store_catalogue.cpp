#include "base/check.hpp"
#include "store/store_parts.hpp"

namespace omnibus::store {

void Store::create_partition(Instant now, PartitionId id, std::string name,
                             const broker::QueueSettings& settings, Created done) {
  parts_->now = now;
  parts_->create(id, std::move(name), settings, std::move(done));
  parts_->settle(false);
}

void Store::update_partition(Instant now, PartitionId id, const broker::QueueSettings& settings,
                             Changed done) {
  parts_->now = now;
  parts_->update(id, settings, std::move(done));
  parts_->settle(false);
}

void Store::delete_partition(Instant now, PartitionId id, Changed done) {
  parts_->now = now;
  Partition* partition = parts_->partitions.find(id);
  const std::string name =
      partition ? partition->info.name : fmt::format("partition {}", static_cast<std::uint32_t>(id));
  if (auto error = parts_->change_refused(name)) return done(omnibus::fail(std::move(*error)));
  if (!partition) return done(omnibus::fail(Parts::not_found(name)));
  parts_->remove(*partition, std::move(done));
  parts_->settle(false);
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

std::string Store::describe(PartitionId id) const {
  const Partition* partition = parts_->partitions.find(id);
  return partition && partition->queue ? partition->queue->describe() : std::string{};
}

std::optional<Error> Store::Parts::change_refused(std::string_view entity) const {
  if (!is_open()) return busy(entity);
  return std::nullopt;
}

void Store::Parts::when_durable(Changed done) {
  if (done) completions.push_back({journal->appended(), std::move(done)});
}

void Store::Parts::create(PartitionId id, std::string name, const broker::QueueSettings& with, Created done) {
  if (auto error = change_refused(name)) return done(omnibus::fail(std::move(*error)));
  if (full)
    return done(omnibus::fail(Errc::server_busy, "the disk is full: '{}' cannot be created for now", name));
  if (auto error = broker::check_settings(with)) return done(omnibus::fail(std::move(*error)));
  if (id == PartitionId::none) id = static_cast<PartitionId>(next_partition);
  if (static_cast<std::uint32_t>(id) < next_partition)
    return done(omnibus::fail(Errc::entity_already_exists, "partition {} is there or was there before",
                              static_cast<std::uint32_t>(id)));
  PartitionInfo info{id, PartitionKind::queue, std::move(name), now, with};
  const std::vector<std::uint8_t> bytes = encode_partition(info);
  journal::Record record;
  record.kind = static_cast<std::uint16_t>(RecordKind::created);
  record.partition = static_cast<std::uint32_t>(id);
  record.head = bytes;
  const broker::Location at = append(record);
  if (broken) return done(omnibus::fail(*broken));
  next_partition = static_cast<std::uint32_t>(id) + 1;
  Partition& partition = partitions.add(std::move(info));
  partition.known = true;
  partition.appended = at;
  partition.queue = std::make_unique<broker::Queue>(with, random, now);
  partitions.reschedule(partition);
  when_durable([done = std::move(done), id](Result<void> result) mutable {
    if (result)
      done(id);
    else
      done(omnibus::fail(std::move(result.error())));
  });
}

void Store::Parts::update(PartitionId id, const broker::QueueSettings& with, Changed done) {
  Partition* partition = partitions.find(id);
  const std::string name =
      partition ? partition->info.name : fmt::format("partition {}", static_cast<std::uint32_t>(id));
  if (auto error = change_refused(name)) return done(omnibus::fail(std::move(*error)));
  if (!partition) return done(omnibus::fail(not_found(name)));
  if (auto error = broker::check_update(partition->info.settings, with))
    return done(omnibus::fail(std::move(*error)));
  PartitionInfo info = partition->info;
  info.settings = with;
  const std::vector<std::uint8_t> bytes = encode_partition(info);
  journal::Record record;
  record.kind = static_cast<std::uint16_t>(RecordKind::updated);
  record.partition = static_cast<std::uint32_t>(id);
  record.head = bytes;
  std::ignore = append(record);
  if (broken) return done(omnibus::fail(*broken));
  partition->info = std::move(info);
  run(*partition, broker::UpdateSettings{broker::RequestId::none, with});
  when_durable(std::move(done));
}

void Store::Parts::remove(Partition& partition, Changed done) {
  const PartitionId id = partition.info.id;
  journal::Record record;
  record.kind = static_cast<std::uint16_t>(RecordKind::deleted);
  record.partition = static_cast<std::uint32_t>(id);
  const broker::Location at = append(record);
  if (broken) {
    if (done) done(omnibus::fail(*broken));
    return;
  }
  partitions.start_deleting(partition);
  std::vector<broker::Effect> answers;
  const std::vector<broker::ReceiverId> ids = partition.receivers.ids();
  partition.receivers.detach_all(not_found(partition.info.name), answers);
  for (const broker::ReceiverId receiver : ids) run(partition, broker::CloseReceiver{receiver});
  for (auto& answer : answers) post(id, std::move(answer));
  // Sends that wait are answered when they are durable; what it holds goes after that.
  partition.appended = at;
  mark_dirty(partition);
  graves.push_back(partition.slot);
  when_durable(std::move(done));
}

void Store::Parts::reclaim(std::uint32_t messages_max) {
  if (graves.empty() || broken) return;
  Partition& partition = partitions[graves.front()];
  if (partition.dirty) return;
  const std::size_t before = releases.size();
  for (const auto sub_queue :
       {broker::SubQueue::active, broker::SubQueue::dead_letter, broker::SubQueue::transfer_dead_letter})
    run(partition, broker::Purge{broker::RequestId::none, sub_queue, messages_max});
  if (releases.size() == before) {
    // The rest was on its way elsewhere.
    partition.queue->visit_messages([this](const broker::StoredMessage& message) { sink.release(message); });
    partitions.remove(partition);
    graves.erase(graves.begin());
  }
  let_go();
}

}  // namespace omnibus::store
