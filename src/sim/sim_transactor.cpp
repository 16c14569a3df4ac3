#include "sim/sim_transactor.hpp"

#include <fmt/format.h>

#include "amqp/codec/message.hpp"

namespace omnibus::sim {
namespace {

using namespace std::chrono_literals;

}  // namespace

void SimTransactor::on_ready() {
  AttachWith to_coordinator;
  to_coordinator.to_coordinator = true;
  coordinator_ = &attach(amqp::Role::sender, "", to_coordinator);
  for (const SimEntity* target : targets_) senders_.push_back(&attach(amqp::Role::sender, target->name, {}));
  if (!source_.empty()) {
    AttachWith locks;
    locks.snd = amqp::SenderSettle::unsettled;
    locks.rcv = amqp::ReceiverSettle::second;
    receiver_ = &attach(amqp::Role::receiver, source_, locks);
  }
  later(think(), [this] { step(); });
}

void SimTransactor::on_disconnected() {
  coordinator_ = receiver_ = nullptr;
  senders_.clear();
  under_way_.clear();
  stage_ = Stage::idle;
}

void SimTransactor::on_link_gone(amqp::Link& link) {
  SimClient::on_link_gone(link);
  // One link less: it starts over with a new connection.
  if (&link == coordinator_) coordinator_ = nullptr;
  if (&link == receiver_) receiver_ = nullptr;
  for (amqp::Link*& one : senders_)
    if (one == &link) one = nullptr;
  later(think(), [this] { break_off(); });
}

void SimTransactor::on_attached(amqp::Link& link, const amqp::Attach& attach) {
  SimClient::on_attached(link, attach);
  if (&link == receiver_ && of(link).is_ready) link.grant(3);
}

void SimTransactor::step() {
  if (world().one_in(60)) return break_off();
  if (stage_ == Stage::idle && coordinator_ && of(*coordinator_).is_ready && coordinator_->sendable())
    declare();
  else if (stage_ == Stage::working)
    work();
  later(think() / 4, [this] { step(); });
}

void SimTransactor::control(Bytes body) {
  const std::string message{"\x00\x53\x77", 3};
  const std::string tag = std::to_string(++last_context_);
  amqp::Outgoing outgoing;
  outgoing.tag = as_bytes(tag);
  outgoing.context = last_context_;
  coordinator_->send(outgoing, Payload::copy_of(message + std::string{as_text(body)}));
}

void SimTransactor::declare() {
  stage_ = Stage::declaring;
  control(amqp::encode_composite(amqp::Declare{}));
}

void SimTransactor::work() {
  if (steps_left_ == 0) {
    if (under_way_.empty() && coordinator_->sendable()) end();
    return;
  }
  --steps_left_;
  if (receiver_ && !of(*receiver_).held.empty() && world().one_in(2))
    settle();
  else
    send();
}

void SimTransactor::send() {
  const std::size_t which = random().below(targets_.size());
  amqp::Link* link = senders_.at(which);
  if (!link || !of(*link).is_ready || !link->sendable()) return;
  const NewMessage message = maker_.make(*targets_[which]);
  Event& event = note(Do::send);
  MessageMaker::fill(event, *targets_[which], message);
  event.tx = tx_;
  const auto state =
      amqp::encode_composite(amqp::TransactionalState{.txn_id = as_bytes(transaction_), .outcome = {}});
  const std::string tag = std::to_string(++last_context_);
  amqp::Outgoing outgoing;
  outgoing.tag = as_bytes(tag);
  outgoing.context = last_context_;
  outgoing.state = {state};
  under_way_.emplace(last_context_, message.id);
  link->send(outgoing, Payload::copy_of(encode_message(message)));
}

void SimTransactor::settle() {
  for (auto& [delivery, held] : of(*receiver_).held) {
    if (held.how) continue;
    held.how = How::complete;
    held.tx = tx_;
    Event& event = note(Do::settle);
    event.id = held.id;
    event.entity = of(*receiver_).address;
    event.seq = held.seq;
    event.how = How::complete;
    event.tx = tx_;
    receiver_->disposition(
        delivery, amqp::State::transactional(as_bytes(transaction_), amqp::State::accepted()), false);
    return;
  }
}

void SimTransactor::end() {
  if (receiver_)
    for (const auto& [delivery, held] : of(*receiver_).held)
      if (held.how && held.tx == tx_) return;  // not answered yet
  stage_ = Stage::ending;
  how_ = world().one_in(4) ? How::rollback : How::commit;
  control(amqp::encode_composite(
      amqp::Discharge{.txn_id = as_bytes(transaction_), .fail = how_ == How::rollback}));
  // Sometimes nobody waits for the answer.
  if (world().one_in(20)) later(world().between(Nanos{0}, 20ms), [this] { break_off(); });
}

void SimTransactor::on_transfer(amqp::Link& link, amqp::Delivery& delivery) {
  const GotMessage got = read_got(delivery.payload);
  Event& event = note(Do::got);
  event.id = got.id;
  event.entity = of(link).address;
  event.seq = got.seq;
  event.count = got.count;
  event.dead = got.dead;
  event.until = got.until.value_or(0);
  of(link).held.emplace(delivery.id, HeldDelivery{got.id, got.seq});
}

void SimTransactor::on_disposition(amqp::Link& link, const amqp::DispositionOf& disposition) {
  const Answered answered = read_answer(disposition.state);
  if (&link == receiver_) {
    const auto found = of(link).held.find(disposition.id);
    if (found == of(link).held.end() || !found->second.how) return;
    note_settled(of(link), found->second, answered);
    of(link).held.erase(found);
    link.grant(1);
    return;
  }
  if (&link != coordinator_) {
    const auto found = under_way_.find(disposition.context);
    if (found == under_way_.end()) return;
    Event& event = note(Do::sent);
    event.id = found->second;
    event.result = answered.outcome;
    event.note = answered.condition;
    under_way_.erase(found);
    return;
  }
  if (stage_ == Stage::declaring) {
    stage_ = Stage::idle;
    if (answered.transaction.empty()) return;
    stage_ = Stage::working;
    transaction_ = answered.transaction;
    tx_ = fmt::format("{}-t{}", name(), ++made_);
    steps_left_ = world().between(1, 6);
    note(Do::begin).tx = tx_;
  } else if (stage_ == Stage::ending) {
    stage_ = Stage::idle;
    Event& event = note(Do::end);
    event.tx = tx_;
    event.how = how_;
    event.result = answered.outcome;
    event.note = answered.condition;
  }
}

}  // namespace omnibus::sim
