// Clients that send: to several entities, singly and in batches, at once or scheduled, with and without an
// end.
#pragma once

#include <map>
#include <vector>

#include "sim/messages.hpp"
#include "sim/sim_client.hpp"

namespace omnibus::sim {

// What a client sends next to an entity.
class MessageMaker {
 public:
  MessageMaker(World& world, const Scenario& scenario, std::string name)
      : world_(world), scenario_(scenario), name_(std::move(name)) {}
  // The next one; `like` shares its session and key, so that both may go in one batch.
  [[nodiscard]] NewMessage make(const SimEntity& entity, const NewMessage* like = nullptr);
  static void fill(Event& event, const SimEntity& entity, const NewMessage& message);

 private:
  World& world_;
  const Scenario& scenario_;
  const std::string name_;
  std::uint64_t made_ = 0;
};

class SimSender final : public SimClient {
 public:
  SimSender(World& world, SimBroker& broker, const Scenario& scenario, History& history, std::string name,
            std::vector<const SimEntity*> targets)
      : SimClient(world, broker, scenario, history, name),
        maker_(world, scenario, std::move(name)),
        targets_(std::move(targets)) {}

 private:
  void on_ready() override;
  void on_disconnected() override;
  void on_disposition(amqp::Link& link, const amqp::DispositionOf& disposition) override;
  void on_link_gone(amqp::Link& link) override;
  struct UnderWay {
    std::vector<std::string> ids{};
    const SimEntity* entity = nullptr;
    Tick began{};
    bool may_go_anywhere = false;  // any partition may take it
  };
  void step();
  void send(amqp::Link& link, const SimEntity& entity);
  // What any partition may take is refused only when none can.
  void judge_refusal(const UnderWay& send);

  MessageMaker maker_;
  const std::vector<const SimEntity*> targets_;
  std::vector<amqp::Link*> links_;               // by target; null: none now
  std::map<std::uint64_t, UnderWay> under_way_;  // by context
  std::uint64_t last_context_ = 0;
  std::uint64_t batches_ = 0;
};

}  // namespace omnibus::sim
