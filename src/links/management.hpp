// The operations of an entity's $management node, each as one command to the entity
// [service-bus contract 6.3 to 6.13].
#pragma once

#include <functional>
#include <memory>

#include "auth/rights.hpp"
#include "links/link_context.hpp"
#include "links/request_node.hpp"

namespace omnibus::links {

// Whether the connection has this right on the node, now.
using Authorize = std::function<Result<void>(auth::Right)>;
// By whose token or login it has it, for people.
using HolderOf = std::function<std::string(auth::Right)>;

// The part of an entity that a management node is about.
struct ManagedEntity {
  std::shared_ptr<const EntityFacts> facts;
  broker::SubQueue sub_queue = broker::SubQueue::active;
};

// Serves one request. Errors are answers: nothing here ends a link.
void serve_management(const Request& request, Responder responder, const ManagedEntity& entity,
                      const Authorize& authorize, const HolderOf& holder_of, LinkContext& context);

// Every operation there is, for any node: what is not known is 501.
[[nodiscard]] Response unknown_operation(const Request& request);

}  // namespace omnibus::links
