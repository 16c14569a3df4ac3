#include "auth/access_rules.hpp"

#include <algorithm>

#include "auth/audience.hpp"
#include "auth/faults.hpp"
#include "auth/secrets.hpp"
#include "base/text.hpp"

namespace omnibus::auth {
namespace {

bool is_good_name(std::string_view name) {
  const bool has_control = std::ranges::any_of(name, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
  return !name.empty() && name.size() <= rule_name_bytes_max && !has_control && is_utf8(name);
}

Result<std::string> key_or_new(const std::optional<std::string>& key, std::string_view which,
                               std::string_view rule) {
  if (!key || key->empty()) return generate_key();
  if (!is_good_key(*key))
    return fail(Errc::argument_error,
                "the {} key of rule '{}' must be 1 to {} visible ASCII characters without blanks", which,
                shown(rule), key_bytes_max);
  return *key;
}

auto find_in(auto& rules, std::string_view key_name) {
  return std::ranges::find_if(
      rules, [&](const AccessRule& rule) { return equals_ignoring_case(rule.key_name, key_name); });
}

}  // namespace

bool is_good_key(std::string_view key) {
  return !key.empty() && key.size() <= key_bytes_max &&
         std::ranges::all_of(key, [](char c) { return c > ' ' && c < 0x7f; });
}

Result<AccessRule> make_rule(const RuleDocument& document, Instant now) {
  const std::string& name = document.key_name;
  if (!is_good_name(name))
    return fail(Errc::argument_error,
                "rule name '{}' must have 1 to {} bytes of UTF-8 without control characters", shown(name),
                rule_name_bytes_max);
  AccessRule rule{.key_name = name, .created = now, .modified = now};
  for (const Right right : document.rights) {
    if (rule.rights.states(right)) continue;
    rule.rights.add(right);
    rule.stated_rights.push_back(right);
  }
  if (rule.rights.empty()) return fail(Errc::argument_error, "rule '{}' states no rights", shown(name));
  if (rule.rights.states(Right::manage) &&
      !(rule.rights.states(Right::send) && rule.rights.states(Right::listen)))
    return fail(Errc::argument_error, "rule '{}' has Manage, so it must state Send and Listen too",
                shown(name));
  auto primary = key_or_new(document.primary_key, "primary", name);
  if (!primary) return fail(primary.error());
  auto secondary = key_or_new(document.secondary_key, "secondary", name);
  if (!secondary) return fail(secondary.error());
  rule.primary_key = std::move(*primary);
  rule.secondary_key = std::move(*secondary);
  return rule;
}

Result<AccessRule> make_default_rule(std::string_view key, Instant now) {
  return make_rule({.key_name = std::string(default_rule_name),
                    .primary_key = std::string(key),
                    .rights = {Right::manage, Right::send, Right::listen}},
                   now);
}

Result<void> AccessRules::put(std::string_view path, AccessRule rule) {
  std::string scope = normal_path(path);
  const auto found = scopes_.find(scope);
  if (found != scopes_.end()) {
    auto& rules = found->second;
    if (const auto old = find_in(rules, rule.key_name); old != rules.end()) {
      rule.created = old->created;
      *old = std::move(rule);
      return {};
    }
    if (rules_per_scope_max_ != 0 && rules.size() >= rules_per_scope_max_)
      return fail(Errc::resource_limit_exceeded, "'{}' has {} access rules already, no more are allowed",
                  shown(scope), rules.size());
  }
  scopes_[std::move(scope)].push_back(std::move(rule));
  return {};
}

Result<void> AccessRules::replace(std::string_view path, std::vector<AccessRule> rules) {
  std::string scope = normal_path(path);
  if (rules_per_scope_max_ != 0 && rules.size() > rules_per_scope_max_)
    return fail(Errc::resource_limit_exceeded, "{} access rules for '{}', at most {} are allowed",
                rules.size(), shown(scope), rules_per_scope_max_);
  std::vector<std::string> names;
  for (const auto& rule : rules) names.push_back(ascii_lower(rule.key_name));
  std::ranges::sort(names);
  if (const auto twin = std::ranges::adjacent_find(names); twin != names.end())
    return fail(Errc::argument_error, "access rule '{}' occurs twice on '{}'", shown(*twin), shown(scope));
  if (rules.empty())
    scopes_.erase(scope);
  else
    scopes_[std::move(scope)] = std::move(rules);
  return {};
}

bool AccessRules::remove(std::string_view path, std::string_view key_name) {
  const auto found = scopes_.find(normal_path(path));
  if (found == scopes_.end()) return false;
  const auto rule = find_in(found->second, key_name);
  if (rule == found->second.end()) return false;
  found->second.erase(rule);
  if (found->second.empty()) scopes_.erase(found);
  return true;
}

void AccessRules::remove_all_below(std::string_view path) {
  const std::string scope = normal_path(path);
  std::erase_if(scopes_, [&](const auto& entry) { return covers(scope, entry.first); });
}

std::span<const AccessRule> AccessRules::rules_on(std::string_view path) const {
  const auto found = scopes_.find(normal_path(path));
  if (found == scopes_.end()) return {};
  return found->second;
}

const AccessRule* AccessRules::find_on(std::string_view path, std::string_view key_name) const {
  const auto found = scopes_.find(normal_path(path));
  if (found == scopes_.end()) return nullptr;
  const auto rule = find_in(found->second, key_name);
  return rule == found->second.end() ? nullptr : &*rule;
}

const AccessRule* AccessRules::find(std::string_view path, std::string_view key_name) const {
  const auto all = find_all(path, key_name);
  return all.empty() ? nullptr : all.front();
}

std::vector<const AccessRule*> AccessRules::find_all(std::string_view path, std::string_view key_name) const {
  std::vector<const AccessRule*> result;
  const std::string normal = normal_path(path);
  for (std::string_view scope = normal;; scope = parent_of(scope)) {
    if (const auto found = scopes_.find(scope); found != scopes_.end())
      if (const auto rule = find_in(found->second, key_name); rule != found->second.end())
        result.push_back(&*rule);
    if (scope.empty()) return result;
  }
}

}  // namespace omnibus::auth
