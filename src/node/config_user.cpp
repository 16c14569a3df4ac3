// `UserConfig`: what the official emulators read, and our keys among theirs. [HTTP 16.1, 16.2]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "auth/access_rules.hpp"
#include "auth/faults.hpp"
#include "base/text.hpp"
#include "node/config_reader.hpp"
#include "node/namespace_register.hpp"

namespace omnibus::node {
namespace {

constexpr std::size_t emulator_name_bytes_max = 260;

void not_supported_yet(const Place& at, Config&) {
  const auto* items = at.value().if_array();
  if (items == nullptr) return at.error("expected an array");
  if (!items->empty()) at.warn("entities are not supported yet and were ignored");
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
         c == '_';
}

void read_plain_name(const Place& at, std::size_t bytes_max, std::string& into) {
  std::string name;
  read_text(at, 1, bytes_max, name);
  if (!std::ranges::all_of(name, is_name_character))
    return at.error("expected letters, digits, '.', '-' and '_' only");
  if (!name.empty()) into = std::move(name);
}

// AuthorizationRules

using auth::RuleDocument;

constexpr std::array<Key<RuleDocument>, 4> rule_keys = {{
    {"KeyName",
     [](const Place& at, RuleDocument& rule) { read_text(at, 1, auth::rule_name_bytes_max, rule.key_name); },
     Letters::any_case},
    {"PrimaryKey",
     [](const Place& at, RuleDocument& rule) {
       read_text(at, 0, auth::key_bytes_max, rule.primary_key.emplace());
     },
     Letters::any_case},
    {"SecondaryKey",
     [](const Place& at, RuleDocument& rule) {
       read_text(at, 0, auth::key_bytes_max, rule.secondary_key.emplace());
     },
     Letters::any_case},
    {"Rights", [](const Place& at, RuleDocument& rule) { read_rights(at, rule.rights); }, Letters::any_case},
}};
constexpr ObjectKeys<RuleDocument> rule_object{"AuthorizationRule", Unknown::warning, rule_keys};

void read_rule(const Place& at, std::vector<RuleDocument>& into) {
  const auto errors_before = at.reading().findings.errors();
  RuleDocument rule;
  const auto members = read_object(at, rule_object, rule);
  for (const auto* needed : {"KeyName", "Rights"})
    if (at.value().if_object() != nullptr && !members.has(needed))
      at.error(fmt::format("'{}' is missing", needed));
  if (at.reading().findings.errors() != errors_before) return;

  // Tried here for the sake of the line; the broker makes its own when it starts.
  if (const auto made = auth::make_rule(rule, Instant{}); !made) return at.error(made.error().detail);
  const bool twice = std::ranges::any_of(
      into, [&](const RuleDocument& other) { return equals_ignoring_case(other.key_name, rule.key_name); });
  if (twice) return at.error(fmt::format("rule '{}' is there twice", auth::shown(rule.key_name)));
  if (rule.primary_key.value_or("").empty() && rule.secondary_key.value_or("").empty())
    at.warn("neither 'PrimaryKey' nor 'SecondaryKey': the keys are generated, so no client can know them");
  into.push_back(std::move(rule));
}

// Namespaces

void read_host_name(const Place& at, std::vector<std::string>& into) {
  std::string name;
  read_plain_name(at, host_name_bytes_max, name);
  if (name.empty()) return;
  name = ascii_lower(name);
  if (std::ranges::find(into, name) != into.end()) return at.error("the host name is there twice");
  into.push_back(std::move(name));
}

constexpr std::array<Key<NamespaceSettings>, 7> namespace_keys = {{
    {"Name",
     [](const Place& at, NamespaceSettings& space) {
       read_plain_name(at, emulator_name_bytes_max, space.name);
     },
     Letters::any_case},
    {"Queues", read_queues, Letters::any_case},
    {"Topics", read_topics, Letters::any_case},
    {"Exchanges", read_exchanges, Letters::exact},
    {"Scripts", read_scripts, Letters::exact},
    {"HostNames", [](const Place& at, NamespaceSettings& space) { read_host_names(at, space.host_names); },
     Letters::any_case},
    {"AuthorizationRules", [](const Place& at, NamespaceSettings& space) { read_rules(at, space.rules); },
     Letters::any_case},
}};
constexpr ObjectKeys<NamespaceSettings> namespace_object{"Namespace", Unknown::warning, namespace_keys};

// What all that were read so far have, in lower case.
struct TakenNames {
  std::set<std::string> names;
  std::set<std::string> hosts;
};

void judge_names(const Place& at, const Members& members, const NamespaceSettings& space, TakenNames& taken) {
  if (at.value().if_object() == nullptr) return;
  // The first one has every host name that is left, and the emulator's freedom of names.
  const auto* name = members.find("Name");
  if (!taken.names.empty()) {
    if (name == nullptr) return at.error("'Name' is missing");
    if (!is_namespace_name(space.name))
      at.child("Name", name->value)
          .error(fmt::format("expected 1 to {} letters, digits and '-', which is neither first nor last",
                             namespace_name_bytes_max));
  }
  if (!taken.names.insert(ascii_lower(space.name)).second) return at.error("another namespace has this name");
  auto hosts = space.host_names;
  for (auto& host : implied_hosts(space.name))
    if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(std::move(host));
  for (auto& host : hosts)
    if (!taken.hosts.insert(std::move(host)).second)
      return at.error("another namespace has one of its host names");
}

// Entities and scripts of a key that is there twice, in wrong letters or no array have not been read.
void note_unread(const Place& at, const Members& members) {
  const auto* object = at.value().if_object();
  if (object == nullptr) return;
  const auto is_unread = [&](const JsonMember& member, std::string_view key) {
    return equals_ignoring_case(member.name, key) &&
           (members.find(key) != &member || member.value.if_array() == nullptr);
  };
  NamesInUse& names = at.reading().in_use();
  for (const auto& member : *object) {
    for (const auto* key : {"Queues", "Topics", "Exchanges"})
      if (is_unread(member, key)) names.has_nameless = true;
    if (is_unread(member, "Scripts")) names.has_nameless_script = true;
  }
}

void read_namespaces(const Place& at, Config& into) {
  TakenNames taken;
  read_array(at, 1000, [&](const Place& item) {
    item.reading().name_space = into.namespaces.size();
    const auto members = read_object(item, namespace_object, into.namespaces.emplace_back());
    note_unread(item, members);
    judge_names(item, members, into.namespaces.back(), taken);
  });
}

// Logging

// Where logs go is decided by who starts us, so the value is only checked.
void read_logging_type(const Place& at, Config&) {
  static constexpr std::array<std::string_view, 4> types = {"File", "Console", "File,Console",
                                                            "Console,File"};
  (void)read_choice(at, types, Letters::any_case);
}
constexpr std::array<Key<Config>, 1> logging_keys = {{{"Type", read_logging_type, Letters::any_case}}};
constexpr ObjectKeys<Config> logging_object{"Logging", Unknown::warning, logging_keys};

void read_logging(const Place& at, Config& into) { read_object(at, logging_object, into); }

constexpr std::array<Key<Config>, 4> user_config_keys = {{
    {"Namespaces", read_namespaces, Letters::any_case},
    {"NamespaceConfig", not_supported_yet, Letters::any_case},
    {"Logging", read_logging, Letters::any_case},
    {"LoggingConfig", read_logging, Letters::any_case},
}};
constexpr ObjectKeys<Config> user_config_object{"UserConfig", Unknown::warning, user_config_keys};

}  // namespace

void read_rules(const Place& at, std::vector<RuleDocument>& into) {
  read_array(at, auth::rules_per_scope_default, [&](const Place& item) { read_rule(item, into); });
}

void read_host_names(const Place& at, std::vector<std::string>& into) {
  read_array(at, host_names_max, [&](const Place& item) { read_host_name(item, into); });
}

void read_user_config(const Place& at, Config& into) { read_object(at, user_config_object, into); }

std::vector<KnownObject> user_config_objects() {
  return {describe(user_config_object), describe(namespace_object), describe(rule_object),
          describe(logging_object)};
}

}  // namespace omnibus::node
