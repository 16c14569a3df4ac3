#include "store/receiver_memory.hpp"

#include <algorithm>

namespace omnibus::store {

void ReceiverMemory::attaching(const broker::AttachReceiver& attach) {
  drop(attach.receiver);
  if (!all_.emplace(attach.receiver, Known{attach}).first->second.is_part()) ++counted_;
}

void ReceiverMemory::drop(broker::ReceiverId receiver) {
  const auto found = all_.find(receiver);
  if (found == all_.end()) return;
  if (!found->second.is_part()) --counted_;
  all_.erase(found);
}

void ReceiverMemory::crediting(broker::SetCredit& credit) {
  const auto found = all_.find(credit.receiver);
  if (found == all_.end()) return;
  Known& known = found->second;
  known.limit = credit.delivery_limit;
  credit.delivery_limit -= std::min(credit.delivery_limit, known.before);
}

bool ReceiverMemory::passes(broker::Effect& effect) {
  if (all_.empty()) return true;
  const auto known = [&](broker::ReceiverId id) -> Known* {
    const auto found = all_.find(id);
    return found == all_.end() ? nullptr : &found->second;
  };
  if (const auto* deliver = std::get_if<broker::Deliver>(&effect)) {
    if (counted_ == 0) return true;
    if (Known* one = known(deliver->receiver); one && !one->is_part()) ++one->delivered;
  } else if (auto* drained = std::get_if<broker::LinkDrained>(&effect)) {
    if (Known* one = known(drained->receiver)) {
      drained->delivered = one->is_part() ? one->limit : drained->delivered + one->before;
      one->delivered = one->limit = drained->delivered;
    }
  } else if (const auto* attached = std::get_if<broker::ReceiverAttached>(&effect)) {
    if (Known* one = known(attached->receiver)) return !std::exchange(one->told, true);
  } else if (const auto* accepted = std::get_if<broker::SessionAccepted>(&effect)) {
    if (Known* one = known(accepted->receiver)) one->told = true;
  } else if (auto* refused = std::get_if<broker::ReceiverRefused>(&effect)) {
    const broker::ReceiverId id = refused->receiver;
    const Known* one = known(id);
    const bool was_told = one && one->told;
    drop(id);
    // Its link believes to be attached since before the store failed.
    if (was_told) effect = broker::DetachReceiver{id, std::move(refused->error)};
  } else if (const auto* detached = std::get_if<broker::DetachReceiver>(&effect)) {
    drop(detached->receiver);
  }
  return true;
}

void ReceiverMemory::attach_to_nobody(const broker::AttachReceiver& attach, const Error& busy,
                                      std::vector<broker::Effect>& out) {
  if (attach.session.index() != 0) {
    out.push_back(broker::ReceiverRefused{attach.receiver, busy});
    return;
  }
  attaching(attach);
  all_.at(attach.receiver).told = true;
  out.push_back(broker::ReceiverAttached{attach.receiver});
}

void ReceiverMemory::credit_from_nobody(const broker::SetCredit& credit, std::vector<broker::Effect>& out) {
  const auto found = all_.find(credit.receiver);
  if (found == all_.end()) return;
  Known& known = found->second;
  known.limit = credit.delivery_limit;
  if (!credit.drain) return;
  // Nothing is there to be delivered: the credit is used up.
  known.delivered = known.limit = std::max(known.limit, known.delivered);
  out.push_back(broker::LinkDrained{credit.receiver, known.delivered});
}

void ReceiverMemory::lost(const Error& busy, const Error& session_lost, std::vector<broker::Effect>& out) {
  for (const broker::ReceiverId id : ids()) {
    const Known& known = all_.at(id);
    if (!known.has_session() && known.told) continue;
    if (known.told)
      out.push_back(broker::DetachReceiver{id, session_lost});
    else
      out.push_back(broker::ReceiverRefused{id, busy});
    drop(id);
  }
}

void ReceiverMemory::detach_all(const Error& why, std::vector<broker::Effect>& out) {
  for (const broker::ReceiverId id : ids()) {
    if (all_.at(id).told)
      out.push_back(broker::DetachReceiver{id, why});
    else
      out.push_back(broker::ReceiverRefused{id, why});
  }
  all_.clear();
  counted_ = 0;
}

std::vector<broker::Command> ReceiverMemory::attach_again() {
  std::vector<broker::Command> commands;
  for (const broker::ReceiverId id : ids()) {
    Known& known = all_.at(id);
    if (known.is_part()) known.delivered = known.limit;
    known.before = known.delivered;
    commands.emplace_back(known.attach);
    if (known.limit > known.before)
      commands.emplace_back(broker::SetCredit{id, known.limit - known.before, false});
  }
  return commands;
}

std::vector<broker::ReceiverId> ReceiverMemory::ids() const {
  std::vector<broker::ReceiverId> ids;
  ids.reserve(all_.size());
  for (const auto& [id, known] : all_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace omnibus::store
