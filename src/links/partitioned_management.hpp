// A command of a management node, asked of the partitions it concerns [service-bus contract 9.10].
//
// Tokens and sequence numbers name their partition; a session is in the partition of its id; what looks at
// messages goes from partition to partition; rules are changed in all or none. The answers become one.
//
// What covers several partitions is all or nothing within each: renewals, settlements and cancellations of
// other partitions stand when one refuses. Deferred messages are locked in every partition before any is
// removed. Lives on the connection's core.
#pragma once

#include "links/link_context.hpp"

namespace omnibus::links {

// Sessions of the front of the list that a request may pass over: each partition has to name that many.
inline constexpr std::uint32_t partitioned_skip_max = 100'000;

// `on_answer` hears one answer: what the entity would have said, were it one partition.
void ask_partitions(broker::Command command, std::shared_ptr<const EntityFacts> entity, LinkContext& context,
                    EntityClient::OnAnswer on_answer);

// A change of a rule of a subscription, in all of its partitions or in none, also over a crash. To the store
// of the first partition, which judges whether the rule is there.
[[nodiscard]] broker::Transact change_in_all(const std::vector<Route>& partitions,
                                             const broker::AddRule& change);
[[nodiscard]] broker::Transact change_in_all(const std::vector<Route>& partitions,
                                             const broker::RemoveRule& change);

}  // namespace omnibus::links
