// `Topics` of a namespace with their subscriptions: the emulator's keys with its defaults, and every other
// settable property beside them. [HTTP 8.2, 8.3, 13, 16]
#include <fmt/format.h>

#include <array>
#include <set>

#include "auth/faults.hpp"
#include "base/text.hpp"
#include "broker/topic_settings.hpp"
#include "node/config_entities.hpp"
#include "node/config_rules.hpp"

namespace omnibus::node {
namespace {

using broker::QueueSettings;
using broker::TopicSettings;

constexpr auto any_case = Letters::any_case;

// Subscriptions

struct SubscriptionDraft {
  SubscriptionEntry entry;
  std::string name{};
  std::vector<LaterCheck> later{};
};

constexpr std::array<Key<SubscriptionDraft>, 12> subscription_property_keys = {{
    {"LockDuration", read_time<&QueueSettings::lock_duration>, any_case},
    {"RequiresSession", read_flag<&QueueSettings::requires_session>, any_case},
    {"DefaultMessageTimeToLive", read_time<&QueueSettings::default_time_to_live>, any_case},
    {"DeadLetteringOnMessageExpiration", read_flag<&QueueSettings::dead_letter_on_expiration>, any_case},
    {"DeadLetteringOnFilterEvaluationExceptions", read_flag<&QueueSettings::dead_letter_on_filter_error>,
     any_case},
    {"MaxDeliveryCount", read_delivery_count, any_case},
    {"EnableBatchedOperations", read_unused_flag, any_case},
    {"Status", read_status, any_case},
    {"ForwardTo", read_forward<&QueueSettings::forward_to, LaterCheck::About::forward_to>, any_case},
    {"UserMetadata", read_user_metadata, any_case},
    {"ForwardDeadLetteredMessagesTo",
     read_forward<&QueueSettings::forward_dead_letters_to, LaterCheck::About::forward_dead_letters_to>,
     any_case},
    {"AutoDeleteOnIdle", read_time<&QueueSettings::auto_delete_on_idle>, any_case},
}};
constexpr ObjectKeys<SubscriptionDraft> subscription_property_object{"SubscriptionProperties", Unknown::error,
                                                                     subscription_property_keys};

constexpr std::array<Key<SubscriptionDraft>, 3> subscription_keys = {{
    {"Name", [](const Place& at, SubscriptionDraft& draft) { draft.name = read_subscription_name(at); },
     any_case},
    {"Properties",
     [](const Place& at, SubscriptionDraft& draft) {
       const auto names = read_object(at, subscription_property_object, draft).names();
       draft.entry.named.insert(draft.entry.named.end(), names.begin(), names.end());
     },
     any_case},
    {"Rules",
     [](const Place& at, SubscriptionDraft& draft) {
       draft.entry.named.push_back("Rules");
       read_subscription_rules(at, draft.entry.rules);
     },
     any_case},
}};
constexpr ObjectKeys<SubscriptionDraft> subscription_object{"TopicSubscription", Unknown::error,
                                                            subscription_keys};

// Whole only with the name of the topic, which may stand behind its subscriptions. Nothing when it has no
// name that could be read.
std::optional<SubscriptionDraft> read_subscription(const Place& at) {
  SubscriptionDraft draft;
  QueueSettings& settings = draft.entry.settings;
  settings.default_time_to_live = file_time_to_live;
  settings.delivery_count_max = file_delivery_count_max;
  const auto members = read_object(at, subscription_object, draft);
  if (at.value().if_object() == nullptr) return std::nullopt;
  if (!members.has("Name")) at.error("'Name' is missing");
  settings.name = draft.name;
  report_wrong(at, members, "Properties", broker::wrong_settings(settings));
  if (draft.name.empty()) return std::nullopt;
  return draft;
}

// Topics

struct TopicDraft {
  TopicEntry entry;
  bool is_express = false;
  std::vector<SubscriptionDraft> subscriptions{};
  std::vector<LaterCheck> later{};
};

constexpr std::array<Key<TopicDraft>, 16> property_keys = {{
    {"DefaultMessageTimeToLive", read_time<&TopicSettings::default_time_to_live>, any_case},
    {"MaxSizeInMegabytes", read_size, any_case},
    {"RequiresDuplicateDetection", read_flag<&TopicSettings::requires_duplicate_detection>, any_case},
    {"DuplicateDetectionHistoryTimeWindow", read_time<&TopicSettings::duplicate_window>, any_case},
    {"EnableBatchedOperations", read_unused_flag, any_case},
    {"FilteringMessagesBeforePublishing", read_unused_flag, any_case},
    {"IsAnonymousAccessible", read_unused_flag, any_case},
    {"AuthorizationRules", read_entity_rules, any_case},
    {"Status", read_status, any_case},
    {"UserMetadata", read_user_metadata, any_case},
    {"SupportOrdering", read_unused_flag, any_case},
    {"AutoDeleteOnIdle", read_time<&TopicSettings::auto_delete_on_idle>, any_case},
    {"EnablePartitioning", read_partitioning, any_case},
    {"EnableSubscriptionPartitioning", read_unused_flag, any_case},
    {"EnableExpress", read_express, any_case},
    {"MaxMessageSizeInKilobytes", read_message_size, any_case},
}};
constexpr ObjectKeys<TopicDraft> property_object{"TopicProperties", Unknown::error, property_keys};

void read_subscriptions(const Place& at, TopicDraft& draft) {
  std::set<std::string> names;
  read_array(at, entities_in_file_max, [&](const Place& item) {
    auto subscription = read_subscription(item);
    if (!subscription) return;
    if (!names.insert(ascii_lower(subscription->name)).second)
      return item.error(fmt::format("subscription '{}' is there twice", auth::shown(subscription->name)));
    draft.subscriptions.push_back(*std::move(subscription));
  });
}

constexpr std::array<Key<TopicDraft>, 3> topic_keys = {{
    {"Name", [](const Place& at, TopicDraft& draft) { draft.entry.settings.name = read_entity_name(at); },
     any_case},
    {"Properties",
     [](const Place& at, TopicDraft& draft) {
       draft.entry.named = read_object(at, property_object, draft).names();
     },
     any_case},
    {"Subscriptions", read_subscriptions, any_case},
}};
constexpr ObjectKeys<TopicDraft> topic_object{"Topic", Unknown::error, topic_keys};

void read_topic(const Place& at, NamespaceSettings& into) {
  TopicDraft draft;
  TopicSettings& settings = draft.entry.settings;
  settings.name.clear();
  settings.default_time_to_live = file_time_to_live;
  settings.duplicate_window = file_duplicate_window;
  const auto members = read_object(at, topic_object, draft);
  if (at.value().if_object() != nullptr) {
    if (!members.has("Name")) at.error("'Name' is missing");
    report_wrong(at, members, "Properties", broker::wrong_topic_settings(settings));
    if (draft.is_express && settings.requires_duplicate_detection)
      at.error("'EnableExpress' and 'RequiresDuplicateDetection' do not go together");
  }
  if (!take_entity_name(at, settings.name, "topic")) return;
  for (auto& subscription : draft.subscriptions) {
    auto& name = subscription.entry.settings.name;
    name = subscription_path(settings.name, subscription.name);
    judge_later(at.reading(), std::move(subscription.later), settings.name, name);
    draft.entry.subscriptions.push_back(std::move(subscription.entry));
  }
  judge_later(at.reading(), std::move(draft.later), settings.name, settings.name);
  judge_topic_later(at, draft.entry);
  into.topics.push_back(std::move(draft.entry));
}

}  // namespace

void read_topics(const Place& at, NamespaceSettings& into) {
  read_array(at, entities_in_file_max, [&](const Place& item) { read_topic(item, into); });
  judge_count_later(at, into);
}

std::vector<KnownObject> topic_objects() {
  std::vector<KnownObject> result = {describe(topic_object), describe(property_object),
                                     describe(subscription_object), describe(subscription_property_object)};
  for (auto& object : subscription_rule_objects()) result.push_back(std::move(object));
  return result;
}

}  // namespace omnibus::node
