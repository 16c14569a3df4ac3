#include "links/receiver_end.hpp"

#include <algorithm>

#include "broker/partition_key.hpp"

namespace omnibus::links {

Result<void> ReceiverEnd::start(amqp::Link& link, const amqp::Attach& attach, Now now) {
  auto command = read_attach(link, attach, now);
  if (!command) return fail(command.error());
  route_ = entity_->route;
  std::shared_ptr<const EntityFacts> several;
  if (entity_->is_partitioned()) {
    if (std::holds_alternative<broker::AttachReceiver::NextSession>(command->session)) {
      ask_for_session(*command);
      return {};
    }
    if (const auto* named = std::get_if<broker::AttachReceiver::NamedSession>(&command->session)) {
      route_ = entity_->partitions.at(
          broker::partition_of_key(named->id, static_cast<std::uint16_t>(entity_->partitions.size())));
    } else {
      StoreRoutes store = std::move(by_store(entity_->partitions).front());
      several = entity_;
      route_ = store.first;
      command->credit = broker::AttachReceiver::Credit::shared;
      command->others = std::move(store.others);
    }
  }
  receiver_ = context_.entities.open(*this, route_, std::move(several));
  known_to_entity_ = true;
  command->receiver = receiver_;
  context_.entities.send(route_, *std::move(command));
  return {};
}

// A partition that is down refuses at once and is out of the search.
void ReceiverEnd::ask_for_session(const broker::AttachReceiver& command) {
  for (const Route& route : entity_->partitions)
    candidates_.push_back({context_.entities.open(*this, route), route});
  for (const Candidate& one : candidates_) {
    broker::AttachReceiver asked = command;
    asked.receiver = one.receiver;
    context_.entities.send(one.route, std::move(asked));
  }
}

void ReceiverEnd::accepted(const broker::SessionAccepted& session) {
  if (!candidates_.empty()) {
    // The first one is it. Another partition may have given a session too by now: closing gives it back.
    for (const Candidate& one : std::exchange(candidates_, {})) {
      if (one.receiver != session.receiver) {
        context_.entities.close(one.receiver);
        continue;
      }
      route_ = one.route;
      receiver_ = one.receiver;
      known_to_entity_ = true;
    }
  }
  accept(&session);
  tell_credit();
}

void ReceiverEnd::refused(const broker::ReceiverRefused& refused, Now now) {
  known_to_entity_ = false;
  if (candidates_.empty()) return refuse(refused.error, now);
  std::erase_if(candidates_, [&](const Candidate& one) { return one.receiver == refused.receiver; });
  context_.entities.close(refused.receiver);
  // That there was none in time says more than that a store is down.
  if (!search_error_ || search_error_->code == Errc::server_busy || refused.error.code == Errc::timeout)
    search_error_ = refused.error;
  if (candidates_.empty()) refuse(*search_error_, now);
}

void ReceiverEnd::on_delivery(broker::Answer& answer, Now now) {
  if (auto* delivery = std::get_if<broker::Deliver>(&answer.effect)) {
    if (deliver(*delivery, answer.message)) return;
    // It was one of the link's deliveries at the entity: the client's credit is there for the next one.
    ++ahead_;
    tell_credit();
  } else if (std::holds_alternative<broker::ReceiverAttached>(answer.effect)) {
    accept(nullptr);
    tell_credit();
  } else if (const auto* session = std::get_if<broker::SessionAccepted>(&answer.effect)) {
    accepted(*session);
  } else if (const auto* no = std::get_if<broker::ReceiverRefused>(&answer.effect)) {
    refused(*no, now);
  } else if (const auto* drained = std::get_if<broker::LinkDrained>(&answer.effect)) {
    drained_at_ = drained->delivered;
    flush();
  } else if (const auto* gone = std::get_if<broker::DetachReceiver>(&answer.effect)) {
    known_to_entity_ = false;
    detach(gone->error, now);
  }
}

void ReceiverEnd::flush() {
  send_waiting();
  if (!drained_at_ || waiting() != 0 || !is_attached()) return;
  const std::uint64_t counted = *drained_at_;
  drained_at_.reset();
  told_drain_ = false;
  // A client may have changed its mind meanwhile; then the credit it gave since stands.
  if (link_->drain_requested()) {
    sent_ += link_->credit();
    link_->drained();
  }
  ahead_ = static_cast<std::int64_t>(counted) - static_cast<std::int64_t>(sent_);
  told_limit_ = counted;
  tell_credit();
}

void ReceiverEnd::tell_credit() {
  if (!known_to_entity_ || !is_attached()) return;
  const std::uint64_t limit =
      static_cast<std::uint64_t>(static_cast<std::int64_t>(sent_ + link_->credit()) + ahead_);
  const bool drain = link_->drain_requested();
  if (limit == told_limit_ && (!drain || told_drain_)) return;
  told_limit_ = limit;
  told_drain_ = drain;
  context_.entities.send(route_, broker::SetCredit{receiver_, limit, drain});
}

void ReceiverEnd::on_credit(amqp::Link&, Now) {
  tell_credit();
  flush();
}

void ReceiverEnd::close() {
  for (const Candidate& one : std::exchange(candidates_, {})) context_.entities.close(one.receiver);
  if (receiver_ != broker::ReceiverId::none) context_.entities.close(receiver_);
  receiver_ = broker::ReceiverId::none;
}

}  // namespace omnibus::links
