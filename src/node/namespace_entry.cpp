#include "node/namespace_entry.hpp"

#include <algorithm>

#include "auth/secrets.hpp"
#include "base/text.hpp"

namespace omnibus::node {
namespace {

bool has_rule(const std::vector<auth::AccessRule>& rules, std::string_view name) {
  return std::ranges::any_of(rules,
                             [&](const auto& rule) { return equals_ignoring_case(rule.key_name, name); });
}

}  // namespace

Result<void> state_rules(NamespaceEntry& entry, const std::vector<auth::RuleDocument>& documents,
                         Instant now) {
  entry.rules.clear();
  for (const auto& document : documents) {
    auto rule = auth::make_rule(document, now);
    if (!rule) return fail(rule.error());
    entry.rules.push_back(*std::move(rule));
  }
  if (has_rule(entry.rules, auth::default_rule_name)) {
    entry.default_rule.reset();
  } else if (!entry.default_rule) {
    const auto key = auth::generate_key();
    if (!key) return fail(key.error());
    auto rule = auth::make_default_rule(*key, now);
    if (!rule) return fail(rule.error());
    entry.default_rule = *std::move(rule);
  }
  if (entry.rules.size() + (entry.default_rule ? 1 : 0) > auth::rules_per_scope_default)
    return fail(Errc::argument_error, "a namespace has at most {} access rules, the default one included",
                auth::rules_per_scope_default);
  return {};
}

std::vector<std::string> without_implied(std::vector<std::string> hosts, std::string_view name) {
  const auto implied = implied_hosts(name);
  std::erase_if(hosts,
                [&](const std::string& host) { return std::ranges::find(implied, host) != implied.end(); });
  std::ranges::sort(hosts);
  hosts.erase(std::ranges::unique(hosts).begin(), hosts.end());
  return hosts;
}

std::vector<std::string> all_hosts(const NamespaceEntry& entry) {
  auto hosts = entry.host_names;
  for (auto& host : implied_hosts(entry.name)) hosts.push_back(std::move(host));
  return hosts;
}

std::string difference(const NamespaceEntry& entry, const NamespaceDocument& wanted) {
  if (wanted.host_names && without_implied(*wanted.host_names, entry.name) != entry.host_names)
    return "HostNames";
  if (!wanted.rules) return "";
  std::size_t named = 0;
  for (const auto& document : *wanted.rules) {
    // Whoever sends back what he was shown names the default rule too.
    const bool is_default =
        entry.default_rule && equals_ignoring_case(document.key_name, auth::default_rule_name);
    const auto found = std::ranges::find_if(entry.rules, [&](const auto& rule) {
      return equals_ignoring_case(rule.key_name, document.key_name);
    });
    if (!is_default && found == entry.rules.end()) return "AuthorizationRules";
    const auth::AccessRule& present = is_default ? *entry.default_rule : *found;
    const auto fits = [](const std::optional<std::string>& key, const std::string& is) {
      return !key || key->empty() || *key == is;
    };
    auth::Rights rights;
    for (const auto right : document.rights) rights.add(right);
    if (present.rights != rights) return "AuthorizationRules";
    if (is_default) continue;
    if (!fits(document.primary_key, present.primary_key) ||
        !fits(document.secondary_key, present.secondary_key))
      return "AuthorizationRules";
    ++named;
  }
  return named == entry.rules.size() ? "" : "AuthorizationRules";
}

std::vector<auth::RuleDocument> without_shown_default(std::vector<auth::RuleDocument> documents,
                                                      const NamespaceEntry& entry, bool only_loopback) {
  if (!entry.default_rule) return documents;
  const auto rules = effective_rules(entry, only_loopback);
  std::erase_if(documents, [&](const auth::RuleDocument& document) {
    return std::ranges::any_of(rules, [&](const auth::AccessRule& rule) {
      return equals_ignoring_case(rule.key_name, auth::default_rule_name) &&
             equals_ignoring_case(document.key_name, rule.key_name) &&
             document.primary_key.value_or(rule.primary_key) == rule.primary_key;
    });
  });
  return documents;
}

}  // namespace omnibus::node
