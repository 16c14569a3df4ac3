#include "rest/rest_work.hpp"

#include "admin/management_service.hpp"
#include "base/check.hpp"
#include "rest/rest_message.hpp"

namespace omnibus::rest {

// Sending

RestService::Send::Send(RestService& service, std::uint64_t id, Call call)
    : service_(service),
      id_(id),
      call_(std::move(call)),
      partitions_(call_.entity->is_partitioned()
                      ? new links::PartitionedSends(service.context_, call_.entity, *this)
                      : nullptr),
      alternates_(service.context_, call_.entity, *this) {}

void RestService::Send::start(std::vector<broker::IncomingMessage> messages, std::uint64_t bytes,
                              links::Now now) {
  bytes_ = bytes;
  service_.bytes_ += bytes;
  if (call_.routing_key)
    for (auto& message : messages) message.facts.routing_key = call_.routing_key;
  if (partitions_) {
    if (auto sent = partitions_->send(std::move(messages), 0, bytes); !sent) {
      service_.refuse(call_, sent.error(), now);
      service_.end(*this);
    }
    return;
  }
  broker::Enqueue enqueue;
  enqueue.request = service_.entities_.expect_send(call_.entity->route, *this, 0, bytes);
  enqueue.messages = std::move(messages);
  service_.entities_.send(call_.entity->route, std::move(enqueue));
}

void RestService::Send::on_answer(std::uint64_t tag, broker::Answer& answer, links::Now now) {
  std::optional<Error> error;
  auto* unrouted = std::get_if<broker::Unrouted>(&answer.effect);
  if (unrouted) {
    auto goes_on = alternates_.go_on(tag, *unrouted);
    if (goes_on && *goes_on) return;
    if (!goes_on) error = std::move(goes_on.error());
  }
  if (auto* refused = std::get_if<broker::Refused>(&answer.effect)) error = std::move(refused->error);
  // What AMQP settles as released, with the same meaning: nobody has it, and to send it again is up to you.
  const bool released = !error && unrouted && unrouted->unroutable == rules::Unroutable::release;
  alternates_.end(tag, !error && !released);
  if (released)
    service_.refuse(call_, {404, 40401},
                    fmt::format("No subscription of '{}' takes the message.", call_.shown), now);
  else if (error)
    service_.refuse(call_, *error, now);
  else
    call_.reply.send(std::move(call_.success));
  service_.end(*this);
}

// Receiving

RestService::Poll::Poll(RestService& service, std::uint64_t id, Call call, Tick deadline)
    : service_(service),
      id_(id),
      call_(std::move(call)),
      deadline_(deadline),
      deletes_(call_.request.method == "DELETE") {}

RestService::Poll::~Poll() = default;

void RestService::Poll::start(links::Now now) {
  auto& entities = service_.entities_;
  std::vector<links::StoreRoutes> stores = links::by_store(call_.entity->partitions);
  if (stores.empty()) stores.push_back({call_.entity->route});
  for (const auto& store : stores)
    parts_.push_back({.route = store.first,
                      .receiver = entities.open(*this, store.first,
                                                call_.entity->is_partitioned() ? call_.entity : nullptr)});
  turn_ = static_cast<std::size_t>(service_.random_.below(parts_.size()));
  time_is_up_ = deadline_ <= now.tick;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    broker::AttachReceiver attach;
    attach.receiver = part.receiver;
    attach.others = std::move(stores[i].others);
    attach.connection = entities.connection();
    attach.sub_queue = call_.sub_queue;
    if (call_.entity->is_partitioned())
      attach.credit =
          in_several_stores() ? broker::AttachReceiver::Credit::told : broker::AttachReceiver::Credit::shared;
    entities.send(part.route, std::move(attach));
  }
  if (in_several_stores()) return next();
  parts_[0].limit = 1;
  parts_[0].asked_last = time_is_up_;
  entities.send(parts_[0].route, broker::SetCredit{parts_[0].receiver, 1, time_is_up_});
}

RestService::Poll::Part& RestService::Poll::part_of(broker::ReceiverId receiver) {
  const auto index =
      static_cast<std::uint64_t>(receiver) - static_cast<std::uint64_t>(parts_.front().receiver);
  check(index < parts_.size(), "a receiver is one of ours");
  return parts_[index];
}

void RestService::Poll::ask(Part& part) {
  part.available = false;
  part.asked_last = time_is_up_;
  asking_ = true;
  service_.entities_.send(part.route, broker::SetCredit{part.receiver, ++part.limit, true});
}

