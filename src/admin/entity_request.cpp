#include "admin/entity_request.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "admin/admin_values.hpp"
#include "admin/entity_name.hpp"
#include "admin/rule_descriptions.hpp"
#include "base/text.hpp"

namespace omnibus::admin {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kilobyte = 1024;
constexpr std::uint64_t megabyte = 1024 * kilobyte;
constexpr std::size_t forward_bytes_max = 1024;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  while (!text.empty() && blanks.contains(text.front())) text.remove_prefix(1);
  while (!text.empty() && blanks.contains(text.back())) text.remove_suffix(1);
  return text;
}

// Readers of one element each. An empty one is as good as none.

using Read = std::optional<Error> (*)(const XmlElement& element, EntityRequest& request);

std::optional<Error> wrong(const XmlElement& element, std::string_view expected) {
  return Error{Errc::argument_error, fmt::format("'{}' is not {}", element.name, expected)};
}

template <auto member>
std::optional<Error> read_span(const XmlElement& element, EntityRequest& request) {
  const auto span = from_iso_duration(trimmed(element.text));
  if (!span) return wrong(element, "an ISO 8601 duration such as PT1M");
  request.*member = *span;
  return std::nullopt;
}

template <auto member>
std::optional<Error> read_flag(const XmlElement& element, EntityRequest& request) {
  const auto text = trimmed(element.text);
  const bool yes = equals_ignoring_case(text, "true") || text == "1";
  if (!yes && !equals_ignoring_case(text, "false") && text != "0") return wrong(element, "true or false");
  request.*member = yes;
  return std::nullopt;
}

template <auto member>
std::optional<Error> read_integer(const XmlElement& element, EntityRequest& request) {
  const auto text = trimmed(element.text);
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size()) return wrong(element, "a number");
  request.*member = value;
  return std::nullopt;
}

template <auto member, std::size_t bytes_max>
std::optional<Error> read_text(const XmlElement& element, EntityRequest& request) {
  if (element.text.size() > bytes_max)
    return wrong(element, fmt::format("a text of at most {} bytes", bytes_max));
  request.*member = element.text;
  return std::nullopt;
}

std::optional<Error> read_status(const XmlElement& element, EntityRequest& request) {
  request.status = status_named(trimmed(element.text));
  if (!request.status) return wrong(element, "Active, Disabled, SendDisabled or ReceiveDisabled");
  return std::nullopt;
}

std::optional<Error> read_access_rules(const XmlElement& element, EntityRequest& request) {
  auto& rules = request.access_rules.emplace();
  for (const XmlElement& one : element.children) {
    auth::RuleDocument rule;
    const auto text = [&](std::string_view name) -> std::string {
      const XmlElement* child = one.find(name);
      return child && !child->is_nil ? std::string(trimmed(child->text)) : std::string{};
    };
    rule.key_name = text("KeyName");
    if (auto key = text("PrimaryKey"); !key.empty()) rule.primary_key = std::move(key);
    if (auto key = text("SecondaryKey"); !key.empty()) rule.secondary_key = std::move(key);
    if (const XmlElement* rights = one.find("Rights"))
      for (const XmlElement& right : rights->children) {
        const auto known = auth::right_named(trimmed(right.text));
        if (!known) return wrong(right, "Manage, Send or Listen");
        rule.rights.push_back(*known);
      }
    rules.push_back(std::move(rule));
  }
  return std::nullopt;
}

struct Known {
  std::string_view name;
  Read read;
};
constexpr Known lock_duration{"LockDuration", read_span<&EntityRequest::lock_duration>};
constexpr Known megabytes{"MaxSizeInMegabytes", read_integer<&EntityRequest::megabytes>};
constexpr Known duplicates{"RequiresDuplicateDetection",
                           read_flag<&EntityRequest::requires_duplicate_detection>};
constexpr Known sessions{"RequiresSession", read_flag<&EntityRequest::requires_session>};
constexpr Known time_to_live{"DefaultMessageTimeToLive", read_span<&EntityRequest::default_time_to_live>};
constexpr Known expiration{"DeadLetteringOnMessageExpiration",
                           read_flag<&EntityRequest::dead_letter_on_expiration>};
constexpr Known filter_errors{"DeadLetteringOnFilterEvaluationExceptions",
                              read_flag<&EntityRequest::dead_letter_on_filter_error>};
