#include "transfer/exporting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "admin/atom_xml.hpp"
#include "admin/entity_request.hpp"
#include "auth/rights.hpp"
#include "base/text.hpp"
#include "transfer/rule_json.hpp"

namespace omnibus::transfer {
namespace {

using client::Description;
using client::EntityKind;

// What can only be read changes nothing when it is made again.
constexpr std::string_view read_only[] = {"State", "Warnings"};

void drop_read_only(JsonValue& document) {
  auto* members = std::get_if<JsonValue::Object>(&document.value);
  if (members == nullptr) return;
  std::erase_if(*members, [](const JsonMember& one) {
    return std::ranges::find(read_only, one.name) != std::end(read_only);
  });
  for (JsonMember& one : *members)
    if (auto* items = std::get_if<JsonValue::Array>(&one.value.value); items && one.name == "Subscriptions")
      for (JsonValue& item : *items) drop_read_only(item);
}

// Names of exchanges; none where the server does not know the word.
Result<std::vector<std::string>> list_exchanges(client::AdminClient& client) {
  std::vector<std::string> names;
  while (true) {
    const auto body =
        client.json({.path = fmt::format("$Resources/Exchanges?$skip={}&$top=100", names.size()),
                     .what = "the exchanges"});
    if (!body) {
      const bool is_other = body.error().code == Errc::not_found ||
                            body.error().code == Errc::argument_error ||
                            body.error().code == Errc::not_allowed || body.error().code == Errc::decode_error;
      if (names.empty() && is_other) return names;
      return fail(body.error());
    }
    const auto json = node::parse_located_json(*body);
    const JsonValue* value = json ? json->find("value") : nullptr;
    if (value == nullptr || value->if_array() == nullptr)
      return names;  // the cloud answers with something else
    const std::size_t before = names.size();
    for (const JsonValue& one : *value->if_array())
      if (const JsonValue* name = one.find("Name"); name && name->if_text())
        names.push_back(*name->if_text());
    if (json->find("next") == nullptr || names.size() == before) return names;
  }
}

// How many partitions entities have, asked where the server says it. A file has one number for all of them.
class PartitionCounts {
 public:
  explicit PartitionCounts(client::AdminClient& client) : client_(client) {}

  [[nodiscard]] Result<std::optional<std::uint32_t>> of(const Description& entity) {
    if (!is_told_ || entity.get("EnablePartitioning") != "true") return std::optional<std::uint32_t>{};
    auto count = client_.partitions_of(entity.name());
    if (!count) return count;
    is_told_ = count->has_value();
    if (*count) entities_[**count].push_back(entity.name());
    return count;
  }

  // What most of them have; notes say which have others.
  [[nodiscard]] std::uint32_t most(Notes& notes) const {
    if (entities_.empty()) return 0;
    const auto most =
        std::ranges::max_element(entities_, {}, [](const auto& one) { return one.second.size(); });
    for (const auto& [count, names] : entities_)
      for (const std::string& name : names)
        if (count != most->first)
          notes.warn(name, fmt::format("it has {} partitions; a file has one PartitionCount for all new "
                                       "entities, and this one says {}",
                                       count, most->first));
    return most->first == partitions_usual ? 0 : most->first;
  }

