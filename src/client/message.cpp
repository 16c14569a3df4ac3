#include "client/message.hpp"

#include <algorithm>

#include "admin/admin_values.hpp"
#include "amqp/codec/message.hpp"
#include "base/text.hpp"
#include "client/message_values.hpp"

namespace omnibus::client {
namespace {

using amqp::Value;
using std::chrono::milliseconds;

constexpr std::string_view partition_key_name = "x-opt-partition-key";
constexpr std::string_view via_partition_key_name = "x-opt-via-partition-key";
constexpr std::string_view scheduled_name = "x-opt-scheduled-enqueue-time";

std::optional<Instant> instant_of(const Value& value) {
  const auto ms = value.as_timestamp();
  if (!ms) return std::nullopt;
  return Instant{milliseconds{*ms}};
}

std::string_view name_of_state(std::int64_t state) {
  return state == 1 ? "deferred" : state == 2 ? "scheduled" : "active";
}

// True when the annotation has a place of its own.
bool take_annotation(std::string_view key, const Value& value, Message& out) {
  const auto text = [&]() -> std::optional<std::string> {
    const auto found = value.as_text();
    if (!found) return std::nullopt;
    return std::string(*found);
  };
  if (key == "x-opt-sequence-number") {
    out.told.sequence_number = value.as_integer();
  } else if (key == "x-opt-enqueue-sequence-number") {
    out.told.enqueued_sequence_number = value.as_integer();
  } else if (key == "x-opt-enqueued-time") {
    out.told.enqueued = instant_of(value);
  } else if (key == "x-opt-locked-until") {
    out.told.locked_until = instant_of(value);
  } else if (key == "x-opt-message-state") {
    out.told.state = std::string(name_of_state(value.as_integer().value_or(0)));
  } else if (key == "x-opt-deadletter-source") {
    out.told.dead_letter_source = text();
  } else if (key == scheduled_name) {
    out.scheduled = instant_of(value);
  } else if (key == partition_key_name) {
    out.partition_key = text();
  } else if (key == via_partition_key_name) {
    out.via_partition_key = text();
  } else {
    return key == "x-opt-partition-id" || key == "x-opt-lock-token";
  }
  return true;
}

Result<Value> decoded(const amqp::RawValue& raw) {
  auto value = amqp::decode_value(raw);
  if (!value) return fail(value.error());
  return *std::move(value);
}

Result<void> read_properties(const amqp::MessageView& view, Message& out) {
  const auto properties = view.properties();
  if (!properties) return fail(properties.error());
  auto id = decoded(properties->message_id);
  if (!id) return fail(id.error());
  out.message_id = *std::move(id);
  auto correlation = decoded(properties->correlation_id);
  if (!correlation) return fail(correlation.error());
  out.correlation_id = *std::move(correlation);
  const auto address = [](const amqp::RawValue& raw, std::optional<std::string>& into) {
    const auto value = amqp::decode_value(raw);
    if (!value) return;
    if (const auto text = value->as_text()) into = std::string(*text);
  };
  address(properties->to, out.to);
  address(properties->reply_to, out.reply_to);
  if (properties->subject) out.subject = std::string(*properties->subject);
  if (properties->content_type) out.content_type = std::string(properties->content_type->text);
  if (properties->content_encoding) out.content_encoding = std::string(properties->content_encoding->text);
  if (properties->group_id) out.session_id = std::string(*properties->group_id);
  if (properties->reply_to_group_id) out.reply_to_session_id = std::string(*properties->reply_to_group_id);
  if (properties->user_id) out.user_id = std::string(as_text(*properties->user_id));
  return {};
}

Result<void> read_pairs(const amqp::MessageView& view, Message& out) {
  auto properties = decoded(view.application_properties());
  if (!properties) return fail(properties.error());
  if (auto* map = properties->get_if<amqp::Map>())
    for (auto& [key, value] : map->entries)
      if (const auto name = key.as_text()) out.properties.emplace_back(*name, std::move(value));
  auto annotations = decoded(view.message_annotations());
  if (!annotations) return fail(annotations.error());
  if (auto* map = annotations->get_if<amqp::Map>())
    for (auto& [key, value] : map->entries) {
      const auto name = key.as_text();
      if (name && !take_annotation(*name, value, out)) out.annotations.emplace_back(*name, std::move(value));
    }
  return {};
}

Result<void> read_body(const amqp::MessageView& view, Message& out) {
  auto sections = view.body_sections();
  if (view.body_kind() == amqp::descriptor::amqp_value) {
    std::vector<std::uint8_t> scratch;
    auto value = decoded(view.body_value(scratch));
    if (!value) return fail(value.error());
    out.body = ValueBody{*std::move(value)};
    return {};
  }
  DataBody data;
  SequenceBody sequence;
  while (const auto section = sections.next()) {
    std::vector<std::uint8_t> scratch;
    if (section->descriptor == amqp::descriptor::data) {
      data.sections.emplace_back(as_text(view.bytes(section->content, scratch)));
    } else {
      auto list = decoded({view.bytes(section->value, scratch)});
      if (!list) return fail(list.error());
      sequence.sections.push_back(*std::move(list));
    }
  }
  if (view.body_kind() == amqp::descriptor::amqp_sequence)
    out.body = std::move(sequence);
  else
    out.body = std::move(data);
  return {};
}

Result<Message> read(const amqp::MessageView& view) {
  Message out;
  const auto header = view.header();
  if (!header) return fail(header.error());
  if (header->ttl) out.time_to_live = milliseconds{*header->ttl};
  out.priority = header->priority;
  out.told.delivery_count = header->delivery_count.value_or(0);
  if (auto done = read_properties(view, out); !done) return fail(done.error());
  if (auto done = read_pairs(view, out); !done) return fail(done.error());
  if (auto done = read_body(view, out); !done) return fail(done.error());
  return out;
}

void put_annotations(amqp::Encoder& out, const Message& message) {
  std::vector<std::pair<Value, Value>> entries;
  const auto add = [&](std::string_view key, Value value) {
    entries.emplace_back(Value::symbol(key), std::move(value));
  };
  if (message.partition_key) add(partition_key_name, Value{std::string_view{*message.partition_key}});
  if (message.via_partition_key)
    add(via_partition_key_name, Value{std::string_view{*message.via_partition_key}});
  if (message.scheduled)
    add(scheduled_name, Value{amqp::Timestamp{message.scheduled->time_since_epoch().count()}});
  // Those with a field of their own are said there, and a key stands once in a map [AMQP §1.6.23].
  for (const auto& [key, value] : message.annotations)
    if (std::ranges::find(entries, Value::symbol(key), &std::pair<Value, Value>::first) == entries.end())
      add(key, value);
  if (entries.empty()) return;
  out.put_descriptor(amqp::descriptor::message_annotations);
  amqp::encode(out, Value::map(std::move(entries)));
}

void put_properties(amqp::Encoder& out, const Message& message) {
  const auto id = amqp::encode(message.message_id);
  const auto correlation = amqp::encode(message.correlation_id);
  const auto encoded = [](const std::optional<std::string>& text) {
    return text ? amqp::encode(Value{std::string_view{*text}}) : std::vector<std::uint8_t>{};
  };
  const auto to = encoded(message.to);
  const auto reply_to = encoded(message.reply_to);
  amqp::Properties properties;
  properties.message_id = {id};
  properties.correlation_id = {correlation};
  properties.to = {to};
  properties.reply_to = {reply_to};
  if (message.user_id) properties.user_id = as_bytes(*message.user_id);
  if (message.subject) properties.subject = *message.subject;
  if (message.content_type) properties.content_type = amqp::Symbol{*message.content_type};
  if (message.content_encoding) properties.content_encoding = amqp::Symbol{*message.content_encoding};
  if (message.session_id) properties.group_id = *message.session_id;
  if (message.reply_to_session_id) properties.reply_to_group_id = *message.reply_to_session_id;
  out.put_composite(properties);
}

void put_body(amqp::Encoder& out, const Message& message) {
  if (const auto* value = std::get_if<ValueBody>(&message.body)) {
    out.put_descriptor(amqp::descriptor::amqp_value);
    amqp::encode(out, value->value);
  } else if (const auto* sequence = std::get_if<SequenceBody>(&message.body)) {
    for (const Value& list : sequence->sections) {
      out.put_descriptor(amqp::descriptor::amqp_sequence);
      amqp::encode(out, list);
    }
  } else {
    const auto& sections = std::get<DataBody>(message.body).sections;
    // A message has a body, if an empty one.
    if (sections.empty()) {
      out.put_descriptor(amqp::descriptor::data);
      out.put_binary({});
    }
    for (const std::string& section : sections) {
      out.put_descriptor(amqp::descriptor::data);
      out.put_binary(as_bytes(section));
    }
  }
}

}  // namespace

Message Message::of_text(std::string_view text) {
  Message out;
  out.body = DataBody{{std::string(text)}};
  return out;
}

std::string Message::body_text() const {
  if (const auto* data = std::get_if<DataBody>(&body)) {
    std::string out;
    for (const auto& section : data->sections) out += section;
    return out;
  }
  if (const auto* value = std::get_if<ValueBody>(&body)) {
    if (const auto text = value->value.as_text()) return std::string(*text);
    if (const auto bytes = value->value.as_binary()) return std::string(as_text(*bytes));
    return amqp::to_text(value->value);
  }
  std::string out;
  for (const auto& section : std::get<SequenceBody>(body).sections) out += amqp::to_text(section);
  return out;
}

std::string Message::key() const {
  if (session_id) return "s" + *session_id;
  if (partition_key) return "p" + *partition_key;
  return {};
}

Payload encode(const Message& message) {
  amqp::Encoder out;
  amqp::Header header;
  header.durable = true;
  header.priority = message.priority;
  if (message.time_to_live)
    header.ttl = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(message.time_to_live->count(), 0, std::int64_t{UINT32_MAX}));
  out.put_composite(header);
  put_annotations(out, message);
  put_properties(out, message);
  if (!message.properties.empty()) {
    std::vector<std::pair<Value, Value>> entries;
    for (const auto& [key, value] : message.properties)
      entries.emplace_back(Value{std::string_view{key}}, value);
    out.put_descriptor(amqp::descriptor::application_properties);
    amqp::encode(out, Value::map(std::move(entries)));
  }
  put_body(out, message);
  return Payload::copy_of(Bytes{out.take()});
}

