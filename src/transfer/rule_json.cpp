#include "transfer/rule_json.hpp"

#include <fmt/format.h>

namespace omnibus::transfer {
namespace {

JsonValue value_json(const amqp::Value& value, const std::string& path, Notes& notes) {
  if (const auto flag = value.as_bool()) return {.value = *flag};
  if (const auto text = value.as_text()) return text_value(std::string(*text));
  if (const auto number = value.as_integer()) return {.value = *number};
  if (const auto* real = value.get_if<double>()) return {.value = node::JsonNumber{fmt::format("{}", *real)}};
  if (const auto* real = value.get_if<float>()) return {.value = node::JsonNumber{fmt::format("{}", *real)}};
  if (value.get_if<std::monostate>()) return {.value = nullptr};
  notes.warn(path, "a value of a rule has a type that Config.json does not have; it is left out");
  return {.value = nullptr};
}

JsonValue::Object pairs_json(const auto& pairs, const std::string& path, Notes& notes) {
  JsonValue::Object object;
  for (const auto& [name, value] : pairs) add(object, name, value_json(value, path + "." + name, notes));
  return object;
}

template <class Sql>
JsonValue sql_json(const Sql& sql, const std::string& path, Notes& notes) {
  JsonValue::Object object;
  add(object, "SqlExpression", text_value(sql.expression));
  if (!sql.parameters.empty()) add(object, "Parameters", {.value = pairs_json(sql.parameters, path, notes)});
  return {.value = std::move(object)};
}

}  // namespace

JsonValue rule_json(const rules::Rule& rule, const std::string& path, Notes& notes) {
  JsonValue::Object properties;
  if (const auto* filter = std::get_if<rules::CorrelationFilter>(&rule.filter)) {
    JsonValue::Object object;
    const auto field = [&](std::string_view name, const std::optional<std::string>& value) {
      if (value) add(object, name, text_value(*value));
    };
    field("ContentType", filter->content_type);
    field("CorrelationId", filter->correlation_id);
    field("Label", filter->label);
    field("MessageId", filter->message_id);
    field("ReplyTo", filter->reply_to);
    field("ReplyToSessionId", filter->reply_to_session_id);
    field("SessionId", filter->session_id);
    field("To", filter->to);
    if (!filter->properties.empty())
      add(object, "Properties", {.value = pairs_json(filter->properties, path, notes)});
    add(properties, "FilterType", text_value("Correlation"));
    add(properties, "CorrelationFilter", {.value = std::move(object)});
  } else {
    add(properties, "FilterType", text_value("Sql"));
    rules::SqlFilter sql;
    if (const auto* said = std::get_if<rules::SqlFilter>(&rule.filter))
      sql = *said;
    else
      sql.expression = std::holds_alternative<rules::TrueFilter>(rule.filter)
                           ? rules::TrueFilter::expression
                           : rules::FalseFilter::expression;
    add(properties, "SqlFilter", sql_json(sql, path, notes));
  }
  if (rule.action) add(properties, "Action", sql_json(*rule.action, path, notes));
  JsonValue::Object object;
  add(object, "Name", text_value(rule.name));
  add(object, "Properties", {.value = std::move(properties)});
  return {.value = std::move(object)};
}

bool says_the_same(const rules::Rule& one, const rules::Rule& other) {
  rules::Rule same_name = other;
  same_name.name = one.name;
  Notes unused;
  return to_json(rule_json(one, "", unused)) == to_json(rule_json(same_name, "", unused));
}

}  // namespace omnibus::transfer
