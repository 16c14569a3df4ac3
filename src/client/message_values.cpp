#include "client/message_values.hpp"

#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>

#include "admin/admin_values.hpp"
#include "base/text.hpp"

namespace omnibus::client {
namespace {

using amqp::Value;
namespace json = boost::json;

json::object typed(std::string_view type, json::value value) {
  json::object out;
  out["type"] = json::string_view(type.data(), type.size());
  out["value"] = std::move(value);
  return out;
}

json::value encoded(const Value& value) {
  const auto bytes = amqp::encode(value);
  return typed("amqp", json::value(base64_encode(bytes)));
}

struct ToJson {
  const Value& whole;
  json::value operator()(std::monostate) const { return nullptr; }
  json::value operator()(bool v) const { return v; }
  json::value operator()(std::uint8_t v) const { return typed("ubyte", v); }
  json::value operator()(std::uint16_t v) const { return typed("ushort", v); }
  json::value operator()(std::uint32_t v) const { return typed("uint", v); }
  json::value operator()(std::uint64_t v) const { return typed("ulong", v); }
  json::value operator()(std::int8_t v) const { return typed("byte", v); }
  json::value operator()(std::int16_t v) const { return typed("short", v); }
  json::value operator()(std::int32_t v) const { return typed("int", v); }
  json::value operator()(std::int64_t v) const { return v; }
  json::value operator()(double v) const {
    // Neither NaN nor infinity is JSON, and a whole number would come back as a long.
    if (!std::isfinite(v)) return encoded(whole);
    if (v == std::floor(v)) return typed("double", v);
    return v;
  }
  json::value operator()(amqp::Timestamp v) const { return typed("timestamp", v.ms); }
  json::value operator()(const amqp::Uuid& v) const { return typed("uuid", json::value(amqp::to_text(v))); }
  json::value operator()(const amqp::Binary& v) const {
    return typed("binary", json::value(base64_encode(as_bytes(v.bytes))));
  }
  json::value operator()(const std::string& v) const {
    if (!is_utf8(v)) return encoded(whole);
    return json::value(v);
  }
  json::value operator()(const amqp::SymbolValue& v) const {
    if (!is_utf8(v.text)) return encoded(whole);
    return typed("symbol", json::value(v.text));
  }
  // Floats, decimals, characters, lists, maps, arrays, described values.
  template <class T>
  json::value operator()(const T&) const {
    return encoded(whole);
  }
};

template <class T>
Result<Value> number(const json::value& value) {
  boost::system::error_code wrong;
  const T out = value.to_number<T>(wrong);
  if (wrong) return fail(Errc::argument_error, "the value is no number of that type");
  return Value{out};
}

Result<Value> parse_uuid(std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c != '-') digits += c;
  const auto bytes = unhex(digits);
  if (!bytes || bytes->size() != 16) return fail(Errc::argument_error, "that is no UUID");
  amqp::Uuid uuid;
  for (std::size_t i = 0; i < 16; ++i) uuid.bytes.at(i) = static_cast<std::uint8_t>((*bytes)[i]);
  return Value{uuid};
}

Result<Value> value_of_typed(std::string_view type, const json::value& value) {
  if (type == "ubyte") return number<std::uint8_t>(value);
  if (type == "ushort") return number<std::uint16_t>(value);
  if (type == "uint") return number<std::uint32_t>(value);
  if (type == "ulong") return number<std::uint64_t>(value);
  if (type == "byte") return number<std::int8_t>(value);
  if (type == "short") return number<std::int16_t>(value);
  if (type == "int") return number<std::int32_t>(value);
  if (type == "long") return number<std::int64_t>(value);
  if (type == "double") return number<double>(value);
  if (type == "timestamp") {
    if (value.is_string()) {
      const auto time = admin::from_date(std::string_view(value.as_string()));
      if (!time) return fail(Errc::argument_error, "that is no date like 2026-01-02T03:04:05Z");
      return Value{amqp::Timestamp{time->time_since_epoch().count()}};
    }
    auto ms = number<std::int64_t>(value);
    if (!ms) return ms;
    return Value{amqp::Timestamp{*ms->as_integer()}};
  }
  if (!value.is_string()) return fail(Errc::argument_error, "a value of type '{}' is written as text", type);
  const std::string_view text = value.as_string();
  if (type == "string") return Value{text};
  if (type == "symbol") return Value::symbol(text);
  if (type == "uuid") return parse_uuid(text);
  if (type == "binary" || type == "amqp") {
    const auto bytes = base64_decode(text);
    if (!bytes) return fail(Errc::argument_error, "a value of type '{}' is no Base64", type);
    if (type == "binary") return Value::binary(as_bytes(*bytes));
    auto value_there = bytes->empty() ? Result<Value>(fail(Errc::argument_error, "empty"))
                                      : amqp::decode_value({as_bytes(*bytes)});
    if (!value_there) return fail(Errc::argument_error, "a value of type 'amqp' cannot be decoded");
    return value_there;
  }
  return fail(Errc::argument_error, "there is no type '{}'",
              type.size() > 32 ? std::string_view("...") : type);
}

constexpr std::array<std::string_view, 8> property_types = {"string", "bool",   "int",       "long",
                                                            "ulong",  "double", "timestamp", "uuid"};

template <class T>
std::optional<T> parsed(std::string_view text) {
  T out{};
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (text.empty() || wrong != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

}  // namespace

json::value json_of(const Value& value) { return std::visit(ToJson{value}, value.data()); }

Result<Value> value_of(const json::value& value) {
  if (value.is_null()) return Value{};
  if (value.is_bool()) return Value{value.as_bool()};
  if (value.is_string()) return Value{std::string_view(value.as_string())};
  if (value.is_int64()) return Value{value.as_int64()};
  if (value.is_uint64()) return Value{value.as_uint64()};
  if (value.is_double()) return Value{value.as_double()};
  if (!value.is_object()) return fail(Errc::argument_error, "a list is no value of a property");
  const auto& object = value.as_object();
  const auto* type = object.if_contains("type");
  const auto* inner = object.if_contains("value");
  if (object.size() != 2 || !type || !inner || !type->is_string())
    return fail(Errc::argument_error, "an object is a value only as {{\"type\": ..., \"value\": ...}}");
  return value_of_typed(std::string_view(type->as_string()), *inner);
}

bool is_property_type(std::string_view type) {
  return std::ranges::find(property_types, type) != property_types.end();
}

Value guess_value(std::string_view text) {
  if (text == "true") return Value{true};
  if (text == "false") return Value{false};
  // 007 is a text: whoever wrote the zeros wants them back.
  const bool has_zeros = text.size() > 1 && text.starts_with('0') && text[1] != '.';
  if (const auto integer = parsed<std::int64_t>(text); integer && !has_zeros) return Value{*integer};
  const bool looks_like_number =
      !text.empty() && (text.front() == '-' || (text.front() >= '0' && text.front() <= '9'));
  if (const auto real = parsed<double>(text); real && looks_like_number && !has_zeros && text.contains('.'))
    return Value{*real};
  return Value{text};
}

Result<Value> value_of_type(std::string_view type, std::string_view text) {
  const auto or_fail = [&](auto number) -> Result<Value> {
    if (!number) return fail(Errc::argument_error, "'{}' is no {}", text, type);
    return Value{*number};
  };
  if (type == "string") return Value{text};
  if (type == "int") return or_fail(parsed<std::int32_t>(text));
  if (type == "long") return or_fail(parsed<std::int64_t>(text));
  if (type == "ulong") return or_fail(parsed<std::uint64_t>(text));
  if (type == "double") return or_fail(parsed<double>(text));
  if (type == "bool") {
    if (text == "true" || text == "false") return Value{text == "true"};
    return fail(Errc::argument_error, "'{}' is neither true nor false", text);
  }
  if (type == "uuid") return parse_uuid(text);
  return value_of_typed(type, json::value(json::string_view(text.data(), text.size())));
}

}  // namespace omnibus::client
