#include "base/check.hpp"
#include "broker/queue_parts.hpp"

namespace omnibus::broker {

Result<std::vector<std::uint8_t>> merge_properties(Bytes into, Bytes more) {
  auto first = amqp::decode_value({into});
  if (!first) return fail(first.error());
  auto second = amqp::decode_value({more});
  if (!second) return fail(second.error());
  amqp::Map all;
  if (auto* map = first->get_if<amqp::Map>()) all = std::move(*map);
  const auto* added = second->get_if<amqp::Map>();
  if (!added) return fail(Errc::argument_error, "properties to modify are no map");
  for (const auto& [key, value] : added->entries) {
    const auto name = key.as_text();
    if (!name) return fail(Errc::argument_error, "a property to modify has no text for a name");
    if (value.is_list_or_array() || value.get_if<amqp::Map>())
      return fail(Errc::argument_error, "property '{}' to modify is no simple value", *name);
    all.set(amqp::Value{*name}, value);
  }
  return amqp::encode(amqp::Value{std::move(all)});
}

std::string truncated(std::string text, std::size_t chars_max) {
  if (text.size() <= chars_max) return text;
  std::size_t chars = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool starts = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
    if (starts && ++chars > chars_max) {
      text.resize(at);
      break;
    }
  }
  return text;
}

std::optional<Error> Queue::Parts::find_locks(const std::vector<LockToken>& tokens,
                                              const std::optional<std::string>& session_id,
                                              ReceiverId receiver) {
  found.clear();
  return look_for_locks(tokens, session_id, receiver, found);
}

std::optional<Error> Queue::Parts::look_for_locks(const std::vector<LockToken>& tokens,
                                                  const std::optional<std::string>& session_id,
                                                  ReceiverId receiver,
                                                  std::vector<std::uint32_t>& into) const {
  for (const auto& token : tokens) {
    const std::uint32_t lock = locks.find(token);
    if (lock != no_slot && locks[lock].held && !decided)
      return Error{Errc::message_lock_lost,
                   fmt::format("a lock of '{}' is being settled by a transaction", settings.name)};
    if (lock != no_slot) {
      const Entry& entry = entries[locks[lock].slot];
      if (!decided && session_id && locks[lock].of_session && sessions[entry.session].id != *session_id)
        return Error{Errc::session_lock_lost,
                     fmt::format("session '{}' of '{}' does not hold the lock", *session_id, settings.name)};
      if (std::find(into.begin(), into.end(), lock) != into.end())
        return Error{Errc::message_lock_lost, fmt::format("a lock of '{}' is named twice", settings.name)};
      into.push_back(lock);
      continue;
    }
    // In a queue with sessions a lock goes when the session does, unless its link is still there.
    const Receiver* link = receivers.find(receiver);
    const bool link_is_there = link && (link->sub_queue != SubQueue::active || link->session != no_slot);
    if (settings.requires_session && !link_is_there && (session_id || receiver != ReceiverId::none))
      return Error{Errc::session_lock_lost, fmt::format("the session lock in '{}' was lost", settings.name)};
    return Error{
        Errc::message_lock_lost,
        fmt::format("the lock supplied is invalid: it expired, or '{}' settled it already", settings.name)};
  }
  return std::nullopt;
}

Bytes Queue::Parts::properties_of(const Outcome& outcome) {
  if (const auto* abandon = std::get_if<Abandon>(&outcome)) return abandon->properties;
  if (const auto* defer = std::get_if<Defer>(&outcome)) return defer->properties;
  if (const auto* dead = std::get_if<DeadLetter>(&outcome)) return dead->properties;
  return {};
}

std::optional<Error> Queue::Parts::outcome_refusal(std::uint32_t slot, const Outcome& outcome) const {
  if (!std::holds_alternative<DeadLetter>(outcome) || entries[slot].sub_queue == SubQueue::active)
    return std::nullopt;
  return Error{Errc::not_allowed,
               fmt::format("a dead letter of '{}' cannot be dead-lettered again", settings.name)};
}

