// A rule as Config.json has it. Pure; any thread.
#pragma once

#include "rules/rule.hpp"
#include "transfer/inventory.hpp"

namespace omnibus::transfer {

// Values that JSON has no word for (dates, spans) become texts, which a note says.
[[nodiscard]] JsonValue rule_json(const rules::Rule& rule, const std::string& path, Notes& notes);
// Whether two rules say the same, whatever the width of their numbers.
[[nodiscard]] bool says_the_same(const rules::Rule& one, const rules::Rule& other);

}  // namespace omnibus::transfer
