#include "transfer/importing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "admin/admin_values.hpp"
#include "admin/atom_xml.hpp"
#include "admin/descriptions.hpp"
#include "admin/entity_name.hpp"
#include "admin/entity_request.hpp"
#include "admin/rule_descriptions.hpp"
#include "base/text.hpp"
#include "transfer/rule_json.hpp"

namespace omnibus::transfer {
namespace {

using client::Description;
using client::EntityKind;
using client::EntityName;

constexpr std::array<std::string_view, 4> fixed = {"RequiresSession", "RequiresDuplicateDetection",
                                                   "EnablePartitioning", "EnableExpress"};
constexpr std::array<std::string_view, 2> forwards = {"ForwardTo", "ForwardDeadLetteredMessagesTo"};
constexpr std::string_view rules_element = "AuthorizationRules";

// Nothing is left to ask when these come.
bool is_fatal(const Error& error) {
  return error.code == Errc::io || error.code == Errc::timeout || error.code == Errc::auth_failed;
}

bool is_same_value(std::string_view element, const std::optional<std::string>& present,
                   const std::optional<std::string>& wanted) {
  const std::string one = present.value_or("");
  const std::string other = wanted.value_or("");
  switch (type_of_property(element)) {
    case PropertyType::duration: {
      const auto a = admin::from_iso_duration(one);
      const auto b = admin::from_iso_duration(other);
      return a && b ? *a == *b : one == other;
    }
    case PropertyType::flag:
      return equals_ignoring_case(one.empty() ? "false" : one, other.empty() ? "false" : other);
    case PropertyType::target: {
      const auto a = admin::forward_target(one);
      const auto b = admin::forward_target(other);
      return a && b ? equals_ignoring_case(*a, *b) : one.empty() == other.empty();
    }
    default:
      return one == other;
  }
}

// What means nothing to our broker, so that its configuration does not hold it; other services have it.
constexpr std::array<std::string_view, 3> passed_on = {"EnableBatchedOperations", "EnableExpress",
                                                       "SupportOrdering"};

const JsonValue* member(const JsonValue* object, std::string_view name) {
  if (const auto* members = object != nullptr ? object->if_object() : nullptr)
    for (const JsonMember& one : *members)
      if (equals_ignoring_case(one.name, name)) return &one.value;
  return nullptr;
}

// The entry of that name in an array of them, or null.
const JsonValue* entry_of(const JsonValue* array, std::string_view name) {
  if (const auto* items = array != nullptr ? array->if_array() : nullptr)
    for (const JsonValue& one : *items)
      if (const JsonValue* own = member(&one, "Name");
          own != nullptr && own->if_text() != nullptr && equals_ignoring_case(*own->if_text(), name))
        return &one;
  return nullptr;
}

// The text of one element, from its begin to its end; an empty one counts.
std::optional<std::pair<std::size_t, std::size_t>> find_element(const std::string& xml,
                                                                std::string_view name) {
  const auto begin = xml.find(fmt::format("<{}", name));
  if (begin == std::string::npos) return std::nullopt;
  const std::string end_mark = fmt::format("</{}>", name);
  const auto first_end = xml.find('>', begin);
  if (first_end == std::string::npos) return std::nullopt;
  if (xml[first_end - 1] == '/') return std::pair{begin, first_end + 1 - begin};
  const auto end = xml.find(end_mark, begin);
  if (end == std::string::npos) return std::nullopt;
  return std::pair{begin, end + end_mark.size() - begin};
}

Result<Description> from_xml(const std::string& name, const std::string& xml) {
  auto page = client::read_answer(
      fmt::format("<entry xmlns=\"http://www.w3.org/2005/Atom\"><title type=\"text\">{}</title><content "
                  "type=\"application/xml\">{}</content></entry>",
                  admin::xml_escape(name), xml));
  if (!page) return fail(page.error());
  if (page->items.empty()) return fail(Errc::internal_error, "'{}' could not be described", name);
  return std::move(page->items.front());
}

class Importer {
 public:
  Importer(client::AdminClient& client, const ImportOptions& options, const ImportTold& told)
      : client_(client), options_(options), told_(told) {}

