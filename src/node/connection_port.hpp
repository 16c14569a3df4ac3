// The door of one connection to the entities: the directory of its shard, and the roads to the stores.
//
// Remembers which receivers the connection has attached. When it goes, those it could not close itself are
// closed for it: a message session must not stay with a connection that is gone.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "links/entity_port.hpp"

namespace omnibus::node {

class Shard;

class ConnectionPort final : public links::EntityPort {
 public:
  ConnectionPort(Shard& shard, std::uint32_t connection) : shard_(shard), connection_(connection) {}
  ~ConnectionPort() override;
  ConnectionPort(const ConnectionPort&) = delete;
  ConnectionPort& operator=(const ConnectionPort&) = delete;

  [[nodiscard]] std::shared_ptr<const links::EntityFacts> find(std::string_view name) override;
  [[nodiscard]] bool available(const links::Route& route) const override;
  [[nodiscard]] bool send(const links::Route& route, broker::Command& command) override;

 private:
  Shard& shard_;
  const std::uint32_t connection_;
  std::unordered_map<std::uint64_t, links::Route> receivers_;
};

}  // namespace omnibus::node
