#include "base/check.hpp"
#include "broker/queue_parts.hpp"

// Steps of transactions [contract 7]. First each is judged and nothing changes; then all are carried out,
// which none of them can refuse any more. Between the two there may be a wait for other stores: what was
// judged and could be lost meanwhile are locks, and these are held.

namespace omnibus::broker {

std::optional<Error> Queue::refusal(Instant now, const TransactionWork& work, TransactionTally& tally) const {
  return std::visit([&](const auto& one) { return parts_->refusal(now, one, tally); }, work);
}

std::optional<Error> Queue::Parts::refusal(Instant, const Enqueue& work, TransactionTally& tally) const {
  check(!work.forwarded, "nobody forwards within a transaction");
  return sends_refusal(work.messages, tally, Sends::messages);
}

std::optional<Error> Queue::Parts::sends_refusal(std::span<const IncomingMessage> messages,
                                                 TransactionTally& tally, Sends what) const {
  if (auto error = refuse_messages(messages, what == Sends::transfers, tally.bytes)) return error;
  for (const auto& message : messages) tally.bytes += message.bytes.size();
  return std::nullopt;
}

std::optional<Error> Queue::Parts::refusal(Instant, const Schedule& work, TransactionTally& tally) const {
  if (auto error = schedule_refusal(work)) return error;
  for (const SequenceNumber number : work.reserved)
    if (!tally.numbers.insert(number).second)
      return Error{Errc::argument_error, fmt::format("number {} is given to two messages", number)};
  return sends_refusal(work.messages, tally, Sends::messages);
}

std::optional<Error> Queue::Parts::refusal(Instant, const EnqueueTransfer& work,
                                           TransactionTally& tally) const {
  if (auto error = destination_refusal(work)) return error;
  return sends_refusal(work.messages, tally, Sends::transfers);
}

std::optional<Error> Queue::Parts::refusal(Instant at, const Settle& work, TransactionTally& tally) const {
  if (failed || work.receiver == ReceiverId::none)
    if (auto error = receive_refused()) return error;
  std::vector<std::uint32_t> wanted;
  if (auto error = look_for_locks(work.tokens, work.session_id, work.receiver, wanted)) return error;
  for (const std::uint32_t index : wanted) {
    const Lock& lock = locks[index];
    const Entry& entry = entries[lock.slot];
    // Its time may have come in this very turn.
    if (lock.of_session ? sessions[entry.session].locked_until <= at : lock.until <= to_ms(at))
      return Error{lock.of_session ? Errc::session_lock_lost : Errc::message_lock_lost,
                   fmt::format("a lock of '{}' has expired", settings.name)};
    if (!tally.tokens.insert(lock.token).second)
      return Error{Errc::message_lock_lost,
                   fmt::format("a lock of '{}' is settled twice in one transaction", settings.name)};
    if (auto error = outcome_refusal(lock.slot, work.outcome)) return error;
    if (const Bytes properties = properties_of(work.outcome); !properties.empty()) {
      const SharedChanges present = changes_of(lock.slot);
      auto merged = merge_properties(present ? Bytes{present->application_properties} : Bytes{}, properties);
      if (!merged) return std::move(merged.error());
    }
  }
  return std::nullopt;
}

std::optional<Error> Queue::Parts::refusal(Instant, const AddRule&, TransactionTally&) const {
  return no_rules();
}
std::optional<Error> Queue::Parts::refusal(Instant, const RemoveRule&, TransactionTally&) const {
  return no_rules();
}

void Queue::carry_out(Instant now, const TransactionWork& work, Effects& effects) {
  Parts& parts = *parts_;
  parts.now = now;
  parts.effects = &effects;
  parts.decided = true;
  parts.pass_time();
  std::visit([&](const auto& one) { parts.on(one); }, work);
  parts.decided = false;
  parts.serve();
  parts.effects = nullptr;
}

std::vector<HeldLock> Queue::hold(const std::vector<LockToken>& tokens) {
  Parts& parts = *parts_;
  std::vector<HeldLock> held;
  for (const LockToken& token : tokens) {
    const std::uint32_t index = parts.locks.find(token);
    check(index != no_slot, "a lock that a transaction was granted is there");
    Lock& lock = parts.locks[index];
    const Entry& entry = parts.entries[lock.slot];
    HeldLock one{token, entry.sequence, to_instant(lock.until), lock.of_session};
    if (lock.of_session) {
      one.until = parts.sessions[entry.session].locked_until;
      lock.until = to_ms(one.until);
      parts.leave_session(index);
    }
    parts.locks.hold(index);
    held.push_back(one);
  }
  return held;
}

void Queue::hold_again(const HeldLock& what) {
  Parts& parts = *parts_;
  const std::uint32_t slot = parts.find(what.sequence);
  if (slot == no_slot) return;  // its records say that it is gone: it was settled with the transaction
  Entry& entry = parts.entries[slot];
  // A session's lock is written nowhere else.
  if (parts.locks.find(what.token) == no_slot) {
    if (entry.state != EntryState::available && entry.state != EntryState::deferred) return;
    parts.lock(slot, what.token, what.until, ReceiverId::none, false);
  }
  const std::uint32_t index = parts.locks.find(what.token);
  if (parts.locks[index].slot == slot && !parts.locks[index].held) parts.locks.hold(index);
  parts.settle_touched();
}

void Queue::let_go(Instant now, const std::vector<HeldLock>& held, Effects& effects) {
  Parts& parts = *parts_;
  parts.now = now;
  parts.effects = &effects;
  for (const HeldLock& one : held) {
    const std::uint32_t index = parts.locks.find(one.token);
    if (index == no_slot || !parts.locks[index].held) continue;
    const Lock& lock = parts.locks[index];
    const std::uint32_t slot = lock.slot;
    const std::uint32_t session = parts.entries[slot].session;
    const bool session_is_there = one.of_session && session != no_slot && lock.receiver != ReceiverId::none &&
                                  parts.sessions[session].holder == lock.receiver;
    parts.locks.let_go(index, session_is_there);
    if (session_is_there)
      parts.join_session(index, session);
    else if (one.of_session)
      parts.give_back(slot, false, true);  // its link has left
  }
  // What ended meanwhile ends now.
  parts.run(Wake{});
  parts.effects = nullptr;
}

}  // namespace omnibus::broker