  Result<ImportReport> run(const Source& source) {
    if (source.config->namespaces.empty()) return report_;
    partition_count_ = source.config->partition_count;
    const auto chosen = find_namespace(*source.config, options_.name_space);
    if (!chosen) return fail(chosen.error());
    const JsonValue* spaces = member(member(&source.tree, "UserConfig"), "Namespaces");
    const auto* all = spaces != nullptr ? spaces->if_array() : nullptr;
    space_ = all != nullptr && *chosen < all->size() ? &(*all)[*chosen] : nullptr;
    const auto& space = source.config->namespaces[*chosen];
    if (!space.rules.empty())
      told_(ImportAction::warned, "the namespace",
            "its own access rules are not part of this API and are left out");
    for (const auto& queue : space.queues)
      if (auto done = take_queue(queue); !done) return fail(done.error());
    for (const auto& topic : space.topics) {
      if (topic.settings.exchange) continue;
      if (auto done = take_topic(topic); !done) return fail(done.error());
      for (const auto& subscription : topic.subscriptions)
        if (auto done = take_subscription(topic, subscription); !done) return fail(done.error());
    }
    if (auto done = take_exchanges(); !done) return fail(done.error());
    // What they forward to has been made by now.
    for (Late& late : late_)
      if (auto done = set_forwards(late); !done) return fail(done.error());
    return report_;
  }

 private:
  struct Late {
    EntityName name;
    Description wanted;
  };

  void tell(ImportAction action, const EntityName& name, const std::string& text = {}) {
    tell(action, name.text(), text);
  }
  void tell(ImportAction action, const std::string& what, const std::string& text) {
    switch (action) {
      case ImportAction::created:
        ++report_.created;
        break;
      case ImportAction::updated:
        ++report_.updated;
        break;
      case ImportAction::unchanged:
        ++report_.unchanged;
        break;
      case ImportAction::refused:
        ++report_.refused;
        break;
      case ImportAction::warned:
        break;
    }
    told_(action, what, text);
  }
  // An error that is this entity's own is told, and the next one's turn comes.
  Result<bool> refused(const EntityName& name, const Error& error) {
    if (is_fatal(error)) return fail(error);
    tell(ImportAction::refused, name, error.detail);
    return false;
  }

  // Everything that the file says or leaves to its defaults; `written` is its entry there.
  Result<Description> describe(EntityKind kind, const std::string& name, const admin::Entity& entity,
                               const std::vector<std::string_view>& named, const JsonValue* written) {
    admin::XmlWriter out;
    admin::write_description(out, entity, {.host = client_.where().host_in_uri(), .api_version = {}});
    auto description = from_xml(name, out.take());
    if (!description) return description;
    const auto settable = Description::settable(kind);
    for (const auto& [element, text] : description->elements())
      if (std::ranges::find(settable, element) == settable.end()) description->unset(element);
    description->unset("CountDetails");
    if (entity.notes.access_rules.empty()) description->unset(rules_element);
    // Where it is not a matter of the namespace's size.
    if (std::ranges::find(named, "MaxMessageSizeInKilobytes") == named.end())
      description->unset("MaxMessageSizeInKilobytes");
    for (const std::string_view element : passed_on)
      if (const JsonValue* said = member(member(written, "Properties"), element))
        if (const auto* flag = std::get_if<bool>(&said->value))
          if (std::ranges::find(settable, element) != settable.end())
            description->set(element, *flag ? "true" : "false");
    if (entity.is_partitioned())
      description->set(
          "MaxSizeInMegabytes",
          std::to_string(
              (kind == EntityKind::topic ? entity.topic.size_bytes_max : entity.queue.size_bytes_max) >> 20));
    return description;
  }

  Result<void> take_queue(const node::QueueEntry& entry) {
    admin::Entity entity;
    entity.kind = admin::EntityKind::queue;
    entity.name = entry.settings.name;
    entity.queue = entry.settings;
    return take(EntityName::queue(entity.name), entity, entry);
  }
  Result<void> take_topic(const node::TopicEntry& entry) {
    admin::Entity entity;
    entity.kind = admin::EntityKind::topic;
    entity.name = entry.settings.name;
    entity.topic = entry.settings;
    return take(EntityName::topic(entity.name), entity, entry);
  }

  template <class Entry>
  Result<void> take(const EntityName& name, admin::Entity& entity, const Entry& entry) {
    entity.notes.user_metadata = entry.user_metadata;
    auto rules = admin::merged_access_rules(entry.rules, {}, wall_now());
    if (!rules) return done(refused(name, rules.error()));
    entity.notes.access_rules = *std::move(rules);
    const JsonValue* written =
        entry_of(member(space_, name.kind == EntityKind::queue ? "Queues" : "Topics"), name.entity);
    auto wanted = describe(name.kind, name.entity, entity, entry.named, written);
    if (!wanted) return fail(wanted.error());
    const auto present = client_.get(name);
    if (present) return done(change(name, *present, *wanted, entry.named));
    if (present.error().code != Errc::not_found) return done(refused(name, present.error()));
    return done(create(name, *std::move(wanted)));
  }

