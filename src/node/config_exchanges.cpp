// `Exchanges` of a namespace: Exchange documents with their subscriptions. [EX 2.3, 4.1; HTTP 16.2]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "auth/faults.hpp"
#include "base/text.hpp"
#include "broker/topic_settings.hpp"
#include "node/config_documents.hpp"

namespace omnibus::node {
namespace {

using broker::TopicSettings;

constexpr std::size_t id_chars_max = 128;
constexpr std::string_view reserved_prefix = "amq.";

struct ExchangeDraft {
  TopicEntry entry{};
  std::vector<LaterCheck> later{};
  const JsonValue* subscriptions = nullptr;  // read last: they are judged by the type
};

// Broker

constexpr std::array<Key<ExchangeDraft>, 7> broker_keys = {{
    {"MaxSizeInMegabytes", read_size},
    {"DefaultMessageTimeToLive", read_time<&TopicSettings::default_time_to_live>},
    {"RequiresDuplicateDetection", read_flag<&TopicSettings::requires_duplicate_detection>},
    {"DuplicateDetectionHistoryTimeWindow", read_time<&TopicSettings::duplicate_window>},
    {"EnablePartitioning", [](const Place& at, auto&) { refuse_partitioning(at); }},
    {"MaxMessageSizeInKilobytes", read_message_size},
    {"AutoDeleteOnIdle", read_time<&TopicSettings::auto_delete_on_idle>},
}};
constexpr ObjectKeys<ExchangeDraft> broker_object{"ExchangeBroker", Unknown::attribute, broker_keys};

// Exchange

void read_name(const Place& at, ExchangeDraft& draft) {
  const RangeCode code(at.reading(), "name.invalid");
  std::string name = read_entity_name(at);
  if (starts_with_ignoring_case(name, reserved_prefix))
    return at.error(fmt::format("names that begin with '{}' are reserved", reserved_prefix), "name.reserved");
  draft.entry.settings.name = std::move(name);
}

void read_type(const Place& at, ExchangeDraft& draft) {
  static constexpr std::array<std::string_view, 4> names = {"Fanout", "Direct", "Topic", "Headers"};
  const RangeCode code(at.reading(), "type.unknown");
  if (const auto chosen = read_choice(at, names, Letters::exact))
    draft.entry.settings.exchange = rules::exchange_type(names.at(*chosen));
}

void read_exchange_status(const Place& at, ExchangeDraft& draft) {
  using enum broker::EntityStatus;
  static constexpr std::array<std::string_view, 3> names = {"Active", "Disabled", "SendDisabled"};
  static constexpr std::array<broker::EntityStatus, 3> values = {active, disabled, send_disabled};
  if (const auto chosen = read_choice(at, names, Letters::exact))
    draft.entry.settings.status = values.at(*chosen);
}

void read_unroutable(const Place& at, ExchangeDraft& draft) {
  static constexpr std::array<std::string_view, 2> names = {"Accept", "Release"};
  if (const auto chosen = read_choice(at, names, Letters::exact))
    draft.entry.settings.unroutable = *chosen == 0 ? rules::Unroutable::accept : rules::Unroutable::release;
}

void read_alternate(const Place& at, ExchangeDraft& draft) {
  auto& name = draft.entry.settings.alternate_exchange;
  name = read_entity_name(at);
  if (name.empty()) return;
  draft.later.push_back(at.later(LaterCheck::About::alternate_exchange));
  draft.later.back().target = name;
}

constexpr std::array<Key<ExchangeDraft>, 10> exchange_keys = {{
    {"Id", read_id},
    {"Name", read_name},
    {"Caption", read_note<caption_chars_max>},
    {"Description", read_note<description_chars_max>},
    {"Type", read_type},
    {"Subscriptions", [](const Place& at, ExchangeDraft& draft) { draft.subscriptions = &at.value(); }},
    {"Status", read_exchange_status},
    {"Unroutable", read_unroutable},
    {"AlternateExchange", read_alternate},
    {"Broker", [](const Place& at, ExchangeDraft& draft) { read_object(at, broker_object, draft); }},
}};
constexpr ObjectKeys<ExchangeDraft> exchange_object{"Exchange", Unknown::attribute, exchange_keys};

constexpr std::array<KeptMember, 3> kept_exchange = {{{"Id"}, {"Caption"}, {"Description"}}};

// At the member that the finding's JSON pointer leads to, as far as there is one.
void report(const Place& at, std::string_view pointer, const rules::Finding& finding) {
  if (!pointer.empty()) {
    const auto end = pointer.find('/', 1);
    std::string name;
    for (std::size_t i = 1; i < std::min(end, pointer.size()); ++i) {
      name += pointer[i];
      if (pointer[i] == '~') name.back() = pointer[++i] == '1' ? '/' : '~';
    }
    if (const auto* value = at.value().find(name))
      return report(at.child(name.empty() ? "(empty)" : std::string_view(name), *value),
                    end == std::string_view::npos ? "" : pointer.substr(end), finding);
  }
  auto text = without_control(finding.message);
  if (finding.is_warning)
    at.warn(std::move(text), finding.code);
  else
    at.error(std::move(text), finding.code);
}

// What the subscriptions before it have taken, with their lines.
struct Taken {
  std::map<std::string, std::size_t> names{};
  std::map<std::string, std::size_t> consumers{};
};

void read_subscription(const Place& item, TopicEntry& exchange, Taken& taken) {
  const auto errors_before = item.reading().findings.errors();
  auto subscription = read_subscription_document(item);
  if (!subscription) return;
  const bool is_good = item.reading().findings.errors() == errors_before;
  const auto line = item.value().line;
  if (const auto [first, is_new] = taken.names.try_emplace(ascii_lower(subscription->name), line); !is_new)
    item.error(fmt::format("subscription '{}' is there already, on line {}", auth::shown(subscription->name),
                           first->second),
               "name.duplicate");
  if (const auto* id = item.value().find("ConsumerId"); id != nullptr && id->if_text() != nullptr)
    if (const auto [first, is_new] = taken.consumers.try_emplace(*id->if_text(), line); !is_new)
      item.child("ConsumerId", *id)
          .error(fmt::format("the subscription on line {} has it already", first->second),
                 "consumer-id.duplicate");
  // A binding that could not be read whole would only seem to be wrong.
  if (const auto type = exchange.settings.exchange; type && is_good) {
    std::vector<rules::Finding> findings;
    rules::check_routing(*type, subscription->binding, subscription->name, findings);
    for (const auto& finding : findings) report(item, finding.path, finding);
  }
  auto& name = subscription->entry.settings.name;
  name = subscription_path(exchange.settings.name, subscription->name);
  judge_later(item.reading(), std::move(subscription->later), exchange.settings.name, name);
  subscription->entry.binding = std::move(subscription->binding);
  exchange.subscriptions.push_back(std::move(subscription->entry));
}

void read_subscriptions(const Place& at, ExchangeDraft& draft) {
  Taken taken;
  read_array(at, entities_in_file_max,
             [&](const Place& item) { read_subscription(item, draft.entry, taken); });
}

void read_exchange(const Place& at, NamespaceSettings& into) {
  const auto errors_before = at.reading().findings.errors();
  ExchangeDraft draft;
  draft.entry.settings.name.clear();
  const auto members = read_object(at, exchange_object, draft);
  if (at.value().if_object() == nullptr) {
    at.reading().in_use().has_nameless = true;
    return;
  }
  if (!members.has("Name")) at.error("'Name' is missing", "name.invalid");
  if (!members.has("Type"))
    at.error("'Type' is missing: \"Fanout\", \"Direct\", \"Topic\" or \"Headers\"", "type.unknown");
  if (draft.subscriptions != nullptr)
    read_subscriptions(at.child("Subscriptions", *draft.subscriptions), draft);
  const TopicSettings& settings = draft.entry.settings;
  report_wrong(at, members, "Broker", broker::wrong_topic_settings(settings));
  if (!take_entity_name(at, settings.name, exchange_kind, "name.duplicate")) return;
  if (at.reading().findings.errors() == errors_before)
    draft.entry.document = to_json({.value = keep(members, kept_exchange)});
  if (draft.subscriptions != nullptr) draft.entry.named.push_back("Subscriptions");
  judge_later(at.reading(), std::move(draft.later), settings.name, settings.name);
  judge_topic_later(at, draft.entry);
  into.topics.push_back(std::move(draft.entry));
}

}  // namespace

void read_characters(const Place& at, std::size_t min, std::size_t max) {
  const auto* text = at.value().if_text();
  if (text == nullptr) return at.wrong_type("expected a text");
  const auto characters = static_cast<std::size_t>(
      std::ranges::count_if(*text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
  if (characters < min || characters > max)
    at.out_of_range(fmt::format("expected a text of {} to {} characters", min, max));
}

void read_document_id(const Place& at) {
  const auto errors_before = at.reading().findings.errors();
  const RangeCode code(at.reading(), "id.invalid");
  read_characters(at, 1, id_chars_max);
  if (at.reading().findings.errors() != errors_before) return;
  const auto [first, is_new] =
      at.reading().in_use().document_ids.try_emplace(*at.value().if_text(), at.value().line);
  if (!is_new) at.error(fmt::format("the same Id as on line {}", first->second), "id.duplicate");
}

namespace {

// `find` gives the value of a name, or null.
template <class Find>
JsonValue::Object keep_found(std::span<const KeptMember> kept, const Find& find) {
  JsonValue::Object result;
  for (const auto& [name, standard] : kept) {
    JsonMember member{.name = std::string(name)};
    if (const JsonValue* found = find(name))
      member.value = *found;
    else if (const auto* number = std::get_if<std::int64_t>(&standard))
      member.value.value = *number;
    else if (const auto* text = std::get_if<std::string_view>(&standard))
      member.value.value = std::string(*text);
    else
      continue;
    result.push_back(std::move(member));
  }
  return result;
}

}  // namespace

JsonValue::Object keep(const Members& members, std::span<const KeptMember> kept) {
  return keep_found(kept, [&](std::string_view name) {
    const JsonMember* member = members.find(name);
    return member ? &member->value : nullptr;
  });
}

JsonValue::Object with_defaults(const JsonValue* document, std::span<const KeptMember> kept) {
  return keep_found(kept, [&](std::string_view name) { return document ? document->find(name) : nullptr; });
}

void read_exchange_document(const Place& at, NamespaceSettings& into) {
  const RangeCode code(at.reading(), "broker.range");
  read_exchange(at, into);
}

void read_document_of_subscription(const Place& at, TopicEntry& exchange) {
  const RangeCode code(at.reading(), "broker.range");
  Taken taken;
  read_subscription(at, exchange, taken);
}

void read_exchanges(const Place& at, NamespaceSettings& into) {
  const RangeCode code(at.reading(), "broker.range");
  read_array(at, entities_in_file_max, [&](const Place& item) { read_exchange(item, into); });
  judge_count_later(at, into);
}

std::vector<KnownObject> exchange_objects() {
  std::vector<KnownObject> result = {describe(exchange_object), describe(broker_object)};
  for (auto* objects : {subscription_document_objects, script_objects})
    for (auto& object : objects()) result.push_back(std::move(object));
  return result;
}

}  // namespace omnibus::node
