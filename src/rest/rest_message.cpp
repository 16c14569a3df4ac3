#include "rest/rest_message.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "amqp/codec/message.hpp"
#include "base/text.hpp"
#include "broker/delivered_message.hpp"
#include "rest/header_values.hpp"

namespace omnibus::rest {
namespace {

using boost::json::object;
using boost::json::value;

// What is HTTP's own and never a property of the message. A name that ends with '*' stands for all that begin
// like it.
constexpr std::array<std::string_view, 46> http_headers = {
    "accept*",
    "age",
    "allow",
    "authorization",
    "brokerproperties",
    "cache-control",
    "connection",
    "content-*",
    "cookie",
    "date",
    "dnt",
    "etag",
    "expect",
    "expires",
    "forwarded",
    "from",
    "host",
    "if-*",
    "keep-alive",
    "last-modified",
    "link",
    "location",
    "max-forwards",
    "mime-version",
    "origin",
    "pragma",
    "priority",
    "proxy-*",
    "range",
    "referer",
    "retry-after",
    "sec-*",
    "server",
    "servicebus*",
    "set-cookie",
    "te",
    "trace*",
    "trailer",
    "transfer-*",
    "upgrade*",
    "user-agent",
    "vary",
    "via",
    "warning",
    "x-forwarded-*",
    "x-ms-*",
};

bool is_http_header(std::string_view name) {
  return std::ranges::any_of(http_headers, [&](std::string_view known) {
    if (known.ends_with('*')) return starts_with_ignoring_case(name, known.substr(0, known.size() - 1));
    return equals_ignoring_case(name, known);
  });
}

// What may be the name of a header [RFC 9110 5.6.2].
bool is_token(std::string_view name) {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::ranges::all_of(name, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           marks.find(c) != std::string_view::npos;
  });
}

std::string_view text_of(const boost::json::string& text) { return {text.data(), text.size()}; }

Result<amqp::Value> read_user_property(std::string_view name, const value& json) {
  switch (json.kind()) {
    case boost::json::kind::null:
      return amqp::Value{};
    case boost::json::kind::bool_:
      return amqp::Value{json.get_bool()};
    case boost::json::kind::int64:
      return amqp::Value{std::int64_t{json.get_int64()}};
    case boost::json::kind::uint64:
      return amqp::Value{std::uint64_t{json.get_uint64()}};
    case boost::json::kind::double_:
      return amqp::Value{json.get_double()};
    case boost::json::kind::string:
      return amqp::Value{text_of(json.get_string())};
    default:
      return fail(Errc::argument_error, "the user property '{}' is an object or array", name);
  }
}

// It becomes a symbol, which is ASCII.
Result<void> check_content_type(const Draft& draft) {
  if (draft.content_type &&
      std::ranges::any_of(*draft.content_type, [](char c) { return c < ' ' || c == 0x7f; }))
    return fail(Errc::argument_error, "the content type is not ASCII");
  return {};
}

Result<Draft> read_item(const object& item) {
  Draft draft;
  bool is_base64 = false;
  for (const auto& [key, json] : item) {
    const std::string_view name{key.data(), key.size()};
    if (name == "Body") {
      if (!json.is_string() && !json.is_null())
        return fail(Errc::argument_error, "'Body' has to be a string");
      if (json.is_string()) draft.body = text_of(json.get_string());
    } else if (name == "IsBodyBase64") {
      if (!json.is_bool()) return fail(Errc::argument_error, "'IsBodyBase64' has to be true or false");
      is_base64 = json.get_bool();
    } else if (name == "BrokerProperties" && !json.is_null()) {
      if (!json.is_object()) return fail(Errc::argument_error, "'BrokerProperties' has to be an object");
      auto properties = read_broker_properties(json.get_object());
      if (!properties) return fail(properties.error());
      draft.properties = *std::move(properties);
    } else if (name == "UserProperties" && !json.is_null()) {
      if (!json.is_object()) return fail(Errc::argument_error, "'UserProperties' has to be an object");
      for (const auto& [user_key, user_json] : json.get_object()) {
        const std::string_view user_name{user_key.data(), user_key.size()};
        auto property = read_user_property(user_name, user_json);
        if (!property) return fail(property.error());
        // JSON objects of this parser have no name twice.
        draft.user_properties.entries.emplace_back(amqp::Value{user_name}, *std::move(property));
      }
    }
  }
  if (is_base64) {
    auto bytes = base64_decode(draft.body);
    if (!bytes) return fail(Errc::argument_error, "'Body' is not base64");
    draft.body = *std::move(bytes);
  }
  draft.content_type = draft.properties.content_type;
  if (auto good = check_content_type(draft); !good) return fail(good.error());
  return draft;
}

std::vector<std::uint8_t> encoded(const std::optional<std::string>& text) {
  amqp::Encoder out;
  if (text) out.put_string(*text);
  return out.take();
}

// Ids and addresses may be of several types; here they are text.
std::optional<std::string> text_of(const amqp::RawValue& raw) {
  if (raw.is_null()) return std::nullopt;
  const auto value = amqp::decode_value(raw);
  if (!value) return std::nullopt;
  if (const auto text = value->as_text()) return std::string(*text);
  if (const auto uuid = value->as_uuid()) return amqp::to_text(*uuid);
  if (const auto bytes = value->as_binary()) return base64_encode(*bytes);
  if (const auto number = value->as_unsigned()) return fmt::format("{}", *number);
  return std::nullopt;
}

void put(object& into, std::string_view name, std::optional<std::string> text) {
  if (!text) return;
  if (!is_utf8(*text)) text = base64_encode(as_bytes(*text));
  into[boost::json::string_view(name.data(), name.size())] = *text;
}

std::optional<std::string> annotation_text(const amqp::MessageView& view, std::string_view key) {
  const auto raw = view.message_annotation(key);
  return raw ? text_of(*raw) : std::nullopt;
}

std::string_view state_name(broker::MessageState state) {
  switch (state) {
    case broker::MessageState::active:
      break;
    case broker::MessageState::deferred:
      return "Deferred";
    case broker::MessageState::scheduled:
      return "Scheduled";
  }
  return "Active";
}

std::string body_of(const amqp::MessageView& view) {
  std::string body;
  std::vector<std::uint8_t> scratch;
  if (view.body_kind() == amqp::descriptor::data) {
    auto sections = view.body_sections();
    while (const auto section = sections.next()) body += as_text(view.bytes(section->content, scratch));
    return body;
  }
  if (view.body_kind() == amqp::descriptor::amqp_value) {
    const auto raw = view.body_value(scratch);
    if (const auto value = amqp::decode_value(raw)) {
      if (value->is_null()) return body;
      if (const auto text = value->as_text()) return std::string(*text);
      if (const auto bytes = value->as_binary()) return std::string(as_text(*bytes));
    }
    return std::string(as_text(raw.bytes));
  }
  return std::string(as_text(view.bytes(view.body(), scratch)));
}

}  // namespace

