// Templates of Azure Resource Manager.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "transfer/arm_expression.hpp"
#include "transfer/source_file.hpp"

namespace omnibus::transfer {
namespace {

constexpr std::string_view provider = "Microsoft.ServiceBus/namespaces";
constexpr std::string_view deployment = "Microsoft.Resources/deployments";
constexpr std::size_t nesting_max = 8;
constexpr std::size_t resources_max = 100'000;

const JsonValue* member(const JsonValue& object, std::string_view name) {
  if (const auto* members = object.if_object())
    for (const JsonMember& one : *members)
      if (equals_ignoring_case(one.name, name)) return &one.value;
  return nullptr;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const auto slash = text.find('/');
    parts.emplace_back(text.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    text.remove_prefix(slash + 1);
  }
}

class Template {
 public:
  Template(Inventory& inventory, Notes& notes) : inventory_(inventory), notes_(notes) {}

  void read(const JsonValue& root, std::map<std::string, JsonValue> values, const std::string& path,
            std::size_t nesting) {
    if (nesting > nesting_max) return notes_.error(path, "templates are nested too deeply");
    const JsonValue* resources = member(root, "resources");
    if (resources == nullptr) return notes_.error(path, "the template has no resources");
    ArmScope scope(root, std::move(values));
    read_all(scope, *resources, path.empty() ? "resources" : path + ".resources", "", {}, nesting);
  }

  void tell_others() {
    for (const std::string& type : others_)
      notes_.warn("", fmt::format("resources of type {} are passed over", type));
  }

 private:
  // An array, or since languageVersion 2.0 an object by symbolic names.
  void read_all(ArmScope& scope, const JsonValue& resources, const std::string& path,
                const std::string& parent_type, const std::vector<std::string>& parent_names,
                std::size_t nesting) {
    if (const auto* items = resources.if_array())
      for (std::size_t i = 0; i < items->size(); ++i)
        read_one(scope, (*items)[i], fmt::format("{}[{}]", path, i), parent_type, parent_names, nesting);
    else if (const auto* members = resources.if_object())
      for (const JsonMember& one : *members)
        read_one(scope, one.value, fmt::format("{}.{}", path, one.name), parent_type, parent_names, nesting);
    else
      notes_.error(path, "expected an array or an object");
  }

  // Nothing: there is a note. What nobody needs of it may be unknown.
  std::optional<JsonValue> worth(ArmScope& scope, const JsonValue& value, const std::string& path) {
    auto result = scope.evaluate(value);
    if (result) return *std::move(result);
    notes_.error(path, result.error().detail);
    return std::nullopt;
  }
  std::optional<JsonValue> known(ArmScope& scope, const JsonValue& value, const std::string& path) {
    auto result = worth(scope, value, path);
    if (!result) return std::nullopt;
    if (const auto what = unknown_in(*result)) {
      notes_.error(path, fmt::format("{} is not known here{}", *what,
                                     what->starts_with("parameters(") ? "; give it with --parameter" : ""));
      return std::nullopt;
    }
    return result;
  }

  bool is_wanted(ArmScope& scope, const JsonValue& resource, const std::string& path) {
    if (member(resource, "copy") != nullptr) {
      notes_.error(path + ".copy", "loops are not supported");
      return false;
    }
    const JsonValue* condition = member(resource, "condition");
    if (condition == nullptr) return true;
    const auto value = known(scope, *condition, path + ".condition");
    if (!value) return false;
    if (const auto* flag = std::get_if<bool>(&value->value)) return *flag;
    if (const auto* text = value->if_text()) return equals_ignoring_case(*text, "true");
    notes_.error(path + ".condition", "expected true or false");
    return false;
  }

  void read_one(ArmScope& scope, const JsonValue& resource, const std::string& path,
                const std::string& parent_type, const std::vector<std::string>& parent_names,
                std::size_t nesting) {
    if (++count_ > resources_max || nesting > nesting_max)
      return notes_.error(path, "there is too much in it");
    const JsonValue* said_type = member(resource, "type");
    if (said_type == nullptr || said_type->if_text() == nullptr)
      return notes_.error(path, "a resource has no type");
    std::string type = *said_type->if_text();
    // A child may have its own word alone.
    if (!parent_type.empty() && !type.contains('.')) type = parent_type + "/" + type;
    if (equals_ignoring_case(type, deployment)) return read_deployment(scope, resource, path, nesting);
    const bool is_ours = starts_with_ignoring_case(type, provider) &&
                         (type.size() == provider.size() || type[provider.size()] == '/');
    if (!is_ours) {
      if (others_.size() < notes_max) others_.insert(type);
      return;
    }
    if (!is_wanted(scope, resource, path)) return;
    const JsonValue* said_name = member(resource, "name");
    if (said_name == nullptr) return notes_.error(path, "a resource has no name");
    const auto name = worth(scope, *said_name, path + ".name");
    if (!name) return;
    if (name->if_text() == nullptr) return notes_.error(path + ".name", "expected a text");
    const std::vector<std::string> levels = split(type.substr(provider.find('/') + 1));
    std::vector<std::string> names = split(*name->if_text());
    if (names.size() < levels.size()) names.insert(names.begin(), parent_names.begin(), parent_names.end());
    if (names.size() != levels.size())
      return notes_.error(path + ".name",
                          fmt::format("the type has {} parts, the name {}", levels.size(), names.size()));
    if (levels.size() > 1) take(scope, resource, levels, names, path);
    if (const JsonValue* children = member(resource, "resources"))
      read_all(scope, *children, path + ".resources", type, names, nesting + 1);
  }

