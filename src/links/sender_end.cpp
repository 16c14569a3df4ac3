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
      partitions_(entity_->is_partitioned() ? new PartitionedSends(context, entity_, *this) : nullptr) {}

void SenderEnd::accept(amqp::Link& link) {
  link_ = &link;
  amqp::AttachReply reply;
  reply.max_message_size = entity_->message_bytes_max;
  const auto properties = amqp::encode(
      amqp::Value::map({{amqp::Value::symbol("com.microsoft:max-message-batch-size"),
                         std::min<std::uint64_t>(entity_->message_bytes_max, batch_bytes_max)}}));
  reply.properties = {properties};
  link.accept(reply);
  link.grant(window);
}

void SenderEnd::on_transfer(amqp::Link&, amqp::Delivery& delivery, Now now) {
  if (delivery.too_large)
    return refuse(
        delivery.id, delivery.settled,
        {Errc::message_size_exceeded, fmt::format("The message is larger than the {} bytes that '{}' takes.",
                                                  entity_->message_bytes_max, entity_->name)},
        now);
  if (delivery.state.is(amqp::descriptor::transactional_state))
    return refuse(delivery.id, delivery.settled, {Errc::not_implemented, "transactions are not available"},
                  now);
  const std::uint64_t tag = delivery.id | (delivery.settled ? settled_bit : 0);
  if (delivery.message_format == 0 && !partitions_) {
    auto message = broker::read_message(delivery.payload, context_.random);
    if (!message) return refuse(delivery.id, delivery.settled, message.error(), now);
    message->facts.routing_key = routing_key_;
    ++unanswered_;
    return context_.entities.enqueue(entity_->route, *this, tag, *std::move(message));
  }
  auto messages = broker::read_transfer(delivery.message_format, delivery.payload, context_.random);
  if (!messages) return refuse(delivery.id, delivery.settled, messages.error(), now);
  if (routing_key_)
    for (auto& message : *messages) message.facts.routing_key = routing_key_;
  if (partitions_) {
    const auto sent = partitions_->send(*std::move(messages), tag, delivery.payload.size());
    if (!sent) return refuse(delivery.id, delivery.settled, sent.error(), now);
    ++unanswered_;
    return;
  }
  ++unanswered_;
  broker::Enqueue enqueue;
  enqueue.request = context_.entities.expect(*this, tag, delivery.payload.size());
  enqueue.messages = *std::move(messages);
  context_.entities.send(entity_->route, std::move(enqueue));
}

void SenderEnd::on_answer(std::uint64_t tag, broker::Answer& answer, Now now) {
  auto* unrouted = std::get_if<broker::Unrouted>(&answer.effect);
  std::optional<Error> error;
  if (unrouted) {
    auto goes_on = go_on(tag, *unrouted);
    if (goes_on && *goes_on) return;
    if (!goes_on) error = std::move(goes_on.error());
  }
  if (auto* refused = std::get_if<broker::Refused>(&answer.effect)) error = std::move(refused->error);
  const bool released = unrouted && unrouted->unroutable == rules::Unroutable::release;
  if (!walks_.empty())
    if (const auto walked = walks_.extract(tag); walked && !error && !released)
      for (auto& [route, ids] : walked.mapped().remember) context_.entities.send(route, std::move(ids));
  --unanswered_;
  const auto delivery_id = static_cast<std::uint32_t>(tag);
  const bool settled = (tag & settled_bit) != 0;
  if (error) return refuse(delivery_id, settled, *error, now);
  if (!settled) link_->disposition(delivery_id, released ? amqp::State::released() : amqp::State::accepted());
  refill();
}

Result<bool> SenderEnd::go_on(std::uint64_t tag, broker::Unrouted& unrouted) {
  auto found = walks_.find(tag);
  if (found == walks_.end()) {
    if (unrouted.alternate.empty()) return false;
    found = walks_.emplace(tag, Walk{rules::AlternateWalk{entity_->name}, entity_}).first;
  }
  Walk& way = found->second;
  broker::Remember ids;
  std::uint64_t bytes = 0;
  for (const auto& message : unrouted.messages) {
    bytes += message.bytes.size();
    if (unrouted.remembers && message.facts.message_id) ids.ids.push_back(*message.facts.message_id);
  }
  if (!ids.ids.empty()) way.remember.emplace_back(way.at->route, std::move(ids));
  if (unrouted.alternate.empty() || !way.walk.go_to(unrouted.alternate)) return false;
  // A message that would be dropped because its second way is closed is refused: its sender can do something.
  auto next = context_.entities.find(unrouted.alternate);
  if (!next)
    return fail(Errc::not_found, "'{}', the alternate exchange of '{}', could not be found.",
                unrouted.alternate, way.at->name);
  if (!next->exchange)
    return fail(Errc::not_allowed, "'{}', the alternate exchange of '{}', is no exchange.",
                unrouted.alternate, way.at->name);
  way.at = std::move(next);
  broker::Enqueue enqueue;
  enqueue.request = context_.entities.expect(*this, tag, bytes);
  enqueue.messages = std::move(unrouted.messages);
  enqueue.steps = way.walk.steps();
  context_.entities.send(way.at->route, std::move(enqueue));
  return true;
}

// A sender that does not wait for outcomes can only be told by the end of its link [contract 4.2].
void SenderEnd::refuse(std::uint32_t delivery_id, bool settled, const Error& error, Now now) {
  const amqp::Condition condition = context_.tracked(error, now);
  if (!settled) {
    link_->disposition(delivery_id, amqp::State::rejected(condition));
    return refill();
  }
  if (link_->state() != amqp::Link::State::attached) return;
  context_.observer.link_detached(link_->name(), condition.name, condition.description);
  link_->detach(condition);
}

void SenderEnd::refill() {
  if (link_->state() != amqp::Link::State::attached) return;
  // Clients that ignore credit may have more under way than the window.
  const std::uint32_t used = std::min(window, link_->credit() + unanswered_);
  if (link_->credit() <= window / 2 && window - used >= window / 4) link_->grant(window - used);
}

void SenderEnd::on_gone(amqp::Link&) {
  context_.entities.forget(*this);
  if (partitions_) partitions_->forget();
}

}  // namespace omnibus::links
