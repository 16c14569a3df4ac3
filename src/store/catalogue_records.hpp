// How a partition's name and settings are written, in journal records and in checkpoints.
//
// An AMQP map with symbols for keys: it says itself what it holds, so that later versions can add fields and
// kinds. Unknown keys are passed over, missing ones have the setting's default; an unknown kind, or a value
// that is not what its key says, is `decode_error`. Pure. Layout: docs/formats/store-records.md.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "store/partition.hpp"

namespace omnibus::store {

// The kind of a journal record; the partition is in the journal's own header.
enum class RecordKind : std::uint16_t {
  queue = 1,    // what a queue decided: docs/formats/queue-records.md
  created = 2,  // a partition, encoded as below
  updated = 3,  // the same, with new settings
  deleted = 4,  // empty
  topic = 5,    // what a topic decided: docs/formats/topic-records.md
  // Of transactions with other stores, as transaction_records.hpp writes them. Their partition is 0.
  prepared = 6,
  committed = 7,
  decided = 8,
  forgotten = 9,
};

[[nodiscard]] std::vector<std::uint8_t> encode_partition(const PartitionInfo& info);
[[nodiscard]] Result<PartitionInfo> decode_partition(PartitionId id, Bytes bytes);

}  // namespace omnibus::store
