#include "broker/receivers.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace omnibus::broker {

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
  leave_line(receiver);
  if (receiver.state == Receiver::State::waiting_for_session) stop_waiting(receiver);
  all_.erase(receiver.id);
}

std::vector<ReceiverId> Receivers::ids() const {
  std::vector<ReceiverId> ids;
  for (const auto& [id, receiver] : all_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

void Receivers::leave_line(Receiver& receiver) {
  if (!receiver.in_line) return;
  lines_[static_cast<std::size_t>(receiver.sub_queue)].erase(receiver.place);
  receiver.in_line = false;
}

void Receivers::set_limit(Receiver& receiver, std::uint64_t limit) {
  receiver.delivery_limit = limit;
  if (receiver.state != Receiver::State::plain) return;
  auto& line = lines_[static_cast<std::size_t>(receiver.sub_queue)];
  if (!receiver.has_credit()) {
    leave_line(receiver);
  } else if (!receiver.in_line) {
    receiver.place = line.insert(line.end(), &receiver);
    receiver.in_line = true;
  }
}

Receiver* Receivers::next(SubQueue sub_queue) {
  auto& line = lines_[static_cast<std::size_t>(sub_queue)];
  return line.empty() ? nullptr : line.front();
}

void Receivers::served(Receiver& receiver) {
  ++receiver.delivered;
  if (!receiver.in_line) return;
  auto& line = lines_[static_cast<std::size_t>(receiver.sub_queue)];
  if (receiver.has_credit())
    line.splice(line.end(), line, receiver.place);
  else
    leave_line(receiver);
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
