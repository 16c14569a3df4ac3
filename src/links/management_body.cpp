#include "links/management_body.hpp"

#include "links/conditions.hpp"

namespace omnibus::links {
namespace {

std::unexpected<Error> missing(std::string_view key) {
  return fail(Errc::argument_error, "the key '{}' is missing", key);
}
std::unexpected<Error> mistyped(std::string_view key, std::string_view wanted) {
  return fail(Errc::argument_error, "the value of '{}' is no {}", key, wanted);
}

}  // namespace

Result<ManagementBody> ManagementBody::read(const amqp::MessageView& message) {
  std::vector<std::uint8_t> scratch;
  auto body = amqp::decode_value(message.body_value(scratch));
  if (!body) return fail(Errc::argument_error, "the body cannot be read: {}", body.error().detail);
  if (!body->get_if<amqp::Map>()) return fail(Errc::argument_error, "the body is no map");
  return ManagementBody{*std::move(body)};
}

const amqp::Value* ManagementBody::find(std::string_view key) const {
  const amqp::Value* value = body_.find(key);
  return value && !value->is_null() ? value : nullptr;
}

Result<std::vector<broker::LockToken>> ManagementBody::lock_tokens(std::string_view key) const {
  const amqp::Value* value = find(key);
  if (!value) return missing(key);
  if (!value->is_list_or_array()) return mistyped(key, "array of uuids");
  std::vector<broker::LockToken> tokens;
  for (const amqp::Value& item : value->items()) {
    const auto uuid = item.as_uuid();
    if (!uuid) return mistyped(key, "array of uuids");
    tokens.push_back(broker::LockToken::from(*uuid));
  }
  if (tokens.empty()) return fail(Errc::argument_error, "'{}' is empty", key);
  return tokens;
}

Result<std::vector<broker::SequenceNumber>> ManagementBody::sequence_numbers(std::string_view key) const {
  const amqp::Value* value = find(key);
  if (!value) return missing(key);
  if (!value->is_list_or_array()) return mistyped(key, "array of longs");
  std::vector<broker::SequenceNumber> numbers;
  for (const amqp::Value& item : value->items()) {
    const auto number = item.as_integer();
    if (!number) return mistyped(key, "array of longs");
    numbers.push_back(*number);
  }
  if (numbers.empty()) return fail(Errc::argument_error, "'{}' is empty", key);
  return numbers;
}

Result<std::int64_t> ManagementBody::integer(std::string_view key) const {
  const amqp::Value* value = find(key);
  if (!value) return missing(key);
  const auto number = value->as_integer();
  if (!number) return mistyped(key, "integer");
  return *number;
}

Result<std::int64_t> ManagementBody::integer_or(std::string_view key, std::int64_t absent) const {
  if (!find(key)) return absent;
  return integer(key);
}

Result<std::string> ManagementBody::text(std::string_view key) const {
  auto text = text_if_any(key);
  if (!text) return fail(text.error());
  if (!*text) return missing(key);
  return **std::move(text);
}

Result<std::optional<std::string>> ManagementBody::text_if_any(std::string_view key) const {
  const amqp::Value* value = find(key);
  if (!value) return std::optional<std::string>{};
  const auto text = value->as_text();
  if (!text) return mistyped(key, "string");
  return std::optional{std::string(*text)};
}

Result<bool> ManagementBody::flag(std::string_view key) const {
  const amqp::Value* value = find(key);
  if (!value) return false;
  const auto flag = value->as_bool();
  if (!flag) return mistyped(key, "boolean");
  return *flag;
}

Result<Instant> ManagementBody::time(std::string_view key) const {
  const amqp::Value* value = find(key);
  if (!value) return missing(key);
  const auto at = value->as_timestamp();
  if (!at) return mistyped(key, "timestamp");
  return Instant{std::chrono::milliseconds{*at}};
}

Result<std::optional<std::string>> ManagementBody::binary_if_any(std::string_view key) const {
  const amqp::Value* value = find(key);
  if (!value) return std::optional<std::string>{};
  const auto bytes = value->as_binary();
  if (!bytes) return mistyped(key, "binary");
  return std::optional{std::string(as_text(*bytes))};
}

Result<std::vector<std::uint8_t>> ManagementBody::encoded_map(std::string_view key) const {
  const amqp::Value* value = find(key);
  if (!value) return std::vector<std::uint8_t>{};
  if (!value->get_if<amqp::Map>()) return mistyped(key, "map");
  return amqp::encode(*value);
}

Result<std::vector<const amqp::Value*>> ManagementBody::maps(std::string_view key) const {
  const amqp::Value* value = find(key);
  if (!value) return missing(key);
  if (!value->is_list_or_array()) return mistyped(key, "list of maps");
  std::vector<const amqp::Value*> maps;
  for (const amqp::Value& item : value->items()) {
    if (!item.get_if<amqp::Map>()) return mistyped(key, "list of maps");
    maps.push_back(&item);
  }
  if (maps.empty()) return fail(Errc::argument_error, "'{}' is empty", key);
  return maps;
}

Response succeeded(std::vector<std::pair<amqp::Value, amqp::Value>> entries) {
  return {{{"statusCode", 200}, {"statusDescription", std::string_view{"OK"}}},
          amqp::Value::map(std::move(entries))};
}

Response nothing(Errc what) {
  return {{{"statusCode", 204},
           {"statusDescription", std::string_view{"No Content"}},
           {"errorCondition", amqp::Value::symbol(wire_error(what).condition)}},
          amqp::Value::map({})};
}

Response failed(const Error& error) {
  const WireError wire = wire_error(error.code);
  return {{{"statusCode", wire.status},
           {"statusDescription", std::string_view{error.detail}},
           {"errorCondition", amqp::Value::symbol(wire.condition)}},
          amqp::Value::map({})};
}

}  // namespace omnibus::links
