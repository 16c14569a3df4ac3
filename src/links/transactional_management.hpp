// Requests to $management within a transaction [service-bus contract 7].
//
// schedule-message, update-disposition, and rules of a subscription that is not partitioned. They are done
// with the commit and answered at once; for the numbers of what is scheduled the entity is asked first.
#pragma once

#include "links/management.hpp"
#include "links/transactions.hpp"

namespace omnibus::links {

// `on_answer` hears one answer, what the entity would have said to the command outside of a transaction, or
// why it is not enlisted.
void enlist_command(Bytes transaction, broker::Command command, const ManagedEntity& entity,
                    LinkContext& context, Now now, EntityClient::OnAnswer on_answer);

}  // namespace omnibus::links
