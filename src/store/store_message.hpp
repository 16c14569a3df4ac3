// What stores say to each other about a transaction that concerns several of them [contract 7].
//
// Two-phase commit, presumed abort: the store that was asked coordinates. A message may be lost or come twice
// when a store fails; whoever waits asks again. Between two stores that stay up they come in order.
#pragma once

#include <compare>
#include <cstdint>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "broker/commands.hpp"

namespace omnibus::store {

// Never used twice: `origin` is random for each time that a store was opened.
struct TransactionId {
  std::uint16_t store = 0;  // that coordinates
  std::uint64_t origin = 0;
  std::uint64_t number = 0;
  friend auto operator<=>(const TransactionId&, const TransactionId&) = default;
};

// To a participant: judge these steps, and keep what they need until the decision.
struct Prepare {
  TransactionId id{};
  std::vector<broker::TransactionStep> steps{};
};
// To the coordinator: they can be carried out, also after a crash.
struct Prepared {
  TransactionId id{};
};
struct PrepareRefused {
  TransactionId id{};
  Error error{};
};
// To a participant: the decision. A commit is durable, and repeated until it is answered.
struct Decide {
  TransactionId id{};
  bool commit = false;
};
// To the coordinator: the steps are carried out, and that is durable.
struct Decided {
  TransactionId id{};
};
// To the coordinator: what was decided? Answered by Decide, or not at all while there is no decision.
struct Inquire {
  TransactionId id{};
};
using StoreMessage = std::variant<Prepare, Prepared, PrepareRefused, Decide, Decided, Inquire>;

}  // namespace omnibus::store
