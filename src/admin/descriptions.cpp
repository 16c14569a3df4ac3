#include "admin/descriptions.hpp"

#include <algorithm>

#include "admin/admin_paths.hpp"
#include "admin/admin_values.hpp"

namespace omnibus::admin {
namespace {

constexpr std::uint64_t kilobyte = 1024;
constexpr std::uint64_t megabyte = 1024 * kilobyte;

std::int64_t number(std::uint64_t value) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT64_MAX));
}
// Go reads 32 bits.
std::int64_t small_number(std::uint64_t value) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT32_MAX));
}

void write_span(XmlWriter& out, std::string_view name, std::chrono::milliseconds span) {
  out.element(name, to_iso_duration(span));
}

// An address with scheme and host, whatever it was set as [contract 12].
void write_forward(XmlWriter& out, std::string_view name, const std::string& target, const std::string& uri,
                   const AnswerView& view) {
  if (target.empty()) return;
  out.element(name, uri.empty() ? fmt::format("sb://{}/{}", view.host, target) : uri);
}

void write_access_rules(XmlWriter& out, const std::vector<auth::AccessRule>& rules) {
  constexpr std::string_view name = "AuthorizationRules";
  if (rules.empty()) return out.empty(name);
  out.open(name);
  for (const auto& rule : rules) {
    out.open("AuthorizationRule", "i:type=\"SharedAccessAuthorizationRule\"");
    out.element("ClaimType", "SharedAccessKey");
    out.element("ClaimValue", "None");
    out.open("Rights");
    for (const auth::Right right : rule.stated_rights) out.element("AccessRights", auth::name_of(right));
    out.close("Rights");
    out.element("CreatedTime", to_date(rule.created));
    out.element("ModifiedTime", to_date(rule.modified));
    out.element("KeyName", rule.key_name);
    out.element("PrimaryKey", rule.primary_key);
    out.element("SecondaryKey", rule.secondary_key);
    out.close("AuthorizationRule");
  }
  out.close(name);
}

// The declaration is its only attribute: a client learns the prefix from it. In a topic only scheduled
// messages count.
void write_counts(XmlWriter& out, const Counts& counts) {
  out.open("CountDetails", fmt::format("xmlns:d2p1=\"{}\"", counts_namespace));
  out.element("d2p1:ActiveMessageCount", small_number(counts.active));
  out.element("d2p1:DeadLetterMessageCount", small_number(counts.dead_letter));
  out.element("d2p1:ScheduledMessageCount", small_number(counts.scheduled));
  out.element("d2p1:TransferMessageCount", small_number(counts.transfer));
  out.element("d2p1:TransferDeadLetterMessageCount", small_number(counts.transfer_dead_letter));
  out.close("CountDetails");
}

std::int64_t message_count(const Counts& counts) {
  return number(counts.active + counts.dead_letter + counts.scheduled + counts.transfer +
                counts.transfer_dead_letter);
}

void write_times(XmlWriter& out, const Entity& entity) {
  out.element("CreatedAt", to_date(entity.created));
  out.element("UpdatedAt", to_date(entity.notes.changed(entity.created)));
  out.element("AccessedAt", to_date(entity.counts.accessed));
}

void write_metadata(XmlWriter& out, const Notes& notes) {
  if (!notes.user_metadata.empty()) out.element("UserMetadata", notes.user_metadata);
}

std::string_view availability(const Entity& entity) { return entity.is_available ? "Available" : "Limited"; }

// Partitions have their size each; what is shown is the sum.
std::int64_t megabytes(std::uint64_t bytes, const Entity& entity) {
  return number(bytes / megabyte * entity.partition_count());
}

void write_queue(XmlWriter& out, const Entity& entity, const AnswerView& view) {
  const auto& s = entity.queue;
  const Notes& notes = entity.notes;
  write_span(out, "LockDuration", s.lock_duration);
  out.element("MaxSizeInMegabytes", megabytes(s.size_bytes_max, entity));
  out.flag("RequiresDuplicateDetection", s.requires_duplicate_detection);
  out.flag("RequiresSession", s.requires_session);
  write_span(out, "DefaultMessageTimeToLive", s.default_time_to_live);
  out.flag("DeadLetteringOnMessageExpiration", s.dead_letter_on_expiration);
  write_span(out, "DuplicateDetectionHistoryTimeWindow", s.duplicate_window);
  out.element("MaxDeliveryCount", s.delivery_count_max);
  out.flag("EnableBatchedOperations", notes.batched_operations);
  out.element("SizeInBytes", number(entity.counts.size_bytes));
  out.element("MessageCount", message_count(entity.counts));
  out.flag("IsAnonymousAccessible", false);
  write_access_rules(out, notes.access_rules);
  out.element("Status", name_of(s.status));
  write_forward(out, "ForwardTo", s.forward_to, notes.forward_to_uri, view);
  write_metadata(out, notes);
  write_times(out, entity);
  out.flag("SupportOrdering", !s.is_partitioned);
  write_counts(out, entity.counts);
  write_span(out, "AutoDeleteOnIdle", s.auto_delete_on_idle);
  out.flag("EnablePartitioning", s.is_partitioned);
  out.element("EntityAvailabilityStatus", availability(entity));
  write_forward(out, "ForwardDeadLetteredMessagesTo", s.forward_dead_letters_to,
                notes.forward_dead_letters_to_uri, view);
  out.flag("EnableExpress", notes.express);
  if (knows(view.api_version, "2021-05"))
    out.element("MaxMessageSizeInKilobytes", number(s.message_bytes_max / kilobyte));
}

