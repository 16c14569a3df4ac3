#include "links/receiver_link.hpp"

#include "amqp/codec/value.hpp"
#include "base/check.hpp"
#include "broker/delivered_message.hpp"
#include "links/outcome.hpp"
#include "links/session_filter.hpp"

namespace omnibus::links {
namespace {

// .NET ticks: 100 ns since the year 1.
std::int64_t ticks(Instant at) { return 621'355'968'000'000'000 + at.time_since_epoch().count() * 10'000; }

// `com.microsoft:timeout`, any integer, in milliseconds.
std::chrono::milliseconds session_wait_of(const amqp::Attach& attach) {
  const auto properties = amqp::decode_value(attach.properties);
  if (!properties) return ReceiverLink::session_wait;
  const amqp::Value* wait = properties->find("com.microsoft:timeout");
  const auto ms = wait ? wait->as_unsigned() : std::nullopt;
  if (!ms) return ReceiverLink::session_wait;
  return std::chrono::milliseconds{std::min<std::uint64_t>(*ms, 24 * 3600 * 1000)};
}

}  // namespace

Result<broker::AttachReceiver> ReceiverLink::read_attach(amqp::Link& link, const amqp::Attach& attach,
                                                         Now now) {
  link_ = &link;
  const auto source = amqp::decode_composite<amqp::Source>(attach.source);
  if (!source) return fail(Errc::invalid_field, "{}", source.error().detail);
  const auto filter = read_session_filter(*source);
  if (!filter) return fail(filter.error());
  // Only a sender that settles at once takes messages away unseen; mixed and absent are peek-lock.
  if (link.snd_settle_mode() == amqp::SenderSettle::settled) mode_ = broker::ReceiveMode::receive_and_delete;

  broker::AttachReceiver command;
  command.connection = context_.entities.connection();
  command.sub_queue = sub_queue_;
  command.mode = mode_;
  if (*filter) {
    if (sub_queue_ != broker::SubQueue::active)
      return fail(Errc::not_allowed, "a dead-letter queue has no sessions");
    if ((*filter)->id)
      command.session = broker::AttachReceiver::NamedSession{*(*filter)->id};
    else
      command.session = broker::AttachReceiver::NextSession{now.of_messages() + session_wait_of(attach)};
  }
  return command;
}

void ReceiverLink::accept(const broker::SessionAccepted* session) {
  amqp::AttachReply reply;
  const amqp::Attach& asked = link_->remote_attach();
  const bool settles = mode_ == broker::ReceiveMode::receive_and_delete;
  if (!asked.snd_settle_mode)
    reply.snd_settle_mode = settles ? amqp::SenderSettle::settled : amqp::SenderSettle::unsettled;
  if (!asked.rcv_settle_mode)
    reply.rcv_settle_mode = settles ? amqp::ReceiverSettle::first : amqp::ReceiverSettle::second;
  reply.max_message_size = entity_->message_bytes_max;
  amqp::Map properties;
  std::vector<std::uint8_t> source;
  if (session) {
    properties.set(amqp::Value::symbol("com.microsoft:locked-until-utc"), ticks(session->locked_until));
    // read_attach() has read this source; an empty one would tell the client that it was refused.
    auto named = with_session(asked.source, session->session_id);
    check(named.has_value(), "a filter that was read can be written");
    source = *std::move(named);
    reply.source = amqp::RawValue{source};
  }
  const auto encoded = amqp::encode(amqp::Value{std::move(properties)});
  reply.properties = {encoded};
  link_->accept(reply);
}

void ReceiverLink::refuse(const Error& error, Now now) {
  const amqp::Condition condition = context_.tracked(error, now);
  context_.observer.link_refused(entity_->name, condition.name, condition.description);
  link_->refuse(condition);
}

void ReceiverLink::detach(const Error& error, Now now) {
  const amqp::Condition condition = context_.tracked(error, now);
  context_.observer.link_detached(entity_->name, link_->name(), condition.name, condition.description);
  link_->detach(condition);
}

bool ReceiverLink::deliver(broker::Deliver& delivery, const Payload& stored) {
  broker::DeliveryForm form;
  form.locked_until = delivery.locked_until;
  if (mode_ == broker::ReceiveMode::peek_lock) form.lock = delivery.lock;
  // Of bytes that could not be read back the store has told already.
  auto message =
      stored.empty() ? Result<Payload>{Payload{}} : broker::delivered_message(stored, delivery.status, form);
  if (!message)
    context_.observer.message_unreadable(entity_->name, delivery.status.sequence, message.error());
  if (!message || message->empty()) return false;
  if (waiting_.empty() && link_->sendable())
    send(delivery, *std::move(message));
  else
    waiting_.push_back({std::move(delivery), *std::move(message)});
  return true;
}

void ReceiverLink::send(const broker::Deliver& delivery, Payload message) {
  const auto tag = delivery.lock.delivery_tag();
  amqp::Outgoing outgoing;
  outgoing.tag = tag;
  outgoing.settled = mode_ == broker::ReceiveMode::receive_and_delete;
  if (!outgoing.settled) outgoing.context = unsettled_.add({delivery.lock}) + 1;
  ++sent_;
  link_->send(outgoing, std::move(message));
}

void ReceiverLink::send_waiting() {
  while (!waiting_.empty() && link_->sendable()) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    send(next.delivery, std::move(next.message));
  }
}

