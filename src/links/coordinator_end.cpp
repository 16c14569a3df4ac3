#include "links/coordinator_end.hpp"

#include "amqp/codec/value.hpp"
#include "links/transactions.hpp"

namespace omnibus::links {
namespace {

// What a client hears when a commit was refused. Only a store that failed in the middle cannot say that
// nothing happened, so neither can we.
Error commit_refused(const Error& why) {
  if (why.code == Errc::internal_error || why.code == Errc::io)
    return {Errc::internal_error,
            fmt::format("Whether the transaction was committed is not known: {}", why.detail)};
  return {Errc::transaction_rollback, fmt::format("The transaction was rolled back: {}", why.detail)};
}

}  // namespace

void CoordinatorEnd::accept(amqp::Link& link) {
  link_ = &link;
  using amqp::Value;
  const auto capabilities =
      amqp::encode(Value::array(amqp::code::symbol8, {Value::symbol("amqp:local-transactions"),
                                                      Value::symbol("amqp:multi-txns-per-ssn"),
                                                      Value::symbol("amqp:multi-ssns-per-txn")}));
  const auto target = amqp::encode_composite(amqp::Coordinator{.capabilities = {capabilities}});
  const auto properties = amqp::encode(Value::map({}));
  amqp::AttachReply reply;
  reply.target = amqp::RawValue{target};
  reply.max_message_size = control_bytes_max;
  reply.properties = {properties};
  link.accept(reply);
  link.grant(window);
}

void CoordinatorEnd::on_transfer(amqp::Link& link, amqp::Delivery& delivery, Now now) {
  if (delivery.settled) {
    // Nobody could be told the id, or whether the commit succeeded.
    const amqp::Condition condition =
        context_.tracked({Errc::not_allowed, "Declare and discharge cannot be sent settled."}, now);
    context_.observer.link_detached("(coordinator)", link.name(), condition.name, condition.description);
    return link.detach(condition);
  }
  const auto outcome = control(delivery);
  if (!outcome) return settle(delivery.id, amqp::State::rejected(context_.tracked(outcome.error(), now)));
  if (*outcome) settle(delivery.id, **outcome);
}

Result<std::optional<amqp::State>> CoordinatorEnd::control(const amqp::Delivery& delivery) {
  if (delivery.too_large)
    return fail(Errc::message_size_exceeded, "A control message has at most {} bytes.", control_bytes_max);
  const auto message = amqp::MessageView::parse(delivery.payload);
  if (!message) return fail(message.error());
  std::vector<std::uint8_t> scratch;
  const amqp::RawValue body = message->body_value(scratch);
  const amqp::StateView kind = amqp::view_state(body);
  if (kind.is(amqp::descriptor::declare)) {
    const auto declare = amqp::decode_composite<amqp::Declare>(body);
    if (!declare) return fail(declare.error());
    if (!declare->global_id.is_null())
      return fail(Errc::not_implemented, "Distributed transactions are not available.");
    const auto id = context_.transactions.declare(this);
    if (!id) return fail(id.error());
    return std::optional{amqp::State::declared(*id)};
  }
  if (kind.is(amqp::descriptor::discharge)) {
    const auto asked = amqp::decode_composite<amqp::Discharge>(body);
    if (!asked) return fail(asked.error());
    return discharge(*asked, delivery.id);
  }
  return fail(Errc::decode_error, "The body of a control message is a declare or a discharge.");
}

Result<std::optional<amqp::State>> CoordinatorEnd::discharge(const amqp::Discharge& discharge,
                                                             std::uint32_t delivery_id) {
  auto taken = context_.transactions.take(discharge.txn_id);
  if (!taken) return fail(taken.error());
  Transaction& transaction = **taken;
  if (discharge.fail.value_or(false)) return std::optional{amqp::State::accepted()};
  if (transaction.is_asking())
    transaction.doom({Errc::transaction_rollback, "a request of it was not answered yet"});
  if (transaction.doomed()) return fail(commit_refused({Errc::not_allowed, transaction.doomed()->detail}));
  if (transaction.steps().empty()) return std::optional{amqp::State::accepted()};
  ++unanswered_;
  broker::Transact transact;
  transact.request = context_.entities.expect(*this, delivery_id, transaction.bytes());
  transact.steps = transaction.take_steps();
  const Route decides{transact.steps.front().store, transact.steps.front().partition};
  context_.entities.send(decides, std::move(transact));
  return std::optional<amqp::State>{};
}

void CoordinatorEnd::on_answer(std::uint64_t tag, broker::Answer& answer, Now now) {
  --unanswered_;
  const auto* refused = std::get_if<broker::Refused>(&answer.effect);
  settle(static_cast<std::uint32_t>(tag),
         refused ? amqp::State::rejected(context_.tracked(commit_refused(refused->error), now))
                 : amqp::State::accepted());
}

void CoordinatorEnd::settle(std::uint32_t delivery_id, const amqp::State& outcome) {
  link_->disposition(delivery_id, outcome);
  if (link_->state() != amqp::Link::State::attached) return;
  const std::uint32_t used = std::min(window, link_->credit() + unanswered_);
  if (link_->credit() <= window / 2 && used < window) link_->grant(window - used);
}

void CoordinatorEnd::on_gone(amqp::Link&) {
  context_.entities.forget(*this);
  context_.transactions.drop_of(this);
}

}  // namespace omnibus::links
