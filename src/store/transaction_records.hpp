// How transactions of several stores are written, in journal records and in checkpoints. Pure.
// Layout: docs/formats/store-records.md.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "broker/transaction_tally.hpp"
#include "store/partition.hpp"
#include "store/store_message.hpp"

namespace omnibus::store {

struct PartitionHold {
  PartitionId partition = PartitionId::none;
  broker::HeldLock lock{};
  friend bool operator==(const PartitionHold&, const PartitionHold&) = default;
};

// A participant can carry out these steps whatever happens.
struct PreparedRecord {
  TransactionId id{};
  std::vector<broker::TransactionStep> steps{};  // of this store
  std::vector<PartitionHold> holds{};
};
// The coordinator's decision, and who has to hear of it.
struct CommittedRecord {
  TransactionId id{};
  std::vector<std::uint16_t> participants{};
};
// A participant has done what was decided.
struct DecidedRecord {
  TransactionId id{};
  bool commit = false;
};
// All participants have.
struct ForgottenRecord {
  TransactionId id{};
};

// The head, and the bytes of all messages that follow it.
[[nodiscard]] std::vector<std::uint8_t> encode_prepared(const PreparedRecord& record, Payload& messages);
[[nodiscard]] std::vector<std::uint8_t> encode_committed(const CommittedRecord& record);
[[nodiscard]] std::vector<std::uint8_t> encode_decided(const DecidedRecord& record);
[[nodiscard]] std::vector<std::uint8_t> encode_forgotten(const ForgottenRecord& record);
// All fail with `decode_error`. `store` of the steps is left 0: they are of the store that reads them.
[[nodiscard]] Result<PreparedRecord> decode_prepared(Bytes bytes);
[[nodiscard]] Result<CommittedRecord> decode_committed(Bytes bytes);
[[nodiscard]] Result<DecidedRecord> decode_decided(Bytes bytes);
[[nodiscard]] Result<ForgottenRecord> decode_forgotten(Bytes bytes);

[[nodiscard]] std::string to_text(const TransactionId& id);
// For people who look into a journal: what a record of this kind says; empty when it is none of these.
[[nodiscard]] std::string describe_record(std::uint16_t kind, Bytes body);

}  // namespace omnibus::store
