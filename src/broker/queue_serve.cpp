#include "base/check.hpp"
#include "broker/queue_parts.hpp"

namespace omnibus::broker {
namespace {

// Forwards that wait for their target's answer at the same time.
constexpr std::size_t forwards_max = 64;
constexpr std::uint8_t hops_max = 4;

}  // namespace

void Queue::Parts::serve() {
  if (receivers.set_prefetch({settings.prefetch_count, settings.prefetch_bytes})) {
    for (const Lock& lock : locks.all())
      if (lock.receiver != ReceiverId::none && receivers.is_limited())
        receivers.hold(lock.receiver, entries[lock.slot].size);
    for (const ReceiverId id : receivers.ids())
      if (const std::uint32_t session = receivers.find(id)->session; session != no_slot) touch(session);
  }
  const auto line = [this](SubQueue sub_queue, const std::string& target) {
    if (target.empty())
      serve_line(sub_queue);
    else
      serve_forwards(sub_queue, target);
  };
  line(SubQueue::active, settings.forward_to);
  line(SubQueue::dead_letter, settings.forward_dead_letters_to);
  serve_transfers();
  serve_line(SubQueue::transfer_dead_letter);
  while (!touched.empty()) {
    // The list may grow while it is worked through.
    for (std::size_t i = 0; i < touched.size(); ++i)
      if (sessions.exists(touched[i]) && sessions[touched[i]].holder != ReceiverId::none)
        serve_session(touched[i]);
    settle_touched();
    grant_sessions();
  }
  // A session's last message may have gone to the dead-letter sub-queue just now.
  line(SubQueue::dead_letter, settings.forward_dead_letters_to);
  flush_deliveries();
}

void Queue::Parts::serve_line(SubQueue sub_queue) {
  auto& lane = lanes[static_cast<std::size_t>(sub_queue)];
  while (receivers.anyone(sub_queue)) {
    const std::uint32_t slot = lane.first_available();
    if (slot == no_slot) return;
    // Nobody has room for this one: it waits, and what is behind it does too.
    Receiver* receiver = receivers.next(sub_queue, entries[slot].size);
    if (!receiver) return;
    deliver(*receiver, slot);
  }
}

void Queue::Parts::serve_session(std::uint32_t index) {
  auto& session = sessions[index];
  Receiver& receiver = *receivers.find(session.holder);
  while (receiver.has_credit()) {
    const std::uint32_t slot = session.lane.first_available();
    if (slot == no_slot || !receivers.has_room(receiver, entries[slot].size)) return;
    deliver(receiver, slot);
  }
}

bool Queue::Parts::deliver(Receiver& receiver, std::uint32_t slot) {
  Entry& entry = entries[slot];
  if (entry.sub_queue == SubQueue::active && entry.due <= to_ms(now)) {
    expire(slot);
    return false;
  }
  active_now();
  // As it is stored: header and annotations of the sender included, so a link never holds more than its
  // limit in bytes of bare messages.
  const std::uint32_t bytes = entry.size;
  const LockToken token = new_token();
  if (receiver.mode == ReceiveMode::peek_lock) {
    const bool of_session = receiver.state == Receiver::State::holds_session;
    const Instant until = of_session ? sessions[receiver.session].locked_until : now + settings.lock_duration;
    lock(slot, token, until, receiver.id, of_session);
    // A session's locks end with its link, and no link outlives the process: they need no record.
    if (!of_session) new_locks.items.push_back({entry.sequence, token, until});
    emit(Deliver{receiver.id, receiver.mode, token, until, status_of(slot)});
  } else {
    ++totals.completed;
    new_removals.sequences.push_back(entry.sequence);
    Deliver effect{receiver.id, receiver.mode, token, std::nullopt, status_of(slot)};
    const StoredMessage dead = erase(slot);
    new_deliveries.push_back({{}, std::move(effect), dead});
    ++receiver.on_the_way;
  }
  ++totals.delivered;
  receivers.served(receiver, bytes);
  return true;
}

void Queue::Parts::flush_deliveries() {
  if (!new_locks.items.empty()) {
    writer.clear();
    encode_record(writer, new_locks);
    appended = effects->sink.append(writer.bytes(), {});
    new_locks.items.clear();
  }
  if (!new_removals.sequences.empty()) {
    writer.clear();
    encode_record(writer, new_removals);
    appended = effects->sink.append(writer.bytes(), {});
    new_removals.sequences.clear();
    for (auto& one : new_deliveries) {
      one.at = appended;
      wait_for_journal(std::move(one));
    }
    new_deliveries.clear();
  }
}

void Queue::Parts::on(const AttachReceiver& command) {
  const auto no = [&](Errc code, std::string why) {
    emit(ReceiverRefused{command.receiver, {code, std::move(why)}});
  };
  if (auto error = receive_refused()) {
    emit(ReceiverRefused{command.receiver, std::move(*error)});
    return;
  }
  const bool wants_session = command.session.index() != 0;
  const bool has_sessions = settings.requires_session && command.sub_queue == SubQueue::active;
  if (wants_session && !has_sessions)
    return no(Errc::not_allowed, fmt::format("'{}' has no sessions", settings.name));
  if (!wants_session && has_sessions)
    return no(Errc::not_allowed, fmt::format("'{}' is received from by session only", settings.name));
  if (command.sub_queue == SubQueue::active && !settings.forward_to.empty())
    return no(Errc::not_allowed, fmt::format("'{}' forwards to '{}'", settings.name, settings.forward_to));
  if (command.sub_queue == SubQueue::dead_letter && !settings.forward_dead_letters_to.empty())
    return no(Errc::not_allowed, fmt::format("'{}' forwards its dead letters to '{}'", settings.name,
                                             settings.forward_dead_letters_to));
  active_now();
  if (!wants_session) {
    receivers.add(command);
    emit(ReceiverAttached{command.receiver});
    return;
  }
  if (const auto* named = std::get_if<AttachReceiver::NamedSession>(&command.session)) {
    const std::uint32_t index = sessions.find_or_add(named->id);
    if (sessions[index].holder != ReceiverId::none)
      return no(Errc::session_cannot_be_locked,
                fmt::format("session '{}' of '{}' is held by another receiver", named->id, settings.name));
    accept_session(receivers.add(command), index);
    return;
  }
  Receiver& receiver = receivers.add(command);
  receivers.wait_for_session(receiver, std::get<AttachReceiver::NextSession>(command.session).wait_until);
  settle_touched();
  grant_sessions();
}

void Queue::Parts::on(const SetCredit& command) {
  Receiver* receiver = receivers.find(command.receiver);
  if (!receiver) return;  // it was detached meanwhile
  active_now();
  receivers.set_limit(*receiver, command.delivery_limit);
  if (receiver->session != no_slot) touch(receiver->session);
  if (receiver->state == Receiver::State::waiting_for_session) {
    receiver->drain = command.drain;
    return;
  }
  if (!command.drain) return;
  serve();
  drained(*receiver);
}

void Queue::Parts::drained(Receiver& receiver) {
  // The limit is a serial number that must never go back: a drain with credit 0 leaves it where it is.
  receiver.delivered = std::max(receiver.delivered, receiver.delivery_limit);
  receivers.set_limit(receiver, receiver.delivered);
  LinkDrained effect{receiver.id, receiver.delivered};
  if (receiver.on_the_way == 0)
    emit(effect);
  else
    wait_for_journal({appended, effect, {}});  // behind its last delivery
}

void Queue::Parts::on(const CloseReceiver& command) {
  Receiver* receiver = receivers.find(command.receiver);
  if (!receiver) return;
  active_now();
  const std::uint32_t session = receiver->session;
  receivers.remove(*receiver);
  if (session != no_slot) end_session(session, false);
}

void Queue::Parts::serve_forwards(SubQueue sub_queue, const std::string& target) {
  auto& lane = lanes[static_cast<std::size_t>(sub_queue)];
  const bool dead = sub_queue == SubQueue::dead_letter;
  while (forwards_on_the_way < forwards_max) {
    const std::uint32_t slot =
        dead ? lane.available_at_or_after(dead_letter_forward_from) : lane.first_available();
    if (slot == no_slot) {
      if (dead) dead_letter_forward_from = never_ms;
      return;
    }
    Entry& entry = entries[slot];
    if (dead && entry.has(Entry::stays)) {
      dead_letter_forward_from = entry.sequence + 1;
      continue;
    }
    if (!dead && entry.due <= to_ms(now)) {
      expire(slot);
      continue;
    }
    if (entry.hops >= hops_max) {
      dead_letter(slot, "MaxTransferHopCountExceeded",
                  "The maximum number of allowed hops when forwarding between queues has been exceeded. This "
                  "value is "
                  "set to 4.",
                  changes_of(slot), dead);
      continue;
    }
    Forward effect;
    effect.target = target;
    effect.hops = static_cast<std::uint8_t>(entry.hops + 1);
    const SharedChanges present = changes_of(slot);
    MessageChanges with = present ? *present : MessageChanges{};
    if (entry.has(Entry::is_copy))
      effect.first_sequence = entry.ttl_or_origin;
    else
      effect.first_sequence = with.enqueue_sequence.value_or(dead ? 0 : entry.sequence);
    if (dead) with.dead_letter_source = settings.name;
    effect.changes = std::make_shared<const MessageChanges>(std::move(with));
    set_state(slot, EntryState::forwarding);
    effect.status = status_of(slot);
    ++forwards_on_the_way;
    emit(std::move(effect));
  }
}

void Queue::Parts::on(const Forwarded& command) {
  const std::uint32_t slot = find(command.sequence);
  if (failed || slot == no_slot || entries[slot].state != EntryState::forwarding) return;
  if (entries[slot].sub_queue == SubQueue::transfer) return transferred(slot, command.error);
  --forwards_on_the_way;
  if (!command.error) return remove(slot);
  const bool dead = entries[slot].sub_queue == SubQueue::dead_letter;
  if (dead) {  // reason and description stay those it was dead-lettered with
    dead_letter(slot, std::nullopt, std::nullopt, changes_of(slot), true);
    return;
  }
  dead_letter(slot, "ForwardingFailed", fmt::format("'{}': {}", settings.forward_to, command.error->detail),
              changes_of(slot));
}

}  // namespace omnibus::broker
