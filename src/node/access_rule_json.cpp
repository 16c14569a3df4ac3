#include "node/access_rule_json.hpp"

#include <chrono>

namespace omnibus::node {
namespace {

JsonValue text(std::string value) { return {.value = std::move(value)}; }
JsonValue number(Instant time) { return {.value = std::int64_t{time.time_since_epoch().count()}}; }

void add(JsonValue::Object& object, std::string name, JsonValue value) {
  object.push_back({.name = std::move(name), .value = std::move(value)});
}

std::string text_of(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  const auto* found = value ? value->if_text() : nullptr;
  return found ? *found : std::string{};
}
Instant time_of(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  const auto* ms = value ? std::get_if<std::int64_t>(&value->value) : nullptr;
  return ms ? Instant{std::chrono::milliseconds{*ms}} : Instant{};
}

}  // namespace

JsonValue rule_value(const auth::AccessRule& rule) {
  JsonValue::Object object;
  add(object, "KeyName", text(rule.key_name));
  add(object, "PrimaryKey", text(rule.primary_key));
  add(object, "SecondaryKey", text(rule.secondary_key));
  JsonValue::Array rights;
  for (const auth::Right right : rule.stated_rights) rights.push_back(text(std::string(name_of(right))));
  add(object, "Rights", {.value = std::move(rights)});
  add(object, "Created", number(rule.created));
  add(object, "Modified", number(rule.modified));
  return {.value = std::move(object)};
}

std::optional<auth::AccessRule> rule_of(const JsonValue& value) {
  auth::RuleDocument document;
  document.key_name = text_of(value, "KeyName");
  document.primary_key = text_of(value, "PrimaryKey");
  document.secondary_key = text_of(value, "SecondaryKey");
  if (const JsonValue* rights = value.find("Rights"); rights && rights->if_array())
    for (const JsonValue& one : *rights->if_array())
      if (const auto* name = one.if_text())
        if (const auto right = auth::right_named(*name)) document.rights.push_back(*right);
  auto rule = auth::make_rule(document, time_of(value, "Created"));
  if (!rule) return std::nullopt;
  rule->modified = time_of(value, "Modified");
  return *std::move(rule);
}

}  // namespace omnibus::node
