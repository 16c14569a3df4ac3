// What a topic hands to the queue of a subscription: one copy of a message whose bytes the topic has written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "broker/ids.hpp"
#include "broker/message_status.hpp"

namespace omnibus::broker {

struct AdoptedCopy {
  SequenceNumber number = 0;  // in the subscription
  StoredMessage stored{};
  Instant enqueued{};
  Instant expires = never;
  SequenceNumber origin = 0;  // x-opt-enqueue-sequence-number: at the topic, or where it came from
  std::uint32_t properties_bytes = 0;
  SubQueue sub_queue = SubQueue::active;
  std::uint8_t hops = 0;
  std::optional<std::string> session_id{};
  SharedChanges changes{};
};

}  // namespace omnibus::broker
