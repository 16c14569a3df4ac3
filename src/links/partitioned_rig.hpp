// A client of a partitioned queue: four partitions behind one name.
#pragma once

#include <gtest/gtest.h>

#include <set>

#include "broker/partition_key.hpp"
#include "links/management_rig.hpp"

namespace omnibus::links {

// What a test says of a message.
struct Fields {
  std::optional<std::string> session{};
  std::optional<std::string> key{};
  std::optional<std::string> id{};
  std::optional<Instant> scheduled{};
};

class PartitionedRig : public AskingRig {
 public:
  static constexpr std::uint16_t count = 4;

  // Every partition in a store of its own, unless there are fewer.
  explicit PartitionedRig(broker::QueueSettings settings = {}, std::uint16_t stores = count) {
    settings.name = "orders";
    queues.stores_max = stores;
    queues.add_partitioned(settings, count, wall());
    heard.accepts_all = false;
  }

  static std::string encoded(std::string_view body, const Fields& fields = {}) {
    amqp::Encoder out;
    if (fields.scheduled || fields.key) {
      out.put_descriptor(amqp::descriptor::message_annotations);
      auto map = out.begin_map();
      if (fields.scheduled) {
        out.put_symbol("x-opt-scheduled-enqueue-time");
        out.put_timestamp(fields.scheduled->time_since_epoch().count());
      }
      if (fields.key) {
        out.put_symbol("x-opt-partition-key");
        out.put_string(*fields.key);
      }
      map.end();
    }
    amqp::MessageBuilder builder;
    const auto id = amqp::encode(Value{fields.id.value_or(std::string{body})});
    builder.properties().message_id = {id};
    if (fields.session) builder.properties().group_id = *fields.session;
    builder.body(Value{body});
    return std::string{as_text(out.bytes())} + builder.build().to_string();
  }
  static Payload batch(const std::vector<std::string>& messages) {
    amqp::Encoder out;
    for (const std::string& message : messages) {
      out.put_descriptor(amqp::descriptor::data);
      out.put_binary(as_bytes(message));
    }
    return Payload::copy_of(out.bytes());
  }
  // What the broker says to it.
  RigClient::Heard::Outcome send(const Payload& payload, std::uint32_t format = 0,
                                 std::string_view address = "orders") {
    auto*& link = senders_[std::string{address}];
    if (!link) link = &attach(fmt::format("sender {}", address), amqp::Role::sender, address);
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    outgoing.message_format = format;
    const std::size_t before = heard.links[link].outcomes.size();
    link->send(outgoing, payload);
    pump();
    const auto& outcomes = heard.links[link].outcomes;
    return outcomes.size() > before ? outcomes.back() : RigClient::Heard::Outcome{};
  }
  RigClient::Heard::Outcome send(std::string_view body, const Fields& fields = {}) {
    return send(Payload::copy_of(encoded(body, fields)));
  }
  bool is_accepted(const RigClient::Heard::Outcome& outcome) {
    return outcome.state == amqp::descriptor::accepted;
  }
  std::uint64_t held(std::uint16_t partition) {
    return queues.partition("orders", partition).counts().active;
  }
  std::uint64_t locked() {
    std::uint64_t all = 0;
    for (std::uint16_t i = 0; i < count; ++i) all += queues.partition("orders", i).counts().locked;
    return all;
  }

  amqp::Link& receiver(std::uint32_t credit, std::string_view address = "orders",
                       amqp::SenderSettle snd = amqp::SenderSettle::unsettled, Value filter = {},
                       Value properties = {}) {
    AttachWith with;
    with.snd = snd;
    with.rcv =
        snd == amqp::SenderSettle::settled ? amqp::ReceiverSettle::first : amqp::ReceiverSettle::second;
    with.filter = std::move(filter);
    with.properties = std::move(properties);
    auto& link = attach(fmt::format("receiver {}", ++receivers_), amqp::Role::receiver, address, with);
    if (credit > 0) link.grant(credit);
    pump();
    return link;
  }
  // Of a session; nothing: the next that is free.
  amqp::Link& session_receiver(std::optional<std::string> id, std::uint32_t credit = 10) {
    const Value wanted = id ? Value{*id} : Value{};
    return receiver(credit, "orders", amqp::SenderSettle::unsettled,
                    Value::map({{Value::symbol("com.microsoft:session-filter"), wanted}}));
  }
  RigClient::Heard& of(amqp::Link& link) { return heard.links[&link]; }
  std::vector<std::string> bodies(amqp::Link& link) {
    std::vector<std::string> all;
    for (const auto& got : of(link).deliveries) all.push_back(body_of(as_bytes(got.message)));
    return all;
  }
  static std::string body_of(Bytes encoded) {
    const auto view = amqp::MessageView::parse(encoded);
    check(view.has_value(), "a delivery is a message");
    std::vector<std::uint8_t> scratch;
    return std::string(amqp::decode_value(view->body_value(scratch))->as_text().value_or("?"));
  }
  static std::int64_t sequence_of(Bytes encoded) {
    const auto view = amqp::MessageView::parse(encoded);
    return amqp::decode_value(*view->message_annotation("x-opt-sequence-number"))->as_integer().value_or(0);
  }
  std::int64_t sequence(amqp::Link& link, std::size_t nth) {
    return sequence_of(as_bytes(of(link).deliveries.at(nth).message));
  }
  Value token(amqp::Link& link, std::size_t nth) {
    std::array<std::uint8_t, 16> tag;
    const auto& got = of(link).deliveries.at(nth).tag;
    std::copy(got.begin(), got.end(), tag.begin());
    return broker::LockToken::from_delivery_tag(tag).uuid();
  }
  RigClient::Heard::Outcome settle(amqp::Link& link, std::size_t nth, const amqp::State& state) {
    const std::size_t before = of(link).outcomes.size();
    link.disposition(of(link).deliveries.at(nth).id, state, false);
    pump();
    return of(link).outcomes.size() > before ? of(link).outcomes.back() : RigClient::Heard::Outcome{};
  }
  static std::vector<std::string> bodies(const Reply& reply) {
    std::vector<std::string> all;
    if (const Value* list = reply.body.find("messages"))
      for (const Value& one : list->items()) all.push_back(body_of(*one.find("message")->as_binary()));
    return all;
  }
  // A key for each partition, so that a test can say where a message goes.
  static std::string key_for(std::uint16_t partition) {
    for (int i = 0;; ++i)
      if (std::string key = fmt::format("key {}", i); broker::partition_of_key(key, count) == partition)
        return key;
  }

 private:
  std::map<std::string, amqp::Link*> senders_;
  int receivers_ = 0;
};

}  // namespace omnibus::links
