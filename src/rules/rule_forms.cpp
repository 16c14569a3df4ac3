#include "rules/rule_forms.hpp"

namespace omnibus::rules {
namespace {

using amqp::Value;

std::unexpected<Error> bad(std::string_view what) { return fail(Errc::argument_error, "{}", what); }

// The value under a key; null is as good as absent.
const Value* given(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  return value && !value->is_null() ? value : nullptr;
}

Result<std::string> text_at(const Value& map, std::string_view key) {
  const Value* value = given(map, key);
  const auto text = value ? value->as_text() : std::nullopt;
  if (!text) return fail(Errc::argument_error, "'{}' is missing or no string", key);
  return std::string{*text};
}

// A string and no symbol [contract 6.12, 6.13].
Result<std::string> name_at(const Value& map) {
  const Value* value = given(map, "rule-name");
  const auto* text = value ? value->get_if<std::string>() : nullptr;
  if (!text) return fail(Errc::argument_error, "'rule-name' is missing or no string");
  return *text;
}

Filter sql_filter(std::string expression) {
  if (expression == TrueFilter::expression) return TrueFilter{};
  if (expression == FalseFilter::expression) return FalseFilter{};
  return SqlFilter{.expression = std::move(expression)};
}

Result<std::vector<std::pair<std::string, Value>>> named_values(const Value& map, std::string_view what) {
  const auto* entries = map.get_if<amqp::Map>();
  if (!entries) return fail(Errc::argument_error, "'{}' is no map", what);
  std::vector<std::pair<std::string, Value>> values;
  for (const auto& [key, value] : entries->entries) {
    const auto name = key.as_text();
    if (!name) return fail(Errc::argument_error, "'{}' has a key that is no string", what);
    values.emplace_back(std::string{*name}, value);
  }
  return values;
}

Result<CorrelationFilter> correlation_filter(const Value& map) {
  if (!map.get_if<amqp::Map>()) return bad("'correlation-filter' is no map");
  CorrelationFilter filter;
  for (const auto& [key, field, member] : CorrelationFilter::fields()) {
    if (!given(map, key)) continue;
    auto text = text_at(map, key);
    if (!text) return fail(text.error());
    filter.*member = std::move(*text);
  }
  if (const Value* properties = given(map, "properties")) {
    auto values = named_values(*properties, "properties");
    if (!values) return fail(values.error());
    filter.properties = std::move(*values);
  }
  return filter;
}

Value map_of(const std::vector<std::pair<std::string, Value>>& values) {
  amqp::Map map;
  for (const auto& [name, value] : values) map.entries.emplace_back(Value{name}, value);
  return Value{std::move(map)};
}

Value described(std::uint64_t descriptor, std::vector<Value> fields) {
  return Value::described(Value{descriptor}, Value::list(std::move(fields)));
}

struct DescribeFilter {
  Value operator()(const TrueFilter&) const { return described(rule_descriptor::true_filter, {}); }
  Value operator()(const FalseFilter&) const { return described(rule_descriptor::false_filter, {}); }
  Value operator()(const SqlFilter& filter) const {
    return described(rule_descriptor::sql_filter,
                     {Value{filter.expression}, Value{filter.compatibility_level}});
  }
  Value operator()(const CorrelationFilter& filter) const {
    std::vector<Value> fields;
    for (const auto& field : CorrelationFilter::fields())
      fields.push_back(filter.*field.member ? Value{*(filter.*field.member)} : Value{});
    fields.push_back(map_of(filter.properties));
    return described(rule_descriptor::correlation_filter, std::move(fields));
  }
};

// A described list by its number.
struct Described {
  std::uint64_t descriptor = 0;
  std::span<const Value> fields{};

