// `Rules` of a subscription: the emulator's form [HTTP 16.1], which knows SQL and correlation filters.
#include "node/config_rules.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <set>

#include "auth/faults.hpp"
#include "base/text.hpp"
#include "node/config_entities.hpp"

namespace omnibus::node {
namespace {

using rules::CorrelationFilter;
using rules::SqlAction;
using rules::SqlFilter;

constexpr auto any_case = Letters::any_case;

// Not read_text(): an expression may have line breaks. Whoever compiles it bounds it.
void read_expression(const Place& at, std::string& into) {
  if (const auto* text = at.value().if_text())
    into = *text;
  else
    at.wrong_type("expected a text");
}

void read_pairs(const Place& at, std::size_t pairs_max,
                std::vector<std::pair<std::string, amqp::Value>>& into) {
  if (!is_object(at)) return;
  const auto& members = *at.value().if_object();
  if (members.size() > pairs_max)
    return at.error(fmt::format("{} of them, {} are allowed", members.size(), pairs_max));
  for (const auto& member : members) {
    const auto place =
        at.child(member.name.empty() ? "(empty)" : std::string_view(member.name), member.value);
    if (auto value = read_plain_value(place)) into.emplace_back(member.name, *std::move(value));
  }
}

// SqlFilter and Action

template <class Sql>
void read_parameters(const Place& at, Sql& sql) {
  read_pairs(at, rules::parameters_max, sql.parameters);
}
template <class Sql>
constexpr std::array<Key<Sql>, 2> sql_keys = {{
    {"SqlExpression", [](const Place& at, Sql& sql) { read_expression(at, sql.expression); }, any_case},
    {"Parameters", read_parameters<Sql>, any_case},
}};
constexpr ObjectKeys<SqlFilter> filter_object{"SqlFilter", Unknown::error, sql_keys<SqlFilter>};
constexpr ObjectKeys<SqlAction> action_object{"RuleAction", Unknown::error, sql_keys<SqlAction>};

template <class Sql, class Compile>
std::optional<Sql> read_sql(const Place& at, const ObjectKeys<Sql>& object, const Compile& compile) {
  const auto errors_before = at.reading().findings.errors();
  Sql sql;
  const auto members = read_object(at, object, sql);
  const auto* expression = members.find("SqlExpression");
  if (at.value().if_object() != nullptr && expression == nullptr) at.error("'SqlExpression' is missing");
  if (at.reading().findings.errors() != errors_before) return std::nullopt;
  if (const auto compiled = compile(sql.expression, sql.parameters); !compiled) {
    at.child("SqlExpression", expression->value).error(without_control(compiled.error().detail));
    return std::nullopt;
  }
  return sql;
}

// CorrelationFilter

template <std::optional<std::string> CorrelationFilter::* member>
void read_field(const Place& at, CorrelationFilter& filter) {
  constexpr std::size_t field_bytes_max = 64 * 1024;
  std::string text;
  const auto errors_before = at.reading().findings.errors();
  read_text(at, 0, field_bytes_max, text);
  if (at.reading().findings.errors() == errors_before) filter.*member = std::move(text);
}

constexpr std::array<Key<CorrelationFilter>, 9> correlation_keys = {{
    {"ContentType", read_field<&CorrelationFilter::content_type>, any_case},
    {"CorrelationId", read_field<&CorrelationFilter::correlation_id>, any_case},
    {"Label", read_field<&CorrelationFilter::label>, any_case},
    {"MessageId", read_field<&CorrelationFilter::message_id>, any_case},
    {"ReplyTo", read_field<&CorrelationFilter::reply_to>, any_case},
    {"ReplyToSessionId", read_field<&CorrelationFilter::reply_to_session_id>, any_case},
    {"SessionId", read_field<&CorrelationFilter::session_id>, any_case},
    {"To", read_field<&CorrelationFilter::to>, any_case},
    {"Properties",
     [](const Place& at, CorrelationFilter& filter) {
       read_pairs(at, rules::correlation_properties_max, filter.properties);
     },
     any_case},
}};
constexpr ObjectKeys<CorrelationFilter> correlation_object{"CorrelationFilter", Unknown::error,
                                                           correlation_keys};

std::optional<CorrelationFilter> read_correlation(const Place& at) {
  const auto errors_before = at.reading().findings.errors();
  CorrelationFilter filter;
  read_object(at, correlation_object, filter);
  if (at.reading().findings.errors() != errors_before) return std::nullopt;
  if (const auto compiled = rules::compile({.name = std::string(rules::default_rule_name), .filter = filter});
      !compiled) {
    at.error(without_control(compiled.error().detail));
    return std::nullopt;
  }
  return filter;
}

// Rules

enum class FilterType : std::uint8_t { sql, correlation };

struct RuleDraft {
  rules::Rule rule{};
  std::optional<FilterType> type{};
  std::optional<SqlFilter> sql{};
  std::optional<CorrelationFilter> correlation{};
};

void read_filter_type(const Place& at, RuleDraft& draft) {
  static constexpr std::array<std::string_view, 2> names = {"Sql", "Correlation"};
  if (const auto chosen = read_choice(at, names, any_case)) draft.type = static_cast<FilterType>(*chosen);
}

constexpr std::array<Key<RuleDraft>, 4> property_keys = {{
    {"FilterType", read_filter_type, any_case},
    {"SqlFilter",
     [](const Place& at, RuleDraft& draft) {
       draft.sql = read_sql(at, filter_object, rules::compile_filter);
     },
     any_case},
    {"CorrelationFilter", [](const Place& at, RuleDraft& draft) { draft.correlation = read_correlation(at); },
     any_case},
    {"Action",
     [](const Place& at, RuleDraft& draft) {
       draft.rule.action = read_sql(at, action_object, rules::compile_action);
     },
     any_case},
}};
constexpr ObjectKeys<RuleDraft> property_object{"RuleProperties", Unknown::error, property_keys};

void read_rule_properties(const Place& at, RuleDraft& draft) {
  const auto errors_before = at.reading().findings.errors();
  const auto members = read_object(at, property_object, draft);
  if (at.value().if_object() == nullptr) return;
  if (!members.has("FilterType")) at.error("'FilterType' is missing: \"Sql\" or \"Correlation\"");
  if (at.reading().findings.errors() != errors_before) return;
  const bool is_sql = draft.type == FilterType::sql;
  const std::string_view used = is_sql ? "SqlFilter" : "CorrelationFilter";
  const std::string_view unused = is_sql ? "CorrelationFilter" : "SqlFilter";
  if (!members.has(used)) return at.error(fmt::format("'{}' is missing", used));
  if (const auto* other = members.find(unused))
    at.child(unused, other->value).warn("has no effect with this 'FilterType'");
  // Their kind is what they are known by, not their text. [SQL 1]
  if (!is_sql)
    draft.rule.filter = *std::move(draft.correlation);
  else if (draft.sql->expression == rules::TrueFilter::expression)
    draft.rule.filter = rules::TrueFilter{};
  else if (draft.sql->expression == rules::FalseFilter::expression)
    draft.rule.filter = rules::FalseFilter{};
  else
    draft.rule.filter = *std::move(draft.sql);
}

void read_rule_name(const Place& at, RuleDraft& draft) {
  const auto* text = at.value().if_text();
  if (text == nullptr) return at.wrong_type("expected a text");
  if (const auto good = rules::check_rule_name(*text); !good)
    return at.error(without_control(good.error().detail));
  draft.rule.name = *text;
}

constexpr std::array<Key<RuleDraft>, 2> rule_keys = {{
    {"Name", read_rule_name, any_case},
    {"Properties", read_rule_properties, any_case},
}};
constexpr ObjectKeys<RuleDraft> rule_object{"Rule", Unknown::error, rule_keys};

}  // namespace

std::optional<amqp::Value> read_plain_value(const Place& at) {
  const JsonValue& json = at.value();
  if (std::holds_alternative<std::nullptr_t>(json.value)) return amqp::Value{};
  if (const auto* flag = std::get_if<bool>(&json.value)) return amqp::Value{*flag};
  if (const auto* number = std::get_if<std::int64_t>(&json.value)) return amqp::Value{*number};
  if (const auto* text = json.if_text()) return amqp::Value{*text};
  if (const auto* number = std::get_if<JsonNumber>(&json.value)) {
    const double real = std::strtod(number->text.c_str(), nullptr);
    if (std::isfinite(real)) return amqp::Value{real};
  }
  at.error("expected a text, a number, true or false");
  return std::nullopt;
}

void read_subscription_rules(const Place& at, std::vector<rules::Rule>& into) {
  std::set<std::string> names;
  read_array(at, entities_in_file_max, [&](const Place& item) {
    RuleDraft draft;
    const auto members = read_object(item, rule_object, draft);
    for (const auto* needed : {"Name", "Properties"})
      if (item.value().if_object() != nullptr && !members.has(needed))
        item.error(fmt::format("'{}' is missing", needed));
    if (draft.rule.name.empty()) return;
    if (!names.insert(ascii_lower(draft.rule.name)).second)
      return item.error(fmt::format("rule '{}' is there twice", auth::shown(draft.rule.name)));
    into.push_back(std::move(draft.rule));
  });
}

std::vector<KnownObject> subscription_rule_objects() {
  return {describe(rule_object), describe(property_object), describe(filter_object), describe(action_object),
          describe(correlation_object)};
}

}  // namespace omnibus::node
