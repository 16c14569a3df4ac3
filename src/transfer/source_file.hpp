// Files that name entities, whatever they come from, as one Config.json [admin contract 16].
//
// Config.json itself stays as it is. An ARM template: its resources of Microsoft.ServiceBus, nested ones and
// nested deployments too. What az prints: an object or an array of them, told apart by their `id`. Findings
// say where in the source. Bounded as node/config_json.hpp says. Pure; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "node/config.hpp"
#include "transfer/inventory.hpp"

namespace omnibus::transfer {

enum class SourceKind : std::uint8_t { config, arm_template, az_listing };
[[nodiscard]] std::string_view name_of(SourceKind kind);

struct Source {
  SourceKind kind = SourceKind::config;
  JsonValue tree{};                      // Config.json
  std::optional<node::Config> config{};  // nothing when there is an error among the notes
  Notes notes{};
};

// `parameters` are values for those of a template, by name.
[[nodiscard]] Source read_source(std::string_view text, const std::map<std::string, std::string>& parameters);

// Private to the readers.
void read_arm_template(const JsonValue& root, std::map<std::string, JsonValue> parameters,
                       Inventory& inventory, Notes& notes);
void read_az_listing(const JsonValue& root, Inventory& inventory, Notes& notes);
[[nodiscard]] bool is_az_listing(const JsonValue& root);
// `names` are those of the entity and its parents below the namespace, `levels` the words of its type:
// {"topics", "subscriptions", "rules"}. `properties` may hold more than the entity's own.
struct FoundEntity {
  std::vector<std::string> levels{};
  std::vector<std::string> names{};
  const JsonValue* properties = nullptr;  // null: none
  std::string path{};
};
void take_entity(const FoundEntity& found, Inventory& inventory, Notes& notes);

}  // namespace omnibus::transfer
