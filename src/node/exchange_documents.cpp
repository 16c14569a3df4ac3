#include "node/exchange_documents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "admin/admin_paths.hpp"
#include "admin/admin_values.hpp"
#include "base/text.hpp"
#include "node/config_documents.hpp"

namespace omnibus::node {
namespace {

using admin::DocumentFinding;
using Object = JsonValue::Object;

constexpr std::array<std::string_view, 2> read_only = {"State", "Warnings"};
// What means something only with a Handler; without one a default is not worth a warning.
constexpr std::array<std::string_view, 4> of_handlers = {"WorkerThreadCount", "MinListenTime",
                                                         "AcknowledgePolicy", "RejectPolicy"};

JsonValue text(std::string value) { return {.value = std::move(value)}; }
JsonValue number(std::uint64_t value) { return {.value = static_cast<std::int64_t>(value)}; }
void add(Object& object, std::string_view name, JsonValue value) {
  object.push_back({.name = std::string(name), .value = std::move(value)});
}
// Absent means unlimited. [EX 4.1]
void add_span(Object& object, std::string_view name, std::chrono::milliseconds span) {
  if (span < broker::unlimited) add(object, name, text(admin::to_iso_duration(span)));
}
void add_text(Object& object, std::string_view name, const std::string& value) {
  if (!value.empty()) add(object, name, text(value));
}

// Without what is read-only, and with the address's name when there is none.
void prepare(JsonValue& document, const std::string& name) {
  auto* members = std::get_if<Object>(&document.value);
  if (members == nullptr) return;
  std::erase_if(*members, [](const JsonMember& member) {
    return std::ranges::find(read_only, member.name) != read_only.end();
  });
  for (auto& member : *members)
    if (auto* items = std::get_if<JsonValue::Array>(&member.value.value);
        member.name == "Subscriptions" && items)
      for (auto& item : *items)
        if (auto* inner = std::get_if<Object>(&item.value))
          std::erase_if(*inner, [](const JsonMember& one) {
            return std::ranges::find(read_only, one.name) != read_only.end();
          });
  if (document.find("Name") == nullptr)
    members->insert(members->begin(), {.name = "Name", .line = 1, .value = text(name)});
}

void judge(Reading& reading, const DocumentWorld& world) {
  using About = LaterCheck::About;
  const auto add = [&](const LaterCheck& later, Finding::Severity severity, std::string what,
                       std::string_view code) {
    Finding finding = later.finding;
    finding.severity = severity;
    finding.text = std::move(what);
    finding.code = code;
    reading.findings.add(std::move(finding));
  };
  using enum Finding::Severity;
  for (const LaterCheck& later : reading.later) {
    switch (later.about) {
      case About::forward_to:
      case About::forward_dead_letters_to:
        if (!world.has_entity(later.target))
          add(later, error, "there is no entity of this name", later.finding.code);
        break;
      case About::send_to:
        if (!world.has_entity(later.target))
          add(later, warning, "there is no entity of this name", later.finding.code);
        break;
      case About::alternate_exchange:
        if (!world.has_exchange(later.target))
          add(later, warning, "there is no exchange of this name", "alternate-exchange.unknown");
        break;
      case About::script:
        add(later, error, "there is no script of this name", later.finding.code);
        break;
      case About::message_size:
        if (world.is_standard) add(later, error, "not with the profile \"Standard\"", later.finding.code);
        break;
      default:  // how many there are is judged by who knows the others
        break;
    }
  }
}

// `read` fills a TopicEntry when the document is good.
template <class Read>
DocumentReading read_document(std::string_view body, const std::string& name, const DocumentWorld& world,
                              const Read& read) {
  DocumentReading result;
  auto json = parse_located_json(body);
  if (!json) {
    result.findings.push_back({.path = "",
                               .code = "type",
                               .message = fmt::format("line {}: {}", json.error().line, json.error().text)});
    return result;
  }
  prepare(*json, name);
  Reading reading{.findings = {}, .folder = {}};
  reading.json_pointers = true;
  const Place at(reading, *json);
  find_twins(at);
  if (const auto* written = json->find("Name");
      written != nullptr && written->if_text() != nullptr && !equals_ignoring_case(*written->if_text(), name))
    at.child("Name", *written).error("another name than that of the address", "name.invalid");
  result.exchange = read(at);
  judge(reading, world);
  if (reading.findings.errors() != 0) result.exchange.reset();
  for (auto& one : reading.findings.take())
    result.findings.push_back({.is_warning = one.severity == Finding::Severity::warning,
                               .path = std::move(one.key),
                               .code = one.code.empty() ? "type" : std::string(one.code),
                               .message = std::move(one.text)});
  return result;
}

void take_profile(TopicEntry& entry, const DocumentWorld& world) {
  if (world.is_standard) entry.settings.message_bytes_max = 256 * kilobyte;
  for (auto& subscription : entry.subscriptions)
    subscription.settings.message_bytes_max = entry.settings.message_bytes_max;
}

void add_state(Object& document, const DocumentState& state, bool is_exchange, bool has_handler) {
  Object shown;
  add(shown, "CreatedAt", text(admin::to_date(state.created)));
  add(shown, "UpdatedAt", text(admin::to_date(state.changed)));
  add(shown, "AccessedAt", text(admin::to_date(state.counts.accessed)));
  add(shown, "SizeInBytes", number(state.counts.size_bytes));
  if (is_exchange) {
    add(shown, "SubscriptionCount", number(state.counts.subscriptions));
  } else {
    if (has_handler) add(shown, "Handler", text("Stopped"));
    add(shown, "ActiveMessageCount", number(state.counts.active));
    add(shown, "DeadLetterMessageCount", number(state.counts.dead_letter));
  }
  add(shown, "ScheduledMessageCount", number(state.counts.scheduled));
  add(document, "State", {.value = std::move(shown)});
}

// The kept document, or an empty one: a subscription may have been made by other means.
JsonValue kept_document(std::string_view document) {
  auto json = parse_located_json(document);
  if (!json || json->if_object() == nullptr) return {.value = Object{}};
  return *std::move(json);
}

void move_member(Object& from, std::string_view name, Object& to) {
  const auto found = std::ranges::find(from, name, &JsonMember::name);
  if (found == from.end()) return;
  to.push_back(std::move(*found));
  from.erase(found);
}

}  // namespace

DocumentReading read_exchange(std::string_view body, const std::string& name, const DocumentWorld& world) {
  return read_document(body, name, world, [&](const Place& at) -> std::optional<TopicEntry> {
    NamespaceSettings space;
    read_exchange_document(at, space);
    if (space.topics.empty()) return std::nullopt;
    space.topics.front().settings.name = name;
    take_profile(space.topics.front(), world);
    return std::move(space.topics.front());
  });
}

DocumentReading read_subscription(std::string_view body, const broker::TopicSettings& exchange,
                                  const std::string& name, const DocumentWorld& world) {
  return read_document(body, name, world, [&](const Place& at) -> std::optional<TopicEntry> {
    TopicEntry entry;
    entry.settings = exchange;
    read_document_of_subscription(at, entry);
    if (entry.subscriptions.empty()) return std::nullopt;
    entry.subscriptions.front().settings.name = admin::subscription_name(exchange.name, name);
    entry.subscriptions.front().settings.message_bytes_max = exchange.message_bytes_max;
    return entry;
  });
}

Object write_exchange(const store::PartitionInfo& info, const DocumentState* state) {
  const broker::TopicSettings& s = info.topic_settings;
  JsonValue kept = kept_document(info.document);
  auto& beside = std::get<Object>(kept.value);
  Object out;
  move_member(beside, "Id", out);
  add(out, "Name", text(info.name));
  move_member(beside, "Caption", out);
  move_member(beside, "Description", out);
  if (s.exchange) add(out, "Type", text(std::string(rules::name_of(*s.exchange))));
  add(out, "Status", text(std::string(admin::name_of(s.status))));
  add(out, "Unroutable", text(s.unroutable == rules::Unroutable::accept ? "Accept" : "Release"));
  add_text(out, "AlternateExchange", s.alternate_exchange);
  Object broker;
  add(broker, "MaxSizeInMegabytes", number(s.size_bytes_max / megabyte));
  add_span(broker, "DefaultMessageTimeToLive", s.default_time_to_live);
  add(broker, "RequiresDuplicateDetection", {.value = s.requires_duplicate_detection});
  add_span(broker, "DuplicateDetectionHistoryTimeWindow", s.duplicate_window);
  add(broker, "EnablePartitioning", {.value = s.is_partitioned});
  // The Standard profile's size is below what can be said.
  if (s.message_bytes_max >= broker::message_kilobytes_min * kilobyte)
    add(broker, "MaxMessageSizeInKilobytes", number(s.message_bytes_max / kilobyte));
  add_span(broker, "AutoDeleteOnIdle", s.auto_delete_on_idle);
  add(out, "Broker", {.value = std::move(broker)});
  if (state != nullptr) add_state(out, *state, true, false);
  return out;
}

Object write_subscription(const store::PartitionInfo& info, const DocumentState* state) {
  const broker::QueueSettings& s = info.settings;
  const JsonValue document = kept_document(info.document);
  Object kept = with_defaults(&document, kept_of_subscription());
  const JsonValue* kept_broker = document.find("Broker");
  Object beside = with_defaults(kept_broker, kept_of_broker());
  const bool has_handler = document.find("Handler") != nullptr;
  const auto parts = admin::split_subscription(info.name);
  Object out;
  move_member(kept, "Id", out);
  add(out, "Name", text(std::string(parts ? parts->subscription : info.name)));
  for (const auto* name : {"Caption", "Description", "ConsumerId", "RoutingKey", "RoutingHeaders"})
    move_member(kept, name, out);
  add(out, "PrefetchSize", number(s.prefetch_bytes));
  add(out, "PrefetchCount", number(s.prefetch_count));
  for (auto& member : kept) out.push_back(std::move(member));
  Object broker;
  add(broker, "Status", text(std::string(admin::name_of(s.status))));
  move_member(beside, "HandlerStatus", broker);
  add(broker, "MaxDeliveryCount", number(s.delivery_count_max));
  add_span(broker, "LockDuration", s.lock_duration);
  add_span(broker, "DefaultMessageTimeToLive", s.default_time_to_live);
  add(broker, "DeadLetteringOnMessageExpiration", {.value = s.dead_letter_on_expiration});
  add(broker, "RequiresSession", {.value = s.requires_session});
  add_text(broker, "ForwardTo", s.forward_to);
  add_text(broker, "ForwardDeadLetteredMessagesTo", s.forward_dead_letters_to);
  add_span(broker, "AutoDeleteOnIdle", s.auto_delete_on_idle);
  for (auto& member : beside) broker.push_back(std::move(member));
  add(broker, "Limits",
      {.value = with_defaults(kept_broker ? kept_broker->find("Limits") : nullptr, kept_of_limits())});
  add(out, "Broker", {.value = std::move(broker)});
  if (state != nullptr) add_state(out, *state, false, has_handler);
  return out;
}

void add_warnings(Object& document, bool is_exchange, const broker::TopicSettings& exchange,
                  const DocumentWorld& world) {
  JsonValue copy{.value = document};
  auto& members = std::get<Object>(copy.value);
  const auto drop_defaults = [](Object& subscription) {
    for (const auto& [name, standard] : kept_of_subscription()) {
      if (std::ranges::find(of_handlers, name) == of_handlers.end()) continue;
      std::erase_if(subscription, [&, key = name, usual = standard](const JsonMember& member) {
        if (member.name != key) return false;
        const auto* count = std::get_if<std::int64_t>(&usual);
        const auto* word = std::get_if<std::string_view>(&usual);
        const auto* written = std::get_if<std::int64_t>(&member.value.value);
        const auto* said = member.value.if_text();
        return (count && written && *count == *written) || (word && said && *word == *said);
      });
    }
  };
  if (!is_exchange) drop_defaults(members);
  for (auto& member : members)
    if (auto* items = std::get_if<JsonValue::Array>(&member.value.value);
        member.name == "Subscriptions" && items)
      for (auto& item : *items)
        if (auto* inner = std::get_if<Object>(&item.value)) drop_defaults(*inner);
  const std::string* name = copy.find("Name") ? copy.find("Name")->if_text() : nullptr;
  if (name == nullptr) return;
  const auto reading = is_exchange ? read_exchange(to_json(copy), *name, world)
                                   : read_subscription(to_json(copy), exchange, *name, world);
  JsonValue::Array warnings;
  for (const DocumentFinding& one : reading.findings) {
    Object warning;
    add(warning, "path", text(one.path));
    add(warning, "code", text(one.code));
    add(warning, "message", text(one.message));
    warnings.push_back({.value = std::move(warning)});
  }
  add(document, "Warnings", {.value = std::move(warnings)});
}

std::string document_text(std::string_view document, std::string_view member) {
  const JsonValue json = kept_document(document);
  const JsonValue* value = json.find(member);
  return value != nullptr && value->if_text() != nullptr ? *value->if_text() : std::string{};
}

std::string with_id(std::string_view document, const std::string& id) {
  JsonValue json = kept_document(document);
  auto& members = std::get<Object>(json.value);
  std::erase_if(members, [](const JsonMember& member) { return member.name == "Id"; });
  members.insert(members.begin(), {.name = "Id", .value = text(id)});
  return to_json(json);
}

}  // namespace omnibus::node
