#include <algorithm>

#include "base/check.hpp"
#include "broker/topic_parts.hpp"

namespace omnibus::broker {

std::optional<Error> Topic::Parts::take_rule(SubscriptionId id, const rules::Rule& rule, bool replaces) {
  auto compiled = rules::compile(rule);
  if (!compiled) return std::move(compiled.error());
  const bool there = replaces && rule_set.find(id, rule.name) != nullptr;
  auto taken = there ? rule_set.replace(id, std::move(*compiled)) : rule_set.add(id, std::move(*compiled));
  if (!taken) return std::move(taken.error());
  return std::nullopt;
}

void Topic::Parts::forget(SubscriptionId id) {
  rule_set.remove_subscription(id);
  if (exchange) exchange->remove(id);
  subscriptions.erase(id);
}

Result<void> Topic::prepare(Instant now, SubscriptionId id, std::vector<rules::Rule> with,
                            std::optional<rules::Binding> binding) {
  Parts& parts = *parts_;
  check(!parts.subscriptions.contains(id), "a subscription's id is its own");
  std::optional<Error> error;
  if (parts.exchange) {
    if (!with.empty())
      return fail(Errc::not_allowed, "'{}' is an exchange: its subscriptions have no rules",
                  parts.settings.name);
    if (!binding) binding.emplace();
    if (auto set = parts.exchange->set(id, *binding); !set) error = std::move(set.error());
  } else {
    if (binding) return fail(parts.without_bindings());
    if (with.empty()) {
      rules::Rule all;
      all.name = rules::default_rule_name;
      all.created = now;
      with.push_back(std::move(all));
    }
    for (std::size_t i = 0; i < with.size() && !error; ++i) error = parts.take_rule(id, with[i], false);
  }
  if (error) {
    parts.forget(id);
    return fail(std::move(*error));
  }
  parts.subscriptions[id].binding = std::move(binding);
  return {};
}

void Topic::start(Instant now, SubscriptionId id, Queue& queue, Effects& effects) {
  Parts& parts = *parts_;
  parts.now = now;
  parts.effects = &effects;
  join(id, queue);
  if (parts.exchange) {
    parts.append(BindingSetRecord{id, *parts.subscriptions.at(id).binding});
  } else {
    RulesAddedRecord record{id, {}};
    for (const rules::Rule* rule : parts.rule_set.list(id)) record.rules.push_back(*rule);
    parts.append(record);
  }
  parts.effects = nullptr;
}

void Topic::join(SubscriptionId id, Queue& queue) {
  parts_->subscriptions[id].queue = &queue;
  queue.share(parts_->shared, parts_->exchange_name);
}

void Topic::remove_subscription(SubscriptionId id) { parts_->forget(id); }

void Topic::apply_for(Instant now, SubscriptionId id, const Command& command, Effects& effects) {
  parts_->now = now;
  parts_->effects = &effects;
  parts_->rule_command(id, command);
  parts_->effects = nullptr;
}

std::optional<Error> Topic::Parts::change_refused(SubscriptionId id) const {
  if (failed) return recovering();
  const auto found = subscriptions.find(id);
  if (found == subscriptions.end() || !found->second.queue)
    return Error{Errc::not_found, fmt::format("'{}' has no subscription {}", settings.name, id)};
  return std::nullopt;
}

std::optional<Error> Topic::Parts::rule_change_refused(SubscriptionId id, bool by_administrator) const {
  if (auto error = change_refused(id)) return error;
  const QueueSettings& of = subscriptions.at(id).queue->settings();
  if (!by_administrator && !may_receive(of.status))
    return Error{Errc::entity_disabled, fmt::format("'{}' is disabled, its rules stay", of.name)};
  return without_rules();
}

std::optional<Error> Topic::binding_refused(SubscriptionId id, const rules::Binding& binding) const {
  if (auto error = parts_->change_refused(id)) return error;
  if (!parts_->exchange) return parts_->without_bindings();
  std::vector<rules::Finding> findings;
  rules::check_routing(parts_->exchange->type(), binding, std::to_string(id), findings);
  for (const rules::Finding& finding : findings)
    if (!finding.is_warning)
      return Error{Errc::argument_error, fmt::format("{}: {}", finding.code, finding.message)};
  return std::nullopt;
}

std::optional<Error> Topic::Parts::without_rules() const {
  if (!exchange) return std::nullopt;
  return Error{Errc::not_allowed,
               fmt::format("'{}' is an exchange: its subscriptions have no rules", settings.name)};
}

Error Topic::Parts::without_bindings() const {
  return {Errc::not_allowed, fmt::format("'{}' is no exchange: its subscriptions have rules", settings.name)};
}

void Topic::Parts::rule_command(SubscriptionId id, const Command& command) {
  const auto done = [&](RequestId request) {
    subscriptions.at(id).queue->touch(now);
    if (request != RequestId::none) emit_when_durable(Done{request});
  };
  if (const auto* add = std::get_if<AddRule>(&command)) {
    auto error = rule_change_refused(id, add->by_administrator);
    rules::Rule rule = *add->rule;
    if (const rules::Rule* old = add->replaces && !error ? rule_set.find(id, rule.name) : nullptr) {
      rule.created = old->created;
      rule.name = old->name;
    } else if (add->replaces && !error) {
      error = Error{Errc::not_found, fmt::format("there is no rule '{}'", rule.name)};
    }
    if (!error) error = take_rule(id, rule, add->replaces);
    if (error) return refuse(add->request, std::move(*error));
    append(RulesAddedRecord{id, {std::move(rule)}});
    done(add->request);
  } else if (const auto* remove = std::get_if<RemoveRule>(&command)) {
    auto error = rule_change_refused(id, remove->by_administrator);
    if (!error)
      if (auto removed = rule_set.remove(id, remove->name); !removed) error = std::move(removed.error());
    if (error) return refuse(remove->request, std::move(*error));
    if (checkpoint.subscription == id) checkpoint.rule = 0;  // the ones behind it moved up
    append(RuleRemovedRecord{id, remove->name});
    done(remove->request);
  } else if (const auto* list = std::get_if<ListRules>(&command)) {
    if (failed) return refuse(list->request, recovering());
    RuleList answer{list->request, {}};
    if (list->name) {
      if (const rules::Rule* rule = rule_set.find(id, *list->name)) answer.rules.push_back(*rule);
    } else {
      for (const rules::Rule* rule : rule_set.list(id, list->skip, list->top)) answer.rules.push_back(*rule);
    }
    if (list->request != RequestId::none) emit(std::move(answer));
  } else if (const auto* set = std::get_if<SetBinding>(&command)) {
    auto error = change_refused(id);
    if (!error && !exchange) error = without_bindings();
    if (!error)
      if (auto bound = exchange->set(id, set->binding); !bound) error = std::move(bound.error());
    if (error) return refuse(set->request, std::move(*error));
    subscriptions.at(id).binding = set->binding;
    append(BindingSetRecord{id, set->binding});
    done(set->request);
  } else {
    check(false, "only rules and bindings are asked of a topic for its subscription");
  }
}

}  // namespace omnibus::broker
