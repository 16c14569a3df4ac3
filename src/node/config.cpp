#include "node/config.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "node/config_files.hpp"
#include "node/config_json.hpp"
#include "node/config_reader.hpp"

namespace omnibus::node {
namespace {

// Editors look for the schema here; it means nothing to us.
void read_schema(const Place& at, Config&) {
  std::string ignored;
  read_text(at, 0, 4096, ignored);
}

constexpr std::array<Key<Config>, 3> root_keys = {{
    {"$schema", read_schema, Letters::exact},
    {"UserConfig", read_user_config, Letters::any_case},
    {"Omnibus", read_omnibus, Letters::exact},
}};
constexpr ObjectKeys<Config> root_object{"Root", Unknown::warning, root_keys};

}  // namespace

std::string to_text(const Finding& finding) {
  std::string result;
  if (finding.line != 0) result += fmt::format("line {}: ", finding.line);
  if (!finding.key.empty()) result += finding.key + ": ";
  result += finding.text;
  if (!finding.code.empty()) result += fmt::format(" [{}]", finding.code);
  return result;
}

ConfigReading read_config(std::string_view text, const std::string& folder, ConfigScope scope,
                          FindingsKept kept) {
  const auto root = parse_located_json(text);
  if (!root)
    return {
        .config = std::nullopt,
        .findings = {
            {.severity = Finding::Severity::error, .line = root.error().line, .text = root.error().text}}};
  Reading reading{.findings = Findings(kept), .folder = folder};
  reading.is_part = scope == ConfigScope::part;
  const Place at(reading, *root);
  find_twins(at);
  Config config;
  read_object(at, root_object, config);
  finish_entities(reading, config);
  ConfigReading result;
  if (reading.findings.errors() == 0) result.config = std::move(config);
  result.findings = reading.findings.take();
  if (kept == FindingsKept::first && result.findings.size() > findings_max)
    result.findings.back().text += "; 'omnibus config check' says every one";
  return result;
}

Result<ConfigReading> read_config_file(const std::string& path, FindingsKept kept) {
  const auto text = read_plain_file(path, json_bytes_max);
  if (!text) return fail(text.error());
  return read_config(*text, std::filesystem::path(path).parent_path().string(), ConfigScope::whole, kept);
}

std::vector<KnownObject> known_objects() {
  std::vector<KnownObject> result = {describe(root_object)};
  for (auto* objects : {user_config_objects, queue_objects, topic_objects, exchange_objects, omnibus_objects})
    for (auto& object : objects()) result.push_back(std::move(object));
  return result;
}

}  // namespace omnibus::node
