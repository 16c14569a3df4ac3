// From an entity that is there to the one that somebody wants: what has to be changed, and what cannot be.
//
// The configuration file and documents over HTTP come this way. A property that is not named stays as it is.
// Pure; any core.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "node/catalogue.hpp"
#include "node/new_entity.hpp"

namespace omnibus::node {

struct EntityMerge {
  // What the catalogue is to be told when anything changed.
  Catalogue::Update update{};
  // Properties that differ, in the words of the configuration file and of documents.
  std::vector<std::string> changed{};
  std::vector<std::string> fixed{};  // of them those that are decided when an entity is made
};

// `wanted` is of the same kind. Fails with `argument_error`: an access rule cannot be.
[[nodiscard]] Result<EntityMerge> merge_entity(const store::PartitionInfo& present, const NewEntity& wanted,
                                               Instant now);
// "queue", "topic", "exchange" or "subscription".
[[nodiscard]] std::string_view kind_of(const store::PartitionInfo& info);
// Whether both are the same kind of thing; the type of an exchange is a property.
[[nodiscard]] bool is_same_kind(const store::PartitionInfo& present, const NewEntity& wanted);

}  // namespace omnibus::node
