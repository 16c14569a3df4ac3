#include "node/entity_merge.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "admin/entity_request.hpp"
#include "base/text.hpp"
#include "node/config_json.hpp"
#include "node/entity_notes.hpp"
#include "node/exchange_documents.hpp"

namespace omnibus::node {
namespace {

using broker::QueueSettings;
using broker::TopicSettings;

// One property of the settings, by its name in the configuration file.
template <class Settings>
struct Property {
  std::string_view name;
  bool (*is_same)(const Settings&, const Settings&);
  void (*take)(Settings& into, const Settings& from);
  bool is_fixed = false;
};

template <auto member, class Settings>
constexpr Property<Settings> property(std::string_view name, bool is_fixed = false) {
  return {name, [](const Settings& one, const Settings& other) { return one.*member == other.*member; },
          [](Settings& into, const Settings& from) { into.*member = from.*member; }, is_fixed};
}
// The name of another entity.
template <auto member, class Settings>
constexpr Property<Settings> target(std::string_view name) {
  return {name,
          [](const Settings& one, const Settings& other) {
            return equals_ignoring_case(one.*member, other.*member);
          },
          [](Settings& into, const Settings& from) { into.*member = from.*member; }};
}

constexpr bool fixed = true;
constexpr std::array<Property<QueueSettings>, 17> queue_properties = {{
    property<&QueueSettings::lock_duration, QueueSettings>("LockDuration"),
    property<&QueueSettings::size_bytes_max, QueueSettings>("MaxSizeInMegabytes"),
    property<&QueueSettings::requires_duplicate_detection, QueueSettings>("RequiresDuplicateDetection",
                                                                          fixed),
    property<&QueueSettings::requires_session, QueueSettings>("RequiresSession", fixed),
    property<&QueueSettings::default_time_to_live, QueueSettings>("DefaultMessageTimeToLive"),
    property<&QueueSettings::dead_letter_on_expiration, QueueSettings>("DeadLetteringOnMessageExpiration"),
    property<&QueueSettings::dead_letter_on_filter_error, QueueSettings>(
        "DeadLetteringOnFilterEvaluationExceptions"),
    property<&QueueSettings::duplicate_window, QueueSettings>("DuplicateDetectionHistoryTimeWindow"),
    property<&QueueSettings::delivery_count_max, QueueSettings>("MaxDeliveryCount"),
    property<&QueueSettings::status, QueueSettings>("Status"),
    target<&QueueSettings::forward_to, QueueSettings>("ForwardTo"),
    target<&QueueSettings::forward_dead_letters_to, QueueSettings>("ForwardDeadLetteredMessagesTo"),
    property<&QueueSettings::auto_delete_on_idle, QueueSettings>("AutoDeleteOnIdle"),
    property<&QueueSettings::message_bytes_max, QueueSettings>("MaxMessageSizeInKilobytes"),
    property<&QueueSettings::prefetch_count, QueueSettings>("PrefetchCount"),
    property<&QueueSettings::prefetch_bytes, QueueSettings>("PrefetchSize"),
    property<&QueueSettings::is_partitioned, QueueSettings>("EnablePartitioning", fixed),
}};
constexpr std::array<Property<TopicSettings>, 11> topic_properties = {{
    property<&TopicSettings::exchange, TopicSettings>("Type", fixed),
    property<&TopicSettings::default_time_to_live, TopicSettings>("DefaultMessageTimeToLive"),
    property<&TopicSettings::size_bytes_max, TopicSettings>("MaxSizeInMegabytes"),
    property<&TopicSettings::requires_duplicate_detection, TopicSettings>("RequiresDuplicateDetection",
                                                                          fixed),
    property<&TopicSettings::duplicate_window, TopicSettings>("DuplicateDetectionHistoryTimeWindow"),
    property<&TopicSettings::status, TopicSettings>("Status"),
    property<&TopicSettings::auto_delete_on_idle, TopicSettings>("AutoDeleteOnIdle"),
    property<&TopicSettings::message_bytes_max, TopicSettings>("MaxMessageSizeInKilobytes"),
    property<&TopicSettings::unroutable, TopicSettings>("Unroutable"),
    target<&TopicSettings::alternate_exchange, TopicSettings>("AlternateExchange"),
    property<&TopicSettings::is_partitioned, TopicSettings>("EnablePartitioning", fixed),
}};

bool is_named(const NamedProperties& named, std::string_view property) {
  return !named || std::ranges::find(*named, property) != named->end();
}

template <class Settings>
void merge_settings(Settings& present, const Settings& wanted, std::span<const Property<Settings>> properties,
                    const NamedProperties& named, EntityMerge& merge) {
  for (const auto& one : properties) {
    if (!is_named(named, one.name) || one.is_same(present, wanted)) continue;
    merge.changed.emplace_back(one.name);
    if (one.is_fixed)
      merge.fixed.emplace_back(one.name);
    else
      one.take(present, wanted);
  }
}

std::map<std::string, std::string> members_of(std::string_view document) {
  std::map<std::string, std::string> result;
  if (const auto json = parse_located_json(document); json && json->if_object() != nullptr)
    for (const auto& member : *json->if_object()) result.emplace(member.name, to_json(member.value));
  return result;
}

// A document is a whole: what it does not say is not said any more. But for its Id, which stays.
void merge_document(const std::string& present, const std::string& wanted, EntityMerge& merge) {
  auto mine = members_of(present);
  const auto theirs = members_of(wanted);
  const bool keeps_id = !theirs.contains("Id") && mine.contains("Id");
  if (keeps_id) mine.erase("Id");
  const std::size_t before = merge.changed.size();
  const auto differs = [&](const std::string& name) {
    merge.changed.push_back(name);
    if (name == "Id" && mine.contains("Id")) merge.fixed.push_back(name);
  };
  for (const auto& [name, value] : mine)
    if (const auto other = theirs.find(name); other == theirs.end() || other->second != value) differs(name);
  for (const auto& [name, value] : theirs)
    if (!mine.contains(name)) differs(name);
  if (merge.changed.size() != before)
    merge.update.document = keeps_id ? with_id(wanted, document_text(present, "Id")) : wanted;
}

Result<void> merge_notes(const store::PartitionInfo& present, const NewEntity& wanted, Instant now,
                         EntityMerge& merge) {
  EntityNotes notes = read_notes(present.notes);
  const auto take_metadata = [&](const std::string& text) {
    const EntityNotes theirs = read_notes(text);
    if (theirs.notes.user_metadata == notes.notes.user_metadata) return;
    notes.notes.user_metadata = theirs.notes.user_metadata;
    merge.changed.emplace_back("UserMetadata");
  };
  const auto take_rules = [&](const std::vector<auth::RuleDocument>& documents) -> Result<void> {
    auto rules = admin::merged_access_rules(documents, notes.notes.access_rules, now);
    if (!rules) return fail(rules.error());
    if (notes.has_access_rules && *rules == notes.notes.access_rules) return {};
    notes.has_access_rules = true;
    notes.notes.access_rules = *std::move(rules);
    merge.changed.emplace_back("AuthorizationRules");
    return {};
  };
  // Documents say nothing of notes, so only those who name them speak of them.
  Result<void> taken;
  std::visit(
      [&](const auto& one) {
        if (!one.named) return;
        if (is_named(one.named, "UserMetadata")) take_metadata(one.notes);
        if constexpr (requires { one.access_rules; })
          if (is_named(one.named, "AuthorizationRules")) taken = take_rules(one.access_rules);
      },
      wanted);
  if (!taken) return taken;
  const auto is_changed = [&](std::string_view name) {
    return std::ranges::find(merge.changed, name) != merge.changed.end();
  };
  // It is shown as it was written, and that was another one.
  if (is_changed("ForwardTo")) notes.notes.forward_to_uri.clear();
  if (is_changed("ForwardDeadLetteredMessagesTo")) notes.notes.forward_dead_letters_to_uri.clear();
  if (!merge.changed.empty()) notes.notes.mark_changed(present.created, now);
  merge.update.notes = write_notes(notes);
  return {};
}

}  // namespace

std::string_view kind_of(const store::PartitionInfo& info) {
  switch (info.kind) {
    case store::PartitionKind::queue:
      return "queue";
    case store::PartitionKind::subscription:
      return "subscription";
    case store::PartitionKind::topic:
      return info.topic_settings.exchange ? "exchange" : "topic";
  }
  return "entity";
}

bool is_same_kind(const store::PartitionInfo& present, const NewEntity& wanted) {
  return kind_of(present) == kind_of(wanted);
}

Result<EntityMerge> merge_entity(const store::PartitionInfo& present, const NewEntity& wanted, Instant now) {
  EntityMerge merge;
  merge.update.queue = present.settings;
  merge.update.topic = present.topic_settings;
  if (const auto* queue = std::get_if<NewQueue>(&wanted)) {
    merge_settings<QueueSettings>(merge.update.queue, queue->settings, queue_properties, queue->named, merge);
  } else if (const auto* topic = std::get_if<NewTopic>(&wanted)) {
    merge_settings<TopicSettings>(merge.update.topic, topic->settings, topic_properties, topic->named, merge);
    if (topic->settings.exchange) merge_document(present.document, topic->document, merge);
  } else {
    const auto& subscription = std::get<NewSubscription>(wanted);
    // How large a message may be is said of its topic, and so are partitions.
    auto settings = subscription.settings;
    settings.is_partitioned = present.settings.is_partitioned;
    settings.message_bytes_max = present.settings.message_bytes_max;
    merge_settings<QueueSettings>(merge.update.queue, settings, queue_properties, subscription.named, merge);
    if (subscription.exchange) {
      merge_document(present.document, subscription.document, merge);
      if (merge.update.document) merge.update.binding = subscription.binding;
    }
  }
  if (auto merged = merge_notes(present, wanted, now, merge); !merged) return fail(merged.error());
  return merge;
}

}  // namespace omnibus::node
