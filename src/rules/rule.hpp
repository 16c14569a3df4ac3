// A rule of a subscription: when it matches, and what it changes in its copy [contract SQL §1].
//
// Rule is plain data, as it was given: the text of an expression is never rewritten. CompiledRule is the same
// rule, judged and ready to run.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "amqp/codec/value.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "rules/sql_program.hpp"

namespace omnibus::rules {

inline constexpr std::string_view default_rule_name = "$Default";
inline constexpr std::size_t rule_name_chars_max = 50;
inline constexpr std::size_t correlation_properties_max = 256;
inline constexpr std::int32_t compatibility_level_default = 20;

struct TrueFilter {
  static constexpr std::string_view expression = "1=1";
  friend bool operator==(const TrueFilter&, const TrueFilter&) = default;
};
struct FalseFilter {
  static constexpr std::string_view expression = "1=0";
  friend bool operator==(const FalseFilter&, const FalseFilter&) = default;
};
struct SqlFilter {
  std::string expression{};
  Parameters parameters{};
  std::int32_t compatibility_level = compatibility_level_default;
  friend bool operator==(const SqlFilter&, const SqlFilter&) = default;
};
// All that is given must be equal; a field that is not given does not matter.
struct CorrelationFilter {
  std::optional<std::string> correlation_id{};
  std::optional<std::string> message_id{};
  std::optional<std::string> to{};
  std::optional<std::string> reply_to{};
  std::optional<std::string> label{};
  std::optional<std::string> session_id{};
  std::optional<std::string> reply_to_session_id{};
  std::optional<std::string> content_type{};
  std::vector<std::pair<std::string, amqp::Value>> properties{};  // a null is as good as not given
  friend bool operator==(const CorrelationFilter&, const CorrelationFilter&) = default;

  // The eight of them with their meaning, in the order of the wire [contract SB 6.13].
  struct Field {
    std::string_view key;  // as add-rule spells it
    SystemField field;
    std::optional<std::string> CorrelationFilter::* member;
  };
  static const std::array<Field, 8>& fields();
};
using Filter = std::variant<TrueFilter, FalseFilter, SqlFilter, CorrelationFilter>;

struct SqlAction {
  std::string expression{};
  Parameters parameters{};
  std::int32_t compatibility_level = compatibility_level_default;
  friend bool operator==(const SqlAction&, const SqlAction&) = default;
};

struct Rule {
  std::string name{};
  Filter filter = TrueFilter{};
  std::optional<SqlAction> action{};
  Instant created{};
  friend bool operator==(const Rule&, const Rule&) = default;
};

// 1 to 50 characters, none of / \ @ ? # *, and no leading $ but in `$Default` [contract HTTP §13]. Fails with
// `argument_error`.
[[nodiscard]] Result<void> check_rule_name(std::string_view name);

struct CompiledRule {
  Rule rule{};
  // What has to be equal, for a correlation filter and for the SQL filters that say as much.
  Equalities equalities{};
  std::optional<Program> program{};  // of an SQL filter
  std::optional<ActionProgram> action{};

  [[nodiscard]] bool is_correlation() const { return std::holds_alternative<CorrelationFilter>(rule.filter); }
};
// Fails with `argument_error`: the name, the filter or the action is wrong, with position and reason.
[[nodiscard]] Result<CompiledRule> compile(Rule rule);

}  // namespace omnibus::rules