  [[nodiscard]] const Value& at(std::size_t index) const {
    static const Value null;
    return index < fields.size() ? fields[index] : null;
  }
};
Result<Described> described_list(const Value& value, std::string_view what) {
  const auto* both = value.get_if<amqp::Described>();
  const auto number = both ? both->descriptor().as_unsigned() : std::nullopt;
  if (!number || !both->value().get_if<amqp::List>())
    return fail(Errc::argument_error, "the {} is no described list", what);
  return Described{*number, both->value().items()};
}

Result<std::int32_t> level_of(const Value& value) {
  if (value.is_null()) return compatibility_level_default;
  const auto level = value.as_integer();
  if (!level || *level < INT32_MIN || *level > INT32_MAX) return bad("the compatibility level is no int");
  return static_cast<std::int32_t>(*level);
}

Result<Filter> filter_from(const Value& value) {
  const auto list = described_list(value, "filter");
  if (!list) return fail(list.error());
  switch (list->descriptor) {
    case rule_descriptor::true_filter:
      return Filter{TrueFilter{}};
    case rule_descriptor::false_filter:
      return Filter{FalseFilter{}};
    case rule_descriptor::sql_filter: {
      const auto expression = list->at(0).as_text();
      if (!expression) return bad("the SQL filter has no expression");
      auto level = level_of(list->at(1));
      if (!level) return fail(level.error());
      return Filter{SqlFilter{.expression = std::string{*expression}, .compatibility_level = *level}};
    }
    case rule_descriptor::correlation_filter: {
      CorrelationFilter filter;
      std::size_t index = 0;
      for (const auto& field : CorrelationFilter::fields()) {
        const Value& given = list->at(index++);
        if (given.is_null()) continue;
        const auto text = given.as_text();
        if (!text) return fail(Errc::argument_error, "'{}' is no string", field.key);
        filter.*field.member = std::string{*text};
      }
      if (!list->at(index).is_null()) {
        auto values = named_values(list->at(index), "properties");
        if (!values) return fail(values.error());
        filter.properties = std::move(*values);
      }
      return Filter{std::move(filter)};
    }
    default:
      return fail(Errc::argument_error, "{:#x} is no filter", list->descriptor);
  }
}

Result<std::optional<SqlAction>> action_from(const Value& value) {
  if (value.is_null()) return std::optional<SqlAction>{};
  const auto list = described_list(value, "action");
  if (!list) return fail(list.error());
  if (list->descriptor == rule_descriptor::empty_rule_action) return std::optional<SqlAction>{};
  if (list->descriptor != rule_descriptor::sql_rule_action)
    return fail(Errc::argument_error, "{:#x} is no action", list->descriptor);
  const auto expression = list->at(0).as_text();
  if (!expression) return bad("the action has no expression");
  auto level = level_of(list->at(1));
  if (!level) return fail(level.error());
  return std::optional{SqlAction{.expression = std::string{*expression}, .compatibility_level = *level}};
}

Result<std::size_t> count_at(const Value& map, std::string_view key, std::size_t otherwise) {
  const Value* value = given(map, key);
  if (!value) return otherwise;
  const auto number = value->as_integer();
  if (!number || *number < 0) return fail(Errc::argument_error, "'{}' is no count", key);
  return static_cast<std::size_t>(*number);
}

}  // namespace

Result<Rule> rule_from_request(const Value& body, Instant now) {
  Rule rule;
  rule.created = now;
  const Value* description = given(body, "rule-description");
  if (!description || !description->get_if<amqp::Map>())
    return bad("'rule-description' is missing or no map");
  auto name = name_at(given(body, "rule-name") ? body : *description);
  if (!name) return fail(name.error());
  rule.name = std::move(*name);

  const Value* sql = given(*description, "sql-filter");
  const Value* correlation = given(*description, "correlation-filter");
  if ((sql != nullptr) == (correlation != nullptr))
    return bad("exactly one of 'sql-filter' and 'correlation-filter' is needed");
  if (sql) {
    auto expression = text_at(*sql, "expression");
    if (!expression) return fail(expression.error());
    rule.filter = sql_filter(std::move(*expression));
  } else {
    auto filter = correlation_filter(*correlation);
    if (!filter) return fail(filter.error());
    rule.filter = std::move(*filter);
  }
  if (const Value* action = given(*description, "sql-rule-action")) {
    auto expression = text_at(*action, "expression");
    if (!expression) return fail(expression.error());
    rule.action = SqlAction{.expression = std::move(*expression)};
  }
  return rule;
}

Result<std::string> rule_name_from_request(const Value& body) { return name_at(body); }

Result<RulePage> rule_page_from_request(const Value& body) {
  RulePage page;
  auto skip = count_at(body, "skip", page.skip);
  if (!skip) return fail(skip.error());
  auto top = count_at(body, "top", page.top);
  if (!top) return fail(top.error());
  return RulePage{*skip, *top};
}

Value rule_description(const Rule& rule) {
  Value action = described(rule_descriptor::empty_rule_action, {});
  if (rule.action)
    action = described(rule_descriptor::sql_rule_action,
                       {Value{rule.action->expression}, Value{rule.action->compatibility_level}});
  return described(rule_descriptor::rule_description,
                   {std::visit(DescribeFilter{}, rule.filter), std::move(action), Value{rule.name},
                    Value{amqp::Timestamp{rule.created.time_since_epoch().count()}}});
}

Result<Rule> rule_from_description(const Value& value) {
  const auto list = described_list(value, "rule description");
  if (!list) return fail(list.error());
  if (list->descriptor != rule_descriptor::rule_description)
    return fail(Errc::argument_error, "{:#x} is no rule description", list->descriptor);
  auto filter = filter_from(list->at(0));
  if (!filter) return fail(filter.error());
  auto action = action_from(list->at(1));
  if (!action) return fail(action.error());
  const auto name = list->at(2).as_text();
  const auto created = list->at(3).as_timestamp();
  if (!name || !created) return bad("the rule description has no name or no time");
  return Rule{std::string{*name}, std::move(*filter), std::move(*action),
              Instant{std::chrono::milliseconds{*created}}};
}

Value enumerate_answer(std::span<const Rule* const> rules) {
  std::vector<Value> items;
  items.reserve(rules.size());
  for (const Rule* rule : rules)
    items.push_back(Value::map({{Value{"rule-description"}, rule_description(*rule)}}));
  return Value::map({{Value{"rules"}, Value::list(std::move(items))}});
}

// [description, parameters of the filter, parameters of the action]
Value stored_rule(const Rule& rule) {
  const auto* sql = std::get_if<SqlFilter>(&rule.filter);
  return Value::list({rule_description(rule), sql ? map_of(sql->parameters) : Value{},
                      rule.action ? map_of(rule.action->parameters) : Value{}});
}

Result<Rule> rule_from_stored(const Value& value) {
  const auto* list = value.get_if<amqp::List>();
  if (!list || list->items.size() < 3) return bad("a stored rule is a list of three");
  auto rule = rule_from_description(list->items[0]);
  if (!rule) return fail(rule.error());
  if (auto* sql = std::get_if<SqlFilter>(&rule->filter)) {
    auto parameters = named_values(list->items[1], "parameters");
    if (!parameters) return fail(parameters.error());
    sql->parameters = std::move(*parameters);
  }
  if (rule->action) {
    auto parameters = named_values(list->items[2], "parameters");
    if (!parameters) return fail(parameters.error());
    rule->action->parameters = std::move(*parameters);
  }
  return rule;
}

}  // namespace omnibus::rules
