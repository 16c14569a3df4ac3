// What the address of a link names: one resolution for senders, receivers and $management
// [service-bus contract 3.1, exchanges 2.2].
//
// Text that names an entity as a whole is that entity. Sub-nodes are then taken from the right, ASCII case
// ignored, so that names may hold slashes. What is left may be an exchange and a routing key.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "broker/ids.hpp"
#include "links/entity_port.hpp"

namespace omnibus::links {

// Room for an exchange and a routing key of 1024 bytes, every byte of them escaped.
inline constexpr std::size_t address_bytes_max = 8 * 1024;

struct Address {
  enum class Node {
    entity,      // a queue, topic or subscription itself
    management,  // <path>/$management; of the namespace when path is empty
    cbs,         // $cbs
  };
  Node node = Node::entity;
  // What rights are asked for: the entity's path, percent-decoded, sub-queue suffix included
  // (`orders/$DeadLetterQueue`), without a routing key.
  std::string path{};
  // The same taken apart: the entity, and which of its queues.
  std::string entity{};
  broker::SubQueue sub_queue = broker::SubQueue::active;
  // Null: nothing of that name has such a node.
  std::shared_ptr<const EntityFacts> facts{};
  // Of an exchange, for every message of the link; nothing: each message's subject.
  std::optional<std::string> routing_key{};
};

using FindEntity = std::function<std::shared_ptr<const EntityFacts>(std::string_view)>;

// Whether an entity has such a part: topics hold no messages themselves.
[[nodiscard]] inline bool has_sub_queue(const EntityFacts& facts, broker::SubQueue sub_queue) {
  return sub_queue == broker::SubQueue::active || facts.kind != EntityKind::topic;
}

// Fails with `invalid_field`: another scheme than amqp and amqps, a broken escape, empty, too long, not
// UTF-8, a malformed form of exchanges, or a routing key that is too long.
[[nodiscard]] Result<Address> resolve_address(std::string_view text, const FindEntity& find);

}  // namespace omnibus::links
