// A client that asks $management nodes and reads their answers as strictly as the SDKs do.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "links/links_rig.hpp"

namespace omnibus::links {

class AskingRig : public LinksRig {
 public:
  using Value = amqp::Value;

  // Logged in by PLAIN with a rule of the namespace.
  explicit AskingRig(std::string_view rule = "RootManageSharedAccessKey", std::string_view key = rig_key)
      : LinksRig(options(rule, key)) {}

  struct Reply {
    int status = 0;
    std::string description;
    std::string condition;
    Value body;
    std::optional<std::string> tracking;
  };
  Reply ask(std::string_view operation, std::vector<std::pair<Value, Value>> body,
            const std::string& entity = "orders",
            const std::vector<std::pair<std::string, Value>>& properties = {}) {
    auto& [request, response] = pairs_[entity];
    if (!request) {
      request = &attach("request " + entity, amqp::Role::sender, entity + "/$management");
      response =
          &attach("response " + entity, amqp::Role::receiver, entity + "/$management", "reply " + entity);
      response->grant(100);
      pump();
    }
    amqp::MessageBuilder builder;
    const auto id = amqp::encode(Value{std::uint64_t{++last_id_}});
    const auto reply_to = amqp::encode(Value{"reply " + entity});
    builder.properties().message_id = {id};
    builder.properties().reply_to = {reply_to};
    builder.application_property("operation", Value{operation});
    for (const auto& [name, value] : properties) builder.application_property(name, value);
    builder.body(Value::map(std::move(body)));
    auto& messages = heard.links[response].messages;
    const std::size_t before = messages.size();
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    std::vector<std::uint8_t> state;
    if (in_transaction)
      state = amqp::encode_composite(
          amqp::TransactionalState{.txn_id = as_bytes(*in_transaction), .outcome = {}});
    outgoing.state = {state};
    request->send(outgoing, builder.build());
    pump();
    if (messages.size() == before) return {};
    return read(messages.back(), last_id_);
  }

  std::optional<std::string> in_transaction;  // what every request is part of

  static Reply read(const std::string& message, std::uint64_t id) {
    const auto view = amqp::MessageView::parse(as_bytes(message));
    check(view.has_value(), "a response is a message");
    const auto property = [&](std::string_view key) {
      return *amqp::decode_value(*view->application_property(key));
    };
    Reply reply;
    EXPECT_EQ(*amqp::decode_value(view->properties()->correlation_id), Value{id}) << "same type, same value";
    const Value status = property("statusCode");
    EXPECT_TRUE(status.get_if<std::int32_t>()) << "Go takes no other type";
    reply.status = static_cast<int>(status.as_integer().value_or(0));
    reply.description = std::string(property("statusDescription").as_text().value_or("(null)"));
    if (const Value condition = property("errorCondition"); !condition.is_null()) {
      EXPECT_TRUE(condition.get_if<amqp::SymbolValue>()) << ".NET casts to a symbol";
      reply.condition = *condition.as_text();
    }
    if (const Value tracking = property("com.microsoft:tracking-id"); !tracking.is_null())
      reply.tracking = *tracking.as_text();
    std::vector<std::uint8_t> scratch;
    reply.body = *amqp::decode_value(view->body_value(scratch));
    EXPECT_TRUE(reply.body.get_if<amqp::Map>()) << "Java casts the body";
    return reply;
  }

 private:
  static RigOptions options(std::string_view rule, std::string_view key) {
    RigOptions options;
    options.mechanism = "PLAIN";
    options.response = std::string{'\0'} + std::string(rule) + '\0' + std::string(key);
    return options;
  }
  std::map<std::string, std::pair<amqp::Link*, amqp::Link*>> pairs_;
  std::uint64_t last_id_ = 0;
};

}  // namespace omnibus::links
