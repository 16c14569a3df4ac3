// Which partition of an entity takes what has no key [service-bus contract 9.10].
//
// Round robin from a random start, over the partitions whose store serves. One for each sender; lives on its
// core.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/random.hpp"
#include "broker/partition_key.hpp"
#include "links/entity_port.hpp"

namespace omnibus::links {

class PartitionChoice {
 public:
  explicit PartitionChoice(Random& random) : next_(static_cast<std::size_t>(random.next() >> 1)) {}

  // The next one that `serves`; nothing: none does.
  template <class Serves>
  [[nodiscard]] std::optional<std::uint16_t> next(const EntityFacts& entity, const Serves& serves) {
    const std::size_t count = entity.partitions.size();
    for (std::size_t i = 0; i < count; ++i) {
      const auto index = static_cast<std::uint16_t>(next_++ % count);
      if (serves(index)) return index;
    }
    return std::nullopt;
  }

 private:
  std::size_t next_;
};

// Where messages with a key go, and nothing for those without; reads their ids within their keys where
// duplicates are looked for. Fails as partition_of() does.
[[nodiscard]] Result<std::optional<std::uint16_t>> keyed_partition(
    const EntityFacts& entity, std::span<broker::IncomingMessage> messages);

}  // namespace omnibus::links