 private:
  client::AdminClient& client_;
  bool is_told_ = true;
  std::map<std::uint32_t, std::vector<std::string>> entities_;
};

}  // namespace

void take_description(InventoryEntity& entity, const Description& description, Notes& notes,
                      std::optional<std::uint32_t> partitions) {
  entity.is_said = true;
  for (const std::string_view element : Description::settable(description.kind()))
    if (const auto text = description.get(element)) set_from_text(entity.properties, element, *text);
  correct_size(entity.properties, partitions);
  // A state that only the service can set.
  std::erase_if(entity.properties, [&](const JsonMember& one) {
    if (one.name != "Status" || one.value.if_text() == nullptr) return false;
    const std::string& status = *one.value.if_text();
    const bool settable =
        status == "Active" || status == "Disabled" || status == "SendDisabled" || status == "ReceiveDisabled";
    if (!settable) notes.warn(entity.name, fmt::format("its status {} is left out", status));
    return !settable;
  });
  const auto xml = admin::parse_xml(description.xml());
  if (!xml || description.kind() == EntityKind::subscription) return;
  const auto request = admin::read_entity_request(*xml, Instant{});
  if (!request || !request->access_rules) return;
  for (const auth::RuleDocument& rule : *request->access_rules) {
    JsonValue::Object object;
    add(object, "KeyName", text_value(rule.key_name));
    if (rule.primary_key) add(object, "PrimaryKey", text_value(*rule.primary_key));
    if (rule.secondary_key) add(object, "SecondaryKey", text_value(*rule.secondary_key));
    JsonValue::Array rights;
    for (const auth::Right right : rule.rights)
      rights.push_back(text_value(std::string(auth::name_of(right))));
    add(object, "Rights", {.value = std::move(rights)});
    entity.access_rules.push_back({.value = std::move(object)});
  }
}

Result<Export> export_namespace(client::AdminClient& client,
                                const std::function<void(const std::string&)>& told) {
  Export result;
  Inventory inventory;
  PartitionCounts partitions(client);
  auto queues = client.list(EntityKind::queue);
  if (!queues) return fail(queues.error());
  for (const Description& one : *queues) {
    told(one.name());
    const auto count = partitions.of(one);
    if (!count) return fail(count.error());
    take_description(inventory.queue(one.name()), one, result.notes, *count);
    ++result.queues;
  }
  const auto exchanges = list_exchanges(client);
  if (!exchanges) return fail(exchanges.error());
  std::set<std::string> are_exchanges;
  for (const std::string& name : *exchanges) {
    told(name);
    are_exchanges.insert(ascii_lower(name));
    const auto body =
        client.json({.path = client::encode_path(name), .what = fmt::format("exchange '{}'", name)});
    if (!body) return fail(body.error());
    auto document = node::parse_located_json(*body);
    if (!document) return fail(Errc::decode_error, "the document of exchange '{}' is no JSON", name);
    drop_read_only(*document);
    inventory.exchanges.push_back(*std::move(document));
    ++result.exchanges;
  }
  auto topics = client.list(EntityKind::topic);
  if (!topics) return fail(topics.error());
  for (const Description& one : *topics) {
    if (are_exchanges.contains(ascii_lower(one.name()))) continue;
    told(one.name());
    const auto count = partitions.of(one);
    if (!count) return fail(count.error());
    take_description(inventory.topic(one.name()), one, result.notes, *count);
    ++result.topics;
    auto subscriptions = client.list(EntityKind::subscription, one.name());
    if (!subscriptions) return fail(subscriptions.error());
    for (const Description& subscription : *subscriptions) {
      const std::string path = fmt::format("{}/Subscriptions/{}", one.name(), subscription.name());
      told(path);
      auto& entity = inventory.subscription(one.name(), subscription.name());
      take_description(entity, subscription, result.notes);
      ++result.subscriptions;
      auto rules = client.list(EntityKind::rule, one.name(), subscription.name());
      if (!rules) return fail(rules.error());
      for (const Description& description : *rules) {
        auto rule = description.rule();
        if (!rule)
          return fail(rule.error().code, "rule '{}' of {}: {}", description.name(), path,
                      rule.error().detail);
        rule->name = description.name();
        entity.rules.push_back(rule_json(*rule, path + "/Rules/" + rule->name, result.notes));
        ++result.rules;
      }
      if (rules->empty())
        result.notes.warn(path,
                          "it has no rules and gets nothing; a file cannot say that: it will get everything");
    }
  }
  inventory.partition_count = partitions.most(result.notes);
  result.config = inventory.config(false);
  return result;
}

}  // namespace omnibus::transfer
