// Writes checkpoints: all partitions one after the other, a bounded part per turn.
//
// A checkpoint covers what was appended when it began. Each partition is written as it is when its turn
// comes, which may be later: records in between are replayed on top of it, and it counts only once all of
// them are durable (the journal sees to that). Lives on one core.
#pragma once

#include <cstdint>
#include <vector>

#include "journal/journal.hpp"
#include "store/checkpoint_stream.hpp"
#include "store/partition_table.hpp"
#include "store/transactions.hpp"

namespace omnibus::store {

class Checkpointer {
 public:
  Checkpointer(PartitionTable& partitions, Transactions& transactions)
      : partitions_(partitions), transactions_(transactions) {}

  // None is under way.
  void begin(journal::Journal& journal, const CheckpointHead& head);
  // Writes about `items_max` messages, sessions or partitions, as far as the journal is ready for more.
  void step(journal::Journal& journal, std::uint32_t items_max);
  // The journal said how it ended, or failed itself.
  void ended() { state_ = State::idle; }

  [[nodiscard]] bool under_way() const { return state_ != State::idle; }
  // step() has something to do.
  [[nodiscard]] bool writing() const { return state_ == State::writing; }

 private:
  enum class State : std::uint8_t { idle, writing, ending };
  void write_partition(journal::Journal& journal, Partition& partition);
  // One of them. False: there are no more.
  [[nodiscard]] bool write_transaction(journal::Journal& journal);

  PartitionTable& partitions_;
  Transactions& transactions_;
  std::optional<TransactionId> coordinated_;  // written last
  std::optional<TransactionId> prepared_;
  State state_ = State::idle;
  journal::Position covers_;
  std::uint32_t slot_ = 0;
  PartitionId begun_ = PartitionId::none;  // the partition whose slices are being written
  std::vector<std::uint8_t> buffer_;
};

}  // namespace omnibus::store
