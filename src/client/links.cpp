#include "client/links.hpp"

#include "client/conditions.hpp"

namespace omnibus::client {
namespace {

using amqp::Value;

constexpr std::string_view session_filter = "com.microsoft:session-filter";
constexpr std::uint64_t message_bytes_usual = 256 * 1024;

Error refused_with(const amqp::StateView& state) {
  if (state.is(amqp::descriptor::rejected)) {
    if (const auto rejected = amqp::decode_composite<amqp::Rejected>(state.raw))
      if (const auto condition = amqp::decode_condition(rejected->error)) return error_of(*condition);
    return {Errc::not_allowed, "the message was rejected without a reason"};
  }
  if (state.is(amqp::descriptor::released))
    return {Errc::not_found, "nobody takes the message: it was given back"};
  return {Errc::internal_error, "the message was not accepted"};
}

// What the accepted session is called: it stands in the filter that came back.
std::string accepted_session(const std::vector<std::uint8_t>& source_bytes) {
  const auto source = amqp::decode_composite<amqp::Source>({source_bytes});
  if (!source) return {};
  const auto filter = amqp::decode_value(source->filter);
  if (!filter) return {};
  const Value* session = filter->find(session_filter);
  if (!session) return {};
  if (const auto* described = session->get_if<amqp::Described>()) session = &described->value();
  return std::string(session->as_text().value_or(""));
}

}  // namespace

Result<std::unique_ptr<Sender>> Sender::open(AmqpClient& client, const std::string& entity,
                                             OnOutcome on_outcome) {
  auto authorized = client.authorize(entity);
  if (!authorized) return fail(authorized.error());
  std::unique_ptr<Sender> sender(new Sender(client, std::move(on_outcome)));
  AmqpClient::LinkWish wish;
  wish.address = entity;
  auto attached = client.attach(*sender, wish);
  if (!attached) return fail(attached.error());
  return sender;
}

Sender::~Sender() { client_.forget(*this); }

Error Sender::why_over() const { return trouble.value_or(Error{Errc::detach_forced, "the link is gone"}); }

std::uint64_t Sender::message_bytes_max() const {
  const std::uint64_t said = link ? link->remote_max_message_size() : 0;
  return said == 0 ? message_bytes_usual : said;
}

Result<void> Sender::send(Payload message, std::uint32_t message_format, std::uint64_t context) {
  if (!may_send()) {
    auto may = client_.expect([this] { return !link || link->sendable(); }, "leave to send");
    if (!may) return fail(may.error());
    if (!link) return fail(why_over());
  }
  std::uint8_t tag[8];
  amqp::store_be(tag, ++sent_);
  amqp::Outgoing outgoing;
  outgoing.tag = tag;
  outgoing.message_format = message_format;
  outgoing.context = context;
  link->send(outgoing, std::move(message));
  ++under_way_;
  return {};
}

Result<void> Sender::wait_for_outcomes(std::size_t count) {
  if (under_way_ <= count) return {};
  auto came = client_.expect([&] { return under_way_ <= count || !link; }, "the outcome of a send");
  if (!came) return fail(came.error());
  if (under_way_ > count) return fail(why_over());
  return {};
}

void Sender::on_disposition(const amqp::DispositionOf& disposition) {
  if (!disposition.state.is_outcome() && !disposition.settled) return;
  --under_way_;
  if (disposition.state.is(amqp::descriptor::accepted)) return on_outcome_(disposition.context, nullptr);
  const Error refused = refused_with(disposition.state);
  on_outcome_(disposition.context, &refused);
}

Result<std::unique_ptr<Receiver>> Receiver::open(AmqpClient& client, const std::string& entity,
                                                 const ReceiverOptions& options) {
  auto authorized = client.authorize(entity);
  if (!authorized) return fail(authorized.error());
  std::unique_ptr<Receiver> receiver(new Receiver(client, options.deletes));
  AmqpClient::LinkWish wish;
  wish.role = amqp::Role::receiver;
  wish.address = entity;
  wish.snd_settle_mode = options.deletes ? amqp::SenderSettle::settled : amqp::SenderSettle::unsettled;
  wish.rcv_settle_mode = options.deletes ? amqp::ReceiverSettle::first : amqp::ReceiverSettle::second;
  if (options.session) {
    const auto& name = *options.session;
    wish.filter =
        Value::map({{Value::symbol(session_filter), name ? Value{std::string_view{*name}} : Value{}}});
    wish.properties = Value::map({{Value::symbol("com.microsoft:timeout"),
                                   Value{static_cast<std::uint32_t>(options.session_wait.count())}}});
    wish.extra_patience = options.session_wait;
  }
  auto attached = client.attach(*receiver, wish);
  if (!attached) return fail(attached.error());
  if (options.session) receiver->session_ = accepted_session(receiver->remote_source);
  return receiver;
}

Receiver::~Receiver() { client_.forget(*this); }

Error Receiver::why_over() const { return trouble.value_or(Error{Errc::detach_forced, "the link is gone"}); }

void Receiver::grant(std::uint32_t more) {
  is_drained_ = false;
  if (link) link->grant(more);
}

void Receiver::on_transfer(amqp::Delivery& delivery) {
  arrived_.push_back({delivery.id, std::move(delivery.payload)});
}

Result<std::optional<Received>> Receiver::next(Tick deadline) {
  if (arrived_.empty()) {
    auto came = client_.until([this] { return !arrived_.empty() || !link; }, deadline);
    if (!came) return fail(came.error());
    if (arrived_.empty() && !link) return fail(why_over());
  }
  if (arrived_.empty()) return std::optional<Received>{};
  std::optional<Received> out = std::move(arrived_.front());
  arrived_.pop_front();
  return out;
}

void Receiver::settle(std::uint32_t id, Verdict verdict) {
  if (deletes_ || !link) return;
  unanswered_.insert(id);
  switch (verdict) {
    case Verdict::complete:
      link->disposition(id, amqp::State::accepted(), false);
      return;
    case Verdict::abandon:
      link->disposition(id, amqp::State::modified({}), false);
      return;
    case Verdict::release:
      link->disposition(id, amqp::State::released(), false);
      return;
  }
}

void Receiver::on_disposition(const amqp::DispositionOf& disposition) {
  if (!disposition.state.is_outcome() || unanswered_.erase(disposition.id) == 0) return;
  // Rejected with a reason is how a settlement is refused.
  if (!disposition.state.is(amqp::descriptor::rejected)) return;
  if (!refusal_) refusal_ = refused_with(disposition.state);
}

Result<void> Receiver::wait_settled() {
  // The messages are with whoever asked for them: that they are settled is not left open by an interrupt.
  auto came = client_.expect([this] { return unanswered_.empty() || !link; }, "the answer to a settlement",
                             AmqpClient::Interrupts::ignored);
  if (!came) return fail(came.error());
  if (refusal_) return fail(*refusal_);
  if (!unanswered_.empty()) return fail(why_over());
  return {};
}

Result<void> Receiver::drain() {
  if (!link || link->credit() == 0) return {};
  is_drained_ = false;
  link->drain();
  // A peer that does not know how to is no trouble: what it still sends is given back.
  auto came = client_.until([this] { return is_drained_ || !link || link->credit() == 0; },
                            tick_now() + std::chrono::seconds{5});
  if (!came) return fail(came.error());
  return {};
}

Result<void> Receiver::stop() {
  auto drained = drain();
  if (!drained) return drained;
  for (const Received& one : arrived_) settle(one.id, Verdict::release);
  arrived_.clear();
  return wait_settled();
}

}  // namespace omnibus::client