bool is_batch(const net::HttpRequest& request) {
  const std::string* type = request.header("Content-Type");
  if (type == nullptr || !starts_with_ignoring_case(*type, batch_content_type)) return false;
  return type->size() == batch_content_type.size() || (*type)[batch_content_type.size()] == ';' ||
         (*type)[batch_content_type.size()] == ' ';
}

Result<Draft> read_single(net::HttpRequest& request) {
  Draft draft;
  if (const std::string* json = request.header("BrokerProperties")) {
    auto properties = read_broker_properties(*json);
    if (!properties) return fail(properties.error());
    draft.properties = *std::move(properties);
    draft.content_type = draft.properties.content_type;
  }
  if (const std::string* type = request.header("Content-Type"); type != nullptr && !type->empty())
    draft.content_type = *type;
  if (auto good = check_content_type(draft); !good) return fail(good.error());
  // A header has room for ten thousand names: none is looked for among all the others.
  std::unordered_map<std::string_view, std::size_t> places;
  auto& properties = draft.user_properties.entries;
  for (const auto& header : request.headers) {
    if (is_http_header(header.name)) continue;
    if (!is_utf8(header.value))
      return fail(Errc::argument_error, "the header '{}' is not UTF-8", header.name);
    const auto [place, is_new] = places.try_emplace(header.name, properties.size());
    if (is_new)
      properties.emplace_back(amqp::Value{header.name}, value_from_header(header.value));
    else
      properties[place->second].second = value_from_header(header.value);
  }
  draft.body = std::move(request.body);
  return draft;
}

