#include "base/check.hpp"
#include "broker/partition_key.hpp"
#include "store/store_parts.hpp"

namespace omnibus::store {
namespace {

// The request by which the store itself asks; its answer is looked for at once.
constexpr broker::RequestId own_request{1};

// What effects ask of the store itself.
bool is_errand(const broker::Effect& effect) {
  return std::holds_alternative<broker::Forward>(effect) ||
         std::holds_alternative<broker::Distribute>(effect);
}

// Calls `each` with every lock that a letter brings, and until when it lasts.
template <class Each>
void for_each_lock(broker::Effect& effect, const Each& each) {
  if (auto* deliver = std::get_if<broker::Deliver>(&effect)) {
    if (deliver->locked_until) each(deliver->lock, *deliver->locked_until);
  } else if (auto* messages = std::get_if<broker::Messages>(&effect)) {
    for (broker::HeldMessage& one : messages->messages)
      if (one.lock && one.locked_until) each(*one.lock, *one.locked_until);
  }
}

bool is_partitioned(const PartitionInfo& info) {
  return info.kind == PartitionKind::topic ? info.topic_settings.is_partitioned
                                           : info.settings.is_partitioned;
}

}  // namespace

void Store::Parts::run(Partition& partition, const broker::Command& command) {
  ask(partition, [&] {
    if (partition.topic)
      partition.topic->apply(now, command, effects);
    else
      partition.queue->apply(now, command, effects);
  });
}

void Store::Parts::asked(Partition& partition) {
  if (partition.topic)
    hear_of_copies(partition);
  else
    urgent |= partition.queue->take_sync_wish();
  partitions.reschedule(partition);
  groups.touched(static_cast<std::uint32_t>(partition.info.id));
  std::vector<broker::Effect> list = std::move(effects.list);
  effects.list.clear();
  carry(partition, list);
  // The buffer goes back, so that a turn makes no new ones.
  list.clear();
  effects.list = std::move(list);
}

void Store::Parts::carry(Partition& partition, std::vector<broker::Effect>& list) {
  for (broker::Effect& effect : list) {
    if (!partition.receivers.passes(effect)) continue;
    // Nobody is there to take what a deleted partition would still deliver; requests are answered.
    if (partition.deleting && (std::holds_alternative<broker::Deliver>(effect) || is_errand(effect) ||
                               std::holds_alternative<broker::DeleteIdle>(effect)))
      continue;
    if (std::holds_alternative<broker::DeleteIdle>(effect)) {
      idle.push_back(partition.info.id);
    } else if (connection_of(effect) == 0 && !is_errand(effect)) {
      if (auto* refused = std::get_if<broker::Refused>(&effect)) own_refusal = std::move(refused->error);
      if (auto* unrouted = std::get_if<broker::Unrouted>(&effect)) own_unrouted = std::move(*unrouted);
    } else {
      post(partition.info.id, std::move(effect));
    }
  }
}

void Store::Parts::post(PartitionId from, broker::Effect&& effect) {
  if (groups.passes(static_cast<std::uint32_t>(from), effect))
    outbox.post(from, recoveries, std::move(effect));
}

std::uint32_t Store::Parts::Places::available(std::uint32_t partition, broker::SubQueue sub_queue) const {
  if (!parts_.is_open()) return 0;
  const Partition* found = parts_.partitions.find(PartitionId{partition});
  return found && found->queue ? found->queue->available(sub_queue) : 0;
}

void Store::Parts::Places::ask(std::uint32_t partition, broker::Command&& command) {
  parts_.to_partition(PartitionId{partition}, std::move(command));
}

void Store::Parts::Places::tell(std::uint32_t partition, broker::Effect&& effect) {
  parts_.outbox.post(PartitionId{partition}, parts_.recoveries, std::move(effect));
}

void Store::Parts::send(Letter&& letter) {
  if (is_errand(letter.answer.effect)) {
    // Of a machine that is gone: the one made anew asks again.
    if (letter.era == recoveries && state == StoreState::open) errands.push_back(std::move(letter));
    return;
  }
  if (letter.held) begin_locks(letter);
  if (letter.unreadable && std::holds_alternative<broker::Deliver>(letter.answer.effect))
    unreadable.push_back({{letter.answer.effect}, letter.from, letter.era, true});
  in_callback = true;
  owner.on_answer(std::move(letter.answer));
  in_callback = false;
}

void Store::Parts::hold_unsent() {
  outbox.visit_waiting([this](Letter& letter) {
    Partition* partition = partitions.find(letter.from);
    if (!partition || !partition->queue) return;
    for_each_lock(letter.answer.effect, [&](const broker::LockToken& token, Instant&) {
      letter.held |= partition->queue->hold_unsent(token);
    });
    partitions.reschedule(*partition);
  });
}

void Store::Parts::begin_locks(Letter& letter) {
  Partition* partition = partitions.find(letter.from);
  if (state != StoreState::open || !partition || !partition->queue) return;
  ask(*partition, [&] {
    for_each_lock(letter.answer.effect, [&](const broker::LockToken& token, Instant& until) {
      until = partition->queue->begin_lock(now, token, effects).value_or(until);
    });
  });
}

void Store::Parts::work_off() {
  if (working_off) return;
  working_off = true;
  if (reader.failing() > 0 && state == StoreState::open) hold_unsent();
  for (bool more = true; more;) {
    more = groups.work();
    if (!unreadable.empty()) {
      more = true;
      Letter letter = std::move(unreadable.front());
      unreadable.pop_front();
      put_aside(std::move(letter));
    }
    // A copy takes space: with the disk full they wait.
    if (!errands.empty() && !errands_wait && !full && is_open() && !broken &&
        backlog_bytes + turn_bytes <= settings.backlog_bytes_max) {
      more = true;
      Letter letter = std::move(errands.front());
      errands.pop_front();
      if (std::holds_alternative<broker::Forward>(letter.answer.effect))
        forward(std::move(letter));
      else
        distribute(std::move(letter));
    }
    if (!idle.empty()) {
      more = true;
      const PartitionId id = idle.back();
      idle.pop_back();
      Partition* partition = partitions.find(id);
      if (!partition || state != StoreState::open || change_refused(partition->info.name)) continue;
      const PartitionInfo& info = partition->info;
      if (info.kind == PartitionKind::topic ? info.topic_settings.is_partitioned
                                            : info.settings.is_partitioned) {
        owner.on_partition_idle(info);
        continue;
      }
      std::vector<std::pair<PartitionId, std::string>> gone;
      for (const Partition* one : with_subscriptions(*partition))
        gone.emplace_back(one->info.id, one->info.name);
      remove(*partition, nullptr);
      for (const auto& [one, name] : gone) owner.on_partition_gone(one, name);
    }
  }
  working_off = false;
}

// A message whose bytes are gone does not go round: nobody could ever complete it.
void Store::Parts::put_aside(Letter&& letter) {
  const auto& deliver = std::get<broker::Deliver>(letter.answer.effect);
  Partition* partition = partitions.find(letter.from);
  // One from before a failure is delivered again, and judged then.
  if (state != StoreState::open || letter.era != recoveries || !partition ||
      deliver.mode != broker::ReceiveMode::peek_lock)
    return;
  broker::Settle settle{broker::RequestId::none, {deliver.lock}, {}, std::nullopt, deliver.receiver};
  if (deliver.status.sub_queue == broker::SubQueue::active)
    settle.outcome = broker::DeadLetter{
        "StoreDamaged",
        fmt::format("The bytes of message {} could not be read back.", deliver.status.sequence),
        {}};
  else
    settle.outcome = broker::Defer{};  // a dead letter cannot be dead-lettered again
  run(*partition, settle);
}

void Store::Parts::forward(Letter&& letter) {
  auto& effect = std::get<broker::Forward>(letter.answer.effect);
  Partition* source = partitions.find(letter.from);
  if (!source) return;
  ForwardRequest request;
  request.from = letter.from;
  request.sequence = effect.status.sequence;
  request.target = std::move(effect.target);
  request.name_space = source->info.name_space;
  request.message = std::move(letter.answer.message);
  request.facts = {effect.first_sequence, effect.hops, std::move(effect.changes)};
  request.transfer = effect.transfer;
  if (source->topic) {
    request.from_exchange = true;
    request.walk.emplace(source->info.name, effect.steps);
    if (!request.walk->go_to(request.target)) return end_forward(*source, request, ForwardEnd{});
  }
  if (letter.unreadable)
    return end_forward(*source, request,
                       {Error{Errc::io, "the bytes of the message could not be read back"}});
  // An exchange of this store that does not match it names the next to ask; the walk ends this.
  for (;;) {
    in_callback = true;
    auto route = owner.on_forward(request);
    in_callback = false;
    if (!route) return end_forward(*source, request, {std::move(route.error())});
    if (!*route || !forward_here(*source, request, **route)) return;
  }
}

void Store::Parts::end_forward(Partition& source, const ForwardRequest& request, ForwardEnd end) {
  run(source, broker::Forwarded{request.sequence, std::move(end.error)});
}

// Enqueued there and removed here in one batch: a crash leaves the message in one place, never in both. True:
// the exchange did not match it, and `request` has another target.
bool Store::Parts::forward_here(Partition& source, ForwardRequest& request, PartitionId to) {
  Partition* target = partitions.find(to);
  std::optional<Error> error;
  if (!target)
    error = not_found(request.target);
  else if (target->info.kind == PartitionKind::subscription)
    error = takes_no_messages(*target);
  auto command = forward_command(request, own_request, random);
  if (!command) error = std::move(command.error());
  if (!error && is_partitioned(target->info))
    if (auto read = broker::compare_ids_within_keys(command->messages); !read)
      error = std::move(read.error());
  joining = true;
  joined_any = false;
  if (!error) {
    own_refusal.reset();
    own_unrouted.reset();
    run(*target, *command);
    error = std::exchange(own_refusal, std::nullopt);
    if (const auto unrouted = std::exchange(own_unrouted, std::nullopt)) {
      auto end = walk_on(request, *unrouted);
      if (!end) {
        joining = false;
        return true;
      }
      error = std::move(end->error);
    }
  }
  end_forward(source, request, {std::move(error)});
  joining = false;
  return false;
}

}  // namespace omnibus::store
