// Which partition of how many one is.
#pragma once

namespace omnibus::node {

/// Settings for all partitions of an entity become those of one of them.
template <class Settings>
void keep_place(Settings& wanted, const Settings& present) {
  wanted.partition = present.partition;
  wanted.is_partitioned = present.is_partitioned;
  wanted.partition_count = present.partition_count;
}

}  // namespace omnibus::node
