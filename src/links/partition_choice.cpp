#include "links/partition_choice.hpp"

namespace omnibus::links {

Result<std::optional<std::uint16_t>> keyed_partition(const EntityFacts& entity,
                                                     std::span<broker::IncomingMessage> messages) {
  // Every message comes by here, and most have nothing to look for.
  const auto is_plain = [](const broker::IncomingMessage& one) {
    return !one.facts.session_id && !one.facts.partition_key;
  };
  if (!entity.requires_duplicate_detection && messages.size() == 1 && is_plain(messages.front()))
    return std::optional<std::uint16_t>{};
  const auto partition = broker::partition_of(messages, entity.requires_duplicate_detection,
                                              static_cast<std::uint16_t>(entity.partitions.size()));
  if (!partition) return fail(partition.error());
  if (entity.requires_duplicate_detection)
    if (const auto read = broker::compare_ids_within_keys(messages); !read) return fail(read.error());
  return *partition;
}

}  // namespace omnibus::links
