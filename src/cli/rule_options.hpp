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
};
void add_rule_options(CLI::App& verb, RuleOptions& options);
// Fails with `argument_error`: no filter, more than one, or a pair that is none.
[[nodiscard]] Result<rules::Rule> rule_of(const RuleOptions& options, const std::string& name);
[[nodiscard]] std::string filter_text(const rules::Rule& rule);

}  // namespace omnibus::cli
