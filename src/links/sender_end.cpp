#include "links/sender_end.hpp"

#include <algorithm>

#include "amqp/codec/value.hpp"
#include "broker/message_facts.hpp"

namespace omnibus::links {
namespace {

// What comes back with an answer: the delivery, and whether its sender waits for an outcome.
constexpr std::uint64_t settled_bit = std::uint64_t{1} << 32;

}  // namespace

SenderEnd::SenderEnd(Claim claim, LinkContext& context, std::shared_ptr<const EntityFacts> entity,
                     std::optional<std::string> routing_key)
    : LinkEnd(std::move(claim)),
      context_(context),
      entity_(std::move(entity)),
      routing_key_(std::move(routing_key)),
      partitions_(entity_->is_partitioned() ? new PartitionedSends(context, entity_, *this) : nullptr),
      message_bytes_max_(entity_->message_bytes_max),
      alternates_(context, entity_, *this) {}

SenderEnd::SenderEnd(Claim claim, LinkContext& context, std::shared_ptr<const EntityFacts> entity,
                     const EntityFacts& destination, std::string address)
    : LinkEnd(std::move(claim)),
      context_(context),
      entity_(std::move(entity)),
      destination_(destination.name),
      via_address_(std::move(address)),
      partitions_(entity_->is_partitioned() ? new PartitionedSends(context, entity_, *this, destination.name)
                                            : nullptr),
      message_bytes_max_(std::min(entity_->message_bytes_max, destination.message_bytes_max)),
      alternates_(context, entity_, *this) {}

void SenderEnd::accept(amqp::Link& link) {
  link_ = &link;
  amqp::AttachReply reply;
  reply.max_message_size = message_bytes_max_;
  amqp::Map properties;
  properties.set(amqp::Value::symbol("com.microsoft:max-message-batch-size"),
                 std::min<std::uint64_t>(message_bytes_max_, batch_bytes_max));
  if (destination_)
    properties.set(amqp::Value::symbol("com.microsoft:transfer-destination-address"),
                   std::string_view{via_address_});
  const auto encoded = amqp::encode(amqp::Value{std::move(properties)});
  reply.properties = {encoded};
  link.accept(reply);
  link.grant(window);
}

void SenderEnd::on_transfer(amqp::Link&, amqp::Delivery& delivery, Now now) {
  if (delivery.state.is(amqp::descriptor::transactional_state)) {
    const auto answer = enlist(delivery, now);
    if (!answer) return refuse(delivery.id, delivery.settled, answer.error(), now);
    if (!delivery.settled) link_->disposition(delivery.id, *answer);
    return refill();
  }
  const std::uint64_t tag = delivery.id | (delivery.settled ? settled_bit : 0);
  if (delivery.message_format == 0 && !delivery.too_large && !destination_) {
    auto message = broker::read_message(delivery.payload, context_.random);
    if (!message) return refuse(delivery.id, delivery.settled, message.error(), now);
    message->facts.routing_key = routing_key_;
    if (partitions_) {
      const auto sent = partitions_->send(*std::move(message), tag);
      if (!sent) return refuse(delivery.id, delivery.settled, sent.error(), now);
      ++unanswered_;
      return;
    }
    ++unanswered_;
    return context_.entities.enqueue(entity_->route, *this, tag, *std::move(message));
  }
  auto messages = read(delivery);
  if (!messages) return refuse(delivery.id, delivery.settled, messages.error(), now);
  const auto sent = send(*std::move(messages), tag, delivery.payload.size());
  if (!sent) return refuse(delivery.id, delivery.settled, sent.error(), now);
  ++unanswered_;
}

Result<std::vector<broker::IncomingMessage>> SenderEnd::read(const amqp::Delivery& delivery) {
  if (delivery.too_large)
    return fail(Errc::message_size_exceeded, "The message is larger than the {} bytes that '{}' takes.",
                message_bytes_max_, entity_->name);
  auto messages = broker::read_transfer(delivery.message_format, delivery.payload, context_.random);
  if (messages && routing_key_)
    for (auto& message : *messages) message.facts.routing_key = routing_key_;
  return messages;
}

Result<void> SenderEnd::send(std::vector<broker::IncomingMessage> messages, std::uint64_t tag,
                             std::uint64_t bytes) {
  if (partitions_) return partitions_->send(std::move(messages), tag, bytes);
  const auto request = context_.entities.expect_send(entity_->route, *this, tag, bytes);
  if (destination_)
    context_.entities.send(entity_->route,
                           broker::EnqueueTransfer{request, std::move(messages), *destination_});
  else
    context_.entities.send(entity_->route, broker::Enqueue{request, std::move(messages)});
  return {};
}

Result<amqp::State> SenderEnd::enlist(const amqp::Delivery& delivery, Now now) {
  const auto state = read_transactional_state(delivery.state);
  if (!state) return fail(state.error());
  const auto transaction = context_.transactions.begin_operation(state->txn_id, now);
  if (!transaction) return fail(transaction.error());
  const auto enlisted = enlist(**transaction, delivery);
  if (enlisted) return amqp::State::transactional(state->txn_id, amqp::State::accepted());
  // Who does not wait for outcomes must not commit without it, nor who broke the rules about keys.
  if (delivery.settled || (entity_->is_partitioned() && enlisted.error().code == Errc::not_allowed))
    (*transaction)->doom(enlisted.error());
  return fail(enlisted.error());
}

Result<void> SenderEnd::enlist(Transaction& transaction, const amqp::Delivery& delivery) {
  auto messages = read(delivery);
  if (!messages) return fail(messages.error());
  // What the entity would say at once to an ordinary send is not left to the commit.
  const auto entity = context_.entities.find(entity_->name);
  if (!entity) return fail(entity_not_found(entity_->name));
  if (!broker::may_send(entity->status))
    return fail(Errc::entity_disabled, "sending to '{}' is disabled", entity_->name);
  const auto route = route_in(transaction, *entity_, *messages, destination_.has_value());
  if (!route) return fail(route.error());
  Enlistment enlistment;
  enlistment.messages = static_cast<std::uint32_t>(messages->size());
  enlistment.bytes = delivery.payload.size();
  auto& step = enlistment.steps.emplace_back(route->store, route->partition);
  if (destination_)
    step.work = broker::EnqueueTransfer{{}, *std::move(messages), *destination_};
  else
    step.work = broker::Enqueue{{}, *std::move(messages)};
  return context_.transactions.enlist(transaction, std::move(enlistment));
}

void SenderEnd::on_answer(std::uint64_t tag, broker::Answer& answer, Now now) {
  auto* unrouted = std::get_if<broker::Unrouted>(&answer.effect);
  std::optional<Error> error;
  if (unrouted) {
    auto goes_on = alternates_.go_on(tag, *unrouted);
    if (goes_on && *goes_on) return;
    if (!goes_on) error = std::move(goes_on.error());
  }
  if (auto* refused = std::get_if<broker::Refused>(&answer.effect)) error = std::move(refused->error);
  const bool released = unrouted && unrouted->unroutable == rules::Unroutable::release;
  alternates_.end(tag, !error && !released);
  --unanswered_;
  const auto delivery_id = static_cast<std::uint32_t>(tag);
  const bool settled = (tag & settled_bit) != 0;
  if (error) return refuse(delivery_id, settled, *error, now);
  if (!settled) link_->disposition(delivery_id, released ? amqp::State::released() : amqp::State::accepted());
  refill();
}

// A sender that does not wait for outcomes can only be told by the end of its link [contract 4.2].
void SenderEnd::refuse(std::uint32_t delivery_id, bool settled, const Error& error, Now now) {
  const amqp::Condition condition = context_.tracked(error, now);
  if (!settled) {
    link_->disposition(delivery_id, amqp::State::rejected(condition));
    return refill();
  }
  if (link_->state() != amqp::Link::State::attached) return;
  context_.observer.link_detached(entity_->name, link_->name(), condition.name, condition.description);
  link_->detach(condition);
}

void SenderEnd::refill() {
  if (link_->state() != amqp::Link::State::attached) return;
  // Clients that ignore credit may have more under way than the window.
  const std::uint32_t used = std::min(window, link_->credit() + unanswered_);
  if (link_->credit() <= window / 2 && window - used >= window / 4) link_->grant(window - used);
}

void SenderEnd::on_gone(amqp::Link&) {
  if (partitions_)
    partitions_->forget();
  else
    context_.entities.forget(*this);
}

}  // namespace omnibus::links
