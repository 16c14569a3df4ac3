#include "node/connection_port.hpp"

#include "node/shard.hpp"

namespace omnibus::node {

ConnectionPort::ConnectionPort(Shard& shard, std::uint32_t connection)
    : shard_(shard), connection_(connection), space_(shard.spaces().of_host("")) {}

ConnectionPort::~ConnectionPort() {
  for (const auto& [receiver, route] : receivers_)
    shard_.close_receiver(route, static_cast<broker::ReceiverId>(receiver));
}

std::shared_ptr<const links::EntityFacts> ConnectionPort::find(std::string_view name) {
  return space_->directory().find(name);
}

bool ConnectionPort::has_namespaces() const { return shard_.spaces().has_several(); }

std::optional<links::Realm> ConnectionPort::enter(std::string_view host) {
  const auto& chosen = shard_.spaces().of_host(host);
  if (chosen == space_) return std::nullopt;
  space_ = chosen;
  return links::Realm{&space_->sasl(), &space_->validator()};
}

bool ConnectionPort::available(const links::Route& route) const { return shard_.is_available(route.store); }

bool ConnectionPort::send(const links::Route& route, broker::Command& command) {
  const auto* attach = std::get_if<broker::AttachReceiver>(&command);
  const auto* close = std::get_if<broker::CloseReceiver>(&command);
  const auto opens = attach ? attach->receiver : broker::ReceiverId::none;
  const auto closes = close ? close->receiver : broker::ReceiverId::none;
  if (!shard_.send(connection_, route, command)) return false;
  if (attach) receivers_.emplace(static_cast<std::uint64_t>(opens), route);
  if (close) receivers_.erase(static_cast<std::uint64_t>(closes));
  return true;
}

}  // namespace omnibus::node
