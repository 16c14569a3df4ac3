#include "node/namespace_document.hpp"

#include <fmt/format.h>

#include <array>

#include "admin/admin_values.hpp"
#include "node/config_reader.hpp"
#include "node/json_fields.hpp"

namespace omnibus::node {
namespace {

// What is shown and cannot be changed: whoever sends back what he was shown makes no mistake.
void pass_over(const Place&, NamespaceDocument&) {}

constexpr std::array<Key<NamespaceDocument>, 6> document_keys = {{
    {"Name", pass_over},
    {"IsDefault", pass_over},
    {"CreatedAt", pass_over},
    {"ConnectionString", pass_over},
    {"HostNames", [](const Place& at,
                     NamespaceDocument& document) { read_host_names(at, document.host_names.emplace()); }},
    {"AuthorizationRules",
     [](const Place& at, NamespaceDocument& document) { read_rules(at, document.rules.emplace()); }},
}};
constexpr ObjectKeys<NamespaceDocument> document_object{"NamespaceDocument", Unknown::error, document_keys};

JsonValue rule_shown(const auth::AccessRule& rule) {
  JsonValue::Object object;
  add_field(object, "KeyName", json_text(rule.key_name));
  add_field(object, "PrimaryKey", json_text(rule.primary_key));
  add_field(object, "SecondaryKey", json_text(rule.secondary_key));
  JsonValue::Array rights;
  for (const auth::Right right : rule.stated_rights) rights.push_back(json_text(std::string(name_of(right))));
  add_field(object, "Rights", {.value = std::move(rights)});
  return {.value = std::move(object)};
}

JsonValue::Object shown(const NamespaceView& view) {
  JsonValue::Object object;
  add_field(object, "Name", json_text(view.name));
  add_field(object, "IsDefault", {.value = view.is_default});
  JsonValue::Array hosts;
  for (const std::string& host : view.host_names) hosts.push_back(json_text(host));
  add_field(object, "HostNames", {.value = std::move(hosts)});
  add_field(object, "CreatedAt", json_text(admin::to_date(view.created)));
  return object;
}

}  // namespace

Result<NamespaceDocument> read_namespace_document(std::string_view written) {
  NamespaceDocument document;
  if (written.empty()) return document;
  if (written.size() > namespace_document_bytes_max)
    return fail(Errc::argument_error, "the document has {} bytes, at most {} are allowed", written.size(),
                namespace_document_bytes_max);
  const auto root = parse_located_json(written);
  if (!root) return fail(Errc::argument_error, "line {}: {}", root.error().line, root.error().text);
  Reading reading;
  const Place at(reading, *root);
  find_twins(at);
  read_object(at, document_object, document);
  if (reading.findings.errors() == 0) return document;
  for (const Finding& finding : reading.findings.take())
    if (finding.severity == Finding::Severity::error)
      return fail(Errc::argument_error, "{}", to_text(finding));
  return fail(Errc::argument_error, "the document has mistakes");
}

std::string connection_string(const NamespaceView& view, std::uint16_t port) {
  const std::string at = port == 0 || port == 5672 ? "" : fmt::format(":{}", port);
  const auto* rule = view.rules.empty() ? nullptr : &view.rules.front();
  for (const auto& one : view.rules)
    if (one.key_name == auth::default_rule_name) rule = &one;
  return fmt::format(
      "Endpoint=sb://{}{};SharedAccessKeyName={};SharedAccessKey={};UseDevelopmentEmulator=true;",
      view.is_default || view.host_names.empty() ? "localhost" : view.host_names.front(), at,
      rule ? rule->key_name : "", rule ? rule->primary_key : "");
}

std::string write_namespace(const NamespaceView& view, std::uint16_t port) {
  auto object = shown(view);
  JsonValue::Array rules;
  for (const auto& rule : view.rules) rules.push_back(rule_shown(rule));
  add_field(object, "AuthorizationRules", {.value = std::move(rules)});
  add_field(object, "ConnectionString", json_text(connection_string(view, port)));
  return to_json({.value = std::move(object)}) + "\n";
}

std::string write_namespaces(const std::vector<NamespaceView>& all) {
  JsonValue::Array items;
  for (const auto& view : all) items.push_back({.value = shown(view)});
  JsonValue::Object object;
  add_field(object, "value", {.value = std::move(items)});
  return to_json({.value = std::move(object)}) + "\n";
}

}  // namespace omnibus::node
