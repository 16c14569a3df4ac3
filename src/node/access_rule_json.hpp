// An access rule as JSON: as it is kept in the data folder and in the notes of an entity. Keys are in it.
#pragma once

#include <optional>

#include "auth/access_rules.hpp"
#include "node/config_json.hpp"

namespace omnibus::node {

[[nodiscard]] JsonValue rule_value(const auth::AccessRule& rule);
// Nothing: it is no rule.
[[nodiscard]] std::optional<auth::AccessRule> rule_of(const JsonValue& value);

}  // namespace omnibus::node