Result<Message> decode(const Payload& payload) {
  const auto view = amqp::MessageView::parse(payload);
  if (!view) return fail(view.error());
  return read(*view);
}

Result<Message> decode(Bytes bytes) {
  const auto view = amqp::MessageView::parse(bytes);
  if (!view) return fail(view.error());
  return read(*view);
}

std::size_t batch_bytes_of(const Payload& message) { return message.size() + 8; }

Payload encode_batch(const Message& first, const std::vector<Payload>& messages) {
  // The envelope chooses the partition, and nothing else.
  Message envelope;
  envelope.session_id = first.session_id;
  envelope.partition_key = first.partition_key;
  envelope.message_id = first.message_id;
  amqp::Encoder out;
  put_annotations(out, envelope);
  put_properties(out, envelope);
  std::vector<std::uint8_t> scratch;
  for (const Payload& one : messages) {
    out.put_descriptor(amqp::descriptor::data);
    out.put_binary(one.contiguous(scratch));
  }
  return Payload::copy_of(Bytes{out.take()});
}

Result<std::pair<std::string, Value>> parse_property(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return fail(Errc::argument_error, "'{}' is not name=value", text);
  std::string_view name = text.substr(0, equals);
  const std::string_view value = text.substr(equals + 1);
  std::string_view type;
  if (const auto colon = name.rfind(':');
      colon != std::string_view::npos && is_property_type(name.substr(colon + 1))) {
    type = name.substr(colon + 1);
    name = name.substr(0, colon);
  }
  auto read = type.empty() ? Result<Value>(guess_value(value)) : value_of_type(type, value);
  if (!read) return fail(Errc::argument_error, "property '{}': {}", name, read.error().detail);
  return std::pair{std::string(name), *std::move(read)};
}

}  // namespace omnibus::client
