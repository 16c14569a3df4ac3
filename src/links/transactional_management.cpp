#include "links/transactional_management.hpp"

#include <map>

#include "links/transactional_sends.hpp"

namespace omnibus::links {
namespace {

using broker::Answer;
using broker::RequestId;

void refuse(EntityClient::OnAnswer& on_answer, const Error& error, Now now) {
  Answer answer{broker::Refused{RequestId::none, error}};
  on_answer(answer, now);
}

broker::TransactionStep step_at(const Route& route, broker::TransactionWork work) {
  return {route.store, route.partition, std::move(work)};
}

// One request on its way into a transaction.
struct Enlisting {
  Transaction& transaction;
  const ManagedEntity& entity;
  LinkContext& context;
  Now now;
  EntityClient::OnAnswer& on_answer;  // taken by who answers later

  // Nothing: the answer comes later.
  Result<std::optional<broker::Effect>> take(broker::Settle& settle);
  Result<std::optional<broker::Effect>> take(broker::Schedule& schedule);
  Result<std::optional<broker::Effect>> take(broker::AddRule& command) { return take_rule(command); }
  Result<std::optional<broker::Effect>> take(broker::RemoveRule& command) { return take_rule(command); }
  template <class Other>
  Result<std::optional<broker::Effect>> take(Other&) {
    return fail(Errc::not_allowed, "This operation cannot be part of a transaction.");
  }

 private:
  template <class Change>
  Result<std::optional<broker::Effect>> take_rule(Change& command);
};

Result<std::optional<broker::Effect>> Enlisting::take(broker::Settle& settle) {
  Enlistment enlistment;
  if (!entity.facts->is_partitioned()) {
    enlistment.steps.push_back(step_at(entity.facts->route, std::move(settle)));
  } else {
    std::map<std::uint16_t, std::vector<broker::LockToken>> parts;
    for (const broker::LockToken& token : settle.tokens) parts[token.partition()].push_back(token);
    for (auto& [partition, tokens] : parts) {
      if (partition >= entity.facts->partitions.size())
        return fail(Errc::message_lock_lost, "a lock token is not of this entity");
      broker::Settle one = settle;
      one.tokens = std::move(tokens);
      enlistment.steps.push_back(step_at(entity.facts->partitions[partition], std::move(one)));
    }
  }
  if (const auto taken = context.transactions.enlist(transaction, std::move(enlistment)); !taken)
    return fail(taken.error());
  return std::optional<broker::Effect>{broker::Done{RequestId::none}};
}

Result<std::optional<broker::Effect>> Enlisting::take(broker::Schedule& schedule) {
  if (!broker::may_send(entity.facts->status))
    return fail(Errc::entity_disabled, "sending to '{}' is disabled", entity.facts->name);
  const auto route = route_in(transaction, *entity.facts, schedule.messages, false);
  if (!route) return fail(route.error());
  if (schedule.messages.size() > context.transactions.limits().numbers_max)
    return fail(Errc::argument_out_of_range, "{} messages to schedule, a request has at most {}.",
                schedule.messages.size(), context.transactions.limits().numbers_max);
  broker::ReserveNumbers reserve;
  reserve.count = static_cast<std::uint32_t>(schedule.messages.size());
  transaction.begin_asking();
  // The transaction may be over when the numbers come: only its id is kept.
  reserve.request = context.entities.expect(
      [&context = context, id = transaction.id(), route = *route, schedule = std::move(schedule),
       on_answer = std::move(on_answer)](Answer& answer, Now later) mutable {
        const auto found = context.transactions.find(id);
        if (!found) return refuse(on_answer, found.error(), later);
        (*found)->end_asking();
        const auto* reserved = std::get_if<broker::Scheduled>(&answer.effect);
        if (!reserved) return on_answer(answer, later);
        Enlistment enlistment;
        enlistment.messages = static_cast<std::uint32_t>(schedule.messages.size());
        for (const auto& message : schedule.messages) enlistment.bytes += message.bytes.size();
        schedule.reserved = reserved->sequences;
        enlistment.steps.push_back(step_at(route, std::move(schedule)));
        if (const auto taken = context.transactions.enlist(**found, std::move(enlistment)); !taken)
          return refuse(on_answer, taken.error(), later);
        on_answer(answer, later);
      });
  context.entities.send(*route, reserve);
  return std::optional<broker::Effect>{};
}

template <class Change>
Result<std::optional<broker::Effect>> Enlisting::take_rule(Change& command) {
  const EntityFacts& subscription = *entity.facts;
  if (subscription.is_partitioned())
    return fail(Errc::not_allowed, "The rules of '{}' cannot be changed in a transaction: it is partitioned.",
                subscription.name);
  // What an exchange would refuse anyway is said now, not by the commit.
  const auto topic = context.entities.find(
      std::string_view{subscription.name}.substr(0, subscription.name.rfind("/Subscriptions/")));
  if (topic && topic->exchange)
    return fail(Errc::not_allowed, "'{}' is a subscription of an exchange and has no rules.",
                subscription.name);
  Enlistment enlistment;
  enlistment.steps.push_back(step_at(subscription.route, std::move(command)));
  if (const auto taken = context.transactions.enlist(transaction, std::move(enlistment)); !taken)
    return fail(taken.error());
  return std::optional<broker::Effect>{broker::Done{RequestId::none}};
}

}  // namespace

void enlist_command(Bytes transaction, broker::Command command, const ManagedEntity& entity,
                    LinkContext& context, Now now, EntityClient::OnAnswer on_answer) {
  const auto found = context.transactions.begin_operation(transaction, now);
  if (!found) return refuse(on_answer, found.error(), now);
  Enlisting enlisting{**found, entity, context, now, on_answer};
  auto taken = std::visit([&](auto& one) { return enlisting.take(one); }, command);
  if (!taken) return refuse(on_answer, taken.error(), now);
  if (!*taken) return;
  Answer answer{**std::move(taken)};
  on_answer(answer, now);
}

}  // namespace omnibus::links
