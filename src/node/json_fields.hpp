// Members of a JSON object that the node writes and reads itself. What is not there, or of another type, is
// what an empty one would be: whoever must tell them apart looks for himself.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "node/config_json.hpp"

namespace omnibus::node {

[[nodiscard]] inline JsonValue json_text(std::string value) { return {.value = std::move(value)}; }
[[nodiscard]] inline JsonValue json_time(Instant time) {
  return {.value = std::int64_t{time.time_since_epoch().count()}};
}
inline void add_field(JsonValue::Object& object, std::string name, JsonValue value) {
  object.push_back({.name = std::move(name), .value = std::move(value)});
}

[[nodiscard]] inline std::string text_field(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  const auto* found = value ? value->if_text() : nullptr;
  return found ? *found : std::string{};
}
[[nodiscard]] inline Instant time_field(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  const auto* ms = value ? std::get_if<std::int64_t>(&value->value) : nullptr;
  return ms ? Instant{std::chrono::milliseconds{*ms}} : Instant{};
}

}  // namespace omnibus::node