constexpr Known window{"DuplicateDetectionHistoryTimeWindow", read_span<&EntityRequest::duplicate_window>};
constexpr Known deliveries{"MaxDeliveryCount", read_integer<&EntityRequest::delivery_count_max>};
constexpr Known batched{"EnableBatchedOperations", read_flag<&EntityRequest::batched_operations>};
constexpr Known access_rules{"AuthorizationRules", read_access_rules};
constexpr Known status{"Status", read_status};
constexpr Known forward_to{"ForwardTo", read_text<&EntityRequest::forward_to, forward_bytes_max>};
constexpr Known metadata{"UserMetadata",
                         read_text<&EntityRequest::user_metadata, broker::user_metadata_bytes_max>};
constexpr Known idle{"AutoDeleteOnIdle", read_span<&EntityRequest::auto_delete_on_idle>};
constexpr Known partitioning{"EnablePartitioning", read_flag<&EntityRequest::is_partitioned>};
constexpr Known forward_dead{"ForwardDeadLetteredMessagesTo",
                             read_text<&EntityRequest::forward_dead_letters_to, forward_bytes_max>};
constexpr Known express{"EnableExpress", read_flag<&EntityRequest::express>};
constexpr Known ordering{"SupportOrdering", read_flag<&EntityRequest::ordering>};
constexpr Known message_size{"MaxMessageSizeInKilobytes", read_integer<&EntityRequest::message_kilobytes>};

constexpr std::array queue_elements = {lock_duration, megabytes,  duplicates,  sessions, time_to_live,
                                       expiration,    window,     deliveries,  batched,  access_rules,
                                       status,        forward_to, metadata,    idle,     partitioning,
                                       forward_dead,  express,    message_size};
constexpr std::array topic_elements = {time_to_live, megabytes, duplicates,  window, batched,
                                       access_rules, status,    metadata,    idle,   partitioning,
                                       express,      ordering,  message_size};
constexpr std::array subscription_elements = {lock_duration, sessions,   time_to_live, expiration,
                                              filter_errors, deliveries, batched,      status,
                                              forward_to,    metadata,   forward_dead, idle};

std::span<const Known> elements_of(EntityKind kind) {
  if (kind == EntityKind::queue) return queue_elements;
  if (kind == EntityKind::topic) return topic_elements;
  return subscription_elements;
}

// Making and changing

Result<std::uint64_t> size_bytes(std::int64_t asked, std::uint16_t partitions, bool is_update) {
  const auto is_step = [](std::int64_t value) {
    return std::ranges::any_of(broker::entity_megabytes, [&](std::int64_t step) { return step == value; });
  };
  // Clients send back the sum over all partitions that they were shown.
  if (is_update && partitions > 1 && asked % partitions == 0 && is_step(asked / partitions))
    return static_cast<std::uint64_t>(asked / partitions) * megabyte;
  if (!is_step(asked))
    return fail(Errc::argument_out_of_range, "'MaxSizeInMegabytes' must be one of {}",
                fmt::join(broker::entity_megabytes, ", "));
  return static_cast<std::uint64_t>(asked) * megabyte;
}

Result<std::uint64_t> message_bytes(const EntityRequest& request, std::uint64_t present,
                                    const EntityDefaults& defaults) {
  if (!request.message_kilobytes) return defaults.message_bytes_max;
  const std::int64_t asked = *request.message_kilobytes;
  // What was read before may come back, settable or not.
  if (asked > 0 && static_cast<std::uint64_t>(asked) * kilobyte == present) return present;
  if (!defaults.message_size_settable)
    return fail(Errc::argument_error, "'MaxMessageSizeInKilobytes' cannot be set with this profile");
  if (asked < broker::message_kilobytes_min || asked > broker::message_kilobytes_max)
    return fail(Errc::argument_out_of_range, "'MaxMessageSizeInKilobytes' must be {} to {}",
                broker::message_kilobytes_min, broker::message_kilobytes_max);
  return static_cast<std::uint64_t>(asked) * kilobyte;
}

// Scheme and host in lower case, the path as it is.
std::string shown_address(std::string_view text) {
  const auto scheme = text.find("://");
  if (scheme == std::string_view::npos) return {};  // a bare name: shown as an address of ours
  const auto path = std::min(text.find('/', scheme + 3), text.size());
  return ascii_lower(text.substr(0, path)) + std::string(text.substr(path));
}

Result<void> take_forward(const std::optional<std::string>& asked, std::string& name, std::string& uri) {
  name.clear();
  uri.clear();
  const auto text = trimmed(asked ? std::string_view(*asked) : std::string_view{});
  if (text.empty()) return {};
  auto target = forward_target(text);
  if (!target) return fail(Errc::argument_error, "a forwarding target is wrong: {}", target.error().detail);
  name = *std::move(target);
  uri = shown_address(text);
  return {};
}

