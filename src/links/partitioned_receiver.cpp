#include "links/partitioned_receiver.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace omnibus::links {

Result<void> PartitionedReceiver::start(amqp::Link& link, const amqp::Attach& attach, Now now) {
  auto command = read_attach(link, attach, now);
  if (!command) return fail(command.error());
  command->credit = broker::AttachReceiver::Credit::told;
  for (StoreRoutes& store : by_store(entity_->partitions)) {
    broker::AttachReceiver asked = *command;
    asked.receiver = context_.entities.open(*this, store.first, entity_);
    asked.others = std::move(store.others);
    parts_.push_back({.route = store.first, .receiver = asked.receiver});
    context_.entities.send(store.first, std::move(asked));
  }
  return {};
}

PartitionedReceiver::Part& PartitionedReceiver::part_of(broker::ReceiverId receiver) {
  const auto index =
      static_cast<std::uint64_t>(receiver) - static_cast<std::uint64_t>(parts_.front().receiver);
  check(index < parts_.size(), "a receiver is one of ours");
  return parts_[index];
}

ReceiverLink::Source PartitionedReceiver::source_of(const broker::LockToken& lock) const {
  const Route& route = entity_->partitions.at(lock.partition());
  const auto part = std::ranges::find(parts_, route.store, [](const Part& one) { return one.route.store; });
  check(part != parts_.end(), "a lock comes from a store of ours");
  return {route, part->receiver};
}

void PartitionedReceiver::on_delivery(broker::Answer& answer, Now now) {
  if (auto* delivery = std::get_if<broker::Deliver>(&answer.effect)) {
    Part& part = part_of(delivery->receiver);
    check(part.lent > 0 && lent_ > 0, "a delivery uses credit that was lent");
    --part.lent;
    --lent_;
    if (!deliver(*delivery, answer.message)) lend();  // its credit is free for another
  } else if (const auto* there = std::get_if<broker::MessagesAvailable>(&answer.effect)) {
    Part& part = part_of(there->receiver);
    part.available = true;
    part.told = there->count;
    lend();
  } else if (const auto* drained = std::get_if<broker::LinkDrained>(&answer.effect)) {
    Part& part = part_of(drained->receiver);
    const std::uint32_t unused = std::exchange(part.lent, 0);
    lent_ -= unused;
    part.limit = drained->delivered;
    part.asked = false;
    part.checked |= std::exchange(part.late, false);
    // It had less than it was asked for. Before the next one is: who of those has anything?
    if (unused > 0)
      for (Part& other : parts_)
        if (other.passed && !other.asked) ask(other, 0);
    lend();
    flush();
  } else if (std::holds_alternative<broker::ReceiverAttached>(answer.effect)) {
    if (std::exchange(accepted_, true) || ended_) return;
    accept(nullptr);
    lend();
  } else if (const auto* refused = std::get_if<broker::ReceiverRefused>(&answer.effect)) {
    if (std::exchange(ended_, true)) return;
    accepted_ ? detach(refused->error, now) : refuse(refused->error, now);
  } else if (const auto* gone = std::get_if<broker::DetachReceiver>(&answer.effect)) {
    if (std::exchange(ended_, true)) return;
    accepted_ ? detach(gone->error, now) : refuse(gone->error, now);
  }
}

std::uint32_t PartitionedReceiver::free_credit() const {
  const std::uint64_t used = std::uint64_t{lent_} + waiting();
  return link_->credit() > used ? static_cast<std::uint32_t>(link_->credit() - used) : 0;
}

void PartitionedReceiver::ask(Part& part, std::uint32_t credit) {
  part.available = part.passed = false;
  part.asked = true;
  part.late = draining_;
  part.lent = credit;
  part.limit += credit;
  lent_ += credit;
  context_.entities.send(part.route, broker::SetCredit{part.receiver, part.limit, true});
}

void PartitionedReceiver::lend() {
  if (ended_ || !is_attached()) return;
  // Who was passed on may have something again; to lend it a share is the question.
  const auto takes = [](const Part& part) { return (part.available || part.passed) && !part.asked; };
  auto takers = static_cast<std::uint32_t>(std::ranges::count_if(parts_, takes));
  for (std::size_t i = 0, at = turn_; i < parts_.size() && takers > 0; ++i, at = (at + 1) % parts_.size()) {
    const std::uint32_t free = free_credit();
    // A little credit makes little deliveries and little settlements: it waits for more, if more comes back.
    if (free == 0 || (free < given_ / 8 && std::ranges::any_of(parts_, &Part::asked))) break;
    Part& part = parts_[at];
    if (!takes(part)) continue;
    // Never less than an equal share: there may be more by now. What it does not use comes back at once.
    ask(part, std::min(free, std::max({1u, free / takers, part.told})));
    --takers;
    turn_ = (at + 1) % parts_.size();
  }
  if (takers > 0 && lent_ == 0) pass();
  if (!draining_ || link_->credit() == 0) return;
  for (Part& part : parts_)
    if (!part.checked && !part.asked) ask(part, 0);
}

void PartitionedReceiver::pass() {
  for (Part& part : parts_) {
    if (!part.available || part.asked) continue;
    part.available = false;
    part.passed = true;
    context_.entities.send(part.route, broker::SetCredit{part.receiver, part.limit, false});
  }
}

void PartitionedReceiver::flush() {
  send_waiting();
  if (!draining_ || ended_ || !is_attached() || waiting() != 0) return;
  if (std::ranges::any_of(parts_, &Part::asked)) return;
  const bool nothing_left =
      std::ranges::all_of(parts_, [](const Part& part) { return part.checked && !part.available; });
  if (link_->credit() > 0 && !nothing_left) return;
  draining_ = false;
  // A client may have changed its mind meanwhile; then the credit it gave since stands.
  if (link_->drain_requested())
    link_->drained();
  else
    lend();
}

void PartitionedReceiver::on_credit(amqp::Link&, Now) {
  given_ = link_->credit();
  const bool drains = link_->drain_requested();
  if (drains && !draining_)
    for (Part& part : parts_) part.checked = false;
  draining_ = drains;
  lend();
  flush();
}

void PartitionedReceiver::close() {
  ended_ = true;
  for (const Part& part : parts_) context_.entities.close(part.receiver);
  parts_.clear();
}

}  // namespace omnibus::links
