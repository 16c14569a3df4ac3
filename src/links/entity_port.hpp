// The way from a connection to the entities, wherever they live.
//
// A connection asks for an entity by name and sends it commands; what comes back reaches the connection by
// ClientConnection::deliver(), in the order in which the entity answered. One port per connection, on its
// core. Who is behind it: the node's directory and mailboxes, or a queue in a test.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/sasl.hpp"
#include "auth/token_validator.hpp"
#include "broker/answer.hpp"
#include "broker/commands.hpp"
#include "rules/routing.hpp"

namespace omnibus::links {

// Where one partition of an entity lives: a store of the node, and its number in it.
struct Route {
  std::uint16_t store = 0;
  std::uint32_t partition = 0;
  friend bool operator==(const Route&, const Route&) = default;
};

// What a link has to know of an entity before it asks it anything. Never changes; an update makes a new one.
enum class EntityKind : std::uint8_t { queue, topic, subscription };
struct EntityFacts {
  std::string name;  // as it was created; of a subscription: orders/Subscriptions/audit
  Route route;       // of a plain entity
  // Of a partitioned entity, by index [contract 9.10]; empty for a plain one.
  std::vector<Route> partitions{};
  EntityKind kind = EntityKind::queue;
  std::optional<rules::ExchangeType> exchange{};  // of a topic that is an exchange
  std::uint64_t message_bytes_max = 1024 * 1024;
  bool requires_session = false;
  bool requires_duplicate_detection = false;
  broker::EntityStatus status = broker::EntityStatus::active;

  [[nodiscard]] bool is_partitioned() const { return !partitions.empty(); }
};

// Partitions that are in one store, where one receiver can stand at all of them.
struct StoreRoutes {
  Route first;
  std::vector<std::uint32_t> others{};
};
[[nodiscard]] inline std::vector<StoreRoutes> by_store(const std::vector<Route>& routes) {
  std::vector<StoreRoutes> stores;
  for (const Route& route : routes) {
    const auto there =
        std::ranges::find(stores, route.store, [](const StoreRoutes& one) { return one.first.store; });
    if (there == stores.end())
      stores.push_back({route});
    else
      there->others.push_back(route.partition);
  }
  return stores;
}

// Who judges the clients of a namespace. Lives as long as the port that gave it.
struct Realm {
  const auth::SaslPolicy* sasl = nullptr;
  const auth::TokenValidator* validator = nullptr;
};

class EntityPort {
 public:
  virtual ~EntityPort() = default;
  // Whether there are several namespaces, so that the name of a host makes a difference.
  [[nodiscard]] virtual bool has_namespaces() const { return false; }
  // The client has named the host it wants: that chooses the namespace where find() looks from now on.
  // Nothing: it is the one as before. Not called once there are links.
  [[nodiscard]] virtual std::optional<Realm> enter(std::string_view /*host*/) { return std::nullopt; }
  // ASCII case is ignored. Null: there is no such entity.
  [[nodiscard]] virtual std::shared_ptr<const EntityFacts> find(std::string_view name) = 0;
  // Whether the store of a route serves now. A guess that may be old by a moment: a store that is down
  // refuses what reaches it all the same.
  [[nodiscard]] virtual bool available(const Route& /*route*/) const { return true; }
  // Hands a command over. False: the road is full, the command is untouched, and
  // ClientConnection::on_room() is called once there is room again.
  [[nodiscard]] virtual bool send(const Route& route, broker::Command& command) = 0;
};

}  // namespace omnibus::links
