#include "node/store_register.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <set>

#include "node/config_json.hpp"
#include "node/json_fields.hpp"
#include "node/store_folders.hpp"

namespace omnibus::node {
namespace {

constexpr std::int64_t version = 1;

std::unexpected<Error> damaged(std::string_view what) {
  return fail(Errc::io, "the register of stores is damaged: {}", what);
}

const std::int64_t* number_field(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  return value ? std::get_if<std::int64_t>(&value->value) : nullptr;
}

}  // namespace

std::string write_store_register(const KnownStores& stores) {
  JsonValue::Array all;
  for (const auto& [number, identity] : stores) {
    JsonValue::Object one;
    add_field(one, "Number", {.value = std::int64_t{number}});
    // As the journal's tools show it; a JSON number would not hold all of it.
    add_field(one, "Identity", json_text(fmt::format("{:016x}", identity)));
    all.push_back({.value = std::move(one)});
  }
  JsonValue::Object file;
  add_field(file, "Version", {.value = version});
  add_field(file, "Stores", {.value = std::move(all)});
  return to_json({.value = std::move(file)}) + "\n";
}

Result<KnownStores> read_store_register(std::string_view text) {
  const auto json = parse_located_json(text);
  if (!json) return damaged(json.error().text);
  const auto* written_by = number_field(*json, "Version");
  if (written_by == nullptr || *written_by != version) return damaged("its version is not known");
  const JsonValue* list = json->find("Stores");
  if (list == nullptr || list->if_array() == nullptr) return damaged("the list is missing");
  KnownStores stores;
  std::set<std::uint64_t> identities;
  for (const JsonValue& one : *list->if_array()) {
    const auto* number = number_field(one, "Number");
    if (number == nullptr || *number < 0 || *number >= stores_max) return damaged("a number is wrong");
    const std::string hex = text_field(one, "Identity");
    std::uint64_t identity = 0;
    const auto [end, wrong] = std::from_chars(hex.data(), hex.data() + hex.size(), identity, 16);
    if (hex.size() != 16 || wrong != std::errc{} || end != hex.data() + hex.size() || identity == 0)
      return damaged("an identity is wrong");
    if (!stores.emplace(static_cast<std::uint16_t>(*number), identity).second ||
        !identities.insert(identity).second)
      return damaged("a store is there twice");
  }
  return stores;
}

Result<KnownStores> load_store_register(const std::filesystem::path& data) {
  const auto path = data / store_register_file;
  std::error_code trouble;
  if (!std::filesystem::exists(path, trouble)) {
    if (trouble) return fail(Errc::io, "cannot look at '{}': {}", path.string(), trouble.message());
    return KnownStores{};
  }
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) return fail(Errc::io, "cannot read '{}'", path.string());
  auto stores = read_store_register(text);
  if (!stores) return fail(stores.error().code, "'{}': {}", path.string(), stores.error().detail);
  return stores;
}

}  // namespace omnibus::node
