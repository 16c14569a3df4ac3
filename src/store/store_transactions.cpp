#include "base/check.hpp"
#include "base/text.hpp"
#include "store/store_parts.hpp"

// Transactions [contract 7]. All steps are judged before one is carried out, and what they write is one
// batch: a crash leaves all or none. When other stores have steps too, this one asks them to prepare theirs,
// decides by a record in its own batch, and tells them (ADR 18).

namespace omnibus::store {
namespace {

bool changes_rules(const broker::TransactionWork& work) {
  return std::holds_alternative<broker::AddRule>(work) || std::holds_alternative<broker::RemoveRule>(work);
}

const std::string& rule_of(const broker::TransactionWork& work) {
  const auto* add = std::get_if<broker::AddRule>(&work);
  return add ? add->rule->name : std::get<broker::RemoveRule>(work).name;
}

// Of the messages that a step sends; nothing when it sends none.
std::optional<std::uint64_t> bytes_sent(const broker::TransactionWork& work) {
  return std::visit(
      [](const auto& one) -> std::optional<std::uint64_t> {
        if constexpr (requires { one.messages; }) {
          std::uint64_t bytes = 0;
          for (const auto& message : one.messages) bytes += message.bytes.size();
          return bytes;
        } else {
          return std::nullopt;
        }
      },
      work);
}

}  // namespace

void Store::store_message(Instant now, std::uint16_t from, StoreMessage&& message) {
  Parts& parts = *parts_;
  check(!parts.in_callback, "a callback does not call the store");
  parts.now = now;
  // Whoever waits for an answer from a store that is away asks again; only a question that is asked once is
  // answered.
  if (parts.is_open())
    std::visit([&](auto& one) { parts.heard(from, std::move(one)); }, message);
  else if (const auto* prepare = std::get_if<Prepare>(&message))
    parts.tell(from, PrepareRefused{prepare->id, parts.busy("a step of the transaction")});
  parts.settle(false);
}

// One store

std::optional<Error> Store::Parts::steps_refusal(std::span<const broker::TransactionStep> steps) {
  std::map<PartitionId, broker::TransactionTally> tallies;
  std::uint64_t bytes = 0;
  for (const auto& step : steps) {
    Partition* partition = partitions.find(static_cast<PartitionId>(step.partition));
    if (!partition) return not_found(fmt::format("partition {}", step.partition));
    const auto sent = bytes_sent(step.work);
    if (auto error = wrong_kind(*partition, sent.has_value())) return error;
    if (sent) {
      bytes += *sent;
      if (auto error = send_refused(*partition, bytes)) return error;
    }
    std::optional<Error> error;
    if (changes_rules(step.work) && partition->info.kind == PartitionKind::subscription) {
      Partition* topic = topic_of(*partition);
      if (!topic) return not_found(fmt::format("the topic of {}", partition->info.name));
      error = topic->topic->refusal_for(static_cast<broker::SubscriptionId>(partition->info.id), step.work,
                                        tallies[topic->info.id]);
    } else if (partition->topic) {
      error = partition->topic->refusal(now, step.work, tallies[partition->info.id]);
    } else {
      error = partition->queue->refusal(now, step.work, tallies[partition->info.id]);
    }
    if (error) return error;
  }
  return std::nullopt;
}

void Store::Parts::carry_out(std::span<const broker::TransactionStep> steps) {
  for (const auto& step : steps) {
    Partition* partition = partitions.find(static_cast<PartitionId>(step.partition));
    if (!partition) continue;  // deleted since it was prepared, and its step with it
    if (changes_rules(step.work)) {
      Partition* topic = topic_of(*partition);
      if (!topic) continue;
      ask(*topic, [&] {
        topic->topic->carry_out_for(now, static_cast<broker::SubscriptionId>(partition->info.id), step.work,
                                    effects);
      });
      partitions.reschedule(*partition);
    } else {
      ask(*partition, [&] {
        if (partition->topic)
          partition->topic->carry_out(now, step.work, effects);
        else
          partition->queue->carry_out(now, step.work, effects);
      });
    }
  }
}

template <class Work>
void Store::Parts::in_one_batch(const Work& work) {
  joining = true;
  joined_any = false;
  work();
  joining = false;
}

void Store::Parts::transact(broker::Transact&& command) {
  const auto no = [&](const Error& error) {
    if (command.request != broker::RequestId::none)
      post(PartitionId::none, broker::Refused{command.request, error});
  };
  if (!is_open()) return no(busy("the transaction"));
  std::map<std::uint16_t, std::vector<broker::TransactionStep>> others;
  std::vector<broker::TransactionStep> own;
  for (auto& step : command.steps)
    (step.store == settings.number ? own : others[step.store]).push_back(std::move(step));
  if (auto error = steps_refusal(own)) return no(*error);
  if (!others.empty()) return coordinate(command.request, std::move(own), std::move(others));
  in_one_batch([&] { carry_out(own); });
  if (broken) return no({Errc::internal_error, broken->detail});
  answer_when_durable(command.request);
}

void Store::Parts::answer_when_durable(broker::RequestId request) {
  if (request == broker::RequestId::none) return;
  if (journal->appended() <= journal->durable()) return post(PartitionId::none, broker::Done{request});
  when_durable([this, request](Result<void> done) {
    if (done)
      post(PartitionId::none, broker::Done{request});
    else
      post(PartitionId::none, broker::Refused{request, std::move(done.error())});
  });
}

// Several stores: who coordinates

void Store::Parts::tell(std::uint16_t to, StoreMessage&& message) {
  in_callback = true;
  owner.on_store_message(to, std::move(message));
  in_callback = false;
}

void Store::Parts::write(RecordKind kind, Bytes head, const Payload* payload) {
  journal::Record record;
  record.kind = static_cast<std::uint16_t>(kind);
  record.head = head;
  record.payload = payload;
  std::ignore = append(record);
}

void Store::Parts::coordinate(broker::RequestId request, std::vector<broker::TransactionStep>&& own,
                              std::map<std::uint16_t, std::vector<broker::TransactionStep>>&& others) {
  const TransactionId id{settings.number, transactions.origin, ++transactions.last};
  Coordinated one;
  one.request = request;
  one.steps = std::move(own);
  for (const auto& [store, steps] : others) one.participants.insert(store);
  transactions.coordinated.add(id, std::move(one), now + settings.prepare_patience);
  for (auto& [store, steps] : others) tell(store, Prepare{id, std::move(steps)});
}

void Store::Parts::heard(std::uint16_t from, Prepared&& message) {
  Coordinated* one = transactions.coordinated.find(message.id);
  if (!one || one->state != Coordinated::State::preparing || !one->participants.contains(from)) return;
  one->prepared.insert(from);
  if (one->prepared.size() == one->participants.size()) commit(message.id, *one);
}

void Store::Parts::heard(std::uint16_t, PrepareRefused&& message) {
  Coordinated* one = transactions.coordinated.find(message.id);
  if (one && one->state == Coordinated::State::preparing) roll_back(message.id, message.error);
}

// The decision is a record in the batch of the store's own steps.
void Store::Parts::commit(const TransactionId& id, Coordinated& one) {
  if (auto error = steps_refusal(one.steps)) return roll_back(id, *error);
  in_one_batch([&] {
    carry_out(one.steps);
    write(RecordKind::committed, encode_committed({id, {one.participants.begin(), one.participants.end()}}));
  });
  one.state = Coordinated::State::committing;
  one.steps.clear();
  transactions.coordinated.look_at(id, broker::never);
  if (broken) return;
  when_durable([this, id](const Result<void>& done) {
    if (!done) return;
    Coordinated* committed = transactions.coordinated.find(id);
    committed->state = Coordinated::State::committed;
    committed->answer_by = now + settings.decide_patience;
    tell_decision(id, *committed);
  });
}

void Store::Parts::tell_decision(const TransactionId& id, const Coordinated& one) {
  transactions.coordinated.look_at(id, now + settings.decide_retry);
  const std::vector<std::uint16_t> participants{one.participants.begin(), one.participants.end()};
  for (const std::uint16_t store : participants) tell(store, Decide{id, true});
}

void Store::Parts::roll_back(const TransactionId& id, const Error& error) {
  Coordinated* found = transactions.coordinated.find(id);
  const Coordinated one = std::move(*found);
  transactions.coordinated.remove(id);
  for (const std::uint16_t store : one.participants) tell(store, Decide{id, false});
  if (one.request != broker::RequestId::none) post(PartitionId::none, broker::Refused{one.request, error});
}

void Store::Parts::answer(Coordinated& one) {
  const auto request = std::exchange(one.request, broker::RequestId::none);
  if (request != broker::RequestId::none) post(PartitionId::none, broker::Done{request});
}

void Store::Parts::heard(std::uint16_t from, Decided&& message) {
  Coordinated* one = transactions.coordinated.find(message.id);
  if (!one || one->state != Coordinated::State::committed) return;
  one->participants.erase(from);
  if (!one->participants.empty()) return;
  answer(*one);
  transactions.coordinated.remove(message.id);
  // Nobody waits for it: without it the decision is told once more after a crash.
  write(RecordKind::forgotten, encode_forgotten({message.id}));
}

void Store::Parts::heard(std::uint16_t from, Inquire&& message) {
  if (message.id.store != settings.number) return;
  const Coordinated* one = transactions.coordinated.find(message.id);
  if (!one) return tell(from, Decide{message.id, false});  // presumed
  if (one->state == Coordinated::State::committed) tell(from, Decide{message.id, true});
}

// Several stores: who takes part

// Decisions about two transactions may come in another order than to other stores, after a failure. Where the
// order matters, the second one is not taken before the first is decided: partitions of one subscription
// would end with different rules.
std::optional<Error> Store::Parts::rule_in_doubt(std::span<const broker::TransactionStep> steps) {
  for (const auto& step : steps) {
    if (!changes_rules(step.work)) continue;
    for (const TransactionId* id = transactions.prepared.after({}); id; id = transactions.prepared.after(*id))
      for (const auto& other : transactions.prepared.find(*id)->record.steps)
        if (other.partition == step.partition && changes_rules(other.work) &&
            equals_ignoring_case(rule_of(other.work), rule_of(step.work)))
          return Error{Errc::server_busy,
                       fmt::format("another change of the rule '{}' is under way", rule_of(step.work))};
  }
  return std::nullopt;
}

void Store::Parts::heard(std::uint16_t from, Prepare&& message) {
  const auto no = [&](Error error) { tell(from, PrepareRefused{message.id, std::move(error)}); };
  if (transactions.prepared.find(message.id)) return;
  std::uint64_t bytes = 0;
  for (const auto& step : message.steps) bytes += bytes_sent(step.work).value_or(0);
  if (auto error = rule_in_doubt(message.steps)) return no(std::move(*error));
  if (auto error = steps_refusal(message.steps)) return no(std::move(*error));
  if (bytes > 0 && transactions.prepared_bytes + bytes > settings.backlog_bytes_max)
    return no({Errc::server_busy, fmt::format("{} bytes wait for decisions about transactions already",
                                              transactions.prepared_bytes)});
  Participation one;
  one.record = {message.id, std::move(message.steps), {}};
  one.bytes = bytes;
  for (const auto& step : one.record.steps) {
    const auto* settle = std::get_if<broker::Settle>(&step.work);
    if (!settle) continue;
    Partition& partition = *partitions.find(static_cast<PartitionId>(step.partition));
    for (const auto& lock : partition.queue->hold(settle->tokens))
      one.record.holds.push_back({partition.info.id, lock});
    partitions.reschedule(partition);
  }
  Payload messages;
  const auto head = encode_prepared(one.record, messages);
  write(RecordKind::prepared, head, &messages);
  transactions.prepared_bytes += bytes;
  transactions.prepared.add(message.id, std::move(one), broker::never);
  if (broken) return;
  when_durable([this, id = message.id](const Result<void>& done) {
    if (!done) return;
    Participation* prepared = transactions.prepared.find(id);
    if (!prepared) return;  // rolled back meanwhile
    prepared->state = Participation::State::prepared;
    transactions.prepared.look_at(id, now + settings.prepare_patience);
    tell(id.store, Prepared{id});
  });
}

void Store::Parts::heard(std::uint16_t, Decide&& message) {
  const TransactionId id = message.id;
  Participation* one = transactions.prepared.find(id);
  if (!one) {
    // It was done before, and is durable: the coordinator did not hear of it.
    if (message.commit) tell(id.store, Decided{id});
    return;
  }
  if (one->state == Participation::State::deciding) return;
  if (!message.commit) {
    const std::vector<PartitionHold> holds = std::move(one->record.holds);
    end_participation(id);
    let_go(holds);
    // Nobody waits for it: without it the coordinator is asked again after a crash.
    return write(RecordKind::decided, encode_decided({id, false}));
  }
  // It is told again; until then there may be space.
  if (full) return;
  in_one_batch([&] {
    carry_out(one->record.steps);
    write(RecordKind::decided, encode_decided({id, true}));
  });
  one->state = Participation::State::deciding;
  transactions.prepared.look_at(id, broker::never);
  if (broken) return;
  when_durable([this, id](const Result<void>& done) {
    if (!done) return;
    end_participation(id);
    tell(id.store, Decided{id});
  });
}

void Store::Parts::end_participation(const TransactionId& id) {
  if (const Participation* one = transactions.prepared.find(id)) transactions.prepared_bytes -= one->bytes;
  transactions.prepared.remove(id);
}

void Store::Parts::let_go(const std::vector<PartitionHold>& holds) {
  std::map<PartitionId, std::vector<broker::HeldLock>> by_partition;
  for (const auto& [id, lock] : holds) by_partition[id].push_back(lock);
  for (const auto& [id, locks] : by_partition)
    if (Partition* partition = partitions.find(id); partition && partition->queue)
      ask(*partition, [&] { partition->queue->let_go(now, locks, effects); });
}

// Time, failure, recovery

void Store::Parts::wake_transactions() {
  while (transactions.coordinated.first_due() <= now) {
    const TransactionId id = transactions.coordinated.first();
    Coordinated& one = *transactions.coordinated.find(id);
    if (one.state == Coordinated::State::preparing) {
      std::string missing;
      for (const std::uint16_t store : one.participants)
        if (!one.prepared.contains(store)) missing += fmt::format(" {}", store);
      roll_back(id,
                {Errc::timeout, fmt::format("the transaction was given up: no answer of store{}", missing)});
      continue;
    }
    // The outcome is certain, whoever is away.
    if (one.answer_by <= now) answer(one);
    tell_decision(id, one);
  }
  while (transactions.prepared.first_due() <= now) {
    const TransactionId id = transactions.prepared.first();
    transactions.prepared.look_at(id, now + settings.decide_retry);
    tell(id.store, Inquire{id});
  }
}

void Store::Parts::give_up_preparing(const Error& error) {
  std::vector<TransactionId> ids;
  for (const TransactionId* id = transactions.coordinated.after({}); id;
       id = transactions.coordinated.after(*id))
    if (transactions.coordinated.find(*id)->state == Coordinated::State::preparing) ids.push_back(*id);
  for (const TransactionId& id : ids) roll_back(id, error);
}

void Store::Parts::lose_transactions() {
  give_up_preparing({Errc::server_busy, fmt::format("the store of the transaction failed: {}", why)});
  for (const TransactionId* id = transactions.coordinated.after({}); id;
       id = transactions.coordinated.after(*id)) {
    Coordinated& one = *transactions.coordinated.find(*id);
    if (one.state == Coordinated::State::committed) answer(one);
    if (one.request != broker::RequestId::none)
      post(PartitionId::none,
           broker::Refused{
               one.request,
               {Errc::internal_error,
                fmt::format("the store failed, the transaction may or may not be there: {}", why)}});
  }
  transactions.clear();
}

Result<void> Store::Parts::replay_transaction(RecordKind kind, Bytes body) {
  switch (kind) {
    case RecordKind::prepared: {
      auto record = decode_prepared(body);
      if (!record) return omnibus::fail(std::move(record.error()));
      end_participation(record->id);
      Participation one;
      one.state = Participation::State::prepared;
      for (const auto& step : record->steps) one.bytes += bytes_sent(step.work).value_or(0);
      one.record = std::move(*record);
      transactions.prepared_bytes += one.bytes;
      const TransactionId id = one.record.id;
      transactions.prepared.add(id, std::move(one), broker::never);
      return {};
    }
    case RecordKind::committed: {
      auto record = decode_committed(body);
      if (!record) return omnibus::fail(std::move(record.error()));
      Coordinated one;
      one.state = Coordinated::State::committed;
      one.participants = {record->participants.begin(), record->participants.end()};
      transactions.coordinated.add(record->id, std::move(one), broker::never);
      return {};
    }
    case RecordKind::decided: {
      const auto record = decode_decided(body);
      if (!record) return omnibus::fail(record.error());
      end_participation(record->id);
      return {};
    }
    case RecordKind::forgotten: {
      const auto record = decode_forgotten(body);
      if (!record) return omnibus::fail(record.error());
      transactions.coordinated.remove(record->id);
      return {};
    }
    default:
      check(false, "this is no record of a transaction");
      return {};
  }
}

void Store::Parts::recover_transactions() {
  transactions.origin = random.next();
  transactions.last = 0;
  for (const TransactionId* id = transactions.coordinated.after({}); id;
       id = transactions.coordinated.after(*id))
    transactions.coordinated.look_at(*id, now);
  for (const TransactionId* id = transactions.prepared.after({}); id; id = transactions.prepared.after(*id)) {
    transactions.prepared.look_at(*id, now);
    for (const auto& [partition, lock] : transactions.prepared.find(*id)->record.holds)
      if (Partition* of = partitions.find(partition); of && of->known && of->queue)
        of->queue->hold_again(lock);
  }
}

}  // namespace omnibus::store
