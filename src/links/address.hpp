// What the address of a link names [service-bus contract 3.1].
//
// Pure text: whether an entity of that name exists is asked elsewhere. Sub-nodes are taken from the right,
// ASCII case ignored, so that a queue may have slashes in its name.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "broker/ids.hpp"

namespace omnibus::links {

inline constexpr std::size_t address_bytes_max = 1024;

struct Address {
  enum class Node {
    entity,      // a queue, topic or subscription itself
    management,  // <path>/$management; of the namespace when path is empty
    cbs,         // $cbs
  };
  Node node = Node::entity;
  // The entity's path, percent-decoded, sub-queue suffix included: `orders/$DeadLetterQueue`.
  std::string path;
  // The same taken apart: the entity, and which of its queues.
  std::string entity;
  broker::SubQueue sub_queue = broker::SubQueue::active;
};

// Fails with `invalid_field`: another scheme than amqp and amqps, a broken escape, empty, too long, or
// not UTF-8.
[[nodiscard]] Result<Address> parse_address(std::string_view text);

}  // namespace omnibus::links
