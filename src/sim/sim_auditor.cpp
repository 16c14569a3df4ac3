#include "sim/sim_auditor.hpp"

#include <fmt/format.h>

#include "amqp/codec/message.hpp"

namespace omnibus::sim {
namespace {

using namespace std::chrono_literals;

}  // namespace

void SimAuditor::on_ready() { next(); }

void SimAuditor::on_disconnected() {
  request_ = response_ = drain_ = nullptr;
  is_asked_ = false;
}

// From the start of one address, also when a connection was lost in the middle of it.
void SimAuditor::next() {
  if (is_done()) return;
  from_ = 0;
  ids_.clear();
  available_.clear();
  is_asked_ = false;
  const std::string node = addresses_[at_] + "/$management";
  request_ = &attach(amqp::Role::sender, node, {});
  response_ = &attach(amqp::Role::receiver, node, {}, "reply");
}

void SimAuditor::on_attached(amqp::Link& link, const amqp::Attach& attach) {
  SimClient::on_attached(link, attach);
  if (!of(link).is_ready) {
    trouble_ = fmt::format("'{}' cannot be attached", of(link).address);
    return;
  }
  if (&link == response_) link.grant(1000);
  if (&link == drain_) {
    link.grant(10'000);
    link.drain();
  }
  ask();
}

void SimAuditor::on_credit(amqp::Link&) { ask(); }

void SimAuditor::ask() {
  if (is_asked_ || !request_ || !response_ || !of(*response_).is_ready || !of(*request_).is_ready) return;
  if (!request_->sendable()) return;
  is_asked_ = true;
  amqp::MessageBuilder builder;
  const auto id = amqp::encode(amqp::Value{std::uint64_t{1}});
  const auto reply_to = amqp::encode(amqp::Value{"reply"});
  builder.properties().message_id = {id};
  builder.properties().reply_to = {reply_to};
  builder.application_property("operation", amqp::Value{"com.microsoft:peek-message"});
  builder.body(amqp::Value::map({{amqp::Value{"from-sequence-number"}, amqp::Value{from_}},
                                 {amqp::Value{"message-count"}, amqp::Value{std::int32_t{100}}}}));
  amqp::Outgoing outgoing;
  outgoing.tag = as_bytes("t");
  outgoing.settled = true;
  request_->send(outgoing, builder.build());
}

void SimAuditor::on_transfer(amqp::Link& link, amqp::Delivery& delivery) {
  if (&link != drain_) {
    if (!delivery.settled) link.disposition(delivery.id, amqp::State::accepted());
    return on_page(delivery);
  }
  const GotMessage got = read_got(delivery.payload);
  available_.erase(got.id);
  Event& event = note(Do::got);
  event.id = got.id;
  event.entity = of(link).address;
  event.seq = got.seq;
  event.count = got.count;
}

void SimAuditor::on_page(const amqp::Delivery& delivery) {
  const auto view = amqp::MessageView::parse(delivery.payload);
  const auto raw = view ? view->application_property("statusCode") : Result<amqp::RawValue>{amqp::RawValue{}};
  const auto status = raw ? amqp::decode_value(*raw).value_or(amqp::Value{}).as_integer().value_or(0) : 0;
  is_asked_ = false;
  if (status == 204) return on_peeked();
  std::vector<std::uint8_t> scratch;
  const auto body = view ? amqp::decode_value(view->body_value(scratch)) : Result<amqp::Value>{amqp::Value{}};
  const amqp::Value* messages = body ? body->find("messages") : nullptr;
  if (status != 200 || !messages) {
    trouble_ = fmt::format("peeking in '{}' is answered with {}", addresses_[at_], status);
    // A store may not be back yet.
    later(100ms, [this] { ask(); });
    return;
  }
  for (const amqp::Value& one : messages->items()) {
    const amqp::Value* bytes = one.find("message");
    if (!bytes || !bytes->as_binary()) continue;
    const GotMessage got = read_got(Payload::copy_of(*bytes->as_binary()));
    ids_.push_back(got.id);
    from_ = got.seq + 1;
    if (got.is_scheduled)
      ++scheduled_[addresses_[at_]];
    else if (!got.is_deferred)
      available_.insert(got.id);
  }
  ask();
}

void SimAuditor::on_peeked() {
  Event& event = note(Do::left);
  event.entity = addresses_[at_];
  event.ids = std::move(ids_);
  trouble_.clear();
  request_->detach();
  response_->detach();
  request_ = response_ = nullptr;
  if (!drains_.contains(addresses_[at_])) return on_taken();
  AttachWith with;
  with.snd = amqp::SenderSettle::settled;
  drain_ = &attach(amqp::Role::receiver, addresses_[at_], with);
}

void SimAuditor::on_drained(amqp::Link& link) {
  if (&link != drain_) return;
  for (const std::string& id : available_) stuck_.push_back({addresses_[at_], id});
  drain_ = nullptr;
  link.detach();
  on_taken();
}

void SimAuditor::on_taken() {
  ++at_;
  later(Nanos{0}, [this] {
    if (!request_) next();
  });
}

}  // namespace omnibus::sim
