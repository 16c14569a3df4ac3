// What a queue writes to the journal, and how it is read back. Layout: docs/formats/queue-records.md.
//
// A record tells a decision by its result, never by a difference: "its count is 3", not "one more". So a
// record that is replayed on a state that already knows it, or a later one, changes nothing in the end; that
// is what lets a checkpoint be taken while the queue works.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "broker/ids.hpp"
#include "broker/message_facts.hpp"
#include "broker/message_status.hpp"
#include "broker/record_bytes.hpp"

namespace omnibus::broker {

enum class RecordKind : std::uint8_t {
  stored = 1,
  removed = 2,
  locked = 3,
  renewed = 4,
  returned = 5,
  deferred = 6,
  dead_lettered = 7,
  activated = 8,
  session_state = 9,
  moved = 10,
};

// Messages taken in one transfer; their bytes follow the head in this order, their numbers count up from
// `first`.
struct StoredRecord {
  struct Item {
    Instant due = never;       // activation when scheduled, otherwise expiry
    std::uint32_t ttl_ms = 0;  // header.ttl of a scheduled message; 0: none
    std::uint32_t size = 0;
    std::uint32_t properties_bytes = 0;
    bool scheduled = false;
    SubQueue sub_queue = SubQueue::active;
    std::uint8_t hops = 0;
    std::optional<std::string> session_id{};
    std::optional<MessageIdHash> message_id{};
    SharedChanges changes{};
  };
  SequenceNumber first = 0;
  SequenceNumber next = 0;  // the number given next; beyond first + items when some were given for nothing
  Instant enqueued{};
  std::vector<Item> items{};
  std::uint32_t head_bytes = 0;  // where the first message begins; set by decoding
};
struct RemovedRecord {
  std::vector<SequenceNumber> sequences{};
};
struct LockedRecord {
  struct Item {
    SequenceNumber sequence = 0;
    LockToken token{};
    Instant until{};
  };
  std::vector<Item> items{};
};
struct RenewedRecord {
  std::vector<std::pair<LockToken, Instant>> items{};
};
// Back in its place: available, or deferred when it was.
struct ReturnedRecord {
  SequenceNumber sequence = 0;
  std::uint16_t delivery_count = 0;
  SharedChanges changes{};  // null: none at all
};
struct DeferredRecord {
  SequenceNumber sequence = 0;
  SharedChanges changes{};
};
struct DeadLetteredRecord {
  SequenceNumber sequence = 0;
  std::uint16_t delivery_count = 0;
  bool stays = false;  // not forwarded on
  SharedChanges changes{};
};
struct ActivatedRecord {
  SequenceNumber sequence = 0;
  SequenceNumber activated = 0;
  Instant enqueued{};
  Instant expires = never;
};
struct SessionStateRecord {
  std::string id{};
  Instant set{};
  std::optional<std::string> state{};
};
// Messages whose bytes were copied here from an older record; the bytes follow the head in this order.
// Nothing else about the messages changed, and those that are gone stay gone.
struct MovedRecord {
  struct Item {
    SequenceNumber stored = 0;  // the number it was stored under
    std::uint32_t size = 0;
  };
  std::vector<Item> items{};
  std::uint32_t head_bytes = 0;  // set by decoding
};

using Record =
    std::variant<StoredRecord, RemovedRecord, LockedRecord, RenewedRecord, ReturnedRecord, DeferredRecord,
                 DeadLetteredRecord, ActivatedRecord, SessionStateRecord, MovedRecord>;

// Appends the head to `out`.
void encode_record(RecordWriter& out, const Record& record);
void encode_record(RecordWriter& out, const StoredRecord& record);
void encode_record(RecordWriter& out, const RemovedRecord& record);
void encode_record(RecordWriter& out, const LockedRecord& record);
// Fails with `decode_error`. Bytes after the head are allowed: they are the messages.
[[nodiscard]] Result<Record> decode_record(Bytes record);

}  // namespace omnibus::broker
