// The partitions of a store: found by id, and the one whose time comes first.
//
// A partition keeps its slot for life. One deadline heap over all of them: a partition that waits for nothing
// is in no list, so that idle ones cost memory and nothing else. Lives on one core.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "broker/deadline_heap.hpp"
#include "broker/queue.hpp"
#include "broker/topic.hpp"
#include "store/partition.hpp"
#include "store/receiver_memory.hpp"

namespace omnibus::store {

struct Partition {
  PartitionInfo info;
  // By its kind; none while the store is not open.
  std::unique_ptr<broker::Queue> queue;
  std::unique_ptr<broker::Topic> topic;
  ReceiverMemory receivers;
  broker::Location appended;  // its last record
  std::uint32_t slot = 0;
  std::int64_t due = 0;
  std::uint32_t place = 0;
  bool has_deadline = false;
  bool dirty = false;        // has appended what is not durable
  bool known = false;        // while recovering: the journal has told of it
  bool told_of_ids = false;  // that message-ids were forgotten early
  bool deleting = false;     // not found any more; what it holds is being released
};

// All of them, wherever they are in it.
[[nodiscard]] std::uint64_t messages_in(const broker::Queue& queue);

class PartitionTable {
 public:
  PartitionTable() = default;
  PartitionTable(const PartitionTable&) = delete;
  PartitionTable& operator=(const PartitionTable&) = delete;

  // Null when there is none, or it is being deleted.
  [[nodiscard]] Partition* find(PartitionId id) const;
  // The id must be free.
  Partition& add(PartitionInfo info);
  // From now on it is not found; remove() ends it.
  void start_deleting(Partition& partition);
  void remove(Partition& partition);

  // By slot; an empty one is null.
  [[nodiscard]] std::size_t slots() const { return slots_.size(); }
  [[nodiscard]] Partition* at(std::size_t slot) const { return slots_[slot].get(); }
  [[nodiscard]] Partition& operator[](std::uint32_t slot) { return *slots_[slot]; }
  [[nodiscard]] const Partition& operator[](std::uint32_t slot) const { return *slots_[slot]; }
  // Those that are found.
  [[nodiscard]] std::size_t size() const { return by_id_.size(); }
  [[nodiscard]] std::vector<Partition*> by_ascending_id() const;

  // After anything happened to its machine.
  void reschedule(Partition& partition);
  void unschedule(Partition& partition);
  [[nodiscard]] Instant first_deadline() const;
  [[nodiscard]] Partition& first_due() { return (*this)[deadlines_.first()]; }

 private:
  std::vector<std::unique_ptr<Partition>> slots_;
  std::vector<std::uint32_t> free_;
  std::unordered_map<PartitionId, std::uint32_t> by_id_;
  broker::DeadlineHeap<PartitionTable, &Partition::due, &Partition::place> deadlines_{*this};
};

}  // namespace omnibus::store
