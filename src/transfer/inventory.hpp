// Entities while they are collected from another format, in whatever order they come, and the Config.json
// they make. Property names are ours (LockDuration). Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/atom.hpp"
#include "node/config_json.hpp"

namespace omnibus::transfer {

using node::JsonMember;
using node::JsonValue;

// What is said about a source; with an error in it, it is not used.
struct Note {
  bool is_error = true;
  std::string path{};  // where in the source: resources[2].properties.lockDuration
  std::string text{};
};
inline constexpr std::size_t notes_max = 100;
// Bounded; past the limit one last note says so.
class Notes {
 public:
  void error(std::string path, std::string text) { add({true, std::move(path), std::move(text)}); }
  void warn(std::string path, std::string text) { add({false, std::move(path), std::move(text)}); }
  [[nodiscard]] bool has_errors() const { return errors_; }
  [[nodiscard]] const std::vector<Note>& all() const { return all_; }

 private:
  void add(Note note);
  std::vector<Note> all_;
  bool errors_ = false;
};

struct InventoryEntity {
  std::string name{};
  JsonValue::Object properties{};
  JsonValue::Array access_rules{};
  bool is_said = false;  // not only as the parent of something
};
struct InventorySubscription : InventoryEntity {
  JsonValue::Array rules{};
};
struct InventoryTopic : InventoryEntity {
  std::map<std::string, InventorySubscription> subscriptions{};  // by lower-cased name, as all below
};

struct Inventory {
  std::string name_space{};
  JsonValue::Array access_rules{};
  std::map<std::string, InventoryEntity> queues{};
  std::map<std::string, InventoryTopic> topics{};
  JsonValue::Array exchanges{};  // documents
  // Of new partitioned entities; 0: it is not said.
  std::uint32_t partition_count = 0;

  // The one of that name, new if it is not there.
  InventoryEntity& queue(const std::string& name);
  InventoryTopic& topic(const std::string& name);
  InventorySubscription& subscription(const std::string& topic, const std::string& name);

  // With `cloud_defaults`, what was not said of an entity is said: a file has other defaults than the cloud.
  [[nodiscard]] JsonValue config(bool cloud_defaults) const;
};

void add(JsonValue::Object& object, std::string_view name, JsonValue value);
[[nodiscard]] JsonValue text_value(std::string text);

enum class PropertyType : std::uint8_t { text, flag, number, duration, target };
[[nodiscard]] PropertyType type_of_property(std::string_view name);
// Sets a property from its text as the management API has it. What Config.json has no word for is left out:
// sizes of messages below what can be set, targets that are none.
void set_from_text(JsonValue::Object& properties, std::string_view name, const std::string& text);
// Sets a property by its name in ARM and az (lockDuration) from what they say of it. A note says what is not
// understood; what can only be read is passed over.
void set_from_json(JsonValue::Object& properties, client::EntityKind kind, std::string_view camel_name,
                   const JsonValue& value, const std::string& path, Notes& notes);
inline constexpr std::uint32_t partitions_usual = 16;  // in the cloud, and here
// The size of one partition, where the sum of all is shown. Without `partitions` there are as many as in the
// cloud, and what cannot be their sum is the size of one.
void correct_size(JsonValue::Object& properties, std::optional<std::uint32_t> partitions = std::nullopt);
// A rule of ARM or az, as Config.json has it; nothing but notes when it is not understood.
void add_rule_from_json(JsonValue::Array& rules, const std::string& name, const JsonValue& properties,
                        const std::string& path, Notes& notes);
void add_access_rule(JsonValue::Array& rules, const std::string& name, const JsonValue* rights,
                     const std::string& path, Notes& notes);

// "0:01:00" and "10675199 days, 2:48:05.477581", as Python writes a span, in ISO 8601; other texts as they
// are.
[[nodiscard]] std::string iso_span(const std::string& text);

// Indented by two, as people like to read it.
[[nodiscard]] std::string pretty_json(const JsonValue& value);

}  // namespace omnibus::transfer
