// The door of one connection to the entities of its namespace: the directory of its shard, and the roads to
// the stores. It begins in the default namespace, until its client has named a host.
//
// Remembers which receivers the connection has attached. When it goes, those it could not close itself are
// closed for it: a message session must not stay with a connection that is gone.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "links/entity_port.hpp"
#include "node/space.hpp"

namespace omnibus::node {

class Shard;

class ConnectionPort final : public links::EntityPort {
 public:
  ConnectionPort(Shard& shard, std::uint32_t connection);
  // For somebody who has chosen already.
  ConnectionPort(Shard& shard, std::uint32_t connection, std::shared_ptr<Space> space)
      : shard_(shard), connection_(connection), space_(std::move(space)) {}
  ~ConnectionPort() override;
  ConnectionPort(const ConnectionPort&) = delete;
  ConnectionPort& operator=(const ConnectionPort&) = delete;

  [[nodiscard]] const Space& space() const { return *space_; }

  [[nodiscard]] bool has_namespaces() const override;
  [[nodiscard]] std::optional<links::Realm> enter(std::string_view host) override;
  [[nodiscard]] std::shared_ptr<const links::EntityFacts> find(std::string_view name) override;
  [[nodiscard]] bool available(const links::Route& route) const override;
  [[nodiscard]] bool send(const links::Route& route, broker::Command& command) override;

 private:
  Shard& shard_;
  const std::uint32_t connection_;
  std::shared_ptr<Space> space_;
  std::unordered_map<std::uint64_t, links::Route> receivers_;
};

}  // namespace omnibus::node