// One record for all of them.
void Queue::Parts::complete_found() {
  active_now();
  if (found.empty()) return;
  totals.completed += found.size();
  removed_record.sequences.clear();
  for (std::uint32_t& lock : found) {
    lock = locks[lock].slot;
    removed_record.sequences.push_back(entries[lock].sequence);
  }
  writer.clear();
  encode_record(writer, removed_record);
  appended = effects->sink.append(writer.bytes(), {});
  for (const std::uint32_t slot : found) release(erase(slot));
}

Result<SharedChanges> Queue::Parts::merged(std::uint32_t slot, Bytes properties) {
  SharedChanges present = changes_of(slot);
  if (properties.empty()) return present;
  MessageChanges with = present ? *present : MessageChanges{};
  auto map = merge_properties(with.application_properties, properties);
  if (!map) return fail(map.error());
  with.application_properties = std::move(*map);
  return intern(std::move(with));
}

void Queue::Parts::on(const Settle& command) {
  if (!decided && (failed || command.receiver == ReceiverId::none))
    if (auto error = receive_refused()) return refuse(command.request, std::move(*error));
  const bool completes = std::holds_alternative<Complete>(command.outcome);
  if (completes && command.request == RequestId::none && !command.session_id && !decided) {
    found.clear();
    for (const auto& token : command.tokens) {
      const std::uint32_t lock = locks.find(token);
      if (lock == no_slot || locks[lock].held) continue;
      entries.prefetch(locks[lock].slot);
      found.push_back(lock);
    }
    // A token that is named twice is one.
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return complete_found();
  }
  if (auto error = find_locks(command.tokens, command.session_id, command.receiver))
    return refuse(command.request, std::move(*error));
  if (completes) {
    complete_found();
    return done_when_durable(command.request);
  }

  // Everything is judged before anything changes.
  std::vector<std::pair<std::uint32_t, SharedChanges>> slots;
  for (const std::uint32_t lock : found) {
    const std::uint32_t slot = locks[lock].slot;
    if (auto error = outcome_refusal(slot, command.outcome))
      return refuse(command.request, std::move(*error));
    auto with = merged(slot, properties_of(command.outcome));
    if (!with) return refuse(command.request, std::move(with.error()));
    slots.emplace_back(slot, std::move(*with));
  }

  active_now();
  for (auto& [slot, with] : slots) {
    Entry& entry = entries[slot];
    const std::size_t grown = entry.properties_bytes + (with ? with->application_properties.size() : 0);
    if (entry.sub_queue == SubQueue::active && with && grown > application_properties_bytes_max) {
      dead_letter(slot, "HeaderSizeExceeded", "The size quota for this stream has been exceeded.", with);
    } else if (std::holds_alternative<Abandon>(command.outcome)) {
      ++totals.abandoned;
      set_changes(slot, with);
      give_back(slot, true, true);
    } else if (std::holds_alternative<Release>(command.outcome)) {
      ++totals.released;
      give_back(slot, false, true);
    } else if (std::holds_alternative<Defer>(command.outcome)) {
      ++totals.deferred;
      append(DeferredRecord{entry.sequence, with});
      set_changes(slot, with);
      set_state(slot, EntryState::deferred);
    } else {
      const auto& dead = std::get<DeadLetter>(command.outcome);
      dead_letter(slot, dead.reason, dead.description, with);
    }
  }
  done_when_durable(command.request);
}

