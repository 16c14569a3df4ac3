#include "broker/queue_parts.hpp"

namespace omnibus::broker {

void Queue::Parts::accept_session(Receiver& receiver, std::uint32_t index) {
  const Instant until = now + settings.lock_duration;
  receiver.state = Receiver::State::holds_session;
  receiver.session = index;
  sessions.lock(index, receiver.id, receiver.connection, until);
  emit(SessionAccepted{receiver.id, sessions[index].id, until});
  touch(index);
  if (!receiver.drain) return;
  receiver.drain = false;
  serve_session(index);
  flush_deliveries();
  drained(receiver);
}

void Queue::Parts::grant_sessions() {
  for (Receiver* receiver = receivers.first_waiting(); receiver; receiver = receivers.first_waiting()) {
    const std::uint32_t index = sessions.next_free();
    if (index == no_slot) break;
    receivers.stop_waiting(*receiver);
    accept_session(*receiver, index);
  }
  while (receivers.first_wait_end() <= now) {
    Receiver& receiver = *receivers.first_to_give_up();
    emit(ReceiverRefused{
        receiver.id,
        {Errc::timeout, fmt::format("no session of '{}' became available in time", settings.name)}});
    receivers.remove(receiver);
  }
}

void Queue::Parts::join_session(std::uint32_t lock, std::uint32_t session) {
  auto& held = sessions[session].held;
  locks[lock].place = static_cast<std::uint32_t>(held.size());
  held.push_back(lock);
}

void Queue::Parts::leave_session(std::uint32_t lock) {
  auto& held = sessions[entries[locks[lock].slot].session].held;
  held[locks[lock].place] = held.back();
  locks[held.back()].place = locks[lock].place;
  held.pop_back();
}

void Queue::Parts::end_session(std::uint32_t index, bool ran_out) {
  auto& session = sessions[index];
  if (ran_out) totals.locks_expired += session.held.size();
  // Each one that goes back leaves the list; a lock that ran out counts as an attempt, a link that left
  // does not [contract 4.5].
  while (!session.held.empty()) give_back(locks[session.held.back()].slot, ran_out, ran_out);
  sessions.unlock(index);
  touch(index);
}

Result<std::uint32_t> Queue::Parts::held_session(const std::string& id, ConnectionId connection) const {
  const std::uint32_t index = sessions.find(id);
  if (index == no_slot || sessions[index].holder == ReceiverId::none ||
      sessions[index].connection != connection)
    return fail(Errc::session_lock_lost, "session '{}' of '{}' is not held by this connection", id,
                settings.name);
  return index;
}

void Queue::Parts::set_session_state(const SessionStateRecord& record) {
  const std::uint32_t index = sessions.find_or_add(record.id);
  auto& session = sessions[index];
  if (session.state) grow(-static_cast<std::int64_t>(session.state->size()));
  session.state = record.state;
  session.state_set = record.set;
  if (session.state) grow(static_cast<std::int64_t>(session.state->size()));
  touch(index);
}

void Queue::Parts::on(const RenewSessionLock& command) {
  if (auto error = receive_refused()) return refuse(command.request, std::move(*error));
  auto index = held_session(command.session_id, command.connection);
  if (!index) return refuse(command.request, std::move(index.error()));
  active_now();
  const Instant until = now + settings.lock_duration;
  sessions.renew(*index, until);
  if (command.request != RequestId::none) emit(LocksRenewed{command.request, {until}});
}

void Queue::Parts::on(const SetSessionState& command) {
  if (auto error = receive_refused()) return refuse(command.request, std::move(*error));
  auto index = held_session(command.session_id, command.connection);
  if (!index) return refuse(command.request, std::move(index.error()));
  if (command.state && command.state->size() > settings.message_bytes_max)
    return refuse(command.request,
                  {Errc::message_size_exceeded,
                   fmt::format("session state of {} bytes, '{}' takes {}", command.state->size(),
                               settings.name, settings.message_bytes_max)});
  const std::size_t before = sessions[*index].state ? sessions[*index].state->size() : 0;
  if (command.state && size_bytes - before + command.state->size() > settings.size_bytes_max)
    return refuse(command.request,
                  {Errc::resource_limit_exceeded, fmt::format("'{}' is full", settings.name)});
  active_now();
  SessionStateRecord record{command.session_id, now, command.state};
  append(record);
  set_session_state(record);
  done_when_durable(command.request);
}

void Queue::Parts::on(const GetSessionState& command) {
  if (auto error = receive_refused()) return refuse(command.request, std::move(*error));
  auto index = held_session(command.session_id, command.connection);
  if (!index) return refuse(command.request, std::move(index.error()));
  active_now();
  emit(SessionState{command.request, sessions[*index].state});
}

void Queue::Parts::on(const ListSessions& command) {
  if (auto error = receive_refused()) return refuse(command.request, std::move(*error));
  if (!settings.requires_session)
    return refuse(command.request, {Errc::not_allowed, fmt::format("'{}' has no sessions", settings.name)});
  active_now();
  SessionList answer{command.request, {}};
  const auto& all = sessions.by_id();
  std::uint32_t skip = command.skip;
  for (auto at = command.after_session_id ? all.upper_bound(*command.after_session_id) : all.begin();
       at != all.end() && answer.ids.size() < command.top; ++at) {
    const auto& session = sessions[at->second];
    const bool listed = command.state_set_after
                            ? session.state && session.state_set > *command.state_set_after
                            : session.state || !session.lane.empty();
    if (!listed) continue;
    if (skip > 0)
      --skip;
    else
      answer.ids.push_back(at->first);
  }
  emit(std::move(answer));
}

}  // namespace omnibus::broker
