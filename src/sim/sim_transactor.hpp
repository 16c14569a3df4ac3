// Clients with transactions: some sends, some settlements, in several entities and thereby stores; then all
// of it or nothing, or a connection that breaks in the middle.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/sim_receiver.hpp"
#include "sim/sim_sender.hpp"

namespace omnibus::sim {

class SimTransactor final : public SimClient {
 public:
  SimTransactor(World& world, SimBroker& broker, const Scenario& scenario, History& history, std::string name,
                std::vector<const SimEntity*> targets, std::string source)
      : SimClient(world, broker, scenario, history, name),
        maker_(world, scenario, std::move(name)),
        targets_(std::move(targets)),
        source_(std::move(source)) {}

 private:
  enum class Stage : std::uint8_t { idle, declaring, working, ending };

  void on_ready() override;
  void on_disconnected() override;
  void on_attached(amqp::Link& link, const amqp::Attach& attach) override;
  void on_transfer(amqp::Link& link, amqp::Delivery& delivery) override;
  void on_disposition(amqp::Link& link, const amqp::DispositionOf& disposition) override;
  void on_link_gone(amqp::Link& link) override;
  void step();
  void declare();
  void work();
  void send();
  void settle();
  void end();
  void control(Bytes body);

  MessageMaker maker_;
  const std::vector<const SimEntity*> targets_;
  const std::string source_;
  amqp::Link* coordinator_ = nullptr;
  amqp::Link* receiver_ = nullptr;
  std::vector<amqp::Link*> senders_;
  Stage stage_ = Stage::idle;
  std::string transaction_;  // as the broker names it
  std::string tx_;           // as the history does
  How how_ = How::commit;
  std::uint64_t steps_left_ = 0;
  std::uint64_t made_ = 0;
  std::map<std::uint64_t, std::string> under_way_;  // by context: ids
  std::uint64_t last_context_ = 0;
};

}  // namespace omnibus::sim
