#include "admin/rule_descriptions.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "admin/admin_values.hpp"
#include "base/text.hpp"
#include "rules/scalar.hpp"

namespace omnibus::admin {
namespace {

using amqp::Value;
using rules::CorrelationFilter;

struct CorrelationElement {
  std::string_view name;
  std::optional<std::string> CorrelationFilter::* member;
};
// In the order of the service.
constexpr std::array<CorrelationElement, 8> correlation_elements = {{
    {"CorrelationId", &CorrelationFilter::correlation_id},
    {"MessageId", &CorrelationFilter::message_id},
    {"To", &CorrelationFilter::to},
    {"ReplyTo", &CorrelationFilter::reply_to},
    {"Label", &CorrelationFilter::label},
    {"SessionId", &CorrelationFilter::session_id},
    {"ReplyToSessionId", &CorrelationFilter::reply_to_session_id},
    {"ContentType", &CorrelationFilter::content_type},
}};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  while (!text.empty() && blanks.contains(text.front())) text.remove_prefix(1);
  while (!text.empty() && blanks.contains(text.back())) text.remove_suffix(1);
  return text;
}

template <class T>
Result<Value> read_number(const XmlElement& element) {
  const auto text = trimmed(element.text);
  T value{};
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc{} || end != text.data() + text.size())
    return fail(Errc::argument_error, "a value of type '{}' is no such number", element.type);
  return Value{value};
}

Result<Value> read_uuid(std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c != '-') digits += c;
  const auto bytes = unhex(digits);
  if (!bytes || bytes->size() != 16) return fail(Errc::argument_error, "a value of type 'guid' is none");
  amqp::Uuid uuid;
  for (std::size_t i = 0; i < 16; ++i) uuid.bytes.at(i) = static_cast<std::uint8_t>((*bytes)[i]);
  return Value{uuid};
}

// The type says what it is; clients that know only texts send those.
Result<Value> read_value(const XmlElement& element) {
  const std::string& type = element.type;
  if (element.is_nil) return Value{};
  if (type.empty() || type == "string" || type == "char" || type == "anyURI") return Value{element.text};
  if (type == "int" || type == "short" || type == "byte" || type == "unsignedByte" || type == "unsignedShort")
    return read_number<std::int32_t>(element);
  if (type == "long" || type == "integer" || type == "unsignedInt") return read_number<std::int64_t>(element);
  if (type == "unsignedLong") return read_number<std::uint64_t>(element);
  if (type == "double" || type == "float" || type == "decimal") return read_number<double>(element);
  if (type == "boolean") {
    const auto text = trimmed(element.text);
    if (equals_ignoring_case(text, "true") || text == "1") return Value{true};
    if (equals_ignoring_case(text, "false") || text == "0") return Value{false};
    return fail(Errc::argument_error, "a value of type 'boolean' is neither true nor false");
  }
  if (type == "dateTime") {
    const auto time = from_date(trimmed(element.text));
    if (!time) return fail(Errc::argument_error, "a value of type 'dateTime' is no date");
    return Value{amqp::Timestamp{time->time_since_epoch().count()}};
  }
  if (type == "duration") {
    const auto span = parse_iso_duration(trimmed(element.text));
    if (!span) return fail(Errc::argument_error, "a value of type 'duration' is none");
    return rules::value_of(rules::Scalar::of_time_span_ticks(span->count() * rules::ticks_per_ms));
  }
  if (type == "guid") return read_uuid(trimmed(element.text));
  return fail(Errc::argument_error, "values of type '{}' are not supported",
              type.size() > 64 ? std::string("...") : type);
}

Result<rules::Parameters> read_pairs(const XmlElement* list, std::size_t pairs_max) {
  rules::Parameters pairs;
  if (list == nullptr) return pairs;
  for (const XmlElement& one : list->children) {
    const XmlElement* key = one.find("Key");
    const XmlElement* value = one.find("Value");
    if (key == nullptr || value == nullptr || key->text.empty())
      return fail(Errc::argument_error, "'{}' has an entry without a key and a value", list->name);
    auto read = read_value(*value);
    if (!read) return fail(read.error());
    if (pairs.size() >= pairs_max)
      return fail(Errc::argument_error, "'{}' has more than {} entries", list->name, pairs_max);
    pairs.emplace_back(key->text, *std::move(read));
  }
  return pairs;
}

template <class Sql>
Result<Sql> read_sql(const XmlElement& element) {
  Sql sql;
  if (const auto* expression = element.find("SqlExpression")) sql.expression = expression->text;
  auto parameters = read_pairs(element.find("Parameters"), rules::parameters_max);
  if (!parameters) return fail(parameters.error());
  sql.parameters = *std::move(parameters);
  return sql;
}

Result<rules::Filter> read_filter(const XmlElement& element) {
  const std::string& type = element.type;
  if (type == "TrueFilter" || (type.empty() && element.children.empty()))
    return rules::Filter{rules::TrueFilter{}};
  if (type == "FalseFilter") return rules::Filter{rules::FalseFilter{}};
  if (type == "SqlFilter" || type == "SqlFilterExpression") {
    auto sql = read_sql<rules::SqlFilter>(element);
    if (!sql) return fail(sql.error());
    return rules::Filter{*std::move(sql)};
  }
  if (type == "CorrelationFilter" || type == "CorrelationFilterExpression") {
    CorrelationFilter filter;
    for (const auto& [name, member] : correlation_elements)
      if (const auto* field = element.find(name); field && !field->is_nil && !field->text.empty())
        filter.*member = field->text;
    auto properties = read_pairs(element.find("Properties"), rules::correlation_properties_max);
    if (!properties) return fail(properties.error());
    filter.properties = *std::move(properties);
    return rules::Filter{std::move(filter)};
  }
  return fail(Errc::argument_error, "the filter is of no known type");
}

