// Looks into every entity at the end: peeks what is left by $management, then takes what can be taken.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/messages.hpp"
#include "sim/sim_client.hpp"

namespace omnibus::sim {

class SimAuditor final : public SimClient {
 public:
  // `drains`: those of them that a plain receiver can empty.
  SimAuditor(World& world, SimBroker& broker, const Scenario& scenario, History& history,
             std::vector<std::string> addresses, std::set<std::string> drains)
      : SimClient(world, broker, scenario, history, "auditor"),
        addresses_(std::move(addresses)),
        drains_(std::move(drains)) {}
  [[nodiscard]] bool is_done() const { return at_ == addresses_.size(); }
  // What was peeked as available and could not be received.
  struct Stuck {
    std::string address{};
    std::string id{};
  };
  [[nodiscard]] const std::vector<Stuck>& stuck() const { return stuck_; }
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  // Where it is, unless it is done.
  [[nodiscard]] const std::string& where() const { return addresses_.at(at_); }
  // Scheduled ones that a peek showed, by address.
  [[nodiscard]] std::int64_t scheduled(const std::string& address) const {
    const auto found = scheduled_.find(address);
    return found == scheduled_.end() ? 0 : found->second;
  }

 private:
  void on_ready() override;
  void on_disconnected() override;
  void on_attached(amqp::Link& link, const amqp::Attach& attach) override;
  void on_credit(amqp::Link& link) override;
  void on_transfer(amqp::Link& link, amqp::Delivery& delivery) override;
  void on_drained(amqp::Link& link) override;
  void next();
  void ask();
  void on_page(const amqp::Delivery& delivery);
  void on_peeked();
  void on_taken();

  const std::vector<std::string> addresses_;
  const std::set<std::string> drains_;
  std::size_t at_ = 0;
  amqp::Link* request_ = nullptr;
  amqp::Link* response_ = nullptr;
  amqp::Link* drain_ = nullptr;
  bool is_asked_ = false;
  std::int64_t from_ = 0;
  std::vector<std::string> ids_;
  std::set<std::string> available_;  // neither deferred nor scheduled
  std::map<std::string, std::int64_t> scheduled_;
  std::vector<Stuck> stuck_;
  std::string trouble_;
};

}  // namespace omnibus::sim
