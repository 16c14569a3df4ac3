#include "node/entity_notes.hpp"

#include "node/access_rule_json.hpp"
#include "node/json_fields.hpp"

namespace omnibus::node {
namespace {

std::optional<bool> flag_of(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  const auto* flag = value ? std::get_if<bool>(&value->value) : nullptr;
  return flag ? std::optional{*flag} : std::nullopt;
}

}  // namespace

std::string write_notes(const EntityNotes& all) {
  const admin::Notes& notes = all.notes;
  JsonValue::Object object;
  if (!notes.user_metadata.empty()) add_field(object, "UserMetadata", json_text(notes.user_metadata));
  if (!notes.forward_to_uri.empty()) add_field(object, "ForwardToUri", json_text(notes.forward_to_uri));
  if (!notes.forward_dead_letters_to_uri.empty())
    add_field(object, "ForwardDeadLetteredMessagesToUri", json_text(notes.forward_dead_letters_to_uri));
  if (!notes.batched_operations) add_field(object, "EnableBatchedOperations", {.value = false});
  if (notes.express) add_field(object, "EnableExpress", {.value = true});
  if (notes.ordering) add_field(object, "SupportOrdering", {.value = *notes.ordering});
  if (notes.updated != Instant{}) add_field(object, "UpdatedAt", json_time(notes.updated));
  if (all.has_access_rules) {
    JsonValue::Array rules;
    for (const auto& rule : notes.access_rules) rules.push_back(rule_value(rule));
    add_field(object, "AuthorizationRules", {.value = std::move(rules)});
  }
  return object.empty() ? std::string{} : to_json({.value = std::move(object)});
}

EntityNotes read_notes(std::string_view written) {
  EntityNotes result;
  if (written.empty()) return result;
  const auto json = parse_located_json(written);
  if (!json) return result;
  admin::Notes& notes = result.notes;
  notes.user_metadata = text_field(*json, "UserMetadata");
  notes.forward_to_uri = text_field(*json, "ForwardToUri");
  notes.forward_dead_letters_to_uri = text_field(*json, "ForwardDeadLetteredMessagesToUri");
  notes.batched_operations = flag_of(*json, "EnableBatchedOperations").value_or(true);
  notes.express = flag_of(*json, "EnableExpress").value_or(false);
  notes.ordering = flag_of(*json, "SupportOrdering");
  notes.updated = time_field(*json, "UpdatedAt");
  if (const JsonValue* rules = json->find("AuthorizationRules"); rules && rules->if_array()) {
    result.has_access_rules = true;
    for (const JsonValue& one : *rules->if_array())
      if (auto rule = rule_of(one)) notes.access_rules.push_back(*std::move(rule));
  }
  return result;
}

}  // namespace omnibus::node
