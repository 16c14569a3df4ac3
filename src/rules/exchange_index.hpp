// The subscriptions of one exchange, and which of them a message reaches [contract EX 2.4].
//
// One binding per subscription. Setting or removing one touches only what belongs to it. Deterministic: ids
// come out in ascending order. Which of them may receive, and what happens when there is none, is the
// caller's. One core.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rules/header_index.hpp"
#include "rules/routing.hpp"
#include "rules/rule_set.hpp"
#include "rules/topic_trie.hpp"

namespace omnibus::rules {

class ExchangeIndex {
 public:
  explicit ExchangeIndex(ExchangeType type) : type_(type) {}

  [[nodiscard]] ExchangeType type() const { return type_; }
  [[nodiscard]] std::size_t size() const { return bindings_.size(); }

  // New or in place of the old one. Fails with `argument_error` and the first finding that is no warning;
  // nothing is changed then.
  [[nodiscard]] Result<void> set(SubscriptionId subscription, Binding binding);
  // If it is there.
  void remove(SubscriptionId subscription);

  // Replaces what is in `out`. Fails with `invalid_field` (the key is too long or no UTF-8) or `decode_error`
  // (headers that cannot be read).
  [[nodiscard]] Result<void> match(std::string_view routing_key, MessageFields& fields,
                                   std::vector<SubscriptionId>& out);

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  ExchangeType type_;
  std::unordered_map<SubscriptionId, Binding> bindings_;
  std::set<SubscriptionId> all_;                                                                    // fanout
  std::unordered_map<std::string, std::vector<SubscriptionId>, TextHash, std::equal_to<>> by_key_;  // direct
  TopicTrie patterns_;
  HeaderIndex headers_;
};

}  // namespace omnibus::rules
