// What a store says about a partition of its own: the catalogue's view, no state of the machine.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "broker/queue_settings.hpp"
#include "broker/topic_settings.hpp"

namespace omnibus::store {

// Unique in its store for all time. 0 is the store itself.
enum class PartitionId : std::uint32_t { none = 0 };

enum class PartitionKind : std::uint8_t { queue, topic, subscription };

// How far the partition's entity has come on its way in or out. The partitions of one entity may be in
// several stores, so a crash can leave them in different states: what that means is decided by whoever knows
// all of them (ADR 23).
enum class PartitionState : std::uint8_t {
  there,
  making,   // the entity has never been served
  leaving,  // the entity will not be served again
};

struct PartitionInfo {
  PartitionId id = PartitionId::none;
  PartitionKind kind = PartitionKind::queue;
  std::string name;  // of the entity; partitions of one entity share it; `orders/Subscriptions/audit`
  Instant created{};
  broker::QueueSettings settings;         // of a queue or subscription
  broker::TopicSettings topic_settings;   // of a topic
  PartitionId topic = PartitionId::none;  // of a subscription: in the same store
  // What the administrator's document says beside the settings, as text; nothing here looks into it.
  std::string document;
  // What an administrator keeps beside both, as text: notes, access rules, when it was changed.
  std::string notes{};
  // The number of its namespace, which has names of its own; 0 is the default one.
  std::uint32_t name_space = 0;
  PartitionState state = PartitionState::there;
  // Of the entity's settings, notes and document: of two partitions the one with the higher number was
  // written later.
  std::uint64_t revision = 0;
  friend bool operator==(const PartitionInfo&, const PartitionInfo&) = default;
};

// A request or receiver belongs to the connection with this number; 0 is the store itself.
template <class Id>
[[nodiscard]] constexpr std::uint32_t connection_of(Id id) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(id) >> 32);
}

}  // namespace omnibus::store