  static Result<void> done(const Result<bool>& result) {
    if (!result) return fail(result.error());
    return {};
  }

  Result<bool> create(const EntityName& name, Description wanted) {
    Description first = wanted;
    bool forwards_on = false;
    for (const std::string_view element : forwards)
      if (first.get(element)) {
        first.unset(element);
        forwards_on = true;
      }
    if (!options_.dry_run) {
      if (auto made = client_.create(name, first); !made) return refused(name, made.error());
      if (auto compared = compare_partitions(name, first); !compared) return fail(compared.error());
    }
    tell(ImportAction::created, name);
    if (forwards_on) late_.push_back({name, std::move(wanted)});
    return true;
  }

  // Once the server has not said it, it is not asked again.
  Result<std::optional<std::uint32_t>> partitions_of(const EntityName& name) {
    if (!says_partitions_) return std::optional<std::uint32_t>{};
    auto count = client_.partitions_of(name.entity);
    if (count) says_partitions_ = count->has_value();
    return count;
  }

  // It is the broker who decides how many a new entity has.
  Result<void> compare_partitions(const EntityName& name, const Description& made) {
    if (name.kind == EntityKind::subscription || made.get("EnablePartitioning") != "true") return {};
    const auto count = partitions_of(name);
    if (!count && is_fatal(count.error())) return fail(count.error());
    if (!count) {
      tell(ImportAction::warned, name,
           fmt::format("it is made, and how many partitions it has is not known: {}", count.error().detail));
      return {};
    }
    const std::uint32_t there = count->value_or(partitions_usual);
    if (there != partition_count_)
      tell(ImportAction::warned, name,
           fmt::format("it has {} partitions there and {} in the file: PartitionCount of the broker decides",
                       there, partition_count_));
    return {};
  }

  Result<bool> change(const EntityName& name, const Description& present, const Description& wanted,
                      const std::vector<std::string_view>& named) {
    Description next = present;
    std::vector<std::string> changed;
    const auto settable = Description::settable(name.kind);
    for (const std::string_view element : named) {
      if (element == rules_element) {
        const auto replaced = with_access_rules(name, next, wanted);
        if (!replaced) return refused(name, replaced.error());
        if (*replaced) {
          next = **replaced;
          changed.emplace_back(element);
        }
        continue;
      }
      if (std::ranges::find(settable, element) == settable.end()) continue;
      auto text = wanted.get(element);
      const auto before = present.get(element);
      if (element == "MaxSizeInMegabytes" && present.get("EnablePartitioning") == "true" && text) {
        const auto count = partitions_of(name);
        if (!count) return refused(name, count.error());
        const std::string sum =
            std::to_string(std::strtoull(text->c_str(), nullptr, 10) * count->value_or(partitions_usual));
        if (before == sum) continue;
        // Who says how many there are takes the sum, of which some are also the size of one.
        if (*count) text = sum;
      }
      if (is_same_value(element, before, text)) continue;
      if (std::ranges::find(fixed, element) != fixed.end())
        return refused(
            name, Error{Errc::argument_error, fmt::format("{} is {} and cannot be changed after the creation",
                                                          element, before.value_or("false"))});
      if (text)
        next.set(element, *text);
      else
        next.unset(element);
      changed.emplace_back(element);
    }
    if (changed.empty()) {
      tell(ImportAction::unchanged, name);
      return true;
    }
    if (!options_.dry_run)
      if (auto updated = client_.update(name, next); !updated) return refused(name, updated.error());
    tell(ImportAction::updated, name, fmt::format("{}", fmt::join(changed, ", ")));
    return true;
  }

  // Nothing inside: they are the same already. Keys that the file does not say stay.
  static Result<std::optional<Description>> with_access_rules(const EntityName& name,
                                                              const Description& present,
                                                              const Description& wanted) {
    const auto rules_of = [](const Description& of) -> std::vector<auth::RuleDocument> {
      const auto xml = admin::parse_xml(of.xml());
      if (!xml) return {};
      const auto request = admin::read_entity_request(*xml, Instant{});
      return request ? request->access_rules.value_or(std::vector<auth::RuleDocument>{})
                     : std::vector<auth::RuleDocument>{};
    };
    const auto mine = rules_of(present);
    const auto theirs = rules_of(wanted);
    const bool same = std::ranges::equal(mine, theirs, [](const auto& a, const auto& b) {
      return a.key_name == b.key_name && a.primary_key == b.primary_key &&
             a.secondary_key == b.secondary_key && a.rights == b.rights;
    });
    if (same) return std::optional<Description>{};
    std::string xml = present.xml();
    const std::string other = wanted.xml();
    const auto from = find_element(other, rules_element);
    const std::string text = from ? other.substr(from->first, from->second) : "<AuthorizationRules/>";
    if (const auto at = find_element(xml, rules_element))
      xml.replace(at->first, at->second, text);
    else
      return fail(Errc::internal_error, "the server shows no access rules of '{}'", name.entity);
    auto description = from_xml(name.entity, xml);
    if (!description) return fail(description.error());
    return std::optional<Description>{*std::move(description)};
  }

