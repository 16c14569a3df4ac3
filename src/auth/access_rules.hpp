// The shared access rules of one namespace: on the namespace itself and on entities.
//
// Paths and rule names are compared ignoring ASCII case. A rule found on a path rules over everything below
// it. Owned by whoever owns the namespace; readers on the same core hold references only for one call.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "auth/rights.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace omnibus::auth {

inline constexpr std::string_view default_rule_name = "RootManageSharedAccessKey";
inline constexpr std::size_t rules_per_scope_default = 12;
inline constexpr std::size_t rule_name_bytes_max = 256;
inline constexpr std::size_t key_bytes_max = 256;

struct AccessRule {
  std::string key_name{};
  std::string primary_key{};
  std::string secondary_key{};
  Rights rights{};
  std::vector<Right> stated_rights{};  // in the order they were given, for showing the rule again
  Instant created{};
  Instant modified{};
  friend bool operator==(const AccessRule&, const AccessRule&) = default;
};

// A rule as a document or a configuration file states it.
struct RuleDocument {
  std::string key_name{};
  std::optional<std::string> primary_key{};
  std::optional<std::string> secondary_key{};
  std::vector<Right> rights{};
};

// 1..key_bytes_max printable ASCII characters without blanks. Usually Base64 of 32 bytes, but
// any such text signs.
[[nodiscard]] bool is_good_key(std::string_view key);

// Checks a document and generates the keys it leaves out (a missing or empty one). Fails with
// `argument_error`: name empty, too long or with control characters, no rights, Manage without the other
// two, a key that is not usable. [HTTP 10]
[[nodiscard]] Result<AccessRule> make_rule(const RuleDocument& document, Instant now);
// RootManageSharedAccessKey with all rights; `key` is its primary key, the secondary is generated.
[[nodiscard]] Result<AccessRule> make_default_rule(std::string_view key, Instant now);

class AccessRules {
 public:
  // `rules_per_scope_max` 0 means no limit.
  explicit AccessRules(std::size_t rules_per_scope_max = rules_per_scope_default)
      : rules_per_scope_max_(rules_per_scope_max) {}

  // Adds a rule to a scope ("" is the namespace), or replaces the one of the same name there, keeping
  // its time of creation. `resource_limit_exceeded` when the scope is full; nothing has changed then.
  [[nodiscard]] Result<void> put(std::string_view path, AccessRule rule);
  // The scope has exactly these rules from now on. `argument_error` when a name occurs twice.
  [[nodiscard]] Result<void> replace(std::string_view path, std::vector<AccessRule> rules);
  // Whether there was one.
  bool remove(std::string_view path, std::string_view key_name);
  // The entity is gone: its rules and those of everything below it go too.
  void remove_all_below(std::string_view path);

  [[nodiscard]] std::span<const AccessRule> rules_on(std::string_view path) const;
  // The rule on exactly this scope, or null.
  [[nodiscard]] const AccessRule* find_on(std::string_view path, std::string_view key_name) const;
  // The nearest rule of that name: on the path, on its parents, on the namespace. Null if none.
  [[nodiscard]] const AccessRule* find(std::string_view path, std::string_view key_name) const;
  // All of them, nearest first: a rule of the namespace is not hidden by one of the same name on an entity,
  // its key still signs for everything.
  [[nodiscard]] std::vector<const AccessRule*> find_all(std::string_view path,
                                                        std::string_view key_name) const;

 private:
  std::size_t rules_per_scope_max_;
  std::map<std::string, std::vector<AccessRule>, std::less<>> scopes_;  // by normal path; never an empty list
};

}  // namespace omnibus::auth
