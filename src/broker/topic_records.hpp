// What a topic writes to the journal, and how it is read back. Layout: docs/formats/topic-records.md.
//
// As with queues a record tells a decision by its result, so that replaying it on a state that already knows
// it changes nothing. A message is written once; its copies are told by subscription and number there.
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
#include "rules/routing.hpp"
#include "rules/rule_set.hpp"

namespace omnibus::broker {

using rules::SubscriptionId;

enum class TopicRecordKind : std::uint8_t {
  published = 1,
  cancelled = 2,
  moved = 3,
  rules_added = 4,
  rule_removed = 5,
  binding_set = 6,
};

// Messages taken in one transfer, or a scheduled one that became due. Their numbers count up from `first`;
// the bytes of those that somebody keeps follow the head in this order.
struct PublishedRecord {
  struct Copy {
    SubscriptionId subscription = 0;
    SequenceNumber number = 0;  // in the subscription
    Instant expires = never;
    SubQueue sub_queue = SubQueue::active;
    std::optional<std::string> session_id{};
    SharedChanges changes{};  // null: as the item's
  };
  struct Item {
    std::uint32_t size = 0;  // 0: nobody keeps it, there are no bytes
    std::uint32_t properties_bytes = 0;
    std::uint8_t hops = 0;
    // Until then the topic keeps it; no copies yet. Not after `enqueued`: nobody matched it, and it waits to
    // go to the alternate exchange.
    std::optional<Instant> scheduled{};
    std::optional<MessageIdHash> message_id{};
    SharedChanges changes{};       // what it came with when it was forwarded
    SequenceNumber origin = 0;     // number at the first entity when it was forwarded, or 0
    SequenceNumber activates = 0;  // the scheduled message it was, or 0
    std::optional<std::string> routing_key{};
    std::uint8_t steps = 0;  // alternate exchanges on its way here
    std::vector<Copy> copies{};
  };
  SequenceNumber first = 0;
  SequenceNumber next = 0;  // the number given next
  Instant enqueued{};
  std::vector<Item> items{};
  std::uint32_t head_bytes = 0;  // set by decoding
};
// Scheduled messages that are no more.
struct CancelledRecord {
  std::vector<SequenceNumber> sequences{};
};
// Messages whose bytes were copied here from an older record; they follow the head in this order.
struct TopicMovedRecord {
  struct Copy {
    SubscriptionId subscription = 0;
    SequenceNumber number = 0;
  };
  struct Item {
    std::uint32_t size = 0;
    SequenceNumber scheduled = 0;  // at the topic; 0: it is copies that point here
    std::vector<Copy> copies{};
  };
  std::vector<Item> items{};
  std::uint32_t head_bytes = 0;  // set by decoding
};
struct RulesAddedRecord {
  SubscriptionId subscription = 0;
  std::vector<rules::Rule> rules{};
};
struct RuleRemovedRecord {
  SubscriptionId subscription = 0;
  std::string name{};
};
struct BindingSetRecord {
  SubscriptionId subscription = 0;
  rules::Binding binding{};
};

using TopicRecord = std::variant<PublishedRecord, CancelledRecord, TopicMovedRecord, RulesAddedRecord,
                                 RuleRemovedRecord, BindingSetRecord>;

// Appends the head to `out`.
void encode_topic_record(RecordWriter& out, const TopicRecord& record);
void encode_topic_record(RecordWriter& out, const PublishedRecord& record);
// Fails with `decode_error`. Bytes after the head are allowed: they are the messages.
[[nodiscard]] Result<TopicRecord> decode_topic_record(Bytes record);

// For records and checkpoints.
void put_rule(RecordWriter& out, const rules::Rule& rule);
[[nodiscard]] rules::Rule get_rule(RecordReader& in);
void put_binding(RecordWriter& out, const rules::Binding& binding);
[[nodiscard]] rules::Binding get_binding(RecordReader& in);

}  // namespace omnibus::broker