  // The first of both is the namespace, which is whatever the entities are brought to.
  void take(ArmScope& scope, const JsonValue& resource, const std::vector<std::string>& levels,
            const std::vector<std::string>& names, const std::string& path) {
    FoundEntity found;
    found.levels.assign(levels.begin() + 1, levels.end());
    found.names.assign(names.begin() + 1, names.end());
    found.path = path;
    for (const std::string& one : found.names)
      if (const auto what = unknown_in(JsonValue{.value = one}))
        return notes_.error(
            path + ".name",
            fmt::format("{} is not known here{}", *what,
                        what->starts_with("parameters(") ? "; give it with --parameter" : ""));
    std::optional<JsonValue> properties;
    if (const JsonValue* said = member(resource, "properties")) {
      properties = known(scope, *said, path + ".properties");
      if (!properties) return;
      found.properties = &*properties;
      found.path += ".properties";
    }
    take_entity(found, inventory_, notes_);
  }

  void read_deployment(ArmScope& scope, const JsonValue& resource, const std::string& path,
                       std::size_t nesting) {
    if (!is_wanted(scope, resource, path)) return;
    const JsonValue* properties = member(resource, "properties");
    const JsonValue* inner = properties ? member(*properties, "template") : nullptr;
    if (inner == nullptr)
      return notes_.error(path, "a deployment whose template is elsewhere cannot be read");
    std::map<std::string, JsonValue> values;
    if (const JsonValue* given = member(*properties, "parameters"); given && given->if_object())
      for (const JsonMember& one : *given->if_object())
        if (const JsonValue* value = member(one.value, "value"))
          if (auto result = worth(scope, *value, path + ".properties.parameters." + one.name))
            values[one.name] = *std::move(result);
    read(*inner, std::move(values), path + ".properties.template", nesting + 1);
  }

  Inventory& inventory_;
  Notes& notes_;
  std::set<std::string> others_;
  std::size_t count_ = 0;
};

}  // namespace

void read_arm_template(const JsonValue& root, std::map<std::string, JsonValue> parameters,
                       Inventory& inventory, Notes& notes) {
  Template reader(inventory, notes);
  reader.read(root, std::move(parameters), "", 0);
  reader.tell_others();
}

void take_entity(const FoundEntity& found, Inventory& inventory, Notes& notes) {
  const auto is = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::equal(found.levels, words,
                              [](const auto& a, const auto& b) { return equals_ignoring_case(a, b); });
  };
  // A slash in a name is written so.
  const auto name = [&](std::size_t i) {
    std::string result = found.names.at(i);
    std::ranges::replace(result, '~', '/');
    return result;
  };
  const JsonValue nothing{.value = JsonValue::Object{}};
  const JsonValue& properties = found.properties ? *found.properties : nothing;
  if (properties.if_object() == nullptr) return notes.error(found.path, "expected an object");
  const auto fill = [&](InventoryEntity& entity, client::EntityKind kind) {
    if (entity.is_said) return notes.error(found.path, fmt::format("'{}' is there twice", entity.name));
    entity.is_said = true;
    for (const JsonMember& one : *properties.if_object())
      set_from_json(entity.properties, kind, one.name, one.value, found.path + "." + one.name, notes);
    correct_size(entity.properties);
  };
  const auto rights = [&] { return member(properties, "rights"); };
  if (is({"queues"})) {
    fill(inventory.queue(name(0)), client::EntityKind::queue);
  } else if (is({"topics"})) {
    fill(inventory.topic(name(0)), client::EntityKind::topic);
  } else if (is({"topics", "subscriptions"})) {
    fill(inventory.subscription(name(0), name(1)), client::EntityKind::subscription);
  } else if (is({"topics", "subscriptions", "rules"})) {
    add_rule_from_json(inventory.subscription(name(0), name(1)).rules, found.names[2], properties, found.path,
                       notes);
  } else if (is({"authorizationRules"})) {
    add_access_rule(inventory.access_rules, found.names[0], rights(), found.path, notes);
  } else if (is({"queues", "authorizationRules"})) {
    add_access_rule(inventory.queue(name(0)).access_rules, found.names[1], rights(), found.path, notes);
  } else if (is({"topics", "authorizationRules"})) {
    add_access_rule(inventory.topic(name(0)).access_rules, found.names[1], rights(), found.path, notes);
  } else {
    notes.warn(found.path, fmt::format("what is below {} is passed over", fmt::join(found.levels, "/")));
  }
}

}  // namespace omnibus::transfer