// What queues and subscriptions share.
Result<void> take_queue(const EntityRequest& request, broker::QueueSettings& s, Notes& notes) {
  const broker::QueueSettings standard;
  s.lock_duration = request.lock_duration.value_or(standard.lock_duration);
  s.default_time_to_live = request.default_time_to_live.value_or(standard.default_time_to_live);
  s.dead_letter_on_expiration =
      request.dead_letter_on_expiration.value_or(standard.dead_letter_on_expiration);
  s.dead_letter_on_filter_error =
      request.dead_letter_on_filter_error.value_or(standard.dead_letter_on_filter_error);
  s.duplicate_window = request.duplicate_window.value_or(standard.duplicate_window);
  const std::int64_t deliveries_max = request.delivery_count_max.value_or(standard.delivery_count_max);
  if (deliveries_max < 1 || deliveries_max > INT32_MAX)
    return fail(Errc::argument_out_of_range, "'MaxDeliveryCount' is out of range");
  s.delivery_count_max = static_cast<std::uint32_t>(deliveries_max);
  s.status = request.status.value_or(broker::EntityStatus::active);
  s.auto_delete_on_idle = request.auto_delete_on_idle.value_or(standard.auto_delete_on_idle);
  if (auto taken = take_forward(request.forward_to, s.forward_to, notes.forward_to_uri); !taken)
    return fail(taken.error());
  if (auto taken = take_forward(request.forward_dead_letters_to, s.forward_dead_letters_to,
                                notes.forward_dead_letters_to_uri);
      !taken)
    return fail(taken.error());
  for (const auto* target : {&s.forward_to, &s.forward_dead_letters_to})
    if (equals_ignoring_case(*target, s.name))
      return fail(Errc::argument_error, "'{}' cannot forward to itself", s.name);
  return {};
}

Result<void> take_notes(const EntityRequest& request, Notes& notes, Instant now) {
  notes.user_metadata = request.user_metadata.value_or("");
  notes.batched_operations = request.batched_operations.value_or(true);
  notes.ordering = request.ordering;
  if (request.kind == EntityKind::subscription) return {};
  auto rules = merged_access_rules(request.access_rules.value_or(std::vector<auth::RuleDocument>{}),
                                   notes.access_rules, now);
  if (!rules) return fail(rules.error());
  notes.access_rules = *std::move(rules);
  return {};
}

// The values of `entity` that a request decides, new or not.
Result<void> take_all(const EntityRequest& request, Entity& entity, const EntityDefaults& defaults,
                      bool is_update, Instant now) {
  const bool is_topic = entity.kind == EntityKind::topic;
  auto& size = is_topic ? entity.topic.size_bytes_max : entity.queue.size_bytes_max;
  auto& message = is_topic ? entity.topic.message_bytes_max : entity.queue.message_bytes_max;
  if (entity.kind != EntityKind::subscription) {
    auto bytes = size_bytes(request.megabytes.value_or(broker::entity_megabytes[0]), entity.partition_count(),
                            is_update);
    if (!bytes) return fail(bytes.error());
    size = *bytes;
    auto largest = message_bytes(request, is_update ? message : defaults.message_bytes_max, defaults);
    if (!largest) return fail(largest.error());
    message = *largest;
  }
  if (is_topic) {
    const broker::TopicSettings standard;
    auto& s = entity.topic;
    s.default_time_to_live = request.default_time_to_live.value_or(standard.default_time_to_live);
    s.duplicate_window = request.duplicate_window.value_or(standard.duplicate_window);
    s.status = request.status.value_or(broker::EntityStatus::active);
    s.auto_delete_on_idle = request.auto_delete_on_idle.value_or(standard.auto_delete_on_idle);
    if (const auto error = broker::check_topic_settings(s)) return fail(*error);
  } else {
    if (auto taken = take_queue(request, entity.queue, entity.notes); !taken) return fail(taken.error());
    if (const auto error = broker::check_settings(entity.queue)) return fail(*error);
  }
  return take_notes(request, entity.notes, now);
}

std::string_view word_of(EntityKind kind) {
  if (kind == EntityKind::queue) return "queue";
  return kind == EntityKind::topic ? "topic" : "subscription";
}

Result<void> same(std::string_view name, const std::optional<bool>& asked, bool present) {
  if (asked && *asked != present)
    return fail(Errc::argument_error, "'{}' is fixed at the creation and cannot be changed", name);
  return {};
}

}  // namespace

Result<const XmlElement*> content_of(const XmlElement& entry) {
  if (entry.name != "entry") return fail(Errc::argument_error, "the body is no Atom entry");
  const XmlElement* content = entry.find("content");
  if (content == nullptr || content->children.empty())
    return fail(Errc::argument_error, "the entry has no content");
  return &content->children.front();
}

