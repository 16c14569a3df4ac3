// A history by message: what was done with each, and what came of it. Private to the checker.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/history.hpp"

namespace omnibus::sim {

inline constexpr std::string_view dead_letters = "/$DeadLetterQueue";

[[nodiscard]] bool is_dead_letters(std::string_view entity);
// The entity whose dead letters these are, or itself.
[[nodiscard]] std::string home_of(std::string_view entity);

// Where in the history, to compare what was first.
using Place = std::size_t;

struct Delivery {
  Place place = 0;
  const Event* event = nullptr;
};

struct Settlement {
  Place begun = 0;
  const Event* event = nullptr;
  Outcome outcome = Outcome::unknown;  // with that of its transaction
  bool is_acknowledged = false;        // itself, whatever became of its transaction
  Place ended = 0;                     // where the outcome is said; 0: nowhere
  Moment ended_at = 0;
};

// One message in one queue or subscription: what came of one send there.
struct Instance {
  std::vector<Delivery> deliveries{};  // from the dead letters too
  std::vector<Settlement> settlements{};
  const Event* left = nullptr;  // the line that has it
  const Event* left_dead = nullptr;

  [[nodiscard]] bool is_seen() const { return !deliveries.empty() || left || left_dead; }
};

struct Message {
  Place begun = 0;
  const Event* send = nullptr;
  Outcome outcome = Outcome::unknown;  // with that of its transaction
  bool is_acknowledged = false;        // itself, whatever became of its transaction
  std::optional<Moment> outcome_at{};
  std::map<std::string, Instance> instances{};  // by home
};

struct Transaction {
  std::optional<How> how{};
  Outcome outcome = Outcome::unknown;  // of the work in it: refused when it was rolled back
  std::optional<Moment> ended_at{};
  Place ended = 0;
};

struct EntityView {
  std::vector<std::string> homes{};  // where its messages go: itself, or its subscriptions
  std::optional<Moment> dedup{};
  std::optional<Moment> lock{};
  bool lossy = false;
  bool is_declared = false;
};

struct Evidence {
  explicit Evidence(const History& history);

  [[nodiscard]] const EntityView& entity(const std::string& name) const;

  std::map<std::string, Message> messages;
  std::map<std::string, Transaction> transactions;
  std::map<std::string, EntityView> entities;
  std::map<std::string, const Event*> left;             // by entity, the last line
  std::map<std::string, const Event*> counts;           // by entity, the last line
  std::vector<std::pair<Place, const Event*>> strange;  // deliveries and leavings of ids nobody sent
  std::size_t deliveries = 0;

 private:
  void declare(const History& history);
  void read_transactions(const History& history);
  void read_sends(const History& history);
  void read_deliveries(const History& history);
  void read_settlements(const History& history);
  void read_left(const History& history);
};

}  // namespace omnibus::sim
