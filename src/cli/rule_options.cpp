#include "cli/rule_options.hpp"

#include <CLI/CLI.hpp>
#include <array>

#include "base/text.hpp"
#include "client/message.hpp"

namespace omnibus::cli {
namespace {

using rules::CorrelationFilter;

struct Field {
  std::string_view name;
  std::optional<std::string> CorrelationFilter::* member;
};
constexpr std::array<Field, 9> fields = {{
    {"CorrelationId", &CorrelationFilter::correlation_id},
    {"MessageId", &CorrelationFilter::message_id},
    {"To", &CorrelationFilter::to},
    {"ReplyTo", &CorrelationFilter::reply_to},
    {"Label", &CorrelationFilter::label},
    {"Subject", &CorrelationFilter::label},
    {"SessionId", &CorrelationFilter::session_id},
    {"ReplyToSessionId", &CorrelationFilter::reply_to_session_id},
    {"ContentType", &CorrelationFilter::content_type},
}};

}  // namespace

void add_rule_options(CLI::App& verb, RuleOptions& options, bool is_update) {
  verb.add_option("--sql", options.sql, "An SQL filter, e.g. \"price < 10 AND color = 'red'\".")
      ->type_name("EXPRESSION");
  verb.add_option(
          "--correlation", options.correlation,
          "What has to be equal: Label, CorrelationId, MessageId, To, ReplyTo, SessionId, ReplyToSessionId, "
          "ContentType; any other name is that of a property. May be repeated.")
      ->type_name("FIELD=VALUE")
      ->take_all();
  verb.add_flag("--true", options.is_true, "Every message.");
  verb.add_flag("--false", options.is_false, "No message.");
  verb.add_option("--action", options.action, "What to change in a message, e.g. \"SET cheap = true\".")
      ->type_name("EXPRESSION");
  if (is_update) verb.add_flag("--no-action", options.no_action, "Change nothing in a message any more.");
}

Result<rules::Rule> rule_of(const RuleOptions& options, const std::string& name, const rules::Rule* before) {
  const int filters = static_cast<int>(!options.sql.empty()) +
                      static_cast<int>(!options.correlation.empty()) + static_cast<int>(options.is_true) +
                      static_cast<int>(options.is_false);
  if (filters > 1 || (filters == 0 && !before))
    return fail(Errc::argument_error, "a rule has one filter: --sql, --correlation, --true or --false");
  rules::Rule rule;
  if (before) rule = *before;
  rule.name = name;
  if (options.no_action) rule.action.reset();
  if (!options.action.empty()) rule.action = rules::SqlAction{.expression = options.action};
  if (!options.sql.empty()) {
    rule.filter = rules::SqlFilter{.expression = options.sql};
  } else if (options.is_true) {
    rule.filter = rules::TrueFilter{};
  } else if (options.is_false) {
    rule.filter = rules::FalseFilter{};
  } else if (!options.correlation.empty()) {
    CorrelationFilter filter;
    for (const std::string& pair : options.correlation) {
      auto property = client::parse_property(pair);
      if (!property) return fail(Errc::argument_error, "--correlation: {}", property.error().detail);
      const auto found = std::ranges::find_if(
          fields, [&](const Field& field) { return equals_ignoring_case(field.name, property->first); });
      if (found != fields.end())
        filter.*found->member = pair.substr(pair.find('=') + 1);
      else
        filter.properties.push_back(*std::move(property));
    }
    rule.filter = std::move(filter);
  }
  return rule;
}

std::string filter_text(const rules::Rule& rule) {
  if (std::holds_alternative<rules::TrueFilter>(rule.filter)) return "every message";
  if (std::holds_alternative<rules::FalseFilter>(rule.filter)) return "no message";
  if (const auto* sql = std::get_if<rules::SqlFilter>(&rule.filter)) return sql->expression;
  const auto& filter = std::get<CorrelationFilter>(rule.filter);
  std::string out;
  const auto add = [&out](std::string_view name, std::string_view value) {
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", name, value);
  };
  for (const Field& field : fields)
    if (field.name != "Subject" && filter.*field.member) add(field.name, *(filter.*field.member));
  for (const auto& [key, value] : filter.properties) {
    const auto text = value.as_text();
    const auto number = value.as_integer();
    add(key, text ? std::string(*text) : number ? std::to_string(*number) : amqp::to_text(value));
  }
  return out;
}

}  // namespace omnibus::cli
