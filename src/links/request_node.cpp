#include "links/request_node.hpp"

#include <algorithm>

#include "amqp/engine/session.hpp"
#include "links/conditions.hpp"
#include "links/transactions.hpp"

namespace omnibus::links {
namespace {

std::optional<std::string_view> text_of(const amqp::RawValue& raw) {
  if (raw.is_null()) return std::nullopt;
  amqp::Decoder in{raw.bytes};
  return in.read_text();
}

}  // namespace

class RequestNode::RequestEnd final : public LinkEnd {
 public:
  RequestEnd(std::shared_ptr<RequestNode> node, std::optional<Claim> claim)
      : LinkEnd(std::move(claim)), node_(std::move(node)) {}

  void on_transfer(amqp::Link& link, amqp::Delivery& delivery, Now now) override {
    if (link.credit() <= request_credit / 2) link.grant(request_credit - link.credit());
    node_->serve(link, delivery, now);
  }

 private:
  const std::shared_ptr<RequestNode> node_;
};

class RequestNode::ResponseEnd final : public LinkEnd {
 public:
  ResponseEnd(std::shared_ptr<RequestNode> node, std::optional<Claim> claim, std::string target)
      : LinkEnd(std::move(claim)),
        node_(std::move(node)),
        number_(++node_->last_response_link_),
        target_(std::move(target)) {}

  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] const std::string& target() const { return target_; }

  void send(amqp::Link& link, Payload response) {
    waiting_.push_back(std::move(response));
    flush(link);
    if (waiting_.size() > waiting_max)
      link.detach(amqp::Condition{std::string(amqp::condition::resource_limit_exceeded),
                                  fmt::format("{} responses wait for credit", waiting_max),
                                  {}});
  }
  void on_credit(amqp::Link& link, Now) override {
    flush(link);
    if (link.drain_requested()) link.drained();
  }
  void on_disposition(amqp::Link& link, const amqp::DispositionOf& disposition, Now) override {
    // Nothing depends on the outcome; a client that waits for settlement gets it.
    if (!disposition.settled) link.disposition(disposition.id, amqp::State::accepted());
  }
  void on_gone(amqp::Link& link) override { std::erase(node_->response_links_, &link); }

 private:
  void flush(amqp::Link& link) {
    while (!waiting_.empty() && link.sendable()) {
      std::uint8_t tag[4];
      amqp::store_be(tag, next_tag_++);
      amqp::Outgoing outgoing;
      outgoing.tag = tag;
      outgoing.settled = link.snd_settle_mode() == amqp::SenderSettle::settled;
      link.send(outgoing, std::move(waiting_.front()));
      waiting_.pop_front();
    }
  }

  const std::shared_ptr<RequestNode> node_;
  const std::uint64_t number_;
  const std::string target_;
  std::uint32_t next_tag_ = 0;
  std::deque<Payload> waiting_;
};

std::shared_ptr<RequestNode> RequestNode::make(Serve serve, std::uint64_t request_bytes_max) {
  return std::shared_ptr<RequestNode>(new RequestNode(std::move(serve), request_bytes_max));
}

RequestNode::ResponseEnd& RequestNode::end_of(amqp::Link& link) {
  return static_cast<ResponseEnd&>(*link.attachment);
}

void RequestNode::attach(amqp::Link& link, std::optional<LinkEnd::Claim> claim) {
  if (link.role() == amqp::Role::receiver) {
    link.attachment = std::make_unique<RequestEnd>(shared_from_this(), std::move(claim));
    amqp::AttachReply reply;
    reply.max_message_size = request_bytes_max_;
    link.accept(reply);
    link.grant(request_credit);
    return;
  }
  std::string target;
  if (const auto fields = amqp::decode_composite<amqp::Target>(link.remote_attach().target); fields)
    target = text_of(fields->address).value_or("");
  link.attachment = std::make_unique<ResponseEnd>(shared_from_this(), std::move(claim), std::move(target));
  response_links_.push_back(&link);
  link.accept({});
}

void RequestNode::serve(amqp::Link& link, amqp::Delivery& delivery, Now now) {
  const auto reject = [&](const Error& error) {
    if (!delivery.settled)
      link.disposition(delivery.id, amqp::State::rejected(
                                        {std::string(wire_error(error.code).condition), error.detail, {}}));
  };
  if (delivery.too_large)
    return reject(
        {Errc::message_size_exceeded, fmt::format("a request has at most {} bytes", request_bytes_max_)});
  const auto message = amqp::MessageView::parse(delivery.payload);
  if (!message) return reject(message.error());
  const auto properties = message->properties();
  if (!properties) return reject(properties.error());

  std::optional<Bytes> transaction;
  if (delivery.state.is(amqp::descriptor::transactional_state)) {
    const auto state = read_transactional_state(delivery.state);
    if (!state) return reject(state.error());
    transaction = state->txn_id;
  }
  if (!delivery.settled)
    link.disposition(delivery.id, transaction
                                      ? amqp::State::transactional(*transaction, amqp::State::accepted())
                                      : amqp::State::accepted());
  amqp::Link* const response_link = route(*properties, link);
  // [contract 2.1] nobody can be told: the request is accepted and dropped.
  if (!response_link) return;

  Responder responder;
  responder.node_ = shared_from_this();
  responder.response_link_ = end_of(*response_link).number();
  responder.correlation_id_.assign(properties->message_id.bytes.begin(), properties->message_id.bytes.end());
  serve_({*message, link, now, transaction}, std::move(responder));
}

void RequestNode::Responder::answer(const Response& response) const {
  for (amqp::Link* link : node_->response_links_) {
    ResponseEnd& end = end_of(*link);
    if (end.number() != response_link_) continue;
    amqp::MessageBuilder builder;
    // The same type and value as the request's message-id: clients look it up by exactly that.
    builder.properties().correlation_id = {correlation_id_};
    for (const auto& [key, value] : response.application_properties) builder.application_property(key, value);
    builder.body(response.body);
    return end.send(*link, builder.build());
  }
}

amqp::Link* RequestNode::route(const amqp::Properties& properties, amqp::Link& request_link) {
  if (const auto reply_to = text_of(properties.reply_to)) {
    for (amqp::Link* link : response_links_)
      if (end_of(*link).target() == *reply_to) return link;
    for (amqp::Link* link : response_links_)
      if (link->name() == *reply_to) return link;
  }
  for (amqp::Link* link : response_links_)
    if (&link->session() == &request_link.session()) return link;
  return nullptr;
}

}  // namespace omnibus::links