  Result<void> set_forwards(Late& late) {
    if (options_.dry_run) return {};
    auto present = client_.get(late.name);
    if (!present) return done(refused(late.name, present.error()));
    for (const std::string_view element : forwards)
      if (const auto text = late.wanted.get(element)) present->set(element, *text);
    if (auto updated = client_.update(late.name, *present); !updated)
      return done(refused(late.name, updated.error()));
    return {};
  }

  // Subscriptions and their rules

  Result<void> take_subscription(const node::TopicEntry& topic, const node::SubscriptionEntry& entry) {
    const auto slash = entry.settings.name.rfind('/');
    const auto name = EntityName::subscription_of(topic.settings.name, entry.settings.name.substr(slash + 1));
    admin::Entity entity;
    entity.kind = admin::EntityKind::subscription;
    entity.name = entry.settings.name;
    entity.queue = entry.settings;
    entity.notes.user_metadata = entry.user_metadata;
    const JsonValue* written =
        entry_of(member(entry_of(member(space_, "Topics"), name.entity), "Subscriptions"), name.subscription);
    auto wanted = describe(EntityKind::subscription, name.subscription, entity, entry.named, written);
    if (!wanted) return fail(wanted.error());
    const auto present = client_.get(name);
    const bool names_rules = std::ranges::find(entry.named, "Rules") != entry.named.end();
    if (present) {
      const auto changed = change(name, *present, *wanted, entry.named);
      if (!changed) return fail(changed.error());
      return names_rules && *changed ? take_rules(name, entry) : Result<void>{};
    }
    if (present.error().code != Errc::not_found) return done(refused(name, present.error()));
    if (!entry.rules.empty()) {
      auto with_rule = with_first_rule(name, *wanted, entry.rules.front());
      if (!with_rule) return fail(with_rule.error());
      wanted = std::move(with_rule);
    }
    const auto made = create(name, *std::move(wanted));
    if (!made) return fail(made.error());
    if (!*made || options_.dry_run) return {};
    for (std::size_t i = 1; i < entry.rules.size(); ++i)
      if (auto put = put_rule(name, entry.rules[i], false); !put) return fail(put.error());
    return {};
  }

