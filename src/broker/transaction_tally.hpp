// What the steps of one transaction that were judged already would do to one partition, for those that come
// behind them: steps are judged one by one, before any of them is carried out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "broker/ids.hpp"
#include "rules/rule_set.hpp"

namespace omnibus::broker {

struct TransactionTally {
  std::uint64_t bytes = 0;             // of messages
  std::set<LockToken> tokens{};        // settled
  std::set<SequenceNumber> numbers{};  // reserved ones that are used
  // Of a topic. By subscription and name in lower case: whether there is such a rule afterwards.
  std::map<std::pair<rules::SubscriptionId, std::string>, bool> rules{};
  std::int64_t sql_filters = 0;  // more than before
  std::int64_t correlation_filters = 0;
};

// A lock that waits for the decision about a transaction.
struct HeldLock {
  LockToken token{};
  SequenceNumber sequence = 0;
  Instant until{};          // when it would end
  bool of_session = false;  // ends with the session instead
  friend bool operator==(const HeldLock&, const HeldLock&) = default;
};

}  // namespace omnibus::broker
