// A client and one queue, `orders`: sends, receives, settles.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "links/links_rig.hpp"

namespace omnibus::links {

using amqp::ReceiverSettle;
using amqp::Role;
using amqp::SenderSettle;
using amqp::Value;

inline Payload message(std::string_view body, std::optional<std::string> session = std::nullopt) {
  amqp::MessageBuilder builder;
  const auto id = amqp::encode(Value{body});
  builder.properties().message_id = {id};
  if (session) builder.properties().group_id = *session;
  builder.body(Value{body});
  return builder.build();
}

class QueueRig : public LinksRig {
 public:
  explicit QueueRig(broker::QueueSettings settings = {}) : LinksRig(plain()) {
    settings.name = "orders";
    queues.add(settings, wall());
    heard.accepts_all = false;
  }

  amqp::Link& sender() {
    if (!sender_) sender_ = &attach("sender", Role::sender, "orders");
    return *sender_;
  }
  std::uint32_t send(const Payload& payload, bool settled = false, std::uint32_t format = 0) {
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    outgoing.settled = settled;
    outgoing.message_format = format;
    const std::uint32_t id = sender().send(outgoing, payload);
    pump();
    return id;
  }
  void send_all(std::initializer_list<std::string_view> bodies) {
    for (const auto body : bodies) send(message(body));
  }
  amqp::Link& receiver(std::uint32_t credit, std::string_view address = "orders",
                       SenderSettle snd = SenderSettle::unsettled) {
    AttachWith with;
    with.snd = snd;
    with.rcv = snd == SenderSettle::settled ? ReceiverSettle::first : ReceiverSettle::second;
    auto& link = attach(fmt::format("receiver {}", ++receivers_), Role::receiver, address, with);
    if (credit > 0) link.grant(credit);
    pump();
    return link;
  }
  RigClient::Heard& of(amqp::Link& link) { return heard.links[&link]; }
  std::vector<std::string> bodies(amqp::Link& link) {
    std::vector<std::string> all;
    for (const auto& got : of(link).deliveries) all.push_back(body_of(got.message));
    return all;
  }
  static std::string body_of(const std::string& encoded) {
    const auto view = amqp::MessageView::parse(as_bytes(encoded));
    check(view.has_value(), "a delivery is a message");
    std::vector<std::uint8_t> scratch;
    const auto body = amqp::decode_value(view->body_value(scratch));
    return std::string(body->as_text().value_or("?"));
  }
  static Value annotation(const std::string& encoded, std::string_view key) {
    const auto view = amqp::MessageView::parse(as_bytes(encoded));
    return *amqp::decode_value(*view->message_annotation(key));
  }
  static Value property(const std::string& encoded, std::string_view key) {
    const auto view = amqp::MessageView::parse(as_bytes(encoded));
    return *amqp::decode_value(*view->application_property(key));
  }
  // Settles the nth delivery and waits for what the broker says to it.
  RigClient::Heard::Outcome settle(amqp::Link& link, std::size_t nth, const amqp::State& state) {
    const std::size_t before = of(link).outcomes.size();
    link.disposition(of(link).deliveries.at(nth).id, state, false);
    pump();
    if (of(link).outcomes.size() == before) return {};
    return of(link).outcomes.back();
  }
  broker::QueueCounts counts() { return queues.queue("orders").counts(); }

 private:
  // The key of the namespace's own rule.
  static RigOptions plain() {
    RigOptions options;
    options.mechanism = "PLAIN";
    options.response = std::string_view{"\0RootManageSharedAccessKey\0SAS_KEY_VALUE", 40};
    return options;
  }

  amqp::Link* sender_ = nullptr;
  int receivers_ = 0;
};

}  // namespace omnibus::links
