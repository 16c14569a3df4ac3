#include "node/entity_notes.hpp"

#include "node/access_rule_json.hpp"
#include "node/config_json.hpp"

namespace omnibus::node {
namespace {

using std::chrono::milliseconds;

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
  return ms ? Instant{milliseconds{*ms}} : Instant{};
}
std::optional<bool> flag_of(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  const auto* flag = value ? std::get_if<bool>(&value->value) : nullptr;
  return flag ? std::optional{*flag} : std::nullopt;
}

}  // namespace

std::string write_notes(const EntityNotes& all) {
  const admin::Notes& notes = all.notes;
  JsonValue::Object object;
  if (!notes.user_metadata.empty()) add(object, "UserMetadata", text(notes.user_metadata));
  if (!notes.forward_to_uri.empty()) add(object, "ForwardToUri", text(notes.forward_to_uri));
  if (!notes.forward_dead_letters_to_uri.empty())
    add(object, "ForwardDeadLetteredMessagesToUri", text(notes.forward_dead_letters_to_uri));
  if (!notes.batched_operations) add(object, "EnableBatchedOperations", {.value = false});
  if (notes.express) add(object, "EnableExpress", {.value = true});
  if (notes.ordering) add(object, "SupportOrdering", {.value = *notes.ordering});
  if (notes.updated != Instant{}) add(object, "UpdatedAt", number(notes.updated));
  if (all.has_access_rules) {
    JsonValue::Array rules;
    for (const auto& rule : notes.access_rules) rules.push_back(rule_value(rule));
    add(object, "AuthorizationRules", {.value = std::move(rules)});
  }
  return object.empty() ? std::string{} : to_json({.value = std::move(object)});
}

EntityNotes read_notes(std::string_view written) {
  EntityNotes result;
  if (written.empty()) return result;
  const auto json = parse_located_json(written);
  if (!json) return result;
  admin::Notes& notes = result.notes;
  notes.user_metadata = text_of(*json, "UserMetadata");
  notes.forward_to_uri = text_of(*json, "ForwardToUri");
  notes.forward_dead_letters_to_uri = text_of(*json, "ForwardDeadLetteredMessagesToUri");
  notes.batched_operations = flag_of(*json, "EnableBatchedOperations").value_or(true);
  notes.express = flag_of(*json, "EnableExpress").value_or(false);
  notes.ordering = flag_of(*json, "SupportOrdering");
  notes.updated = time_of(*json, "UpdatedAt");
  if (const JsonValue* rules = json->find("AuthorizationRules"); rules && rules->if_array()) {
    result.has_access_rules = true;
    for (const JsonValue& one : *rules->if_array())
      if (auto rule = rule_of(one)) notes.access_rules.push_back(*std::move(rule));
  }
  return result;
}

}  // namespace omnibus::node
