// The entities that a configuration names, as they are made.
#pragma once

#include <vector>

#include "base/clock.hpp"
#include "node/config.hpp"
#include "node/new_entity.hpp"

namespace omnibus::node {

// Topics before their subscriptions.
[[nodiscard]] std::vector<NewEntity> entities_of(const NamespaceSettings& space, Instant now);

}  // namespace omnibus::node
