#include "broker/receivers.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace omnibus::broker {

const Receiver* Receivers::find(ReceiverId id) const {
  const auto found = all_.find(id);
  return found == all_.end() ? nullptr : &found->second;
}

Receiver* Receivers::find(ReceiverId id) {
  const auto found = all_.find(id);
  return found == all_.end() ? nullptr : &found->second;
}

Receiver& Receivers::add(const AttachReceiver& attach) {
  const auto [at, is_new] = all_.try_emplace(attach.receiver);
  check(is_new, "a receiver attaches once");
  auto& receiver = at->second;
  receiver.id = attach.receiver;
  receiver.connection = attach.connection;
  receiver.sub_queue = attach.sub_queue;
  receiver.mode = attach.mode;
  return receiver;
}

void Receivers::remove(Receiver& receiver) {
  leave(receiver);
  if (receiver.state == Receiver::State::waiting_for_session) stop_waiting(receiver);
  all_.erase(receiver.id);
}

std::vector<ReceiverId> Receivers::ids() const {
  std::vector<ReceiverId> ids;
  for (const auto& [id, receiver] : all_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

void Receivers::leave(Receiver& receiver) {
  const auto at = static_cast<std::size_t>(receiver.sub_queue);
  if (receiver.stands == Receiver::Stands::in_line) lines_[at].erase(receiver.place);
  if (receiver.stands == Receiver::Stands::aside) aside_[at].erase({room_of(receiver), receiver.id});
  receiver.stands = Receiver::Stands::nowhere;
}

void Receivers::find_place(Receiver& receiver) {
  if (receiver.state != Receiver::State::plain) return;
  if (!receiver.has_credit() || is_full(receiver)) return leave(receiver);
  if (receiver.stands != Receiver::Stands::nowhere) return;
  auto& line = lines_[static_cast<std::size_t>(receiver.sub_queue)];
  receiver.place = line.insert(line.end(), &receiver);
  receiver.stands = Receiver::Stands::in_line;
}

void Receivers::set_limit(Receiver& receiver, std::uint64_t limit) {
  receiver.delivery_limit = limit;
  find_place(receiver);
}

Receiver* Receivers::next(SubQueue sub_queue, std::uint32_t bytes) {
  const auto at = static_cast<std::size_t>(sub_queue);
  auto& line = lines_[at];
  while (!line.empty()) {
    Receiver& first = *line.front();
    if (has_room(first, bytes)) return &first;
    leave(first);
    aside_[at].emplace(room_of(first), first.id);
    first.stands = Receiver::Stands::aside;
  }
  const auto fits = aside_[at].lower_bound({bytes, ReceiverId::none});
  return fits == aside_[at].end() ? nullptr : find(fits->second);
}

void Receivers::served(Receiver& receiver, std::uint32_t bytes) {
  ++receiver.delivered;
  if (is_limited() && receiver.mode == ReceiveMode::peek_lock) {
    leave(receiver);
    ++receiver.held;
    receiver.held_bytes += bytes;
    return find_place(receiver);
  }
  if (receiver.stands != Receiver::Stands::in_line) return;
  auto& line = lines_[static_cast<std::size_t>(receiver.sub_queue)];
  if (receiver.has_credit())
    line.splice(line.end(), line, receiver.place);
  else
    leave(receiver);
}

std::uint64_t Receivers::room_of(const Receiver& receiver) const {
  return prefetch_.bytes > receiver.held_bytes ? prefetch_.bytes - receiver.held_bytes : 0;
}

bool Receivers::has_room(const Receiver& receiver, std::uint32_t bytes) const {
  if (receiver.held == 0) return true;  // one message always passes; a pre-settled link holds none
  return !is_full(receiver) && (prefetch_.bytes == 0 || bytes <= room_of(receiver));
}

bool Receivers::set_prefetch(const Prefetch& prefetch) {
  if (prefetch == prefetch_) return false;
  const auto everybody = ids();
  for (const ReceiverId id : everybody) {
    Receiver& receiver = *find(id);
    if (receiver.stands == Receiver::Stands::aside) leave(receiver);
    receiver.held = 0;
    receiver.held_bytes = 0;
  }
  prefetch_ = prefetch;
  for (const ReceiverId id : everybody) find_place(*find(id));
  return true;
}

void Receivers::hold(ReceiverId id, std::uint32_t bytes) {
  Receiver* receiver = find(id);
  if (!receiver) return;
  ++receiver->held;
  receiver->held_bytes += bytes;
  find_place(*receiver);
}

Receiver* Receivers::let_go(ReceiverId id, std::uint32_t bytes) {
  Receiver* receiver = find(id);
  if (!receiver) return nullptr;
  // A lock that a former link of the same number left behind was never counted.
  if (receiver->held == 0 || receiver->held_bytes < bytes) return receiver;
  if (receiver->stands == Receiver::Stands::aside) leave(*receiver);
  --receiver->held;
  receiver->held_bytes -= bytes;
  find_place(*receiver);
  return receiver;
}

void Receivers::wait_for_session(Receiver& receiver, Instant until) {
  receiver.state = Receiver::State::waiting_for_session;
  receiver.wait_until = until;
  receiver.place = waiting_.insert(waiting_.end(), &receiver);
  wait_ends_.emplace(until, receiver.id);
}

void Receivers::stop_waiting(Receiver& receiver) {
  waiting_.erase(receiver.place);
  wait_ends_.erase({receiver.wait_until, receiver.id});
  receiver.state = Receiver::State::plain;
}

}  // namespace omnibus::broker
