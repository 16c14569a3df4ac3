#include "transfer/source_file.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace omnibus::transfer {
namespace {

bool is_arm_template(const JsonValue& root) {
  const JsonValue* schema = root.find("$schema");
  const std::string* text = schema != nullptr ? schema->if_text() : nullptr;
  if (text != nullptr && ascii_lower(*text).contains("deploymenttemplate")) return true;
  return root.find("resources") != nullptr && root.find("UserConfig") == nullptr;
}

// A value given on the command line: JSON where it is JSON, otherwise the text itself.
JsonValue parameter_value(const std::string& text) {
  if (auto json = node::parse_located_json(text); json && json->if_object() == nullptr)
    return *std::move(json);
  return text_value(text);
}

}  // namespace

std::string_view name_of(SourceKind kind) {
  switch (kind) {
    case SourceKind::config:
      return "Config.json";
    case SourceKind::arm_template:
      return "ARM template";
    case SourceKind::az_listing:
      return "listing of az";
  }
  return "";
}

Source read_source(std::string_view text, const std::map<std::string, std::string>& parameters) {
  Source source;
  auto json = node::parse_located_json(text);
  if (!json) {
    source.notes.error(json.error().line != 0 ? fmt::format("line {}", json.error().line) : "",
                       json.error().text);
    return source;
  }
  const bool is_template = is_arm_template(*json);
  const bool is_listing = !is_template && is_az_listing(*json);
  if (is_template || is_listing) {
    Inventory inventory;
    if (is_template) {
      source.kind = SourceKind::arm_template;
      std::map<std::string, JsonValue> values;
      for (const auto& [name, value] : parameters) values[name] = parameter_value(value);
      read_arm_template(*json, std::move(values), inventory, source.notes);
    } else {
      source.kind = SourceKind::az_listing;
      read_az_listing(*json, inventory, source.notes);
    }
    for (const auto& [key, topic] : inventory.topics)
      if (!topic.is_said)
        source.notes.warn("", fmt::format("topic '{}' is only named: where it is not there it is made with "
                                          "the defaults of a file",
                                          topic.name));
    source.tree = inventory.config(true);
    if (source.notes.has_errors()) return source;
  } else {
    source.tree = *std::move(json);
  }
  const std::string generated = is_template || is_listing ? to_json(source.tree) : std::string{};
  // One reader for all of them, so that all are judged alike.
  auto reading = node::read_config(is_template || is_listing ? std::string_view(generated) : text, "",
                                   node::ConfigScope::part, node::FindingsKept::all);
  for (node::Finding& finding : reading.findings) {
    std::string path = finding.key;
    if (source.kind == SourceKind::config && finding.line != 0)
      path = fmt::format("line {}: {}", finding.line, path);
    if (!finding.code.empty()) finding.text += fmt::format(" [{}]", finding.code);
    if (finding.severity == node::Finding::Severity::error)
      source.notes.error(std::move(path), std::move(finding.text));
    else
      source.notes.warn(std::move(path), std::move(finding.text));
  }
  source.config = std::move(reading.config);
  return source;
}

}  // namespace omnibus::transfer