void Queue::Parts::give_back(std::uint32_t slot, bool counted, bool journaled) {
  Entry& entry = entries[slot];
  if (counted && entry.delivery_count < 0xffff) ++entry.delivery_count;
  const bool deferred = entry.has(Entry::was_deferred);
  if (entry.sub_queue == SubQueue::active) {
    if (counted && entry.delivery_count >= settings.delivery_count_max)
      return dead_letter(
          slot, "MaxDeliveryCountExceeded",
          fmt::format("Message could not be consumed after {} delivery attempts.", entry.delivery_count),
          changes_of(slot));
    // It did not expire while it was locked; now it may [contract 5.4].
    if (!deferred && entry.due <= to_ms(now)) return expire(slot);
  }
  if (journaled) append(ReturnedRecord{entry.sequence, entry.delivery_count, changes_of(slot)});
  set_state(slot, deferred ? EntryState::deferred : EntryState::available);
  entry.set(Entry::was_deferred, false);
}

void Queue::Parts::expire(std::uint32_t slot) {
  ++totals.expired;
  if (settings.dead_letter_on_expiration)
    dead_letter(slot, "TTLExpiredException", "The message expired and was dead lettered.", changes_of(slot));
  else
    remove(slot);
}

void Queue::Parts::remove(std::uint32_t slot) {
  append(RemovedRecord{{entries[slot].sequence}});
  release(erase(slot));
}

void Queue::Parts::dead_letter(std::uint32_t slot, std::optional<std::string> reason,
                               std::optional<std::string> description, SharedChanges base, bool stays) {
  MessageChanges with = base ? *base : MessageChanges{};
  if (reason) with.dead_letter_reason = truncated(std::move(*reason), dead_letter_text_chars_max);
  if (description)
    with.dead_letter_description = truncated(std::move(*description), dead_letter_text_chars_max);
  SharedChanges shared = intern(std::move(with));
  const Entry& entry = entries[slot];
  if (entry.sub_queue != SubQueue::dead_letter) ++totals.dead_lettered;
  append(DeadLetteredRecord{entry.sequence, entry.delivery_count, stays, shared});
  move_to_dead_letter(slot, entry.delivery_count, stays, std::move(shared));
  // Nobody may see it there before that is durable: after a crash it would be back where it was.
  set_state(slot, EntryState::pending);
  fresh.emplace_back(appended, slot);
  sync_wanted = true;
}

void Queue::Parts::on(const RenewLocks& command) {
  if (auto error = receive_refused()) return refuse(command.request, std::move(*error));
  if (auto error = find_locks(command.tokens, std::nullopt, ReceiverId::none))
    return refuse(command.request, std::move(*error));
  for (const std::uint32_t lock : found)
    if (locks[lock].of_session)
      return refuse(command.request,
                    {Errc::not_allowed, "a message of a session lives as long as the session's lock"});
  active_now();
  LocksRenewed answer{command.request, {}};
  RenewedRecord record;
  const Instant until = now + settings.lock_duration;
  for (const std::uint32_t lock : found) {
    locks.renew(lock, to_ms(until));
    record.items.emplace_back(locks[lock].token, until);
    answer.locked_until.push_back(until);
  }
  if (!record.items.empty()) append(record);
  if (command.request != RequestId::none) emit(std::move(answer));  // as the lock itself: not awaited
}

bool Queue::hold_unsent(const LockToken& token) {
  Parts& parts = *parts_;
  const std::uint32_t index = parts.locks.find(token);
  if (index == no_slot || parts.locks[index].of_session || parts.locks[index].held) return false;
  parts.locks.hold(index);
  return true;
}

std::optional<Instant> Queue::begin_lock(Instant now, const LockToken& token, Effects& effects) {
  Parts& parts = *parts_;
  const std::uint32_t index = parts.locks.find(token);
  if (index == no_slot || !parts.locks[index].held) return std::nullopt;
  const Instant until = now + parts.settings.lock_duration;
  parts.locks.renew(index, to_ms(until));
  parts.locks.let_go(index, false);
  parts.now = now;
  parts.effects = &effects;
  parts.append(RenewedRecord{{{token, until}}});
  parts.effects = nullptr;
  return until;
}

}  // namespace omnibus::broker
