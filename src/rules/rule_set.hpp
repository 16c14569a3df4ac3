// The rules of all subscriptions of one topic, and which copies a message becomes [contract SQL §5.6, §8,
// §11].
//
// What can be found by equality is found by a lookup (equality_index.hpp); filters that are always true cost
// nothing to judge; only the rest is evaluated one by one. Adding or removing a rule costs the same however
// many there are. Deterministic: the same rules, message and randomness give the same copies in the same
// order. One core.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/random.hpp"
#include "base/result.hpp"
#include "rules/equality_index.hpp"
#include "rules/message_edits.hpp"
#include "rules/message_fields.hpp"
#include "rules/rule.hpp"
#include "rules/sql_evaluate.hpp"

namespace omnibus::rules {

using SubscriptionId = std::uint32_t;

// Of one topic; 0 means no limit.
struct RuleLimits {                     // 0: none
  std::size_t sql_filters_max = 2'000;  // true and false filters count as SQL
  std::size_t correlation_filters_max = 100'000;
};

// One message for one subscription. `rule` is null for the copy without changes, which all rules without an
// action share; otherwise its action made the edits, RuleName among them. Lives until the rules change.
struct Copy {
  SubscriptionId subscription = 0;
  const Rule* rule = nullptr;
  MessageEdits edits{};
};

// For the subscription's dead-letter queue, if it wants such messages.
struct Failure {
  enum class Kind : std::uint8_t { filter, action };
  SubscriptionId subscription = 0;
  Kind kind{};
  std::string rule{};
  std::string problem{};
};
// FilterException or RuleActionException, and the text beside it [contract SB 9.2].
[[nodiscard]] std::string_view dead_letter_reason(const Failure& failure);
[[nodiscard]] std::string dead_letter_description(const Failure& failure);

struct Matches {
  // By subscription; in each the unchanged copy first, then by rule name.
  std::vector<Copy> copies{};
  // By subscription, at most one each: of its first failing rule by name.
  std::vector<Failure> failures{};
  void clear() {
    copies.clear();
    failures.clear();
  }
};

class RuleSet {
 public:
  explicit RuleSet(RuleLimits limits = {}) : limits_(limits) {}
  // For what is added from now on.
  void set_limits(RuleLimits limits) { limits_ = limits; }

  // Fails with `entity_already_exists` (a rule of that name, in any case) or `resource_limit_exceeded` (too
  // many filters of this kind on the topic); nothing is changed then.
  [[nodiscard]] Result<void> add(SubscriptionId subscription, CompiledRule rule);
  // In place of the rule of the same name. Fails with `not_found` or `resource_limit_exceeded`.
  [[nodiscard]] Result<void> replace(SubscriptionId subscription, CompiledRule rule);
  // Fails with `not_found`.
  [[nodiscard]] Result<void> remove(SubscriptionId subscription, std::string_view name);
  // With all its rules, if it has any.
  void remove_subscription(SubscriptionId subscription);

  // Null when there is none. Valid until the rules change.
  [[nodiscard]] const Rule* find(SubscriptionId subscription, std::string_view name) const;
  // In the order of their names, from `skip` on, at most `top`.
  [[nodiscard]] std::vector<const Rule*> list(SubscriptionId subscription, std::size_t skip = 0,
                                              std::size_t top = SIZE_MAX) const;
  [[nodiscard]] std::size_t count(SubscriptionId subscription) const;
  [[nodiscard]] std::size_t sql_filter_count() const { return sql_filters_; }
  [[nodiscard]] std::size_t correlation_filter_count() const { return correlation_filters_; }

  // Replaces what is in `out`. Fails with `decode_error` when the message cannot be read.
  [[nodiscard]] Result<void> match(MessageFields& fields, Random& random, Matches& out);

 private:
  using Place = EqualityIndex::Place;
  // How a rule is found.
  enum class Way : std::uint8_t { always, never, lookup, evaluate };
  struct Entry {
    SubscriptionId subscription = 0;
    std::unique_ptr<CompiledRule> rule{};
    Way way = Way::never;
    std::uint32_t position = 0;  // in always_ or evaluated_
  };
  using Names = std::map<std::string, Place>;  // in lower case

  [[nodiscard]] std::size_t& counter(const CompiledRule& rule);
  [[nodiscard]] Result<void> check_room(const CompiledRule& rule) const;
  [[nodiscard]] static Way way_of(const CompiledRule& rule);
  [[nodiscard]] std::vector<Place>* list_of(Way way);
  void insert(SubscriptionId subscription, CompiledRule rule, std::string key);
  void erase(Place place);
  void judge(Place place, Evaluator& evaluator, Matches& out);
  void matched(Place place);
  void run_actions(MessageFields& fields, Random& random, Matches& out);
  static void put_in_order(Matches& out);

  RuleLimits limits_;
  std::vector<Entry> entries_;
  std::vector<Place> free_places_;
  std::unordered_map<SubscriptionId, Names> subscriptions_;
  std::vector<Place> always_;
  std::vector<Place> evaluated_;
  EqualityIndex index_;
  std::size_t sql_filters_ = 0;
  std::size_t correlation_filters_ = 0;
  // Of one match; kept for their room.
  std::vector<Place> found_;
  std::vector<Place> with_action_;
  std::vector<SubscriptionId> unchanged_;
};

}  // namespace omnibus::rules
