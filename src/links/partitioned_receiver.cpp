#include "links/partitioned_receiver.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace omnibus::links {

Result<void> PartitionedReceiver::start(amqp::Link& link, const amqp::Attach& attach, Now now) {
  auto command = read_attach(link, attach, now);
  if (!command) return fail(command.error());
  std::vector<StoreRoutes> stores = by_store(entity_->partitions);
  const std::size_t home = choose_home(stores);
  for (std::size_t i = 0; i < stores.size(); ++i) {
    broker::AttachReceiver asked = *command;
    asked.credit = i == home ? broker::AttachReceiver::Credit::shared : broker::AttachReceiver::Credit::told;
    asked.receiver = context_.entities.open(*this, stores[i].first, entity_);
    asked.others = std::move(stores[i].others);
    parts_.push_back({.route = stores[i].first, .receiver = asked.receiver, .is_home = i == home});
    context_.entities.send(parts_.back().route, std::move(asked));
  }
  return {};
}

// One of those on this core, so that many links divide among them.
std::size_t PartitionedReceiver::choose_home(const std::vector<StoreRoutes>& stores) const {
  std::vector<std::size_t> near;
  for (std::size_t i = 0; i < stores.size(); ++i)
    if (context_.entities.is_near(stores[i].first)) near.push_back(i);
  return near.empty() ? stores.size() : near[context_.random.below(near.size())];
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
    const bool is_delivered = deliver(*delivery, answer.message);
    // Otherwise its credit is free for another. A home is not asked and does not ask: it gets more in time.
    if (!is_delivered || (part.is_home && part.lent < free_credit())) lend();
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
    // A home that used up all it had may have more, and does not say so.
    if (std::exchange(part.late, false) && (!part.is_home || unused > 0)) part.checked = true;
    // It had less than it was asked for. Before the next one is: who of those has anything?
    if (unused > 0 && !part.is_home)
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

std::uint32_t PartitionedReceiver::credit() const {
  return link_->credit() > waiting() ? static_cast<std::uint32_t>(link_->credit() - waiting()) : 0;
}

std::uint32_t PartitionedReceiver::free_credit() const {
  const std::uint32_t all = credit();
  return all > lent_ ? all - lent_ : 0;
}

std::uint32_t PartitionedReceiver::home_share() const {
  const std::uint32_t all = credit();
  const auto others = static_cast<std::uint32_t>(std::ranges::count_if(
      parts_, [](const Part& part) { return !part.is_home && (part.takes() || part.asked); }));
  // A quarter is there for the first who has something.
  return others == 0 ? all - all / 4 : all / (others + 1);
}

void PartitionedReceiver::ask(Part& part, std::uint32_t credit) {
  part.available = part.passed = false;
  part.asked = true;
  part.late = draining_;
  part.lent += credit;
  part.limit += credit;
  lent_ += credit;
  context_.entities.send(part.route, broker::SetCredit{part.receiver, part.limit, true});
}

void PartitionedReceiver::raise(Part& home, std::uint32_t credit) {
  home.lent += credit;
  home.limit += credit;
  lent_ += credit;
  context_.entities.send(home.route, broker::SetCredit{home.receiver, home.limit, false});
}

void PartitionedReceiver::lend() {
  if (ended_ || !is_attached()) return;
  // Who was passed on may have something again; to lend it a share is the question.
  auto takers = static_cast<std::uint32_t>(std::ranges::count_if(parts_, &Part::takes));
  const auto found = std::ranges::find_if(parts_, &Part::is_home);
  Part* const home = found == parts_.end() ? nullptr : &*found;
  const std::uint32_t share = home ? home_share() : 0;
  const auto home_lacks = [&]() -> std::uint32_t {
    if (!home || home->asked || draining_) return 0;
    // With less credit than stores, each has its turn.
    return std::max(share, 1u) - std::min(std::max(share, 1u), home->lent);
  };
  for (std::size_t i = 0, at = turn_; i < parts_.size(); ++i, at = (at + 1) % parts_.size()) {
    const std::uint32_t free = free_credit();
    if (free == 0) break;
    Part& part = parts_[at];
    if (&part == home && home_lacks() > 0) {
      raise(part, std::min(free, home_lacks()));
    } else if (part.takes()) {
      // Never less than an equal share: there may be more by now. What it does not use comes back at once,
      // and messages that go out together are settled together.
      const std::uint32_t most = std::max(free - std::min(free, home_lacks()), 1u);
      ask(part, std::min(most, std::max({1u, most / takers, part.told})));
      --takers;
    } else {
      continue;
    }
    turn_ = (at + 1) % parts_.size();
  }
  if (takers > 0 && home && !home->asked && home->lent > share)
    ask(*home, 0);
  else if (takers > 0 && lent_ == 0)
    pass();
  if (!draining_ || link_->credit() == 0) return;
  for (Part& part : parts_) {
    const std::uint32_t more = part.is_home ? free_credit() : 0;
    if (!part.checked && !part.asked && (!part.is_home || part.lent + more > 0)) ask(part, more);
  }
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
