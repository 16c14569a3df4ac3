// The simulated process: stores, the broker's ends of connections, and the ways between them.
//
// It can die at any moment, with or without the machine, and is started again by whoever killed it. Entities
// are made once, before anything else; their routes never change. What store::Shard does with mailboxes that
// are full is done here the same way.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "auth/access_rules.hpp"
#include "auth/sasl.hpp"
#include "auth/token_validator.hpp"
#include "links/client_connection.hpp"
#include "links/entity_port.hpp"
#include "sim/sim_store.hpp"
#include "sim/wire.hpp"

namespace omnibus::sim {

inline constexpr std::string_view sim_key = "SAS_KEY_VALUE";

class BrokerEnd;

class SimBroker final : private StoreNeighbours {
 public:
  SimBroker(World& world, const Scenario& scenario, History& history);
  ~SimBroker() override;

  // Makes stores and entities; nothing fails yet.
  void set_up();
  [[nodiscard]] bool is_running() const { return is_running_; }
  [[nodiscard]] bool is_open() const;
  // Null: there is nobody to connect to.
  [[nodiscard]] std::shared_ptr<Wire> connect(WireEnd& client);
  // Dies; with `power` the machine does. start() is for later.
  void stop(bool power);
  void start();

  [[nodiscard]] std::vector<std::unique_ptr<SimStore>>& stores() { return stores_; }
  [[nodiscard]] const std::vector<std::unique_ptr<SimStore>>& stores() const { return stores_; }
  [[nodiscard]] std::vector<std::shared_ptr<Wire>> wires();
  // Everything that any store decided up to then is durable.
  [[nodiscard]] Moment settled();
  // Of all partitions of a queue or subscription.
  [[nodiscard]] broker::QueueCounts counts(const std::string& entity);
  struct Damage {
    std::uint16_t store = 0;
    std::string what{};
  };
  [[nodiscard]] const std::vector<Damage>& damages() const { return damages_; }
  // That it lost something, or may have: damage was found there, or an end was cut off.
  [[nodiscard]] bool has_told_of_loss(std::uint16_t store) const { return told_.contains(store); }
  // From here on what a store has told before counts for nothing.
  void forget_told(std::uint16_t store) { told_.erase(store); }
  // What a client saw that must not be.
  void complain(std::string what) { complaints_.push_back(std::move(what)); }
  [[nodiscard]] const std::vector<std::string>& complaints() const { return complaints_; }
  [[nodiscard]] std::size_t connections() const { return ends_.size(); }
  // Somebody has to start it again.
  std::function<void()> on_stopped;

 private:
  friend class BrokerEnd;
  struct Jam {
    std::deque<store::StoreCommand> closes;
    std::vector<std::uint32_t> connections;
  };
  struct Letter {
    std::uint16_t from = 0;
    store::StoreMessage message;
  };

  void on_answers(std::deque<store::ConnectionAnswer>& answers) override;
  void on_letter(std::uint16_t from, std::uint16_t to, store::StoreMessage&& message) override;
  void on_room(std::uint16_t store) override;
  void on_power_lost() override { stop(true); }
  void on_store_state(std::uint16_t store, store::StoreState state, const std::string& why) override;
  void on_damage(std::uint16_t store, const std::string& what) override;
  void on_torn(std::uint16_t store, std::uint64_t) override { told_.insert(store); }

  void make_entity(const SimEntity& entity);
  std::uint32_t make_partition(const SimEntity& entity, std::uint16_t partition, std::uint16_t store);
  store::PartitionId wait_for(SimStore& store, const std::function<void(store::Store::Created)>& ask);
  void note_fault(std::string what, std::string note, Moment since);

  bool send(std::uint32_t connection, const links::Route& route, broker::Command& command);
  void close_receiver(const links::Route& route, broker::ReceiverId receiver);
  void forget(std::uint32_t connection);

  World& world_;
  const Scenario& scenario_;
  History& history_;
  auth::AccessRules rules_;
  auth::JwtIssuers issuers_;
  std::unique_ptr<auth::SaslPolicy> sasl_;
  std::unique_ptr<auth::TokenValidator> validator_;
  links::ConnectionSettings connection_settings_{};
  links::ConnectionObserver observer_{};
  Random random_;

  std::vector<std::unique_ptr<SimStore>> stores_;
  std::map<std::string, std::shared_ptr<const links::EntityFacts>> entities_;  // by lower-cased name
  bool is_running_ = false;
  Life life_;
  std::map<std::uint32_t, std::unique_ptr<BrokerEnd>> ends_;
  std::vector<std::unique_ptr<BrokerEnd>> dead_ends_;  // until no call is in progress
  std::uint32_t last_connection_ = 0;
  std::map<std::uint16_t, Jam> jams_;
  std::vector<Damage> damages_;
  std::set<std::uint16_t> told_;
  std::vector<std::string> complaints_;
};

}  // namespace omnibus::sim
