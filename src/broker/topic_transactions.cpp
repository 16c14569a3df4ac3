#include "base/check.hpp"
#include "base/text.hpp"
#include "broker/topic_parts.hpp"

// Steps of transactions at a topic or exchange [contract 7]: judged first, carried out later without being
// refused any more. Rules may have changed in between by others; a step then ends with what it wanted.

namespace omnibus::broker {

std::optional<Error> Topic::refusal(Instant now, const TransactionWork& work, TransactionTally& tally) {
  parts_->now = now;
  return std::visit([&](const auto& one) { return parts_->refusal(one, tally); }, work);
}

std::optional<Error> Topic::Parts::refusal(const Enqueue& work, TransactionTally& tally) {
  check(!work.forwarded, "nobody forwards within a transaction");
  if (auto error = sends_refusal(work.messages, tally)) return error;
  bool anybody = work.messages.empty();
  for (const auto& message : work.messages) {
    const auto wanted = is_wanted(message);
    if (!wanted) return wanted.error();
    anybody = anybody || *wanted;
  }
  if (anybody) return std::nullopt;
  return Error{Errc::not_found,
               fmt::format("no subscription of the exchange '{}' matches the message", settings.name)};
}

std::optional<Error> Topic::Parts::refusal(const Schedule& work, TransactionTally& tally) {
  if (auto error = schedule_refusal(work)) return error;
  for (const SequenceNumber number : work.reserved)
    if (!tally.numbers.insert(number).second)
      return Error{Errc::argument_error, fmt::format("number {} is given to two messages", number)};
  if (auto error = sends_refusal(work.messages, tally)) return error;
  // Only whether they can be read: nobody waits for what becomes of them.
  for (const auto& message : work.messages)
    if (const auto wanted = is_wanted(message); !wanted) return wanted.error();
  return std::nullopt;
}

template <class Work>
std::optional<Error> Topic::Parts::refusal(const Work&, TransactionTally&) {
  if constexpr (std::is_same_v<Work, EnqueueTransfer>)
    return Error{Errc::not_implemented,
                 fmt::format("'{}' is a topic: nothing is sent via it yet", settings.name)};
  return Error{Errc::not_allowed,
               fmt::format("'{}' is a topic: this is for its subscriptions or for queues", settings.name)};
}

std::optional<Error> Topic::Parts::sends_refusal(std::span<const IncomingMessage> messages,
                                                 TransactionTally& tally) {
  if (auto error = refuse_messages(messages, tally.bytes)) return error;
  for (const auto& message : messages) tally.bytes += message.bytes.size();
  return std::nullopt;
}

Result<bool> Topic::Parts::is_wanted(const IncomingMessage& message) {
  PublishedRecord::Item item;
  if (auto planned = plan_copies(message, next_sequence, message.facts.routing_key, item); !planned)
    return fail(planned.error());
  const bool is_kept_anyway = message.facts.scheduled && *message.facts.scheduled > now;
  const bool is_duplicate = settings.requires_duplicate_detection && message.facts.message_id &&
                            history.seen(*message.facts.message_id, now, settings.duplicate_window);
  return !item.copies.empty() || is_kept_anyway || is_duplicate || leads_on(0) || !exchange ||
         settings.unroutable == rules::Unroutable::accept;
}

std::optional<Error> Topic::refusal_for(SubscriptionId id, const TransactionWork& work,
                                        TransactionTally& tally) {
  Parts& parts = *parts_;
  const auto* add = std::get_if<AddRule>(&work);
  const auto* remove = std::get_if<RemoveRule>(&work);
  check(add || remove, "only rules are asked of a topic for its subscription");
  const bool by_administrator = add ? add->by_administrator : remove->by_administrator;
  if (auto error = parts.rule_change_refused(id, by_administrator)) return error;
  const std::string& name = add ? add->rule->name : remove->name;
  const rules::Rule* present = parts.rule_set.find(id, name);
  const std::pair key{id, ascii_lower(name)};
  const auto changed = tally.rules.find(key);
  const bool is_there = changed != tally.rules.end() ? changed->second : present != nullptr;
  const bool follows = add ? add->follows : remove->follows;
  if (!is_there && !follows && (remove || add->replaces))
    return Error{Errc::not_found, fmt::format("there is no rule '{}'", name)};
  // Of one that this transaction added the kind is not known here: its place stays taken.
  const auto free_its_place = [&] {
    if (changed != tally.rules.end() || !present) return;
    const bool correlation = std::holds_alternative<rules::CorrelationFilter>(present->filter);
    --(correlation ? tally.correlation_filters : tally.sql_filters);
  };
  if (remove) {
    free_its_place();
    tally.rules[key] = false;
    return std::nullopt;
  }
  auto compiled = rules::compile(*add->rule);
  if (!compiled) return std::move(compiled.error());
  if (is_there && !follows && !add->replaces)
    return Error{Errc::entity_already_exists, fmt::format("there is a rule '{}' already", name)};
  free_its_place();
  const bool correlation = compiled->is_correlation();
  auto& more = correlation ? tally.correlation_filters : tally.sql_filters;
  const std::size_t max = correlation ? parts.limits.correlation_filters_max : parts.limits.sql_filters_max;
  const std::size_t count =
      correlation ? parts.rule_set.correlation_filter_count() : parts.rule_set.sql_filter_count();
  if (max != 0 && static_cast<std::int64_t>(count) + more >= static_cast<std::int64_t>(max))
    return Error{Errc::resource_limit_exceeded, fmt::format("the topic has {} {} filters, which is the limit",
                                                            max, correlation ? "correlation" : "SQL")};
  ++more;
  tally.rules[key] = true;
  return std::nullopt;
}

void Topic::carry_out(Instant now, const TransactionWork& work, Effects& effects) {
  Parts& parts = *parts_;
  parts.now = now;
  parts.effects = &effects;
  parts.pass_time();
  parts.decided = true;
  std::visit([&](const auto& one) { parts.on(one); }, work);
  parts.decided = false;
  parts.effects = nullptr;
}

void Topic::carry_out_for(Instant now, SubscriptionId id, const TransactionWork& work, Effects& effects) {
  Parts& parts = *parts_;
  parts.now = now;
  parts.effects = &effects;
  // What was promised is taken, also when others have used up the limit since.
  parts.judge_rules(false);
  if (const auto* add = std::get_if<AddRule>(&work)) {
    const auto error = parts.take_rule(id, *add->rule, true);
    check(!error, "a rule that a transaction adds was judged");
    parts.append(RulesAddedRecord{id, {*add->rule}});
  } else {
    const auto& name = std::get<RemoveRule>(work).name;
    if (parts.rule_set.remove(id, name)) {
      if (parts.checkpoint.subscription == id) parts.checkpoint.rule = 0;  // the ones behind it moved up
      parts.append(RuleRemovedRecord{id, name});
    }
  }
  parts.judge_rules(true);
  parts.subscriptions.at(id).queue->touch(now);
  parts.effects = nullptr;
}

}  // namespace omnibus::broker
