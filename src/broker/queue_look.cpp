#include "broker/queue_parts.hpp"

namespace omnibus::broker {

void Queue::Parts::on(const Peek& command) {
  if (auto error = receive_refused()) return refuse(command.request, std::move(*error));
  active_now();
  Messages answer{command.request, {}};
  const Lane* lane = &lanes[static_cast<std::size_t>(command.sub_queue)];
  if (command.session_id && settings.requires_session && command.sub_queue == SubQueue::active) {
    const std::uint32_t session = sessions.find(*command.session_id);
    lane = session == no_slot ? nullptr : &sessions[session].lane;
  }
  std::uint64_t bytes = 0;
  for (SequenceNumber from = command.from; lane && answer.messages.size() < command.count;) {
    const std::uint32_t slot = lane->at_or_after(from);
    if (slot == no_slot) break;
    const Entry& entry = entries[slot];
    from = entry.sequence + 1;
    if (entry.state == EntryState::pending) continue;
    bytes += entry.size;
    if (bytes > command.bytes_max && !answer.messages.empty()) break;
    answer.messages.push_back({status_of(slot), std::nullopt, std::nullopt});
  }
  emit(std::move(answer));
}

void Queue::Parts::on(const ReceiveDeferred& command) {
  if (auto error = receive_refused()) return refuse(command.request, std::move(*error));
  std::uint32_t session = no_slot;
  if (settings.requires_session && command.sub_queue == SubQueue::active) {
    std::optional<std::string> id = command.session_id;
    if (!id && !command.sequences.empty()) {
      // Go names only the messages: the session is theirs.
      const std::uint32_t slot =
          lanes[static_cast<std::size_t>(command.sub_queue)].find(command.sequences.front());
      if (slot != no_slot && entries[slot].session != no_slot) id = sessions[entries[slot].session].id;
    }
    if (!id)
      return refuse(command.request,
                    {Errc::message_not_found,
                     fmt::format("no such deferred message in '{}', and no session-id", settings.name)});
    auto held = held_session(*id, command.connection);
    if (!held) return refuse(command.request, std::move(held.error()));
    session = *held;
  }
  const auto& lane = lanes[static_cast<std::size_t>(command.sub_queue)];
  std::vector<std::uint32_t> slots;
  std::optional<SequenceNumber> missing;
  for (const SequenceNumber sequence : command.sequences) {
    const std::uint32_t slot = lane.find(sequence);
    if (slot == no_slot || entries[slot].state != EntryState::deferred || entries[slot].session != session ||
        std::find(slots.begin(), slots.end(), slot) != slots.end()) {
      missing = sequence;
    } else if (command.sub_queue == SubQueue::active && entries[slot].due <= to_ms(now)) {
      expire(slot);  // a deferred message expires when it is touched [contract 5.4]
      missing = sequence;
    } else {
      slots.push_back(slot);
    }
  }
  if (missing)
    return refuse(command.request, {Errc::message_not_found, fmt::format("no message {} is deferred in '{}'",
                                                                         *missing, settings.name)});
  active_now();
  totals.delivered += slots.size();
  Messages answer{command.request, {}};
  if (command.mode == ReceiveMode::peek_lock) {
    const bool of_session = session != no_slot;
    const Instant until = of_session ? sessions[session].locked_until : now + settings.lock_duration;
    LockedRecord record;
    for (const std::uint32_t slot : slots) {
      const LockToken token = new_token();
      lock(slot, token, until, ReceiverId::none, of_session);
      record.items.push_back({entries[slot].sequence, token, until});
      answer.messages.push_back({status_of(slot), token, until});
    }
    if (!of_session && !slots.empty()) append(record);
    emit(std::move(answer));
    return;
  }
  totals.completed += slots.size();
  RemovedRecord record;
  std::vector<StoredMessage> dead;
  for (const std::uint32_t slot : slots) {
    record.sequences.push_back(entries[slot].sequence);
    answer.messages.push_back({status_of(slot), new_token(), std::nullopt});
    dead.push_back(erase(slot));
  }
  if (!slots.empty()) append(record);
  emit_when_durable(std::move(answer));
  for (const StoredMessage& one : dead) wait_for_journal({appended, std::nullopt, one});
}

void Queue::Parts::on(const BatchDelete& command) {
  if (auto error = receive_refused()) return refuse(command.request, std::move(*error));
  if (command.count > BatchDelete::count_max)
    return refuse(command.request, {Errc::argument_out_of_range,
                                    fmt::format("at most {} messages at once", BatchDelete::count_max)});
  active_now();
  RemovedRecord record;
  std::vector<std::uint32_t> slots;
  const auto collect = [&](const Lane& lane) {
    SequenceNumber from = 0;
    while (slots.size() < command.count) {
      const std::uint32_t slot = lane.available_at_or_after(from);
      if (slot == no_slot || entries[slot].enqueued >= to_ms(command.before)) return;
      slots.push_back(slot);
      from = entries[slot].sequence + 1;
    }
  };
  if (settings.requires_session && command.sub_queue == SubQueue::active) {
    if (command.session_id) {
      const std::uint32_t session = sessions.find(*command.session_id);
      if (session != no_slot) collect(sessions[session].lane);
    } else {
      for (const auto& [id, session] : sessions.by_id()) collect(sessions[session].lane);
    }
  } else {
    collect(lanes[static_cast<std::size_t>(command.sub_queue)]);
  }
  for (const std::uint32_t slot : slots) record.sequences.push_back(entries[slot].sequence);
  if (!slots.empty()) append(record);
  for (const std::uint32_t slot : slots) release(erase(slot));
  emit_when_durable(Deleted{command.request, static_cast<std::uint32_t>(slots.size())});
}

void Queue::Parts::on(const Purge& command) {
  if (failed)
    return refuse(command.request,
                  {Errc::server_busy, fmt::format("the store of '{}' is recovering", settings.name)});
  const auto& lane = lanes[static_cast<std::size_t>(command.sub_queue)];
  RemovedRecord record;
  std::vector<std::uint32_t> slots;
  for (SequenceNumber from = 0; slots.size() < command.count;) {
    const std::uint32_t slot = lane.at_or_after(from);
    if (slot == no_slot) break;
    from = entries[slot].sequence + 1;
    // What is not durable yet, or is being handed to another entity, is not there to be removed.
    if (entries[slot].state == EntryState::pending || entries[slot].state == EntryState::forwarding) continue;
    // A transaction that is prepared settles it.
    if (entries[slot].state == EntryState::locked && locks[entries[slot].link].held) continue;
    slots.push_back(slot);
    record.sequences.push_back(entries[slot].sequence);
  }
  if (!slots.empty()) append(record);
  for (const std::uint32_t slot : slots) release(erase(slot));
  emit_when_durable(Deleted{command.request, static_cast<std::uint32_t>(slots.size())});
}

}  // namespace omnibus::broker
