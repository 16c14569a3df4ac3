// Builds messages for tests and asks rules about them.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "rules/message_fields.hpp"
#include "rules/rule_set.hpp"
#include "rules/sql_action.hpp"
#include "rules/sql_evaluate.hpp"

namespace omnibus::rules {

class MessageRig {
 public:
  MessageRig& property(std::string_view name, amqp::Value value) {
    application_.entries.emplace_back(amqp::Value{name}, std::move(value));
    return *this;
  }
  MessageRig& annotation(std::string_view name, amqp::Value value) {
    annotations_.set(amqp::Value::symbol(name), std::move(value));
    return *this;
  }
  MessageRig& ttl(std::uint32_t ms) {
    header_.emplace().ttl = ms;
    return *this;
  }
  MessageRig& message_id(const amqp::Value& id) {
    message_id_ = amqp::encode(id);
    return *this;
  }
  MessageRig& correlation_id(const amqp::Value& id) {
    correlation_id_ = amqp::encode(id);
    return *this;
  }
  MessageRig& to(std::string_view text) {
    to_ = amqp::encode(amqp::Value{text});
    return *this;
  }
  MessageRig& reply_to(std::string_view text) {
    reply_to_ = amqp::encode(amqp::Value{text});
    return *this;
  }
  MessageRig& label(std::string_view text) {
    label_ = text;
    return *this;
  }
  MessageRig& session(std::string_view text) {
    session_ = text;
    return *this;
  }
  MessageRig& reply_to_session(std::string_view text) {
    reply_to_session_ = text;
    return *this;
  }
  MessageRig& content_type(std::string_view text) {
    content_type_ = text;
    return *this;
  }

  [[nodiscard]] std::vector<std::uint8_t> bytes() const {
    amqp::Encoder out;
    if (header_) out.put_composite(*header_);
    if (!annotations_.entries.empty()) {
      out.put_descriptor(amqp::descriptor::message_annotations);
      amqp::encode(out, amqp::Value{annotations_});
    }
    amqp::Properties properties;
    properties.message_id = {message_id_};
    properties.correlation_id = {correlation_id_};
    properties.to = {to_};
    properties.reply_to = {reply_to_};
    if (label_) properties.subject = *label_;
    if (session_) properties.group_id = *session_;
    if (reply_to_session_) properties.reply_to_group_id = *reply_to_session_;
    if (content_type_) properties.content_type = amqp::Symbol{*content_type_};
    out.put_composite(properties);
    if (!application_.entries.empty()) {
      out.put_descriptor(amqp::descriptor::application_properties);
      amqp::encode(out, amqp::Value{application_});
    }
    out.put_descriptor(amqp::descriptor::data);
    out.put_binary(as_bytes("body"));
    return out.take();
  }

 private:
  std::optional<amqp::Header> header_;
  amqp::Map application_;
  amqp::Map annotations_;
  std::vector<std::uint8_t> message_id_, correlation_id_, to_, reply_to_;
  std::optional<std::string> label_, session_, reply_to_session_, content_type_;
};

// An encoded message together with its view and fields.
class ReadMessage {
 public:
  explicit ReadMessage(const MessageRig& rig, const BrokerFacts& facts = {})
      : ReadMessage(rig.bytes(), facts) {}
  explicit ReadMessage(std::vector<std::uint8_t> bytes, const BrokerFacts& facts = {})
      : bytes_(std::move(bytes)), view_(parsed(bytes_)), fields_(view_, facts) {}
  [[nodiscard]] MessageFields& fields() { return fields_; }

 private:
  static amqp::MessageView parsed(const std::vector<std::uint8_t>& bytes) {
    auto view = amqp::MessageView::parse(Bytes{bytes});
    check(view.has_value(), "the test's message is sound");
    return std::move(*view);
  }
  std::vector<std::uint8_t> bytes_;
  amqp::MessageView view_;
  MessageFields fields_;
};

inline std::ostream& operator<<(std::ostream& out, Truth truth) {
  static constexpr const char* names[] = {"no", "yes", "unknown", "failed"};
  return out << names[static_cast<std::size_t>(truth)];
}

// A rule that compiles, or the test ends.
inline CompiledRule compiled(Rule rule) {
  auto result = compile(std::move(rule));
  check(result.has_value(), result ? "" : result.error().detail.c_str());
  return std::move(*result);
}
inline Rule sql_rule(std::string_view name, std::string_view expression, std::string_view action = {}) {
  Rule rule{.name = std::string{name}, .filter = SqlFilter{.expression = std::string{expression}}};
  if (!action.empty()) rule.action = SqlAction{.expression = std::string{action}};
  return rule;
}

}  // namespace omnibus::rules