Result<EntityRequest> read_entity_request(const XmlElement& description, Instant now) {
  EntityRequest request;
  if (description.name == "QueueDescription")
    request.kind = EntityKind::queue;
  else if (description.name == "TopicDescription")
    request.kind = EntityKind::topic;
  else if (description.name == "SubscriptionDescription")
    request.kind = EntityKind::subscription;
  else
    return fail(Errc::argument_error, "the content describes no queue, topic or subscription");
  const auto known = elements_of(request.kind);
  for (const XmlElement& element : description.children) {
    if (request.kind == EntityKind::subscription && element.name == "DefaultRuleDescription" &&
        !element.is_nil && !element.children.empty()) {
      auto rule = read_rule(element, now);
      if (!rule) return fail(rule.error());
      request.default_rule = *std::move(rule);
      continue;
    }
    const auto found = std::ranges::find(known, element.name, &Known::name);
    if (found == known.end() || element.is_nil || (element.text.empty() && element.children.empty()))
      continue;
    if (auto error = found->read(element, request)) return fail(*std::move(error));
  }
  return request;
}

Result<std::vector<auth::AccessRule>> merged_access_rules(const std::vector<auth::RuleDocument>& documents,
                                                          const std::vector<auth::AccessRule>& present,
                                                          Instant now) {
  std::vector<auth::AccessRule> rules;
  if (documents.size() > auth::rules_per_scope_default)
    return fail(Errc::argument_error, "{} authorization rules, at most {} are allowed", documents.size(),
                auth::rules_per_scope_default);
  for (auth::RuleDocument document : documents) {
    const auto same_name = [&](const auth::AccessRule& rule) {
      return equals_ignoring_case(rule.key_name, document.key_name);
    };
    if (std::ranges::any_of(rules, same_name))
      return fail(Errc::argument_error, "an authorization rule is there twice");
    const auto old = std::ranges::find_if(present, same_name);
    if (old != present.end()) {
      if (!document.primary_key) document.primary_key = old->primary_key;
      if (!document.secondary_key) document.secondary_key = old->secondary_key;
    }
    auto rule = auth::make_rule(document, now);
    if (!rule) return fail(rule.error());
    if (old != present.end()) {
      rule->created = old->created;
      if (rule->primary_key == old->primary_key && rule->secondary_key == old->secondary_key &&
          rule->rights == old->rights)
        rule->modified = old->modified;
    }
    rules.push_back(*std::move(rule));
  }
  return rules;
}

Result<Entity> new_entity(const EntityRequest& request, std::string name, const EntityDefaults& defaults,
                          Instant now) {
  Entity entity;
  entity.kind = request.kind;
  entity.name = std::move(name);
  entity.queue.name = entity.topic.name = entity.name;
  entity.queue.requires_session = request.requires_session.value_or(false);
  entity.queue.requires_duplicate_detection = entity.topic.requires_duplicate_detection =
      request.requires_duplicate_detection.value_or(false);
  if (request.is_partitioned.value_or(false)) {
    entity.queue.is_partitioned = entity.topic.is_partitioned = true;
    entity.queue.partition_count = entity.topic.partition_count = defaults.partition_count;
  }
  entity.notes.express = request.express.value_or(false);
  if (entity.notes.express && request.requires_duplicate_detection.value_or(false))
    return fail(Errc::argument_error, "'EnableExpress' and 'RequiresDuplicateDetection' do not go together");
  if (auto taken = take_all(request, entity, defaults, false, now); !taken) return fail(taken.error());
  return entity;
}

Result<Entity> changed_entity(const EntityRequest& request, const Entity& present,
                              const EntityDefaults& defaults, Instant now) {
  if (request.kind != present.kind)
    return fail(Errc::argument_error, "'{}' is a {}, not a {}", present.name, word_of(present.kind),
                word_of(request.kind));
  const bool is_topic = present.kind == EntityKind::topic;
  const bool duplicates_found =
      is_topic ? present.topic.requires_duplicate_detection : present.queue.requires_duplicate_detection;
  if (auto good = same("RequiresDuplicateDetection", request.requires_duplicate_detection, duplicates_found);
      !good)
    return fail(good.error());
  if (auto good = same("EnablePartitioning", request.is_partitioned, present.is_partitioned()); !good)
    return fail(good.error());
  if (auto good = same("EnableExpress", request.express, present.notes.express); !good)
    return fail(good.error());
  if (!is_topic)
    if (auto good = same("RequiresSession", request.requires_session, present.queue.requires_session); !good)
      return fail(good.error());
  Entity entity = present;
  if (auto taken = take_all(request, entity, defaults, true, now); !taken) return fail(taken.error());
  entity.notes.mark_changed(entity.created, now);
  return entity;
}

}  // namespace omnibus::admin
