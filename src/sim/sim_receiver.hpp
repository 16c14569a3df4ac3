// Clients that receive: plainly or by session, with locks or without, and settle each way, late or never.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "sim/messages.hpp"
#include "sim/sim_client.hpp"

namespace omnibus::sim {

struct ReceivesFrom {
  std::string address;
  bool sessions = false;
  bool deletes = false;
};

// Numbers of messages that somebody has deferred, by address: how others find them is not the broker's
// business.
using DeferredBoard = std::map<std::string, std::deque<std::int64_t>>;

class SimReceiver final : public SimClient {
 public:
  SimReceiver(World& world, SimBroker& broker, const Scenario& scenario, History& history, std::string name,
              std::vector<ReceivesFrom> sources, DeferredBoard* deferred)
      : SimClient(world, broker, scenario, history, std::move(name)),
        sources_(std::move(sources)),
        deferred_(*deferred) {}

 private:
  void on_ready() override;
  void on_cut() override;
  void on_attached(amqp::Link& link, const amqp::Attach& attach) override;
  void on_link_gone(amqp::Link& link) override;
  void on_disconnected() override { link_ = nullptr; }
  void on_transfer(amqp::Link& link, amqp::Delivery& delivery) override;
  void on_disposition(amqp::Link& link, const amqp::DispositionOf& disposition) override;
  void choose();
  void decide(amqp::Link& link, std::uint32_t delivery);
  void settle(amqp::Link& link, std::uint32_t delivery, How how);
  void renew(amqp::Link& link, std::uint32_t delivery);
  // Deferred messages are received and settled by management.
  void fetch_deferred(const std::string& address);
  void settle_fetched(const std::string& address, const GotMessage& got, const amqp::Value& token);
  void give_back_session(SimLink& link);
  void leave(amqp::Link& link);

  const std::vector<ReceivesFrom> sources_;
  DeferredBoard& deferred_;
  amqp::Link* link_ = nullptr;
};

[[nodiscard]] amqp::State state_of(How how);

}  // namespace omnibus::sim
