// What every link end of a connection may use. Belongs to the connection and outlives its links.
#pragma once

#include "amqp/engine/condition.hpp"
#include "base/random.hpp"
#include "links/conditions.hpp"
#include "links/connection_observer.hpp"
#include "links/entity_client.hpp"
#include "links/transactions.hpp"

namespace omnibus::links {

struct LinkContext {
  EntityClient& entities;
  Random& random;
  ConnectionObserver& observer;
  Transactions& transactions;

  // The error as the client gets it, with an id that people can quote.
  [[nodiscard]] amqp::Condition tracked(const Error& error, Now now) const {
    return to_condition(error, new_tracking_id(random), now.wall);
  }
};

}  // namespace omnibus::links
