#include "node/access_rule_json.hpp"

#include "node/json_fields.hpp"

namespace omnibus::node {
JsonValue rule_value(const auth::AccessRule& rule) {
  JsonValue::Object object;
  add_field(object, "KeyName", json_text(rule.key_name));
  add_field(object, "PrimaryKey", json_text(rule.primary_key));
  add_field(object, "SecondaryKey", json_text(rule.secondary_key));
  JsonValue::Array rights;
  for (const auth::Right right : rule.stated_rights) rights.push_back(json_text(std::string(name_of(right))));
  add_field(object, "Rights", {.value = std::move(rights)});
  add_field(object, "Created", json_time(rule.created));
  add_field(object, "Modified", json_time(rule.modified));
  return {.value = std::move(object)};
}

std::optional<auth::AccessRule> rule_of(const JsonValue& value) {
  auth::RuleDocument document;
  document.key_name = text_field(value, "KeyName");
  document.primary_key = text_field(value, "PrimaryKey");
  document.secondary_key = text_field(value, "SecondaryKey");
  if (const JsonValue* rights = value.find("Rights"); rights && rights->if_array())
    for (const JsonValue& one : *rights->if_array())
      if (const auto* name = one.if_text())
        if (const auto right = auth::right_named(*name)) document.rights.push_back(*right);
  auto rule = auth::make_rule(document, time_field(value, "Created"));
  if (!rule) return std::nullopt;
  rule->modified = time_field(value, "Modified");
  return *std::move(rule);
}

}  // namespace omnibus::node
