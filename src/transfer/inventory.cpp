#include "transfer/inventory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "admin/admin_values.hpp"
#include "admin/entity_name.hpp"
#include "base/text.hpp"
#include "broker/queue_settings.hpp"

namespace omnibus::transfer {
namespace {

using client::EntityKind;

constexpr std::string_view unlimited = "P10675199DT2H48M5.4775807S";

constexpr std::array<std::string_view, 12> flags = {"RequiresDuplicateDetection",
                                                    "RequiresSession",
                                                    "DeadLetteringOnMessageExpiration",
                                                    "DeadLetteringOnFilterEvaluationExceptions",
                                                    "EnableBatchedOperations",
                                                    "EnablePartitioning",
                                                    "EnableExpress",
                                                    "SupportOrdering",
                                                    "IsAnonymousAccessible",
                                                    "FilteringMessagesBeforePublishing",
                                                    "EnableSubscriptionPartitioning",
                                                    "isClientAffine"};
constexpr std::array<std::string_view, 3> numbers = {"MaxSizeInMegabytes", "MaxDeliveryCount",
                                                     "MaxMessageSizeInKilobytes"};
constexpr std::array<std::string_view, 4> durations = {
    "LockDuration", "DefaultMessageTimeToLive", "DuplicateDetectionHistoryTimeWindow", "AutoDeleteOnIdle"};
// What services show and nobody can set.
constexpr std::array<std::string_view, 17> shown_only = {"accessedAt",
                                                         "countDetails",
                                                         "createdAt",
                                                         "updatedAt",
                                                         "messageCount",
                                                         "sizeInBytes",
                                                         "subscriptionCount",
                                                         "id",
                                                         "name",
                                                         "type",
                                                         "location",
                                                         "resourceGroup",
                                                         "systemData",
                                                         "tags",
                                                         "etag",
                                                         "isAnonymousAccessible",
                                                         "filteringMessagesBeforePublishing"};

constexpr std::array<std::string_view, 8> correlation_fields = {
    "contentType", "correlationId", "label", "messageId", "replyTo", "replyToSessionId", "sessionId", "to"};

bool contains(std::span<const std::string_view> list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

std::string pascal(std::string_view camel) {
  std::string name(camel);
  if (!name.empty() && name[0] >= 'a' && name[0] <= 'z') name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

void replace(JsonValue::Object& object, std::string_view name, JsonValue value) {
  std::erase_if(object, [&](const JsonMember& member) { return member.name == name; });
  add(object, name, std::move(value));
}

void add_default(JsonValue::Object& properties, std::string_view name, JsonValue value) {
  if (std::ranges::find(properties, name, &JsonMember::name) == properties.end())
    add(properties, name, std::move(value));
}

const JsonValue* member(const JsonValue& object, std::string_view name) {
  if (const auto* members = object.if_object())
    for (const JsonMember& one : *members)
      if (equals_ignoring_case(one.name, name)) return &one.value;
  return nullptr;
}

bool is_null(const JsonValue* value) {
  return value == nullptr || std::holds_alternative<std::nullptr_t>(value->value);
}

void write_pretty(std::string& out, const JsonValue& value, std::size_t depth) {
  const std::string indent(2 * depth + 2, ' ');
  const auto close = [&](char end) {
    out += '\n';
    out.append(2 * depth, ' ');
    out += end;
  };
  if (const auto* items = value.if_array(); items && !items->empty()) {
    const bool is_flat = std::ranges::none_of(
        *items, [](const JsonValue& one) { return one.if_array() != nullptr || one.if_object() != nullptr; });
    out += is_flat ? "[ " : "[";
    for (std::size_t i = 0; i < items->size(); ++i) {
      if (i != 0) out += is_flat ? ", " : ",";
      if (!is_flat) out += '\n' + indent;
      write_pretty(out, (*items)[i], depth + 1);
    }
    if (is_flat)
      out += " ]";
    else
      close(']');
  } else if (const auto* members = value.if_object(); members && !members->empty()) {
    out += '{';
    for (std::size_t i = 0; i < members->size(); ++i) {
      if (i != 0) out += ',';
      out += '\n' + indent + to_json(text_value((*members)[i].name)) + ": ";
      write_pretty(out, (*members)[i].value, depth + 1);
    }
    close('}');
  } else {
    out += to_json(value);
  }
}

JsonValue::Object entity_object(const InventoryEntity& entity, const JsonValue::Object& properties) {
  JsonValue::Object object;
  add(object, "Name", text_value(entity.name));
  JsonValue::Object all = properties;
  if (!entity.access_rules.empty()) add(all, "AuthorizationRules", {.value = entity.access_rules});
  add(object, "Properties", {.value = std::move(all)});
  return object;
}

}  // namespace

void Notes::add(Note note) {
  errors_ |= note.is_error;
  if (all_.size() < notes_max)
    all_.push_back(std::move(note));
  else if (all_.size() == notes_max)
    all_.push_back({note.is_error, "", "there is more; only so much is shown"});
  else
    all_.back().is_error |= note.is_error;
}

void add(JsonValue::Object& object, std::string_view name, JsonValue value) {
  object.push_back({.name = std::string(name), .value = std::move(value)});
}

JsonValue text_value(std::string text) { return {.value = std::move(text)}; }

InventoryEntity& Inventory::queue(const std::string& name) {
  InventoryEntity& entity = queues[ascii_lower(name)];
  if (entity.name.empty()) entity.name = name;
  return entity;
}

InventoryTopic& Inventory::topic(const std::string& name) {
  InventoryTopic& entity = topics[ascii_lower(name)];
  if (entity.name.empty()) entity.name = name;
  return entity;
}

InventorySubscription& Inventory::subscription(const std::string& of, const std::string& name) {
  InventorySubscription& entity = topic(of).subscriptions[ascii_lower(name)];
  if (entity.name.empty()) entity.name = name;
  return entity;
}

JsonValue Inventory::config(bool cloud_defaults) const {
  const auto with_defaults = [&](const InventoryEntity& entity, EntityKind kind) {
    JsonValue::Object properties = entity.properties;
    if (!cloud_defaults || !entity.is_said) return properties;
    add_default(properties, "DefaultMessageTimeToLive", text_value(std::string(unlimited)));
    if (kind != EntityKind::topic) add_default(properties, "MaxDeliveryCount", {.value = std::int64_t{10}});
    if (kind != EntityKind::subscription)
      add_default(properties, "DuplicateDetectionHistoryTimeWindow", text_value("PT10M"));
    return properties;
  };
  JsonValue::Array all_queues;
  for (const auto& [key, entity] : queues)
    all_queues.push_back({.value = entity_object(entity, with_defaults(entity, EntityKind::queue))});
  JsonValue::Array all_topics;
  for (const auto& [key, entity] : topics) {
    auto object = entity_object(entity, with_defaults(entity, EntityKind::topic));
    JsonValue::Array all;
    for (const auto& [name, one] : entity.subscriptions) {
      auto inner = entity_object(one, with_defaults(one, EntityKind::subscription));
      if (!one.rules.empty()) add(inner, "Rules", {.value = one.rules});
      all.push_back({.value = std::move(inner)});
    }
    add(object, "Subscriptions", {.value = std::move(all)});
    all_topics.push_back({.value = std::move(object)});
  }
  JsonValue::Object space;
  if (!name_space.empty()) add(space, "Name", text_value(name_space));
  if (!access_rules.empty()) add(space, "AuthorizationRules", {.value = access_rules});
  add(space, "Queues", {.value = std::move(all_queues)});
  add(space, "Topics", {.value = std::move(all_topics)});
  if (!exchanges.empty()) add(space, "Exchanges", {.value = exchanges});
  JsonValue::Object user;
  JsonValue::Array spaces;
  spaces.push_back({.value = std::move(space)});
  add(user, "Namespaces", {.value = std::move(spaces)});
  JsonValue::Object root;
  add(root, "UserConfig", {.value = std::move(user)});
  if (partition_count != 0) {
    JsonValue::Object own;
    add(own, "PartitionCount", {.value = std::int64_t{partition_count}});
    add(root, "Omnibus", {.value = std::move(own)});
  }
  return {.value = std::move(root)};
}

PropertyType type_of_property(std::string_view name) {
  if (contains(flags, name)) return PropertyType::flag;
  if (contains(numbers, name)) return PropertyType::number;
  if (contains(durations, name)) return PropertyType::duration;
  if (name == "ForwardTo" || name == "ForwardDeadLetteredMessagesTo") return PropertyType::target;
  return PropertyType::text;
}

void set_from_text(JsonValue::Object& properties, std::string_view name, const std::string& text) {
  switch (type_of_property(name)) {
    case PropertyType::flag:
      return replace(properties, name, {.value = equals_ignoring_case(text, "true")});
    case PropertyType::number: {
      std::int64_t value = 0;
      const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (wrong != std::errc{}) return;
      if (name == "MaxMessageSizeInKilobytes" && value < broker::message_kilobytes_min) return;
      return replace(properties, name, {.value = value});
    }
    case PropertyType::target:
      if (const auto target = admin::forward_target(text)) replace(properties, name, text_value(*target));
      return;
    case PropertyType::duration:
    case PropertyType::text:
      if (!text.empty()) replace(properties, name, text_value(text));
  }
}

void set_from_json(JsonValue::Object& properties, EntityKind kind, std::string_view camel_name,
                   const JsonValue& value, const std::string& path, Notes& notes) {
  if (is_null(&value) || contains(shown_only, camel_name)) return;
  const std::string name = pascal(camel_name);
  const auto settable = client::Description::settable(kind);
  if (std::ranges::find(settable, name) == settable.end())
    return notes.warn(path, "there is no such property here; it is passed over");
  const auto* text = value.if_text();
  const auto wrong = [&](std::string_view expected) {
    notes.error(path, fmt::format("expected {}", expected));
  };
  switch (type_of_property(name)) {
    case PropertyType::flag:
      if (std::holds_alternative<bool>(value.value)) return replace(properties, name, value);
      if (text && (equals_ignoring_case(*text, "true") || equals_ignoring_case(*text, "false")))
        return replace(properties, name, {.value = equals_ignoring_case(*text, "true")});
      return wrong("true or false");
    case PropertyType::number: {
      std::int64_t number = 0;
      if (const auto* plain = std::get_if<std::int64_t>(&value.value)) {
        number = *plain;
      } else {
        const auto [end, fault] = text ? std::from_chars(text->data(), text->data() + text->size(), number)
                                       : std::from_chars_result{nullptr, std::errc::invalid_argument};
        if (fault != std::errc{} || end != text->data() + text->size()) return wrong("an integer");
      }
      return set_from_text(properties, name, std::to_string(number));
    }
    case PropertyType::duration:
      if (text == nullptr) return wrong("a duration");
      return replace(properties, name, text_value(iso_span(*text)));
    case PropertyType::target:
      if (text == nullptr) return wrong("the name of an entity");
      if (!text->empty()) set_from_text(properties, name, *text);
      return;
    case PropertyType::text:
      if (text == nullptr) return wrong("a text");
      if (!text->empty()) replace(properties, name, value);
  }
}

void correct_size(JsonValue::Object& properties, std::optional<std::uint32_t> partitions) {
  const auto is_partitioned = std::ranges::find(properties, "EnablePartitioning", &JsonMember::name);
  const auto size = std::ranges::find(properties, "MaxSizeInMegabytes", &JsonMember::name);
  if (is_partitioned == properties.end() || size == properties.end()) return;
  const auto* yes = std::get_if<bool>(&is_partitioned->value.value);
  auto* megabytes = std::get_if<std::int64_t>(&size->value.value);
  if (yes == nullptr || !*yes || megabytes == nullptr) return;
  const std::int64_t count = partitions.value_or(partitions_usual);
  const bool is_sum = partitions || *megabytes >= broker::entity_megabytes[0] * count;
  if (count > 0 && is_sum && *megabytes % count == 0) *megabytes /= count;
}

void add_rule_from_json(JsonValue::Array& rules, const std::string& name, const JsonValue& properties,
                        const std::string& path, Notes& notes) {
  JsonValue::Object out;
  const JsonValue* type = member(properties, "filterType");
  const JsonValue* sql = member(properties, "sqlFilter");
  const JsonValue* correlation = member(properties, "correlationFilter");
  const std::string said = type && type->if_text() ? *type->if_text() : "";
  const bool is_correlation =
      said.empty() ? is_null(sql) && !is_null(correlation) : starts_with_ignoring_case(said, "Correlation");
  if (is_correlation) {
    JsonValue::Object filter;
    if (!is_null(correlation))
      for (const auto field : correlation_fields)
        if (const JsonValue* value = member(*correlation, field); !is_null(value))
          add(filter, pascal(field), *value);
    if (const JsonValue* own = correlation ? member(*correlation, "properties") : nullptr;
        !is_null(own) && own->if_object() && !own->if_object()->empty())
      add(filter, "Properties", *own);
    add(out, "FilterType", text_value("Correlation"));
    add(out, "CorrelationFilter", {.value = std::move(filter)});
  } else if (said.empty() || starts_with_ignoring_case(said, "Sql")) {
    const JsonValue* expression = sql ? member(*sql, "sqlExpression") : nullptr;
    JsonValue::Object filter;
    add(filter, "SqlExpression", is_null(expression) ? text_value("1=1") : *expression);
    add(out, "FilterType", text_value("Sql"));
    add(out, "SqlFilter", {.value = std::move(filter)});
  } else {
    return notes.error(path, fmt::format("the filter type of rule '{}' is not known", name));
  }
  const JsonValue* action = member(properties, "action");
  if (const JsonValue* expression = is_null(action) ? nullptr : member(*action, "sqlExpression");
      !is_null(expression)) {
    JsonValue::Object inner;
    add(inner, "SqlExpression", *expression);
    add(out, "Action", {.value = std::move(inner)});
  }
  JsonValue::Object rule;
  add(rule, "Name", text_value(name));
  add(rule, "Properties", {.value = std::move(out)});
  rules.push_back({.value = std::move(rule)});
}

void add_access_rule(JsonValue::Array& rules, const std::string& name, const JsonValue* rights,
                     const std::string& path, Notes& notes) {
  if (is_null(rights) || rights->if_array() == nullptr)
    return notes.error(path, fmt::format("access rule '{}' has no rights", name));
  JsonValue::Object rule;
  add(rule, "KeyName", text_value(name));
  add(rule, "Rights", *rights);
  rules.push_back({.value = std::move(rule)});
}

std::string iso_span(const std::string& text) {
  if (text.empty() || text.starts_with('P') || text.starts_with('-')) return text;
  std::int64_t days = 0;
  std::string_view rest = text;
  if (const auto word = rest.find(" day"); word != std::string_view::npos) {
    const auto [end, wrong] = std::from_chars(rest.data(), rest.data() + word, days);
    if (wrong != std::errc{} || end != rest.data() + word) return text;
    const auto comma = rest.find(", ");
    rest = comma == std::string_view::npos ? std::string_view("0:00:00") : rest.substr(comma + 2);
  }
  std::array<std::int64_t, 3> parts{};
  std::string fraction;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto [end, wrong] = std::from_chars(rest.data(), rest.data() + rest.size(), parts.at(i));
    if (wrong != std::errc{} || parts.at(i) < 0) return text;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (i < 2 && !rest.starts_with(':')) return text;
    if (i < 2) rest.remove_prefix(1);
  }
  if (rest.starts_with('.')) {
    fraction = rest;
    rest = {};
    if (fraction.size() > 8 ||
        !std::ranges::all_of(fraction.substr(1), [](char c) { return c >= '0' && c <= '9'; }))
      return text;
  }
  if (!rest.empty() || days < 0) return text;
  return fmt::format("P{}DT{}H{}M{}{}S", days, parts[0], parts[1], parts[2], fraction);
}

std::string pretty_json(const JsonValue& value) {
  std::string out;
  write_pretty(out, value, 0);
  return out += '\n';
}

}  // namespace omnibus::transfer
