// Builds encoded messages for tests, section by section.
#pragma once

#include <string>

#include "amqp/codec/message.hpp"

namespace omnibus::broker {

class MessageRig {
 public:
  MessageRig& ttl(std::uint32_t ms) {
    header_.emplace().ttl = ms;
    return *this;
  }
  MessageRig& annotation(std::string_view key, amqp::Value value) {
    annotations_.set(amqp::Value::symbol(key), std::move(value));
    return *this;
  }
  MessageRig& id(std::string_view text) {
    amqp::Encoder value;
    value.put_string(text);
    id_ = value.take();
    return *this;
  }
  MessageRig& session(std::string_view text) {
    session_ = text;
    return *this;
  }
  MessageRig& property(std::string_view key, amqp::Value value) {
    properties_.set(amqp::Value{key}, std::move(value));
    return *this;
  }
  // The last call: one data section.
  [[nodiscard]] Payload body(std::string_view text) {
    amqp::Encoder out;
    if (header_) out.put_composite(*header_);
    if (!annotations_.entries.empty()) {
      out.put_descriptor(amqp::descriptor::message_annotations);
      amqp::encode(out, amqp::Value{annotations_});
    }
    if (!id_.empty() || session_) {
      amqp::Properties properties;
      properties.message_id = {id_};
      if (session_) properties.group_id = *session_;
      out.put_composite(properties);
    }
    if (!properties_.entries.empty()) {
      out.put_descriptor(amqp::descriptor::application_properties);
      amqp::encode(out, amqp::Value{properties_});
    }
    out.put_descriptor(amqp::descriptor::data);
    out.put_binary(as_bytes(text));
    return Payload::copy_of(out.bytes());
  }

 private:
  std::optional<amqp::Header> header_;
  amqp::Map annotations_;
  std::vector<std::uint8_t> id_;
  std::optional<std::string> session_;
  amqp::Map properties_;
};

}  // namespace omnibus::broker
