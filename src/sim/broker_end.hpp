// The broker's end of one connection, as node::AmqpStream and node::ConnectionPort are in the product.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "links/client_connection.hpp"
#include "sim/sim_broker.hpp"

namespace omnibus::sim {

class BrokerEnd final : public WireEnd, public links::EntityPort {
 public:
  BrokerEnd(SimBroker& broker, std::shared_ptr<Wire> wire, std::uint32_t number);
  ~BrokerEnd() override;

  void start();
  void deliver(broker::Answer& answer);
  void follow_up();
  void on_room();
  // The process is gone: nothing is said to anybody any more.
  void die();
  [[nodiscard]] const std::shared_ptr<Wire>& wire() const { return wire_; }

  void on_bytes(Bytes bytes) override;
  void on_lost() override;

  std::shared_ptr<const links::EntityFacts> find(std::string_view name) override;
  bool available(const links::Route& route) const override;
  bool send(const links::Route& route, broker::Command& command) override;

 private:
  void tick();
  void write();
  void read_held();
  void end();

  SimBroker& broker_;
  World& world_;
  std::shared_ptr<Wire> wire_;
  const std::uint32_t number_;
  Life life_ = begin_life();
  Life timer_;
  std::map<std::uint64_t, links::Route> receivers_;
  std::deque<std::string> held_;  // came while entities lag behind
  bool is_dead_ = false;
  bool is_over_ = false;
  links::ClientConnection client_;
};

}  // namespace omnibus::sim
