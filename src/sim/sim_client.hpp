// A simulated client: our own engine on a simulated wire, logged in by PLAIN, that comes back when its
// connection is lost. What it does there is for those who derive from it. What it sees goes into the history.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "amqp/engine/connection.hpp"
#include "sim/scenario.hpp"
#include "sim/sim_broker.hpp"
#include "sim/world.hpp"

namespace omnibus::sim {

// A delivery that its client has and has not settled, or is settling.
struct HeldDelivery {
  std::string id;
  std::int64_t seq = 0;
  std::string tag{};
  std::optional<How> how{};
  std::string tx{};
};

// Of one link; lives as long as the link.
struct SimLink : amqp::LinkAttachment {
  std::string address;
  std::string session;  // that is locked by it
  bool is_ready = false;
  bool deletes = false;
  bool is_leaving = false;
  bool is_given_back = false;  // its session
  bool is_management = false;
  std::map<std::uint32_t, HeldDelivery> held{};  // by delivery id
  Life life = begin_life();
};

// What the peer's answer means; nothing while it decides nothing.
struct Answered {
  Outcome outcome = Outcome::unknown;
  std::string condition{};
  std::string transaction{};  // of declared
};
[[nodiscard]] Answered read_answer(const amqp::StateView& state);

class SimClient : public WireEnd, protected amqp::Handler {
 public:
  SimClient(World& world, SimBroker& broker, const Scenario& scenario, History& history, std::string name);
  ~SimClient() override;
  SimClient(const SimClient&) = delete;
  SimClient& operator=(const SimClient&) = delete;

  void start();
  // Disconnects for good.
  void finish();
  [[nodiscard]] const std::string& name() const { return name_; }

 protected:
  // A session is there; links can be made.
  virtual void on_ready() = 0;
  // It is over, by whomever; links have been told.
  virtual void on_disconnected() {}

  struct AttachWith {
    amqp::SenderSettle snd = amqp::SenderSettle::mixed;
    amqp::ReceiverSettle rcv = amqp::ReceiverSettle::first;
    amqp::Value filter{};
    amqp::Value properties{};
    bool to_coordinator = false;
  };
  amqp::Link& attach(amqp::Role role, const std::string& address, const AttachWith& with,
                     const std::string& own = "me");
  static SimLink& of(amqp::Link& link) { return static_cast<SimLink&>(*link.attachment); }

  // Runs while this connection, or this link, is there; output goes out after it.
  void later(Nanos wait, Task task);
  void later_on(amqp::Link& link, Nanos wait, Task task);
  Nanos think();
  // What was decided outside of a callback goes out now.
  void flush();
  // Without a word, and comes back after a while.
  void break_off();
  [[nodiscard]] bool is_connected() const { return engine_ != nullptr; }

  // A question to the $management node of an address. False: not now, its links are not there yet. The answer
  // never comes when they are lost.
  struct Reply {
    std::int64_t status = 0;
    Outcome outcome = Outcome::unknown;
    std::string condition{};
    amqp::Value body{};
  };
  using OnReply = std::move_only_function<void(const Reply&)>;
  bool ask(const std::string& address, std::string_view operation,
           std::vector<std::pair<amqp::Value, amqp::Value>> body, OnReply on_reply);
  // Whether it was the answer to a question.
  bool take_reply(amqp::Link& link, amqp::Delivery& delivery);

  Event& note(Do what);
  // The answer to a settlement that was begun: `held.how` says which.
  Event& note_settled(const SimLink& link, const HeldDelivery& held, const Answered& answered);
  [[nodiscard]] World& world() { return world_; }
  [[nodiscard]] Random& random() { return world_.random(); }
  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  [[nodiscard]] SimBroker& broker() { return broker_; }

  void on_sasl_outcome(const amqp::SaslOutcome& outcome) override;
  void on_attached(amqp::Link& link, const amqp::Attach& attach) override;
  void on_link_gone(amqp::Link& link) override;

 private:
  void connect();
  void drop();
  void tick();
  void on_bytes(Bytes bytes) override;
  void on_lost() override;

  World& world_;
  SimBroker& broker_;
  const Scenario& scenario_;
  History& history_;
  const std::string name_;
  const Life life_ = begin_life();
  Life connected_;
  Life timer_;
  bool is_finished_ = false;
  std::shared_ptr<Wire> wire_;
  std::unique_ptr<amqp::Connection> engine_;
  amqp::Session* session_ = nullptr;
  std::uint64_t last_link_ = 0;
  struct Pair {
    amqp::Link* request = nullptr;
    amqp::Link* response = nullptr;
  };
  std::map<std::string, Pair> pairs_;  // by address
  std::map<std::uint64_t, OnReply> questions_;
  std::uint64_t last_question_ = 0;
};

}  // namespace omnibus::sim