Result<std::vector<Draft>> read_batch(std::string_view body) {
  if (body.starts_with("\xef\xbb\xbf")) body.remove_prefix(3);
  const auto json = parse_json(body, "the batch");
  if (!json) return fail(json.error());
  if (!json->is_array() || json->get_array().empty())
    return fail(Errc::argument_error, "a batch is a JSON array with at least one message");
  std::vector<Draft> drafts;
  drafts.reserve(json->get_array().size());
  for (const value& item : json->get_array()) {
    if (!item.is_object())
      return fail(Errc::argument_error, "message {} of the batch is no object", drafts.size());
    auto draft = read_item(item.get_object());
    if (!draft)
      return fail(draft.error().code, "message {} of the batch: {}", drafts.size(), draft.error().detail);
    drafts.push_back(*std::move(draft));
  }
  return drafts;
}

Payload encode(const Draft& draft, Instant now) {
  const BrokerProperties& from = draft.properties;
  amqp::Encoder out;
  amqp::Properties properties;
  if (from.time_to_live && *from.time_to_live < iso_duration_max) {
    constexpr std::uint32_t ttl_max = std::numeric_limits<std::uint32_t>::max();
    amqp::Header header;
    header.ttl = static_cast<std::uint32_t>(std::min<std::int64_t>(from.time_to_live->count(), ttl_max));
    out.put_composite(header);
    // More than the header can say is said as the SDKs do.
    if (from.time_to_live->count() > ttl_max) {
      properties.creation_time = amqp::Timestamp{now.time_since_epoch().count()};
      properties.absolute_expiry_time =
          amqp::Timestamp{(now + *from.time_to_live).time_since_epoch().count()};
    }
  }
  amqp::Map annotations;
  if (from.scheduled)
    annotations.set(amqp::Value::symbol("x-opt-scheduled-enqueue-time"),
                    amqp::Value{amqp::Timestamp{from.scheduled->time_since_epoch().count()}});
  if (from.partition_key)
    annotations.set(amqp::Value::symbol("x-opt-partition-key"), amqp::Value{*from.partition_key});
  if (from.via_partition_key)
    annotations.set(amqp::Value::symbol("x-opt-via-partition-key"), amqp::Value{*from.via_partition_key});
  if (!annotations.entries.empty()) {
    out.put_descriptor(amqp::descriptor::message_annotations);
    amqp::encode(out, amqp::Value{std::move(annotations)});
  }
  const auto message_id = encoded(from.message_id);
  const auto correlation_id = encoded(from.correlation_id);
  const auto to = encoded(from.to);
  const auto reply_to = encoded(from.reply_to);
  properties.message_id = {message_id};
  properties.correlation_id = {correlation_id};
  properties.to = {to};
  properties.reply_to = {reply_to};
  if (from.label) properties.subject = *from.label;
  if (draft.content_type) properties.content_type = amqp::Symbol{*draft.content_type};
  if (from.session_id) properties.group_id = *from.session_id;
  if (from.reply_to_session_id) properties.reply_to_group_id = *from.reply_to_session_id;
  out.put_composite(properties);
  if (!draft.user_properties.entries.empty()) {
    out.put_descriptor(amqp::descriptor::application_properties);
    amqp::encode(out, amqp::Value{draft.user_properties});
  }
  out.put_descriptor(amqp::descriptor::data);
  out.put_binary(as_bytes(draft.body));
  return Payload::copy_of(out.bytes());
}

Result<std::vector<broker::IncomingMessage>> read_drafts(const std::vector<Draft>& drafts,
                                                         std::uint64_t bytes_max, Instant now,
                                                         Random& random) {
  std::vector<broker::IncomingMessage> messages;
  std::uint64_t bytes = 0;
  for (const Draft& draft : drafts) {
    auto message = broker::read_message(encode(draft, now), random);
    if (!message) return fail(message.error());
    bytes += message->bytes.size();
    if (bytes > bytes_max)
      return fail(Errc::message_size_exceeded, "The messages are larger than the {} bytes that are taken.",
                  bytes_max);
    messages.push_back(*std::move(message));
  }
  return messages;
}