void ReceiverLink::settle(const broker::LockToken& lock, broker::Outcome outcome, broker::RequestId request) {
  const Source source = source_of(lock);
  if (request == broker::RequestId::none && std::holds_alternative<broker::Complete>(outcome))
    return context_.entities.complete(source.route, source.receiver, lock);
  context_.entities.send(source.route,
                         broker::Settle{request, {lock}, std::move(outcome), std::nullopt, source.receiver});
}

void ReceiverLink::on_disposition(amqp::Link& link, const amqp::DispositionOf& disposition, Now now) {
  if (disposition.context == 0 || !unsettled_.knows(disposition.context - 1)) return;
  if (disposition.state.descriptor == 0 && !disposition.settled) return;
  if (disposition.state.is(amqp::descriptor::transactional_state))
    return on_transactional_disposition(disposition, now);
  auto asked = read_outcome(disposition.state);
  const auto place = static_cast<std::uint32_t>(disposition.context - 1);
  if (!asked) {
    // The lock stays: the client may settle again, unless it said that it will not, or let it run out.
    if (disposition.settled)
      (void)unsettled_.take(place);
    else
      link.disposition(disposition.id, amqp::State::rejected(context_.tracked(asked.error(), now)), false);
    return;
  }
  if (!*asked && !disposition.settled) return;
  const broker::LockToken lock = unsettled_[place].lock;
  // Said twice before it was answered: the one answer there can be is that to the first.
  if (unsettled_[place].settling && !disposition.settled) return;
  broker::Outcome outcome = *asked ? std::move((*asked)->outcome) : broker::Outcome{broker::Release{}};
  if (disposition.settled) {
    (void)unsettled_.take(place);
    settle(lock, std::move(outcome), broker::RequestId::none);
    return flush();
  }
  const std::uint32_t tag = settling_.add({disposition.id, std::move((*asked)->echo)});
  unsettled_[place].settling = true;
  settle(lock, std::move(outcome), context_.entities.expect(*this, std::uint64_t{place} << 32 | tag));
}

void ReceiverLink::on_transactional_disposition(const amqp::DispositionOf& disposition, Now now) {
  const auto place = static_cast<std::uint32_t>(disposition.context - 1);
  // Asked of the entity already: that is the one answer there can be.
  if (unsettled_[place].settling && !disposition.settled) return;
  const auto answer = enlist(disposition, now);
  (void)unsettled_.take(place);
  // Settled also when refused [contract 4.4]; the lock stays, and update-disposition can end it.
  if (!disposition.settled)
    link_->disposition(disposition.id,
                       answer ? *answer : amqp::State::rejected(context_.tracked(answer.error(), now)));
  flush();
}

Result<amqp::State> ReceiverLink::enlist(const amqp::DispositionOf& disposition, Now now) {
  const auto state = read_transactional_state(disposition.state);
  if (!state) return fail(state.error());
  const auto transaction = context_.transactions.begin_operation(state->txn_id, now);
  if (!transaction) return fail(transaction.error());
  const auto enlisted = [&]() -> Result<amqp::State> {
    auto asked = read_outcome(amqp::view_state(state->outcome));
    if (!asked) return fail(asked.error());
    if (!*asked || state->outcome.is_null())
      return fail(Errc::invalid_field, "a settlement in a transaction has an outcome");
    const broker::LockToken lock = unsettled_[static_cast<std::uint32_t>(disposition.context - 1)].lock;
    const Source source = source_of(lock);
    Enlistment enlistment;
    enlistment.steps.push_back(
        {source.route.store, source.route.partition,
         broker::Settle{{}, {lock}, std::move((*asked)->outcome), std::nullopt, source.receiver}});
    const auto taken = context_.transactions.enlist(**transaction, std::move(enlistment));
    if (!taken) return fail(taken.error());
    return amqp::State::transactional(state->txn_id, (*asked)->echo);
  }();
  // Who does not wait for the answer must not commit without it.
  if (!enlisted && disposition.settled) (*transaction)->doom(enlisted.error());
  return enlisted;
}

void ReceiverLink::on_answer(std::uint64_t tag, broker::Answer& answer, Now now) {
  const Settling done = settling_.take(static_cast<std::uint32_t>(tag));
  const auto* refused = std::get_if<broker::Refused>(&answer.effect);
  // Unknown here means that the client has settled it meanwhile, which gave the place of its lock free.
  if (link_->disposition(done.delivery_id,
                         refused ? amqp::State::rejected(context_.tracked(refused->error, now)) : done.echo))
    (void)unsettled_.take(static_cast<std::uint32_t>(tag >> 32));
  flush();
}

void ReceiverLink::on_gone(amqp::Link&) {
  context_.entities.forget(*this);
  for (const Waiting& one : waiting_)
    if (mode_ == broker::ReceiveMode::peek_lock)
      settle(one.delivery.lock, broker::Release{}, broker::RequestId::none);
  waiting_.clear();
  close();
}

}  // namespace omnibus::links
