// A client and one topic or exchange, `orders`: sends, takes what subscriptions have, asks about rules.
#pragma once

#include <gtest/gtest.h>

#include <map>

#include "links/management_rig.hpp"
#include "rules/rule_forms.hpp"

namespace omnibus::links {

using amqp::ReceiverSettle;
using amqp::Role;
using amqp::SenderSettle;
using amqp::Value;

inline constexpr std::string_view audit = "orders/Subscriptions/audit";

struct Sent {
  std::string_view body;
  std::string_view subject{};
  std::vector<std::pair<std::string, Value>> properties{};
  std::optional<std::string> session{};
};

class TopicRig : public AskingRig {
 public:
  explicit TopicRig(broker::TopicSettings settings = {}, std::string_view rule = "RootManageSharedAccessKey",
                    std::string_view key = rig_key)
      : AskingRig(rule, key) {
    settings.name = "orders";
    queues.add_topic(settings, wall());
    heard.accepts_all = false;
  }
  static broker::TopicSettings exchange(rules::ExchangeType type) {
    broker::TopicSettings settings;
    settings.exchange = type;
    return settings;
  }
  void bind(std::string_view name, std::string key) {
    rules::Binding binding;
    binding.routing_key = std::move(key);
    queues.subscribe("orders", name, wall(), binding);
  }

  // The state the broker settled the transfer with.
  std::uint64_t send(const std::string& address, const Sent& what, bool settled = false) {
    amqp::Link*& link = senders_[address];
    if (!link) link = &attach("send " + address, Role::sender, address);
    if (of(*link).detached) return 0;
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    outgoing.settled = settled;
    link->send(outgoing, message(what));
    const std::size_t before = of(*link).outcomes.size();
    pump();
    return of(*link).outcomes.size() == before ? 0 : of(*link).outcomes.back().state;
  }
  static Payload message(const Sent& what) {
    amqp::MessageBuilder builder;
    const auto id = amqp::encode(Value{what.body});
    builder.properties().message_id = {id};
    if (!what.subject.empty()) builder.properties().subject = what.subject;
    if (what.session) builder.properties().group_id = *what.session;
    for (const auto& [name, value] : what.properties) builder.application_property(name, value);
    builder.body(Value{what.body});
    return builder.build();
  }
  // Everything a subscription has, taken away.
  std::vector<std::string> take(std::string_view address) {
    AttachWith with;
    with.snd = SenderSettle::settled;
    auto& link = attach(fmt::format("take {}", ++receivers_), Role::receiver, address, with);
    link.grant(100);
    pump();
    std::vector<std::string> bodies;
    for (const auto& got : of(link).deliveries) bodies.push_back(body_of(got.message));
    link.detach();
    pump();
    return bodies;
  }
  static std::string body_of(const std::string& encoded) {
    const auto view = amqp::MessageView::parse(as_bytes(encoded));
    check(view.has_value(), "a delivery is a message");
    std::vector<std::uint8_t> scratch;
    return std::string(amqp::decode_value(view->body_value(scratch))->as_text().value_or("?"));
  }
  // Why an attach is refused; nothing: it is not.
  amqp::Condition refusal(Role role, std::string_view address, Value properties = {}) {
    AttachWith with;
    with.properties = std::move(properties);
    auto& link = attach(fmt::format("try {}", ++receivers_), role, address, with);
    EXPECT_EQ(of(link).attached, !of(link).detached.has_value());
    return of(link).detached.value_or(amqp::Condition{});
  }
  RigClient::Heard& of(amqp::Link& link) { return heard.links[&link]; }

  Reply add_rule(std::string_view name, std::string_view filter, std::string_view action = {},
                 const std::string& entity = std::string(audit)) {
    std::vector<std::pair<Value, Value>> description{
        {"sql-filter", Value::map({{"expression", filter}})},
        {"sql-rule-action", action.empty() ? Value{} : Value::map({{"expression", action}})}};
    return ask("com.microsoft:add-rule",
               {{"rule-name", name}, {"rule-description", Value::map(std::move(description))}}, entity);
  }
  Reply remove_rule(std::string_view name) {
    return ask("com.microsoft:remove-rule", {{"rule-name", name}}, std::string(audit));
  }
  Reply rules(int skip = 0, int top = 100, const std::string& entity = std::string(audit)) {
    return ask("com.microsoft:enumerate-rules", {{"top", top}, {"skip", skip}}, entity);
  }
  static std::vector<std::string> names(const Reply& reply) {
    std::vector<std::string> all;
    const Value* list = reply.body.find("rules");
    EXPECT_TRUE(list && list->get_if<amqp::List>());
    if (!list) return all;
    for (const Value& one : list->items()) {
      const auto rule = rules::rule_from_description(*one.find("rule-description"));
      EXPECT_TRUE(rule) << rule.error().detail;
      if (rule) all.push_back(rule->name);
    }
    return all;
  }

 private:
  std::map<std::string, amqp::Link*> senders_;
  int receivers_ = 0;
};

}  // namespace omnibus::links
