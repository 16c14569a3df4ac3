// `Queues` of a namespace: the emulator's keys with its defaults, and every other settable property of a
// queue beside them. [HTTP 8.1, 13, 16]
#include <array>

#include "base/text.hpp"
#include "broker/queue_settings.hpp"
#include "node/config_entities.hpp"

namespace omnibus::node {
namespace {

using broker::QueueSettings;

struct QueueDraft {
  QueueEntry entry;
  bool is_express = false;
  std::vector<LaterCheck> later{};
};

constexpr auto any_case = Letters::any_case;
constexpr std::array<Key<QueueDraft>, 19> property_keys = {{
    {"LockDuration", read_time<&QueueSettings::lock_duration>, any_case},
    {"MaxSizeInMegabytes", read_size, any_case},
    {"RequiresDuplicateDetection", read_flag<&QueueSettings::requires_duplicate_detection>, any_case},
    {"RequiresSession", read_flag<&QueueSettings::requires_session>, any_case},
    {"DefaultMessageTimeToLive", read_time<&QueueSettings::default_time_to_live>, any_case},
    {"DeadLetteringOnMessageExpiration", read_flag<&QueueSettings::dead_letter_on_expiration>, any_case},
    {"DuplicateDetectionHistoryTimeWindow", read_time<&QueueSettings::duplicate_window>, any_case},
    {"MaxDeliveryCount", read_delivery_count, any_case},
    {"EnableBatchedOperations", read_unused_flag, any_case},
    {"IsAnonymousAccessible", read_unused_flag, any_case},
    {"AuthorizationRules", read_entity_rules, any_case},
    {"Status", read_status, any_case},
    {"ForwardTo", read_forward<&QueueSettings::forward_to, LaterCheck::About::forward_to>, any_case},
    {"UserMetadata", read_user_metadata, any_case},
    {"AutoDeleteOnIdle", read_time<&QueueSettings::auto_delete_on_idle>, any_case},
    {"EnablePartitioning", read_partitioning, any_case},
    {"ForwardDeadLetteredMessagesTo",
     read_forward<&QueueSettings::forward_dead_letters_to, LaterCheck::About::forward_dead_letters_to>,
     any_case},
    {"EnableExpress", read_express, any_case},
    {"MaxMessageSizeInKilobytes", read_message_size, any_case},
}};
constexpr ObjectKeys<QueueDraft> property_object{"QueueProperties", Unknown::error, property_keys};

constexpr std::array<Key<QueueDraft>, 2> queue_keys = {{
    {"Name", [](const Place& at, QueueDraft& draft) { draft.entry.settings.name = read_entity_name(at); },
     any_case},
    {"Properties",
     [](const Place& at, QueueDraft& draft) {
       draft.entry.named = read_object(at, property_object, draft).names();
     },
     any_case},
}};
constexpr ObjectKeys<QueueDraft> queue_object{"Queue", Unknown::error, queue_keys};

QueueDraft new_draft() {
  QueueDraft draft;
  draft.entry.settings.name.clear();
  draft.entry.settings.default_time_to_live = file_time_to_live;
  draft.entry.settings.duplicate_window = file_duplicate_window;
  draft.entry.settings.delivery_count_max = file_delivery_count_max;
  return draft;
}

void read_queue(const Place& at, NamespaceSettings& into) {
  QueueDraft draft = new_draft();
  const auto members = read_object(at, queue_object, draft);
  const QueueSettings& settings = draft.entry.settings;
  if (at.value().if_object() != nullptr) {
    if (!members.has("Name")) at.error("'Name' is missing");
    // What could not be read has its default, so that nothing is told twice.
    report_wrong(at, members, "Properties", broker::wrong_settings(settings));
    if (draft.is_express && settings.requires_duplicate_detection)
      at.error("'EnableExpress' and 'RequiresDuplicateDetection' do not go together");
  }
  if (!take_entity_name(at, settings.name, "queue")) return;
  for (const auto* target : {&settings.forward_to, &settings.forward_dead_letters_to})
    if (equals_ignoring_case(*target, settings.name)) return at.error("a queue cannot forward to itself");
  judge_later(at.reading(), std::move(draft.later), settings.name, settings.name);
  into.queues.push_back(std::move(draft.entry));
}

}  // namespace

void read_queues(const Place& at, NamespaceSettings& into) {
  read_array(at, entities_in_file_max, [&](const Place& item) { read_queue(item, into); });
  judge_count_later(at, into);
}

std::vector<KnownObject> queue_objects() { return {describe(queue_object), describe(property_object)}; }

}  // namespace omnibus::node
