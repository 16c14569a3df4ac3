#include "sim/broker_end.hpp"

#include "base/text.hpp"

namespace omnibus::sim {

BrokerEnd::BrokerEnd(SimBroker& broker, std::shared_ptr<Wire> wire, std::uint32_t number)
    : broker_(broker),
      world_(broker.world_),
      wire_(std::move(wire)),
      number_(number),
      client_(broker.connection_settings_, {"simulated", "tcp", {}, false}, *broker.sasl_, *broker.validator_,
              broker.random_, broker.observer_, *this, number) {}

BrokerEnd::~BrokerEnd() {
  if (is_dead_) return;
  for (const auto& [receiver, route] : receivers_)
    broker_.close_receiver(route, static_cast<broker::ReceiverId>(receiver));
}

void BrokerEnd::start() {
  client_.start(world_.now());
  follow_up();
}

void BrokerEnd::die() {
  is_dead_ = true;
  life_.reset();
  timer_.reset();
}

void BrokerEnd::deliver(broker::Answer& answer) {
  if (!is_over_) client_.deliver(answer, world_.now());
}

void BrokerEnd::on_room() {
  if (is_over_) return;
  client_.on_room(world_.now());
  follow_up();
}

void BrokerEnd::on_bytes(Bytes bytes) {
  if (is_over_) return;
  if (client_.congested() || !held_.empty()) {
    held_.emplace_back(as_text(bytes));
    return;
  }
  client_.receive(bytes, world_.now());
  follow_up();
}

void BrokerEnd::on_lost() {
  if (is_over_) return;
  client_.lost(world_.now());
  end();
}

void BrokerEnd::end() {
  if (std::exchange(is_over_, true)) return;
  timer_.reset();
  broker_.forget(number_);
}

void BrokerEnd::read_held() {
  while (!held_.empty() && !client_.congested() && !client_.finished()) {
    const std::string bytes = std::move(held_.front());
    held_.pop_front();
    client_.receive(as_bytes(bytes), world_.now());
  }
}

void BrokerEnd::follow_up() {
  if (is_over_) return;
  read_held();
  if (client_.wants_tick()) return tick();
  write();
  if (!client_.finished()) return;
  wire_->close(Wire::Side::broker);
  client_.lost(world_.now());
  end();
}

void BrokerEnd::tick() {
  const auto next = client_.tick(world_.now());
  timer_ = begin_life();
  if (next) world_.at(*next, timer_, [this] { tick(); });
  if (!client_.wants_tick()) return follow_up();
  world_.after(std::chrono::milliseconds{1}, timer_, [this] { tick(); });
  write();
}

void BrokerEnd::write() {
  std::string bytes;
  while (client_.has_output()) {
    iovec parts[16];
    const std::size_t count = client_.gather(parts);
    std::size_t written = 0;
    for (std::size_t i = 0; i < count; ++i) {
      bytes.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
      written += parts[i].iov_len;
    }
    if (written == 0) break;
    client_.wrote(written, world_.now());
  }
  wire_->send(Wire::Side::broker, std::move(bytes));
}

std::shared_ptr<const links::EntityFacts> BrokerEnd::find(std::string_view name) {
  const auto found = broker_.entities_.find(ascii_lower(name));
  return found == broker_.entities_.end() ? nullptr : found->second;
}

bool BrokerEnd::available(const links::Route& route) const {
  if (broker_.scenario_.gives_up_early && !broker_.is_open()) return false;
  return broker_.stores_.at(route.store)->is_available();
}

bool BrokerEnd::send(const links::Route& route, broker::Command& command) {
  if (is_dead_) return true;
  const auto* attach = std::get_if<broker::AttachReceiver>(&command);
  const auto* close = std::get_if<broker::CloseReceiver>(&command);
  const auto opens = attach ? attach->receiver : broker::ReceiverId::none;
  const auto closes = close ? close->receiver : broker::ReceiverId::none;
  if (!broker_.send(number_, route, command)) return false;
  if (attach) receivers_.emplace(static_cast<std::uint64_t>(opens), route);
  if (close) receivers_.erase(static_cast<std::uint64_t>(closes));
  return true;
}

}  // namespace omnibus::sim
