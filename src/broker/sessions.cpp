#include "broker/sessions.hpp"

namespace omnibus::broker {

std::uint32_t Sessions::find(std::string_view id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? no_slot : found->second;
}

std::uint32_t Sessions::find_or_add(std::string_view id) {
  const auto present = by_id_.find(id);
  if (present != by_id_.end()) return present->second;
  std::uint32_t index;
  if (gone_.empty()) {
    index = static_cast<std::uint32_t>(all_.size());
    all_.emplace_back();
  } else {
    index = gone_.back();
    gone_.pop_back();
  }
  all_[index] = std::make_unique<MessageSession>(entries_);
  all_[index]->id = id;
  by_id_.emplace(id, index);
  return index;
}

void Sessions::refresh(std::uint32_t index) {
  auto& session = *all_[index];
  SequenceNumber offered = 0;
  if (session.holder == ReceiverId::none) {
    const std::uint32_t first = session.lane.first_available();
    if (first != no_slot) offered = entries_[first].sequence;
  }
  if (offered != session.offered) {
    if (session.offered != 0) free_.erase({session.offered, index});
    if (offered != 0) free_.emplace(offered, index);
    session.offered = offered;
  }
  if (session.lane.empty() && !session.state && session.holder == ReceiverId::none) {
    by_id_.erase(session.id);
    all_[index].reset();
    gone_.push_back(index);
  }
}

void Sessions::lock(std::uint32_t index, ReceiverId holder, ConnectionId connection, Instant until) {
  auto& session = *all_[index];
  session.holder = holder;
  session.connection = connection;
  session.locked_until = until;
  ends_.emplace(until, index);
  refresh(index);
}

void Sessions::renew(std::uint32_t index, Instant until) {
  ends_.erase({all_[index]->locked_until, index});
  all_[index]->locked_until = until;
  ends_.emplace(until, index);
}

void Sessions::unlock(std::uint32_t index) {
  auto& session = *all_[index];
  ends_.erase({session.locked_until, index});
  session.holder = ReceiverId::none;
  session.connection = ConnectionId::none;
}

}  // namespace omnibus::broker
