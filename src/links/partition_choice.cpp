#include "links/partition_choice.hpp"

namespace omnibus::links {

Result<std::optional<std::uint16_t>> keyed_partition(const EntityFacts& entity,
                                                     std::span<broker::IncomingMessage> messages) {
  const auto partition = broker::partition_of(messages, entity.requires_duplicate_detection,
                                              static_cast<std::uint16_t>(entity.partitions.size()));
  if (!partition) return fail(partition.error());
  if (entity.requires_duplicate_detection)
    if (const auto read = broker::compare_ids_within_keys(messages); !read) return fail(read.error());
  return *partition;
}

}  // namespace omnibus::links
