#include "rules/rule.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace omnibus::rules {
namespace {

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

Result<Equalities> equalities_of(const CorrelationFilter& filter) {
  Equalities equalities;
  equalities.whole = true;
  for (const auto& [key, field, member] : CorrelationFilter::fields()) {
    if (!(filter.*member)) continue;
    equalities.tests.push_back({{true, field, {}}, OwnedScalar{Scalar::of_text(*(filter.*member))}});
  }
  if (filter.properties.size() > correlation_properties_max)
    return fail(Errc::argument_error, "the correlation filter has {} properties, {} are allowed",
                filter.properties.size(), correlation_properties_max);
  TextArena arena;
  for (const auto& [name, value] : filter.properties) {
    if (value.is_null()) continue;
    const Scalar scalar = scalar_of(value, arena);
    if (scalar.kind == Scalar::Kind::opaque)
      return fail(Errc::argument_error, "the property '{}' of the correlation filter has no simple value",
                  name);
    const PropertyRef property{false, {}, FieldName{name}};
    if (std::ranges::find(equalities.tests, property, &EqualityTest::property) != equalities.tests.end())
      return fail(Errc::argument_error, "the correlation filter names the property '{}' twice", name);
    equalities.tests.push_back({property, OwnedScalar{scalar}});
  }
  if (equalities.tests.empty())
    return fail(Errc::argument_error, "the correlation filter gives nothing to compare");
  return equalities;
}

}  // namespace

const std::array<CorrelationFilter::Field, 8>& CorrelationFilter::fields() {
  static constexpr std::array<Field, 8> all{{
      {"correlation-id", SystemField::correlation_id, &CorrelationFilter::correlation_id},
      {"message-id", SystemField::message_id, &CorrelationFilter::message_id},
      {"to", SystemField::to, &CorrelationFilter::to},
      {"reply-to", SystemField::reply_to, &CorrelationFilter::reply_to},
      {"label", SystemField::label, &CorrelationFilter::label},
      {"session-id", SystemField::session_id, &CorrelationFilter::session_id},
      {"reply-to-session-id", SystemField::reply_to_session_id, &CorrelationFilter::reply_to_session_id},
      {"content-type", SystemField::content_type, &CorrelationFilter::content_type},
  }};
  return all;
}

Result<void> check_rule_name(std::string_view name) {
  if (name.empty()) return fail(Errc::argument_error, "the rule has no name");
  if (name.size() > rule_name_chars_max * 4 || characters(name) > rule_name_chars_max)
    return fail(Errc::argument_error, "a rule name has at most {} characters", rule_name_chars_max);
  if (!is_utf8(name)) return fail(Errc::argument_error, "the rule name is not UTF-8");
  if (const auto at = name.find_first_of("/\\@?#*"); at != std::string_view::npos)
    return fail(Errc::argument_error, "the rule name '{}' holds '{}'", name, name[at]);
  if (name.starts_with('$') && !equals_ignoring_case(name, default_rule_name))
    return fail(Errc::argument_error, "the rule name '{}' begins with '$'", name);
  return {};
}

Result<CompiledRule> compile(Rule rule) {
  if (auto named = check_rule_name(rule.name); !named) return fail(named.error());
  CompiledRule compiled;
  if (const auto* sql = std::get_if<SqlFilter>(&rule.filter)) {
    auto program = compile_filter(sql->expression, sql->parameters);
    if (!program) return fail(program.error());
    compiled.equalities = rules::equalities_of(*program);
    compiled.program = std::move(*program);
  } else if (const auto* correlation = std::get_if<CorrelationFilter>(&rule.filter)) {
    auto equalities = equalities_of(*correlation);
    if (!equalities) return fail(equalities.error());
    compiled.equalities = std::move(*equalities);
  }
  if (rule.action) {
    auto action = compile_action(rule.action->expression, rule.action->parameters);
    if (!action) return fail(action.error());
    compiled.action = std::move(*action);
  }
  compiled.rule = std::move(rule);
  return compiled;
}

}  // namespace omnibus::rules