void RestService::Poll::next() {
  if (state_ != State::waiting || asking_) return;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[(turn_ + i) % parts_.size()];
    if (part.available || (time_is_up_ && !part.asked_last)) {
      turn_ = (turn_ + i + 1) % parts_.size();
      return ask(part);
    }
  }
  if (time_is_up_) answer({.status = 204});
}

void RestService::Poll::on_deadline() {
  if (state_ != State::waiting || std::exchange(time_is_up_, true)) return;
  if (in_several_stores()) return next();
  parts_[0].asked_last = true;
  service_.entities_.send(parts_[0].route, broker::SetCredit{parts_[0].receiver, parts_[0].limit, true});
}

void RestService::Poll::on_gone(links::Now now) {
  // While a lock is being completed it is too late: that has been decided.
  if (state_ == State::waiting)
    refuse({Errc::argument_error, "The client ended its side while it waited for a message."}, now);
}

void RestService::Poll::on_delivery(broker::Answer& answered, links::Now now) {
  // There was one credit: while its message is being completed nothing else can come that matters.
  if (state_ != State::waiting) return;
  if (auto* delivery = std::get_if<broker::Deliver>(&answered.effect)) {
    take(*delivery, answered.message, now);
  } else if (const auto* there = std::get_if<broker::MessagesAvailable>(&answered.effect)) {
    part_of(there->receiver).available = true;
    next();
  } else if (const auto* drained = std::get_if<broker::LinkDrained>(&answered.effect)) {
    part_of(drained->receiver).limit = drained->delivered;
    asking_ = false;
    next();
  } else if (const auto* refused = std::get_if<broker::ReceiverRefused>(&answered.effect)) {
    refuse(refused->error, now);
  } else if (const auto* gone = std::get_if<broker::DetachReceiver>(&answered.effect)) {
    refuse(gone->error, now);
  }
}

void RestService::Poll::take(broker::Deliver& delivery, const Payload& stored, links::Now now) {
  if (!call_.reply.wanted() || call_.reply.ended()) {
    release(delivery.lock);
    return on_gone(now);
  }
  broker::HeldMessage held{delivery.status, delivery.lock, delivery.locked_until};
  if (deletes_) held.locked_until.reset();
  auto shown = stored.empty() ? Result<Shown>{fail(Errc::internal_error, "a message cannot be read back")}
                              : show(stored, held);
  if (!shown) {
    // The lock stays: it is tried again and at last becomes a dead letter, as on a link.
    service_.context_.observer.message_unreadable(call_.shown, delivery.status.sequence, shown.error());
    return refuse({Errc::internal_error, shown.error().detail}, now);
  }
  auto response = message_response(deletes_ ? 200 : 201, *shown);
  if (deletes_) {
    message_ = std::move(response);
    state_ = State::completing;
    service_.entities_.send(route_of(delivery.lock), broker::Settle{service_.entities_.expect(*this, 0),
                                                                    {delivery.lock},
                                                                    broker::Complete{},
                                                                    std::nullopt,
                                                                    broker::ReceiverId::none});
    return;
  }
  response.headers.push_back(
      {"Location", fmt::format("{}://{}{}/messages/{}/{}", call_.request.tls ? "https" : "http",
                               admin::host_of(call_.request), call_.path.entity, delivery.status.sequence,
                               amqp::to_text(delivery.lock.uuid()))});
  answer(std::move(response));
}

const links::Route& RestService::Poll::route_of(const broker::LockToken& lock) const {
  const links::EntityFacts& entity = *call_.entity;
  return entity.is_partitioned() ? entity.partitions.at(lock.partition()) : entity.route;
}

void RestService::Poll::release(const broker::LockToken& lock) {
  service_.entities_.send(
      route_of(lock),
      broker::Settle{
          broker::RequestId::none, {lock}, broker::Release{}, std::nullopt, broker::ReceiverId::none});
}

void RestService::Poll::on_answer(std::uint64_t, broker::Answer& answered, links::Now now) {
  if (const auto* refused = std::get_if<broker::Refused>(&answered.effect))
    return refuse(refused->error, now);
  answer(*std::move(message_));
}

void RestService::Poll::answer(net::HttpResponse response) {
  if (state_ == State::over) return;
  call_.reply.send(std::move(response));
  finish();
}

void RestService::Poll::refuse(const Error& error, links::Now now) {
  if (state_ == State::over) return;
  service_.refuse(call_, error, now);
  finish();
}

void RestService::Poll::finish() {
  state_ = State::over;
  for (const Part& part : parts_) service_.entities_.close(part.receiver);
  service_.end(*this);
}

}  // namespace omnibus::rest
