#include "broker/queue_parts.hpp"

namespace omnibus::broker {
namespace {

// What one command does for time at most; the rest stays due and next_deadline() says so.
constexpr int events_max = 1000;
// How long the deletion of an idle queue may take before it is asked for again.
constexpr std::chrono::minutes idle_patience{1};

}  // namespace

void Queue::Parts::pass_time() {
  const std::int64_t at = to_ms(now);
  int left = events_max;
  for (; left > 0 && locks.first_due() <= at; --left) {
    ++totals.locks_expired;
    give_back(locks[locks.first()].slot, true, true);
  }
  for (; left > 0 && sessions.first_due() <= now; --left) {
    const std::uint32_t session = sessions.first_to_end();
    const ReceiverId holder = sessions[session].holder;
    if (Receiver* receiver = receivers.find(holder)) receivers.remove(*receiver);
    emit(DetachReceiver{holder,
                        {Errc::session_lock_lost, fmt::format("the lock of session '{}' of '{}' expired",
                                                              sessions[session].id, settings.name)}});
    end_session(session, true);
  }
  for (; left > 0 && !deadlines.empty() && deadlines.first_due() <= at; --left) {
    const std::uint32_t slot = deadlines.first();
    Entry& entry = entries[slot];
    if (entry.state != EntryState::scheduled) {
      expire(slot);
      continue;
    }
    // Its new number must not be seen before it is durable, or another message could get it after a crash.
    const Instant expires = expiry(now, static_cast<std::uint64_t>(entry.ttl_or_origin));
    const ActivatedRecord record{entry.sequence, take_number(), now, expires};
    const Location place = append(record);
    activate(slot, record.activated, now, expires);
    fresh.emplace_back(place, slot);
    sync_wanted = true;
  }
  if (settings.requires_duplicate_detection) history.forget(now, settings.duplicate_window);
  if (receivers.first_wait_end() <= now) grant_sessions();
  if (idle_deadline() <= now) {
    emit(DeleteIdle{});
    idle_asked = now;
  }
}

Instant Queue::Parts::idle_deadline() const {
  if (settings.auto_delete_on_idle >= unlimited || receivers.size() > 0 || !settings.forward_to.empty())
    return never;
  const Instant due = accessed + settings.auto_delete_on_idle;
  return idle_asked >= due ? idle_asked + idle_patience : due;
}

Instant Queue::Parts::next_deadline() const {
  if (failed) return never;
  Instant first = std::min(
      {to_instant(locks.first_due()), sessions.first_due(), receivers.first_wait_end(), idle_deadline()});
  if (!deadlines.empty()) first = std::min(first, to_instant(deadlines.first_due()));
  // After recovery nothing else would start the forwards.
  const bool forwards_wait =
      forwards_on_the_way == 0 && ((!settings.forward_to.empty() && lanes[0].has_available()) ||
                                   (!settings.forward_dead_letters_to.empty() &&
                                    lanes[1].available_at_or_after(dead_letter_forward_from) != no_slot));
  first = std::min(first, transfer_deadline());
  return forwards_wait ? std::min(first, now) : first;
}

}  // namespace omnibus::broker