  // So that there is no moment in which it gets everything.
  static Result<Description> with_first_rule(const EntityName& name, const Description& wanted,
                                             const rules::Rule& rule) {
    admin::XmlWriter out;
    admin::write_rule(out, rule, admin::description_attributes());
    std::string text = out.take();
    const auto rename = [&](std::string_view from, std::string_view to) {
      if (const auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
    };
    rename("<RuleDescription", "<DefaultRuleDescription");
    rename("</RuleDescription>", "</DefaultRuleDescription>");
    std::string xml = wanted.xml();
    constexpr std::string_view before = "</DeadLetteringOnFilterEvaluationExceptions>";
    const auto at = xml.find(before);
    if (at == std::string::npos)
      return fail(Errc::internal_error, "'{}' could not be described", name.subscription);
    xml.insert(at + before.size(), text);
    return from_xml(name.subscription, xml);
  }

  Result<void> put_rule(const EntityName& of, const rules::Rule& rule, bool is_there) {
    const auto name = EntityName::rule_of(of.entity, of.subscription, rule.name);
    if (!options_.dry_run) {
      const auto description = Description::of_rule(rule);
      auto put = is_there ? client_.update(name, description) : client_.create(name, description);
      if (!put) return done(refused(name, put.error()));
    }
    tell(is_there ? ImportAction::updated : ImportAction::created, name);
    return {};
  }

  Result<void> take_rules(const EntityName& of, const node::SubscriptionEntry& entry) {
    auto present = client_.list(EntityKind::rule, of.entity, of.subscription);
    if (!present) return done(refused(of, present.error()));
    std::vector<rules::Rule> wanted = entry.rules;
    if (wanted.empty()) {
      wanted.emplace_back();
      wanted.back().name = rules::default_rule_name;
    }
    for (const rules::Rule& rule : wanted) {
      const auto old = std::ranges::find_if(
          *present, [&](const Description& one) { return equals_ignoring_case(one.name(), rule.name); });
      const bool is_there = old != present->end();
      if (is_there)
        if (const auto read = old->rule(); read && says_the_same(rule, *read)) continue;
      if (auto put = put_rule(of, rule, is_there); !put) return put;
    }
    for (const Description& one : *present) {
      const bool is_named = std::ranges::any_of(
          wanted, [&](const rules::Rule& rule) { return equals_ignoring_case(one.name(), rule.name); });
      if (is_named) continue;
      const auto name = EntityName::rule_of(of.entity, of.subscription, one.name());
      if (!options_.replace_rules) {
        tell(ImportAction::warned, name, "the file does not name it; it stays without --replace-rules");
        continue;
      }
      if (!options_.dry_run)
        if (auto gone = client_.remove(name); !gone) {
          if (auto told = done(refused(name, gone.error())); !told) return told;
          continue;
        }
      tell(ImportAction::updated, name, "removed");
    }
    return {};
  }

  // Exchanges go as they are written: their documents are ours.
  Result<void> take_exchanges() {
    const JsonValue* exchanges = space_ != nullptr ? space_->find("Exchanges") : nullptr;
    if (exchanges == nullptr || exchanges->if_array() == nullptr) return {};
    for (const JsonValue& document : *exchanges->if_array())
      if (auto done = take_exchange(document); !done) return done;
    return {};
  }

  Result<void> take_exchange(const JsonValue& document) {
    const JsonValue* said = document.find("Name");
    const std::string name = said && said->if_text() ? *said->if_text() : "";
    const std::string what = fmt::format("exchange '{}'", name);
    const auto refuse = [&](const Error& error) -> Result<void> {
      if (is_fatal(error)) return fail(error);
      tell(ImportAction::refused, what, error.detail);
      return {};
    };
    const std::string path = client::encode_path(name);
    const auto before = client_.json({.path = path, .what = what});
    if (!before && before.error().code != Errc::not_found) return refuse(before.error());
    if (options_.dry_run) {
      tell(before ? ImportAction::updated : ImportAction::created, what, before ? "if it differs" : "");
      return {};
    }
    // As with `serve`: subscriptions that the file does not name stay, with their messages.
    JsonValue own = document;
    JsonValue::Array subscriptions;
    if (auto* members = std::get_if<JsonValue::Object>(&own.value))
      for (JsonMember& one : *members)
        if (auto* items = std::get_if<JsonValue::Array>(&one.value.value);
            items && one.name == "Subscriptions")
          subscriptions = std::move(*items);
    if (before) {
      if (auto* members = std::get_if<JsonValue::Object>(&own.value))
        std::erase_if(*members, [](const JsonMember& one) { return one.name == "Subscriptions"; });
    } else {
      own = document;
    }
    const auto after = client_.json({.method = "PUT", .path = path, .body = to_json(own), .what = what});
    if (!after) return refuse(after.error());
    if (before)
      for (const JsonValue& one : subscriptions) {
        const JsonValue* own_name = one.find("Name");
        const std::string subscription = own_name && own_name->if_text() ? *own_name->if_text() : "";
        if (auto put = client_.json({.method = "PUT",
                                     .path = path + "/Subscriptions/" + client::encode_path(subscription),
                                     .body = to_json(one),
                                     .what = fmt::format("subscription '{}' of {}", subscription, what)});
            !put)
          return refuse(put.error());
      }
    tell(before ? ImportAction::updated : ImportAction::created, what, "");
    return {};
  }

  client::AdminClient& client_;
  const ImportOptions& options_;
  const ImportTold& told_;
  const JsonValue* space_ = nullptr;  // what is written, of the namespace
  std::uint32_t partition_count_ = partitions_usual;
  bool says_partitions_ = true;
  ImportReport report_;
  std::vector<Late> late_;
};

}  // namespace

Result<std::size_t> find_namespace(const node::Config& config, const std::string& name) {
  const auto& all = config.namespaces;
  if (name.empty() && all.size() <= 1) return std::size_t{0};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!name.empty() && equals_ignoring_case(all[i].name, name)) return i;
    names.push_back(fmt::format("'{}'", all[i].name));
  }
  if (name.empty())
    return fail(Errc::argument_error, "the file has {} namespaces, {}: --namespace says which one is meant",
                all.size(), fmt::join(names, ", "));
  return fail(Errc::argument_error, "the file has no namespace '{}'; it has {}", name,
              names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

Result<ImportReport> import_namespace(client::AdminClient& client, const Source& source,
                                      const ImportOptions& options, const ImportTold& told) {
  return Importer(client, options, told).run(source);
}

}  // namespace omnibus::transfer
