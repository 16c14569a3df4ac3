#include "store/partition_table.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace omnibus::store {

std::uint64_t messages_in(const broker::Queue& queue) {
  const broker::QueueCounts counts = queue.counts();
  return counts.active + counts.deferred + counts.scheduled + counts.dead_letter +
         counts.transfer_dead_letter + counts.transfer;
}

Partition* PartitionTable::find(PartitionId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : slots_[found->second].get();
}

Partition& PartitionTable::add(PartitionInfo info) {
  std::uint32_t slot;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  check(by_id_.emplace(info.id, slot).second, "a partition's id is its own");
  slots_[slot] = std::make_unique<Partition>();
  slots_[slot]->info = std::move(info);
  slots_[slot]->slot = slot;
  return *slots_[slot];
}

void PartitionTable::start_deleting(Partition& partition) {
  by_id_.erase(partition.info.id);
  partition.deleting = true;
  unschedule(partition);
}

void PartitionTable::remove(Partition& partition) {
  unschedule(partition);
  if (!partition.deleting) by_id_.erase(partition.info.id);
  const std::uint32_t slot = partition.slot;
  slots_[slot].reset();
  free_.push_back(slot);
}

std::vector<Partition*> PartitionTable::by_ascending_id() const {
  std::vector<Partition*> all;
  all.reserve(by_id_.size());
  for (const auto& [id, slot] : by_id_) all.push_back(slots_[slot].get());
  std::sort(all.begin(), all.end(),
            [](const Partition* a, const Partition* b) { return a->info.id < b->info.id; });
  return all;
}

void PartitionTable::reschedule(Partition& partition) {
  Instant due = broker::never;
  if (!partition.deleting && partition.queue) due = partition.queue->next_deadline();
  if (!partition.deleting && partition.topic) due = partition.topic->next_deadline();
  const std::int64_t ms = due.time_since_epoch().count();
  if (due == broker::never) return unschedule(partition);
  if (partition.has_deadline) {
    if (partition.due == ms) return;
    partition.due = ms;
    deadlines_.moved_in_time(partition.slot);
    return;
  }
  partition.due = ms;
  partition.has_deadline = true;
  deadlines_.add(partition.slot);
}

void PartitionTable::unschedule(Partition& partition) {
  if (!partition.has_deadline) return;
  deadlines_.remove(partition.slot);
  partition.has_deadline = false;
}

Instant PartitionTable::first_deadline() const {
  if (deadlines_.empty()) return broker::never;
  return Instant{std::chrono::milliseconds{deadlines_.first_due()}};
}

}  // namespace omnibus::store
