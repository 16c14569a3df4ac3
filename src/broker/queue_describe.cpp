#include <algorithm>

#include "base/text.hpp"
#include "broker/queue_parts.hpp"

namespace omnibus::broker {

void Queue::visit_messages(const std::function<void(const StoredMessage&)>& visit) const {
  for (const auto& lane : parts_->lanes)
    for (std::uint32_t slot = lane.at_or_after(0); slot != no_slot;
         slot = lane.at_or_after(parts_->entries[slot].sequence + 1))
      visit(parts_->stored(slot));
}

std::size_t Queue::index_bytes() const {
  std::size_t total = parts_->entries.bytes() + parts_->deadlines.bytes();
  for (const auto& lane : parts_->lanes) total += lane.bytes();
  for (const auto& [id, index] : parts_->sessions.by_id())
    total += sizeof(MessageSession) + 96 + id.size() + parts_->sessions[index].lane.bytes();
  return total;
}

std::string Queue::describe() const {
  std::string out = fmt::format("next {} size {}\n", parts_->next_sequence, parts_->size_bytes);
  for (const auto& lane : parts_->lanes) {
    for (std::uint32_t slot = lane.at_or_after(0); slot != no_slot;
         slot = lane.at_or_after(parts_->entries[slot].sequence + 1)) {
      const Entry& entry = parts_->entries[slot];
      const MessageStatus status = parts_->status_of(slot);
      out += fmt::format(
          "{}/{} at {}+{} size {} enqueued {} due {} count {} state {} hops {} origin {} flags {}",
          static_cast<int>(entry.sub_queue), entry.sequence, entry.record, entry.offset, entry.size,
          entry.enqueued, entry.due, entry.delivery_count, static_cast<int>(status.state), entry.hops,
          entry.ttl_or_origin, entry.flags & ~Entry::was_deferred);
      if (entry.state == EntryState::locked)
        out += fmt::format(" locked {} until {}", hex(parts_->locks[entry.link].token.bytes),
                           parts_->locks[entry.link].until);
      if (entry.session != no_slot) out += fmt::format(" session '{}'", parts_->sessions[entry.session].id);
      if (status.changes)
        out += fmt::format(" changes {} {} '{}' '{}' '{}' {}", hex(status.changes->application_properties),
                           hex(status.changes->edits), status.changes->dead_letter_reason.value_or("-"),
                           status.changes->dead_letter_description.value_or("-"),
                           status.changes->dead_letter_source.value_or("-"),
                           status.changes->enqueue_sequence.value_or(0));
      out += '\n';
    }
  }
  for (const auto& [id, index] : parts_->sessions.by_id()) {
    const auto& session = parts_->sessions[index];
    if (session.state)
      out += fmt::format("session '{}' state '{}' set {}\n", id, *session.state, to_ms(session.state_set));
  }
  std::vector<std::string> ids;
  std::uint64_t at = 0;
  do {
    at = parts_->history.visit(at, 1000, [&](const MessageIdHash& id, std::int64_t accepted) {
      ids.push_back(fmt::format("id {:016x}{:016x} {}\n", id.high, id.low, accepted));
    });
  } while (at != 0);
  std::sort(ids.begin(), ids.end());
  for (const auto& id : ids) out += id;
  return out;
}

}  // namespace omnibus::broker