Result<Shown> show(const Payload& stored, const broker::HeldMessage& held) {
  broker::DeliveryForm form;
  form.locked_until = held.locked_until;
  const auto delivered = broker::delivered_message(stored, held.status, form);
  if (!delivered) return fail(delivered.error());
  const auto view = amqp::MessageView::parse(*delivered);
  if (!view) return fail(view.error());
  const auto header = view->header();
  if (!header) return fail(header.error());
  const auto properties = view->properties();
  if (!properties) return fail(properties.error());

  const broker::MessageStatus& status = held.status;
  Shown shown;
  object& out = shown.broker_properties;
  put(out, "MessageId", text_of(properties->message_id));
  put(out, "CorrelationId", text_of(properties->correlation_id));
  if (properties->subject) put(out, "Label", std::string(*properties->subject));
  put(out, "To", text_of(properties->to));
  put(out, "ReplyTo", text_of(properties->reply_to));
  if (properties->reply_to_group_id)
    put(out, "ReplyToSessionId", std::string(*properties->reply_to_group_id));
  if (properties->group_id) put(out, "SessionId", std::string(*properties->group_id));
  put(out, "PartitionKey", annotation_text(*view, "x-opt-partition-key"));
  put(out, "ViaPartitionKey", annotation_text(*view, "x-opt-via-partition-key"));
  // Who holds a lock has it delivered once more than the wire says [SB 5.1].
  const std::uint32_t failed = header->delivery_count.value_or(0);
  out["DeliveryCount"] = held.lock ? failed + 1 : failed;
  out["SequenceNumber"] = status.sequence;
  if (const auto raw = view->message_annotation("x-opt-enqueue-sequence-number"); raw && !raw->is_null())
    if (const auto number = amqp::decode_value(*raw); number && number->as_integer())
      out["EnqueuedSequenceNumber"] = *number->as_integer();
  out["EnqueuedTimeUtc"] = to_http_date(status.enqueued);
  if (const auto raw = view->message_annotation("x-opt-scheduled-enqueue-time"); raw && !raw->is_null())
    if (const auto time = amqp::decode_value(*raw); time && time->as_timestamp())
      out["ScheduledEnqueueTimeUtc"] =
          to_http_date(Instant{std::chrono::milliseconds{*time->as_timestamp()}});
  const auto lives = status.expires ? *status.expires - status.enqueued : iso_duration_max;
  if (lives.count() % 1000 == 0)
    out["TimeToLive"] = lives.count() / 1000;
  else
    out["TimeToLive"] = static_cast<double>(lives.count()) / 1000;
  if (held.locked_until) out["LockedUntilUtc"] = to_http_date(*held.locked_until);
  if (held.lock && held.locked_until) out["LockToken"] = amqp::to_text(held.lock->uuid());
  const auto state = state_name(status.state);
  out["State"] = boost::json::string_view(state.data(), state.size());
  put(out, "DeadLetterSource", annotation_text(*view, "x-opt-deadletter-source"));

  if (properties->content_type) shown.content_type = std::string(properties->content_type->text);
  const auto user = amqp::decode_value(view->application_properties());
  if (!user) return fail(user.error());
  if (const auto* map = user->get_if<amqp::Map>())
    for (const auto& [key, value] : map->entries)
      if (const auto name = key.as_text()) shown.user_properties.emplace_back(*name, value);
  shown.body = body_of(*view);
  return shown;
}

net::HttpResponse message_response(int status, const Shown& message) {
  net::HttpResponse response{.status = status};
  response.headers.push_back(
      {"Content-Type", message.content_type.value_or("application/atom+xml;type=entry;charset=utf-8")});
  response.headers.push_back(
      {"BrokerProperties", ascii_json(boost::json::serialize(message.broker_properties))});
  for (const auto& [name, value] : message.user_properties) {
    // What cannot be a header is not shown; a property named like one of HTTP's would break the answer.
    if (!is_token(name) || is_http_header(name)) continue;
    if (auto text = header_from_value(value)) response.headers.push_back({name, *std::move(text)});
  }
  response.body = message.body;
  return response;
}

}  // namespace omnibus::rest
