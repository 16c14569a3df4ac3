#include <boost/json.hpp>

#include "admin/admin_values.hpp"
#include "admin/exact_json.hpp"
#include "base/text.hpp"
#include "client/message.hpp"
#include "client/message_values.hpp"

namespace omnibus::client {
namespace {

namespace json = boost::json;
using amqp::Value;

struct TextField {
  std::string_view name;
  std::optional<std::string> Message::* member;
};
constexpr std::array<TextField, 9> text_fields = {{
    {"subject", &Message::subject},
    {"to", &Message::to},
    {"replyTo", &Message::reply_to},
    {"contentType", &Message::content_type},
    {"contentEncoding", &Message::content_encoding},
    {"sessionId", &Message::session_id},
    {"replyToSessionId", &Message::reply_to_session_id},
    {"partitionKey", &Message::partition_key},
    {"viaPartitionKey", &Message::via_partition_key},
}};

// Said by the broker alone: read and forgotten.
constexpr std::array<std::string_view, 7> told_fields = {
    "sequenceNumber", "enqueuedSequenceNumber", "enqueuedTime", "lockedUntil",
    "state",          "deadLetterSource",       "deliveryCount"};

json::string_view key_of(std::string_view text) { return {text.data(), text.size()}; }

void put_body(json::object& out, const Message& message) {
  if (const auto* data = std::get_if<DataBody>(&message.body)) {
    if (data->sections.empty()) return;  // of another client: ours always has one
    if (data->sections.size() == 1) {
      const std::string text = message.body_text();
      if (is_utf8(text))
        out["body"] = text;
      else
        out["bodyBase64"] = base64_encode(as_bytes(text));
      return;
    }
    json::array sections;
    for (const auto& section : data->sections) sections.emplace_back(base64_encode(as_bytes(section)));
    out["bodySections"] = std::move(sections);
  } else if (const auto* value = std::get_if<ValueBody>(&message.body)) {
    out["bodyValue"] = json_of(value->value);
  } else {
    json::array sections;
    for (const Value& section : std::get<SequenceBody>(message.body).sections)
      sections.push_back(json_of(section));
    out["bodySequence"] = std::move(sections);
  }
}

json::object json_of_pairs(const std::vector<std::pair<std::string, Value>>& pairs) {
  json::object out;
  for (const auto& [key, value] : pairs) out[key_of(key)] = json_of(value);
  return out;
}

Result<std::vector<std::pair<std::string, Value>>> pairs_of(const json::value& value) {
  if (!value.is_object()) return fail(Errc::argument_error, "an object is expected");
  std::vector<std::pair<std::string, Value>> out;
  for (const auto& [key, inner] : value.as_object()) {
    auto read = value_of(inner);
    if (!read) return fail(Errc::argument_error, "'{}': {}", std::string_view(key), read.error().detail);
    out.emplace_back(key, *std::move(read));
  }
  return out;
}

Result<std::string> base64_of(const json::value& value) {
  if (!value.is_string()) return fail(Errc::argument_error, "a text in Base64 is expected");
  auto bytes = base64_decode(std::string_view(value.as_string()));
  if (!bytes) return fail(Errc::argument_error, "that is no Base64");
  return *std::move(bytes);
}

Result<void> read_id(const json::value& value, Value& into) {
  auto read = value_of(value);
  if (!read) return fail(read.error());
  // 17 in JSON is an id like "17": only those types can stand there [AMQP §3.2.11].
  const bool is_id = read->get_if<std::string>() || read->get_if<std::uint64_t>() ||
                     read->get_if<amqp::Uuid>() || read->get_if<amqp::Binary>();
  if (const auto* number = read->get_if<std::int64_t>())
    into = Value{std::to_string(*number)};
  else if (is_id || read->is_null())
    into = *std::move(read);
  else
    return fail(Errc::argument_error, "an id is a text, a ulong, a uuid or a binary");
  return {};
}

Result<void> read_member(std::string_view name, const json::value& value, Message& out, int& bodies) {
  for (const auto& field : text_fields) {
    if (field.name != name) continue;
    if (!value.is_string()) return fail(Errc::argument_error, "a text is expected");
    out.*field.member = std::string(value.as_string());
    return {};
  }
  if (name == "messageId") return read_id(value, out.message_id);
  if (name == "correlationId") return read_id(value, out.correlation_id);
  if (name == "body") {
    ++bodies;
    // Anything but a text is sent as the JSON it is.
    out.body = DataBody{{value.is_string() ? std::string(value.as_string()) : json::serialize(value)}};
    return {};
  }
  if (name == "bodyBase64") {
    ++bodies;
    auto bytes = base64_of(value);
    if (!bytes) return fail(bytes.error());
    out.body = DataBody{{*std::move(bytes)}};
    return {};
  }
  if (name == "bodySections" || name == "bodySequence") {
    ++bodies;
    if (!value.is_array()) return fail(Errc::argument_error, "a list is expected");
    DataBody data;
    SequenceBody sequence;
    for (const auto& one : value.as_array()) {
      if (name == "bodySections") {
        auto bytes = base64_of(one);
        if (!bytes) return fail(bytes.error());
        data.sections.push_back(*std::move(bytes));
      } else {
        auto list = value_of(one);
        if (!list) return fail(list.error());
        if (!list->get_if<amqp::List>()) return fail(Errc::argument_error, "each part is a list of AMQP");
        sequence.sections.push_back(*std::move(list));
      }
    }
    if (value.as_array().empty()) return fail(Errc::argument_error, "a body has at least one part");
    if (name == "bodySections")
      out.body = std::move(data);
    else
      out.body = std::move(sequence);
    return {};
  }
  if (name == "bodyValue") {
    ++bodies;
    auto read = value_of(value);
    if (!read) return fail(read.error());
    out.body = ValueBody{*std::move(read)};
    return {};
  }
  if (name == "properties" || name == "annotations") {
    auto pairs = pairs_of(value);
    if (!pairs) return fail(pairs.error());
    (name == "properties" ? out.properties : out.annotations) = *std::move(pairs);
    return {};
  }
  if (name == "userIdBase64") {
    auto bytes = base64_of(value);
    if (!bytes) return fail(bytes.error());
    out.user_id = *std::move(bytes);
    return {};
  }
  if (name == "timeToLive") {
    const auto span =
        value.is_string() ? parse_iso_duration(std::string_view(value.as_string())) : std::nullopt;
    if (!span || span->count() <= 0) return fail(Errc::argument_error, "a duration like PT30S is expected");
    out.time_to_live = *span;
    return {};
  }
  if (name == "scheduledEnqueueTime") {
    const auto time =
        value.is_string() ? admin::from_date(std::string_view(value.as_string())) : std::nullopt;
    if (!time) return fail(Errc::argument_error, "a date like 2026-01-02T03:04:05Z is expected");
    out.scheduled = *time;
    return {};
  }
  if (name == "priority") {
    boost::system::error_code wrong;
    out.priority = value.to_number<std::uint8_t>(wrong);
    if (wrong) return fail(Errc::argument_error, "a number from 0 to 255 is expected");
    return {};
  }
  if (std::ranges::find(told_fields, name) != told_fields.end()) return {};
  return fail(Errc::argument_error, "nothing is called so");
}

}  // namespace

std::string to_json(const Message& message) {
  json::object out;
  put_body(out, message);
  if (!message.message_id.is_null()) out["messageId"] = json_of(message.message_id);
  if (!message.correlation_id.is_null()) out["correlationId"] = json_of(message.correlation_id);
  for (const auto& field : text_fields)
    if (const auto& text = message.*field.member) out[key_of(field.name)] = is_utf8(*text) ? *text : "";
  if (message.user_id) out["userIdBase64"] = base64_encode(as_bytes(*message.user_id));
  if (message.time_to_live) out["timeToLive"] = admin::to_iso_duration(*message.time_to_live);
  if (message.scheduled) out["scheduledEnqueueTime"] = admin::to_date(*message.scheduled);
  if (message.priority) out["priority"] = *message.priority;
  if (!message.properties.empty()) out["properties"] = json_of_pairs(message.properties);
  if (!message.annotations.empty()) out["annotations"] = json_of_pairs(message.annotations);
  const auto& told = message.told;
  if (told.sequence_number) out["sequenceNumber"] = *told.sequence_number;
  if (told.enqueued_sequence_number) out["enqueuedSequenceNumber"] = *told.enqueued_sequence_number;
  if (told.enqueued) out["enqueuedTime"] = admin::to_date(*told.enqueued);
  if (told.locked_until) out["lockedUntil"] = admin::to_date(*told.locked_until);
  if (told.state) out["state"] = *told.state;
  if (told.dead_letter_source) out["deadLetterSource"] = *told.dead_letter_source;
  if (told.sequence_number) out["deliveryCount"] = told.delivery_count;
  return json::serialize(out);
}

Result<Message> from_json(std::string_view line) {
  if (line.size() > message_json_bytes_max)
    return fail(Errc::argument_error, "the line has more than {} bytes", message_json_bytes_max);
  const auto value = admin::parse_exact_json(line, message_json_depth_max);
  if (!value) return fail(Errc::argument_error, "that is no JSON: {}", value.error().detail);
  if (!value->is_object())
    return fail(Errc::argument_error, "a message is a JSON object like {{\"body\": \"text\"}}");
  Message out;
  int bodies = 0;
  for (const auto& [name, inner] : value->as_object()) {
    auto read = read_member(std::string_view(name), inner, out, bodies);
    if (!read) return fail(Errc::argument_error, "'{}': {}", std::string_view(name), read.error().detail);
  }
  if (bodies > 1) return fail(Errc::argument_error, "the message has more than one body");
  // Each value could be decoded by itself; in a map they stand one level deeper, and all of them count.
  auto body = std::exchange(out.body, DataBody{});
  if (!decode(encode(out)))
    return fail(Errc::argument_error, "properties or annotations nest too deep, or are too many");
  out.body = std::move(body);
  return out;
}

}  // namespace omnibus::client
