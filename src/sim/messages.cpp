#include "sim/messages.hpp"

#include <fmt/format.h>

#include "amqp/codec/message.hpp"

namespace omnibus::sim {
namespace {

// The rest of a body follows from its id and size, so that every byte of it can be compared.
std::string body_of(std::string_view id, std::uint32_t filler) {
  std::string body = fmt::format("{}|{}|", id, filler);
  std::uint32_t state = filler + static_cast<std::uint32_t>(id.size());
  for (const char c : id) state = state * 31 + static_cast<unsigned char>(c);
  for (std::uint32_t i = 0; i < filler; ++i) {
    state = state * 1664525 + 1013904223;
    body += static_cast<char>('a' + (state >> 24) % 26);
  }
  return body;
}

std::string id_in(const std::string& body) {
  const auto first = body.find('|');
  const auto second = first == std::string::npos ? first : body.find('|', first + 1);
  if (second == std::string::npos) return "damaged: no id";
  const std::string id = body.substr(0, first);
  const auto filler = static_cast<std::uint32_t>(body.size() - second - 1);
  return body == body_of(id, filler) ? id : "damaged: " + id;
}

amqp::Value annotation(const amqp::MessageView& view, std::string_view key) {
  const auto raw = view.message_annotation(key);
  return raw ? amqp::decode_value(*raw).value_or(amqp::Value{}) : amqp::Value{};
}

}  // namespace

std::string encode_message(const NewMessage& message) {
  std::string bytes;
  if (message.ttl) {
    amqp::Header header;
    header.ttl = static_cast<std::uint32_t>(message.ttl->count());
    bytes += as_text(amqp::encode_composite(header));
  }
  if (message.at || message.key) {
    amqp::Encoder out;
    out.put_descriptor(amqp::descriptor::message_annotations);
    auto map = out.begin_map();
    if (message.at) {
      out.put_symbol("x-opt-scheduled-enqueue-time");
      out.put_timestamp(message.at->time_since_epoch().count());
    }
    if (message.key) {
      out.put_symbol("x-opt-partition-key");
      out.put_string(*message.key);
    }
    map.end();
    bytes += as_text(out.bytes());
  }
  amqp::MessageBuilder builder;
  const auto mid = amqp::encode(amqp::Value{message.mid.empty() ? message.id : message.mid});
  builder.properties().message_id = {mid};
  if (message.session) builder.properties().group_id = *message.session;
  builder.body(amqp::Value{body_of(message.id, message.filler)});
  return bytes + builder.build().to_string();
}

std::string encode_batch(const std::vector<std::string>& messages) {
  amqp::Encoder out;
  for (const std::string& message : messages) {
    out.put_descriptor(amqp::descriptor::data);
    out.put_binary(as_bytes(message));
  }
  return std::string{as_text(out.bytes())};
}

GotMessage read_got(const Payload& message) {
  GotMessage got;
  const auto view = amqp::MessageView::parse(message);
  if (!view) {
    got.id = "damaged: no message";
    return got;
  }
  std::vector<std::uint8_t> scratch;
  const auto body = amqp::decode_value(view->body_value(scratch));
  got.id = body ? id_in(std::string{body->as_text().value_or("")}) : "damaged: no body";
  got.seq = annotation(*view, "x-opt-sequence-number").as_integer().value_or(0);
  if (const auto until = annotation(*view, "x-opt-locked-until").as_timestamp()) got.until = *until * 1000;
  const auto state = annotation(*view, "x-opt-message-state").as_integer().value_or(0);
  got.is_deferred = state == 1;
  got.is_scheduled = state == 2;
  if (const auto header = view->header()) got.count = std::int64_t{header->delivery_count.value_or(0)} + 1;
  if (const auto properties = view->properties(); properties && properties->group_id)
    got.session = *properties->group_id;
  if (const auto reason = view->application_property("DeadLetterReason"))
    got.dead = amqp::decode_value(*reason).value_or(amqp::Value{}).as_text().value_or("");
  return got;
}

}  // namespace omnibus::sim