void write_topic(XmlWriter& out, const Entity& entity, const AnswerView& view) {
  const auto& s = entity.topic;
  const Notes& notes = entity.notes;
  write_span(out, "DefaultMessageTimeToLive", s.default_time_to_live);
  out.element("MaxSizeInMegabytes", megabytes(s.size_bytes_max, entity));
  out.flag("RequiresDuplicateDetection", s.requires_duplicate_detection);
  write_span(out, "DuplicateDetectionHistoryTimeWindow", s.duplicate_window);
  out.flag("EnableBatchedOperations", notes.batched_operations);
  out.element("SizeInBytes", number(entity.counts.size_bytes));
  out.flag("FilteringMessagesBeforePublishing", false);
  out.flag("IsAnonymousAccessible", false);
  write_access_rules(out, notes.access_rules);
  out.element("Status", name_of(s.status));
  write_metadata(out, notes);
  write_times(out, entity);
  out.flag("SupportOrdering", notes.ordering.value_or(true) && !s.is_partitioned);
  write_counts(out, entity.counts);
  out.element("SubscriptionCount", small_number(entity.counts.subscriptions));
  write_span(out, "AutoDeleteOnIdle", s.auto_delete_on_idle);
  out.flag("EnablePartitioning", s.is_partitioned);
  out.element("EntityAvailabilityStatus", availability(entity));
  out.flag("EnableSubscriptionPartitioning", false);
  out.flag("EnableExpress", notes.express);
  if (knows(view.api_version, "2021-05"))
    out.element("MaxMessageSizeInKilobytes", number(s.message_bytes_max / kilobyte));
  if (knows(view.api_version, "2024-05")) {
    out.element("SqlFilterCount", small_number(entity.counts.sql_filters));
    out.element("CorrelationFilterCount", small_number(entity.counts.correlation_filters));
  }
}

void write_subscription(XmlWriter& out, const Entity& entity, const AnswerView& view) {
  const auto& s = entity.queue;
  const Notes& notes = entity.notes;
  write_span(out, "LockDuration", s.lock_duration);
  out.flag("RequiresSession", s.requires_session);
  write_span(out, "DefaultMessageTimeToLive", s.default_time_to_live);
  out.flag("DeadLetteringOnMessageExpiration", s.dead_letter_on_expiration);
  out.flag("DeadLetteringOnFilterEvaluationExceptions", s.dead_letter_on_filter_error);
  out.element("MessageCount", message_count(entity.counts));
  out.element("MaxDeliveryCount", s.delivery_count_max);
  out.flag("EnableBatchedOperations", notes.batched_operations);
  out.element("Status", name_of(s.status));
  write_forward(out, "ForwardTo", s.forward_to, notes.forward_to_uri, view);
  write_times(out, entity);
  write_counts(out, entity.counts);
  write_metadata(out, notes);
  write_forward(out, "ForwardDeadLetteredMessagesTo", s.forward_dead_letters_to,
                notes.forward_dead_letters_to_uri, view);
  write_span(out, "AutoDeleteOnIdle", s.auto_delete_on_idle);
  out.element("EntityAvailabilityStatus", availability(entity));
}

}  // namespace

std::string_view description_attributes() {
  static const std::string text =
      fmt::format("xmlns=\"{}\" xmlns:i=\"{}\"", description_namespace, instance_namespace);
  return text;
}

void write_description(XmlWriter& out, const Entity& entity, const AnswerView& view) {
  switch (entity.kind) {
    case EntityKind::queue:
      out.open("QueueDescription", description_attributes());
      write_queue(out, entity, view);
      return out.close("QueueDescription");
    case EntityKind::topic:
      out.open("TopicDescription", description_attributes());
      write_topic(out, entity, view);
      return out.close("TopicDescription");
    case EntityKind::subscription:
      out.open("SubscriptionDescription", description_attributes());
      write_subscription(out, entity, view);
      return out.close("SubscriptionDescription");
  }
}

void write_namespace(XmlWriter& out, const NamespaceInfo& info) {
  out.open("NamespaceInfo", description_attributes());
  out.empty("Alias");
  out.element("CreatedTime", to_date(info.created));
  out.element("MessagingSKU", info.is_premium ? "Premium" : "Standard");
  if (info.is_premium) out.element("MessagingUnits", 1);
  out.element("ModifiedTime", to_date(info.created));
  out.element("Name", info.name);
  out.element("NamespaceType", "Messaging");
  out.close("NamespaceInfo");
}

}  // namespace omnibus::admin
