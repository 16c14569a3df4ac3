// Where sends within a transaction go, and sends via another entity [service-bus contract 7].
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "links/link_context.hpp"
#include "links/partition_choice.hpp"
#include "links/transactions.hpp"

namespace omnibus::links {

// The partition of `entity` that takes messages of a transaction: on a partitioned one they need a key, and
// all of them the same. Fails with `not_allowed`; over keys, the transaction is doomed then. `via`: the
// entity only keeps them for another, and their via key counts.
[[nodiscard]] Result<Route> route_in(Transaction& transaction, const EntityFacts& entity,
                                     std::span<broker::IncomingMessage> messages, bool via);

// The key that chooses the partition of a via entity: one for a batch, `not_allowed` otherwise.
[[nodiscard]] Result<std::optional<std::string>> via_partition_key(
    std::span<const broker::IncomingMessage> messages);

}  // namespace omnibus::links
