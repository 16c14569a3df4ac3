#include "node/namespace_register.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "auth/key_file.hpp"
#include "base/text.hpp"
#include "node/access_rule_json.hpp"
#include "node/config_json.hpp"

namespace omnibus::node {
namespace {

using std::chrono::milliseconds;

JsonValue text(std::string value) { return {.value = std::move(value)}; }
JsonValue number(std::int64_t value) { return {.value = value}; }

void add(JsonValue::Object& object, std::string name, JsonValue value) {
  object.push_back({.name = std::move(name), .value = std::move(value)});
}

std::unexpected<Error> damaged(std::string_view what) {
  return fail(Errc::io, "the register of namespaces is damaged: {}", what);
}

Result<std::uint32_t> read_number(const JsonValue* value) {
  const auto* found = value ? std::get_if<std::int64_t>(&value->value) : nullptr;
  if (found == nullptr || *found < 1 || *found > std::numeric_limits<std::uint32_t>::max())
    return damaged("a number is missing or wrong");
  return static_cast<std::uint32_t>(*found);
}

Result<const JsonValue::Array*> read_items(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  if (value == nullptr || value->if_array() == nullptr) return damaged("a list is missing");
  return value->if_array();
}

Result<NamespaceEntry> read_entry(const JsonValue& value) {
  NamespaceEntry entry;
  const auto its_number = read_number(value.find("Number"));
  if (!its_number) return fail(its_number.error());
  entry.number = *its_number;
  const JsonValue* name = value.find("Name");
  if (name == nullptr || name->if_text() == nullptr || !is_namespace_name(*name->if_text()))
    return damaged("a namespace has no name");
  entry.name = *name->if_text();
  const auto hosts = read_items(value, "HostNames");
  if (!hosts) return fail(hosts.error());
  for (const JsonValue& host : **hosts) {
    if (host.if_text() == nullptr) return damaged("a host name is no text");
    entry.host_names.push_back(*host.if_text());
  }
  const auto rules = read_items(value, "AuthorizationRules");
  if (!rules) return fail(rules.error());
  for (const JsonValue& one : **rules) {
    auto rule = rule_of(one);
    if (!rule) return damaged("an access rule cannot be read");
    entry.rules.push_back(*std::move(rule));
  }
  if (const JsonValue* standard = value.find("DefaultRule")) {
    entry.default_rule = rule_of(*standard);
    if (!entry.default_rule) return damaged("an access rule cannot be read");
  }
  if (const JsonValue* created = value.find("Created"))
    if (const auto* ms = std::get_if<std::int64_t>(&created->value))
      entry.created = Instant{milliseconds{*ms}};
  return entry;
}

}  // namespace

const NamespaceEntry* NamespaceRegister::find(std::string_view name) const {
  const auto found = std::ranges::find_if(
      entries, [&](const NamespaceEntry& entry) { return equals_ignoring_case(entry.name, name); });
  return found == entries.end() ? nullptr : &*found;
}

bool NamespaceRegister::is_dropped(std::uint32_t its_number) const {
  return std::ranges::find(dropped, its_number) != dropped.end();
}

std::string write_register(const NamespaceRegister& all) {
  JsonValue::Array entries;
  for (const NamespaceEntry& entry : all.entries) {
    JsonValue::Object one;
    add(one, "Number", number(entry.number));
    add(one, "Name", text(entry.name));
    JsonValue::Array hosts;
    for (const std::string& host : entry.host_names) hosts.push_back(text(host));
    add(one, "HostNames", {.value = std::move(hosts)});
    JsonValue::Array rules;
    for (const auto& rule : entry.rules) rules.push_back(rule_value(rule));
    add(one, "AuthorizationRules", {.value = std::move(rules)});
    if (entry.default_rule) add(one, "DefaultRule", rule_value(*entry.default_rule));
    add(one, "Created", number(entry.created.time_since_epoch().count()));
    entries.push_back({.value = std::move(one)});
  }
  JsonValue::Array dropped;
  for (const std::uint32_t one : all.dropped) dropped.push_back(number(one));
  JsonValue::Object file;
  add(file, "Version", number(1));
  add(file, "Next", number(all.next));
  add(file, "Namespaces", {.value = std::move(entries)});
  add(file, "Dropped", {.value = std::move(dropped)});
  return to_json({.value = std::move(file)}) + "\n";
}

Result<NamespaceRegister> read_register(std::string_view written) {
  const auto json = parse_located_json(written);
  if (!json) return damaged(json.error().text);
  const auto version = read_number(json->find("Version"));
  if (!version || *version != 1) return damaged("its version is not known");
  NamespaceRegister all;
  const auto next = read_number(json->find("Next"));
  if (!next) return fail(next.error());
  all.next = *next;
  std::set<std::uint32_t> numbers;
  std::set<std::string> names;
  const auto entries = read_items(*json, "Namespaces");
  if (!entries) return fail(entries.error());
  for (const JsonValue& one : **entries) {
    auto entry = read_entry(one);
    if (!entry) return fail(entry.error());
    if (!numbers.insert(entry->number).second || !names.insert(ascii_lower(entry->name)).second)
      return damaged("a namespace is there twice");
    all.entries.push_back(*std::move(entry));
  }
  const auto dropped = read_items(*json, "Dropped");
  if (!dropped) return fail(dropped.error());
  for (const JsonValue& one : **dropped) {
    const auto its_number = read_number(&one);
    if (!its_number) return fail(its_number.error());
    if (!numbers.insert(*its_number).second) return damaged("a number is there twice");
    all.dropped.push_back(*its_number);
  }
  if (!numbers.empty() && *numbers.rbegin() >= all.next) return damaged("a number was not given out yet");
  return all;
}

bool is_namespace_name(std::string_view name) {
  const auto is_letter_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && name.size() <= namespace_name_bytes_max && is_letter_or_digit(name.front()) &&
         is_letter_or_digit(name.back()) &&
         std::ranges::all_of(name, [&](char c) { return c == '-' || is_letter_or_digit(c); });
}

std::vector<std::string> implied_hosts(std::string_view name) {
  const std::string label = ascii_lower(name);
  return {label + ".localhost", label + ".servicebus.windows.net"};
}

std::vector<auth::AccessRule> effective_rules(const NamespaceEntry& entry, bool only_loopback) {
  auto rules = entry.rules;
  if (entry.default_rule) {
    rules.push_back(*entry.default_rule);
    if (only_loopback) rules.back().primary_key = auth::loopback_key;
  }
  return rules;
}

}  // namespace omnibus::node
