#include "rules/rule_set.hpp"

#include <algorithm>
#include <tuple>

#include "base/check.hpp"
#include "base/text.hpp"
#include "rules/sql_action.hpp"

namespace omnibus::rules {

std::string_view dead_letter_reason(const Failure& failure) {
  return failure.kind == Failure::Kind::filter ? "FilterException" : "RuleActionException";
}

std::string dead_letter_description(const Failure& failure) {
  return fmt::format("Rule '{}': {}.", failure.rule, failure.problem);
}

std::size_t& RuleSet::counter(const CompiledRule& rule) {
  return rule.is_correlation() ? correlation_filters_ : sql_filters_;
}

Result<void> RuleSet::check_room(const CompiledRule& rule) const {
  const bool correlation = rule.is_correlation();
  const std::size_t max = correlation ? limits_.correlation_filters_max : limits_.sql_filters_max;
  if (max != 0 && (correlation ? correlation_filters_ : sql_filters_) >= max)
    return fail(Errc::resource_limit_exceeded, "the topic has {} {} filters, which is the limit", max,
                correlation ? "correlation" : "SQL");
  return {};
}

RuleSet::Way RuleSet::way_of(const CompiledRule& rule) {
  if (std::holds_alternative<TrueFilter>(rule.rule.filter)) return Way::always;
  if (std::holds_alternative<FalseFilter>(rule.rule.filter)) return Way::never;
  if (!rule.equalities.tests.empty()) return Way::lookup;
  check(rule.program.has_value(), "an SQL filter is compiled");
  if (rule.program->looks_at_message || rule.program->can_fail) return Way::evaluate;
  // A constant condition, `2 > 1`, is the same for every message, the empty one included.
  const auto empty = amqp::MessageView::parse(Bytes{});
  if (!empty) return Way::evaluate;
  MessageFields fields{*empty};
  Random random{0};
  return Evaluator{fields, random}.test(*rule.program) == Truth::yes ? Way::always : Way::never;
}

std::vector<RuleSet::Place>* RuleSet::list_of(Way way) {
  if (way == Way::always) return &always_;
  if (way == Way::evaluate) return &evaluated_;
  return nullptr;
}

Result<void> RuleSet::add(SubscriptionId subscription, CompiledRule rule) {
  std::string key = ascii_lower(rule.rule.name);
  if (const auto found = subscriptions_.find(subscription);
      found != subscriptions_.end() && found->second.contains(key))
    return fail(Errc::entity_already_exists, "the subscription has a rule '{}'", rule.rule.name);
  if (auto room = check_room(rule); !room) return room;
  insert(subscription, std::move(rule), std::move(key));
  return {};
}

void RuleSet::insert(SubscriptionId subscription, CompiledRule rule, std::string key) {
  Place place = static_cast<Place>(entries_.size());
  if (free_places_.empty()) {
    entries_.emplace_back();
  } else {
    place = free_places_.back();
    free_places_.pop_back();
  }
  Entry& entry = entries_[place];
  entry.subscription = subscription;
  entry.rule = std::make_unique<CompiledRule>(std::move(rule));
  entry.way = way_of(*entry.rule);
  if (entry.way == Way::lookup) index_.add(place, entry.rule->equalities.tests);
  if (auto* list = list_of(entry.way)) {
    entry.position = static_cast<std::uint32_t>(list->size());
    list->push_back(place);
  }
  ++counter(*entry.rule);
  subscriptions_[subscription].emplace(std::move(key), place);
}

void RuleSet::erase(Place place) {
  Entry& entry = entries_[place];
  if (entry.way == Way::lookup) index_.remove(place);
  if (auto* list = list_of(entry.way)) {
    const Place last = list->back();
    (*list)[entry.position] = last;
    entries_[last].position = entry.position;
    list->pop_back();
  }
  --counter(*entry.rule);
  entry = Entry{};
  free_places_.push_back(place);
}

Result<void> RuleSet::replace(SubscriptionId subscription, CompiledRule rule) {
  const auto found = subscriptions_.find(subscription);
  const std::string key = ascii_lower(rule.rule.name);
  if (found == subscriptions_.end() || !found->second.contains(key))
    return fail(Errc::not_found, "the subscription has no rule '{}'", rule.rule.name);
  const Place place = found->second.at(key);
  // The room of the old one counts when both are of a kind.
  if (rule.is_correlation() != entries_[place].rule->is_correlation())
    if (auto room = check_room(rule); !room) return room;
  erase(place);
  found->second.erase(key);
  insert(subscription, std::move(rule), key);
  return {};
}

Result<void> RuleSet::remove(SubscriptionId subscription, std::string_view name) {
  const auto found = subscriptions_.find(subscription);
  const std::string key = ascii_lower(name);
  if (found == subscriptions_.end() || !found->second.contains(key))
    return fail(Errc::not_found, "the subscription has no rule '{}'", name);
  erase(found->second.at(key));
  found->second.erase(key);
  if (found->second.empty()) subscriptions_.erase(found);
  return {};
}

void RuleSet::remove_subscription(SubscriptionId subscription) {
  const auto found = subscriptions_.find(subscription);
  if (found == subscriptions_.end()) return;
  for (const auto& [name, place] : found->second) erase(place);
  subscriptions_.erase(found);
}

const Rule* RuleSet::find(SubscriptionId subscription, std::string_view name) const {
  const auto found = subscriptions_.find(subscription);
  if (found == subscriptions_.end()) return nullptr;
  const auto rule = found->second.find(ascii_lower(name));
  return rule == found->second.end() ? nullptr : &entries_[rule->second].rule->rule;
}

std::vector<const Rule*> RuleSet::list(SubscriptionId subscription, std::size_t skip, std::size_t top) const {
  std::vector<const Rule*> rules;
  const auto found = subscriptions_.find(subscription);
  if (found == subscriptions_.end()) return rules;
  for (const auto& [name, place] : found->second) {
    if (skip > 0) {
      --skip;
      continue;
    }
    if (rules.size() == top) break;
    rules.push_back(&entries_[place].rule->rule);
  }
  return rules;
}

std::size_t RuleSet::count(SubscriptionId subscription) const {
  const auto found = subscriptions_.find(subscription);
  return found == subscriptions_.end() ? 0 : found->second.size();
}

void RuleSet::matched(Place place) {
  const Entry& entry = entries_[place];
  if (entry.rule->action)
    with_action_.push_back(place);
  else
    unchanged_.push_back(entry.subscription);
}

void RuleSet::judge(Place place, Evaluator& evaluator, Matches& out) {
  const Entry& entry = entries_[place];
  switch (evaluator.test(*entry.rule->program)) {
    case Truth::yes:
      return matched(place);
    case Truth::failed:
      out.failures.push_back(
          {entry.subscription, Failure::Kind::filter, entry.rule->rule.name, evaluator.problem()});
      return;
    case Truth::no:
    case Truth::unknown:
      return;
  }
}

void RuleSet::run_actions(MessageFields& fields, Random& random, Matches& out) {
  for (const Place place : with_action_) {
    const Entry& entry = entries_[place];
    const Rule& rule = entry.rule->rule;
    auto edits = run_action(*entry.rule->action, fields, random);
    if (!edits) {
      out.failures.push_back({entry.subscription, Failure::Kind::action, rule.name, edits.error().detail});
      continue;
    }
    edits->set("RuleName", amqp::Value{rule.name});
    out.copies.push_back({entry.subscription, &rule, std::move(*edits)});
  }
}

void RuleSet::put_in_order(Matches& out) {
  const auto name = [](const Copy& copy) { return copy.rule ? std::string_view{copy.rule->name} : ""; };
  if (!std::ranges::all_of(out.copies, [](const Copy& copy) { return copy.rule == nullptr; }))
    std::ranges::sort(out.copies, [&](const Copy& a, const Copy& b) {
      return std::tuple{a.subscription, name(a)} < std::tuple{b.subscription, name(b)};
    });
  // The first failing rule of a subscription speaks for it.
  std::ranges::sort(out.failures, [](const Failure& a, const Failure& b) {
    return std::tie(a.subscription, a.rule) < std::tie(b.subscription, b.rule);
  });
  const auto rest = std::ranges::unique(out.failures, {}, &Failure::subscription);
  out.failures.erase(rest.begin(), rest.end());
}

Result<void> RuleSet::match(MessageFields& fields, Random& random, Matches& out) {
  out.clear();
  found_.clear();
  with_action_.clear();
  unchanged_.clear();
  if (auto readable = fields.load(); !readable) return fail(readable.error());

  for (const Place place : always_) matched(place);
  Evaluator evaluator{fields, random};
  index_.match(fields, found_);
  for (const Place place : found_) {
    const CompiledRule& rule = *entries_[place].rule;
    if (rule.equalities.whole)
      matched(place);
    else
      judge(place, evaluator, out);
  }
  for (const Place place : evaluated_) judge(place, evaluator, out);

  std::ranges::sort(unchanged_);
  const auto twice = std::ranges::unique(unchanged_);
  unchanged_.erase(twice.begin(), twice.end());
  for (const SubscriptionId subscription : unchanged_) out.copies.push_back({subscription, nullptr, {}});
  run_actions(fields, random, out);
  put_in_order(out);
  return {};
}

}  // namespace omnibus::rules
