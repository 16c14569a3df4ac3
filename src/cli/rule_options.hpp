// What a rule is told on the command line, and how one is shown. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "rules/rule.hpp"

namespace CLI {
class App;
}

namespace omnibus::cli {

struct RuleOptions {
  std::string sql{};
  std::vector<std::string> correlation{};  // field=value
  bool is_true = false;
  bool is_false = false;
  std::string action{};
  bool no_action = false;
};
void add_rule_options(CLI::App& verb, RuleOptions& options, bool is_update);
// What is not told stays as it is in `before`; null: there is no rule yet. Fails with `argument_error`: no
// filter, more than one, or a pair that is none.
[[nodiscard]] Result<rules::Rule> rule_of(const RuleOptions& options, const std::string& name,
                                          const rules::Rule* before);
[[nodiscard]] std::string filter_text(const rules::Rule& rule);

}  // namespace omnibus::cli