// Writing

std::string type_of(std::string_view type, std::string_view space = schema_namespace) {
  return fmt::format("i:type=\"d6p1:{}\" xmlns:d6p1=\"{}\"", type, space);
}

void write_value(XmlWriter& out, const Value& value) {
  constexpr std::string_view name = "Value";
  if (const auto text = value.as_text()) return out.element(name, *text, type_of("string"));
  if (const auto* flag = value.get_if<bool>())
    return out.element(name, *flag ? "true" : "false", type_of("boolean"));
  if (const auto* time = value.get_if<amqp::Timestamp>())
    return out.element(name, to_date(Instant{std::chrono::milliseconds{time->ms}}), type_of("dateTime"));
  if (const auto uuid = value.as_uuid())
    return out.element(name, amqp::to_text(*uuid), type_of("guid", serialization_namespace));
  rules::TextArena arena;
  const auto scalar = rules::scalar_of(value, arena);
  switch (scalar.kind) {
    case rules::Scalar::Kind::integer: {
      // Not every client knows `long`.
      const bool is_small = scalar.integer >= std::numeric_limits<std::int32_t>::min() &&
                            scalar.integer <= std::numeric_limits<std::int32_t>::max();
      return out.element(name, fmt::to_string(scalar.integer), type_of(is_small ? "int" : "long"));
    }
    case rules::Scalar::Kind::real:
      return out.element(name, fmt::to_string(scalar.real), type_of("double"));
    case rules::Scalar::Kind::time_span:
      return out.element(
          name,
          (scalar.integer < 0 ? "-" : "") +
              to_iso_duration(std::chrono::milliseconds{std::abs(scalar.integer / rules::ticks_per_ms)}),
          type_of("duration", serialization_namespace));
    default:
      return out.empty(name, "i:nil=\"true\"");
  }
}

// Empty ones have neither attributes nor children, which some clients would trip over.
void write_pairs(XmlWriter& out, std::string_view name, const rules::Parameters& pairs) {
  if (pairs.empty()) return out.empty(name);
  out.open(name);
  for (const auto& [key, value] : pairs) {
    out.open("KeyValueOfstringanyType");
    out.element("Key", key);
    write_value(out, value);
    out.close("KeyValueOfstringanyType");
  }
  out.close(name);
}

void write_sql(XmlWriter& out, std::string_view expression, std::int32_t level,
               const rules::Parameters& parameters) {
  out.element("SqlExpression", expression);
  out.element("CompatibilityLevel", level);
  write_pairs(out, "Parameters", parameters);
}

void write_filter(XmlWriter& out, const rules::Filter& filter) {
  constexpr auto level = rules::compatibility_level_default;
  if (std::holds_alternative<rules::TrueFilter>(filter)) {
    out.open("Filter", "i:type=\"TrueFilter\"");
    write_sql(out, rules::TrueFilter::expression, level, {});
  } else if (std::holds_alternative<rules::FalseFilter>(filter)) {
    out.open("Filter", "i:type=\"FalseFilter\"");
    write_sql(out, rules::FalseFilter::expression, level, {});
  } else if (const auto* sql = std::get_if<rules::SqlFilter>(&filter)) {
    out.open("Filter", "i:type=\"SqlFilter\"");
    write_sql(out, sql->expression, sql->compatibility_level, sql->parameters);
  } else {
    const auto& correlation = std::get<CorrelationFilter>(filter);
    out.open("Filter", "i:type=\"CorrelationFilter\"");
    for (const auto& [name, member] : correlation_elements)
      if (correlation.*member) out.element(name, *(correlation.*member));
    write_pairs(out, "Properties", correlation.properties);
  }
  out.close("Filter");
}

}  // namespace

Result<rules::Rule> read_rule(const XmlElement& description, Instant now) {
  rules::Rule rule;
  rule.created = now;
  if (const auto* name = description.find("Name")) rule.name = trimmed(name->text);
  if (const auto* filter = description.find("Filter"); filter && !filter->is_nil) {
    auto read = read_filter(*filter);
    if (!read) return fail(read.error());
    rule.filter = *std::move(read);
  }
  const auto* action = description.find("Action");
  if (action == nullptr || action->is_nil || action->type == "EmptyRuleAction" ||
      (action->type.empty() && action->children.empty()))
    return rule;
  if (action->type != "SqlRuleAction" && action->type != "SqlFilterAction")
    return fail(Errc::argument_error, "the action is of no known type");
  auto sql = read_sql<rules::SqlAction>(*action);
  if (!sql) return fail(sql.error());
  if (!sql->expression.empty()) rule.action = *std::move(sql);
  return rule;
}

void write_rule(XmlWriter& out, const rules::Rule& rule, std::string_view attributes) {
  out.open("RuleDescription", attributes);
  write_filter(out, rule.filter);
  if (rule.action) {
    out.open("Action", "i:type=\"SqlRuleAction\"");
    write_sql(out, rule.action->expression, rule.action->compatibility_level, rule.action->parameters);
    out.close("Action");
  } else {
    out.empty("Action", "i:type=\"EmptyRuleAction\"");
  }
  out.element("CreatedAt", to_date(rule.created));
  out.element("Name", rule.name);
  out.close("RuleDescription");
}

}  // namespace omnibus::admin
