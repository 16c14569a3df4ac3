// What `az servicebus queue list` and its kin print: objects with an `id`, their properties beside it.
#include <fmt/format.h>

#include "base/text.hpp"
#include "transfer/source_file.hpp"

namespace omnibus::transfer {
namespace {

constexpr std::string_view provider = "/providers/Microsoft.ServiceBus/namespaces/";

const std::string* id_of(const JsonValue& value) {
  const JsonValue* id = value.find("id");
  return id != nullptr ? id->if_text() : nullptr;
}

std::size_t find_provider(const std::string& id) { return ascii_lower(id).find(ascii_lower(provider)); }

void read_one(const JsonValue& object, const std::string& path, Inventory& inventory, Notes& notes) {
  const std::string* id = id_of(object);
  if (id == nullptr) return notes.error(path, "expected an object with an 'id', as az prints it");
  const auto at = find_provider(*id);
  if (at == std::string::npos)
    return notes.error(path + ".id", "it is not about an entity of a Service Bus namespace");
  std::vector<std::string> parts;
  std::string_view rest = std::string_view(*id).substr(at + provider.size());
  while (true) {
    const auto slash = rest.find('/');
    parts.emplace_back(rest.substr(0, slash));
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  // The namespace, then a word and a name for each level.
  if (parts.size() == 1) return;
  if (parts.size() % 2 != 1 || parts.size() > 9) return notes.error(path + ".id", "it is not understood");
  FoundEntity found;
  for (std::size_t i = 1; i + 1 < parts.size(); i += 2) {
    found.levels.push_back(parts[i]);
    found.names.push_back(parts[i + 1]);
  }
  // Older versions and `az rest` have them one level below.
  const JsonValue* inner = object.find("properties");
  const bool is_rule = found.levels.size() == 3;
  found.properties = inner != nullptr && inner->if_object() != nullptr && !is_rule ? inner : &object;
  if (is_rule && inner != nullptr && inner->find("filterType") != nullptr) found.properties = inner;
  found.path = path;
  take_entity(found, inventory, notes);
}

}  // namespace

bool is_az_listing(const JsonValue& root) {
  if (const auto* items = root.if_array()) return items->empty() || id_of(items->front()) != nullptr;
  if (const JsonValue* value = root.find("value"); value != nullptr && value->if_array() != nullptr)
    return is_az_listing(*value);
  return id_of(root) != nullptr;
}

void read_az_listing(const JsonValue& root, Inventory& inventory, Notes& notes) {
  if (const auto* items = root.if_array()) {
    for (std::size_t i = 0; i < items->size(); ++i)
      read_one((*items)[i], fmt::format("[{}]", i), inventory, notes);
  } else if (const JsonValue* value = root.find("value"); value != nullptr && value->if_array() != nullptr) {
    read_az_listing(*value, inventory, notes);
  } else {
    read_one(root, "", inventory, notes);
  }
}

}  // namespace omnibus::transfer
