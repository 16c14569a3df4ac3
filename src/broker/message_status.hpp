// Where a message's bytes lie, and what the broker says about it when it goes out.
//
// The machine holds no payload: whoever carries effects finds the bytes by `StoredMessage` and joins them
// with the status in delivered_message.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/ids.hpp"

namespace omnibus::broker {

// `size` bytes from `offset` of the record at `record`: one encoded message as it was stored.
struct StoredMessage {
  Location record{};
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  friend bool operator==(const StoredMessage&, const StoredMessage&) = default;
};

// What differs from the stored message beyond header and annotations. Shared and never changed: a
// delivery that is on its way keeps what it was sent with.
struct MessageChanges {
  // Application properties set or (null) deleted since it was stored, as one encoded map; empty: none.
  std::vector<std::uint8_t> application_properties{};
  std::optional<std::string> dead_letter_reason{};
  std::optional<std::string> dead_letter_description{};
  // What the action of a topic's rule made of its copy, as copy_edits.hpp writes it; empty: nothing.
  std::vector<std::uint8_t> edits{};
  // Number at the first entity, for a message that was forwarded or is a topic's copy.
  std::optional<SequenceNumber> enqueue_sequence{};
  // The entity it was dead-lettered in, when ForwardDeadLetteredMessagesTo moved it.
  std::optional<std::string> dead_letter_source{};
  // At an exchange, from the address it was sent to; nothing: its subject.
  std::optional<std::string> routing_key{};
  // Of a message that is kept for another entity: which one.
  std::optional<std::string> destination{};

  [[nodiscard]] bool empty() const {
    return application_properties.empty() && edits.empty() && !dead_letter_reason &&
           !dead_letter_description && !enqueue_sequence && !dead_letter_source && !routing_key &&
           !destination;
  }
  // What it weighs in memory and in the entity's size.
  [[nodiscard]] std::size_t bytes() const;
  friend bool operator==(const MessageChanges&, const MessageChanges&) = default;
};
using SharedChanges = std::shared_ptr<const MessageChanges>;

struct MessageStatus {
  StoredMessage stored{};
  SequenceNumber sequence = 0;
  Instant enqueued{};
  std::optional<Instant> expires{};  // enqueued + effective TTL; nothing: never
  std::uint32_t delivery_count = 0;
  MessageState state = MessageState::active;
  SubQueue sub_queue = SubQueue::active;
  std::optional<std::int16_t> partition{};  // partitioned entities only
  // Of a topic's copy: its number at the topic. For others `changes` may have one.
  std::optional<SequenceNumber> enqueue_sequence{};
  SharedChanges changes{};  // null: none
  // Of a copy from an exchange: its name, shown beside the routing key [EX 2.2].
  std::shared_ptr<const std::string> exchange{};
};

}  // namespace omnibus::broker
