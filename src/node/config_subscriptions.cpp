// Subscription documents of an exchange. [EX 2.3, 2.5, 4.1]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "base/text.hpp"
#include "node/config_documents.hpp"

namespace omnibus::node {
namespace {

using broker::QueueSettings;
using Draft = SubscriptionDocument;

constexpr std::size_t consumer_id_bytes_max = 255;
constexpr std::size_t send_to_max = 64;
constexpr std::size_t entity_name_chars_max = 260;
constexpr std::int64_t min_listen_time_small = 1000;

// RoutingKey, RoutingHeaders

void read_routing_key(const Place& at, Draft& draft) {
  if (const auto* text = at.value().if_text())
    draft.binding.routing_key = *text;
  else
    at.wrong_type("expected a text");
}

rules::HeaderValue header_value(const JsonValue& json) {
  if (std::holds_alternative<std::nullptr_t>(json.value)) return std::monostate{};
  if (const auto* flag = std::get_if<bool>(&json.value)) return *flag;
  if (const auto* number = std::get_if<std::int64_t>(&json.value)) return *number;
  if (const auto* text = json.if_text()) return *text;
  if (const auto* number = std::get_if<JsonNumber>(&json.value)) {
    const char* end = number->text.data() + number->text.size();
    std::uint64_t whole = 0;
    if (const auto [stop, fault] = std::from_chars(number->text.data(), end, whole);
        fault == std::errc{} && stop == end)
      return whole;
    if (const double real = std::strtod(number->text.c_str(), nullptr); std::isfinite(real)) return real;
  }
  return rules::JsonOther{};
}

void read_headers(const Place& at, Draft& draft) {
  if (!is_object(at)) return;
  auto& headers = draft.binding.routing_headers.emplace();
  for (const auto& member : *at.value().if_object())
    headers.emplace_back(member.name, header_value(member.value));
}
constexpr std::array<Key<Draft>, 1> headers_keys = {{{"Headers", read_headers}}};
constexpr ObjectKeys<Draft> headers_object{"RoutingHeaders", Unknown::attribute, headers_keys};

void read_routing_headers(const Place& at, Draft& draft) {
  const auto members = read_object(at, headers_object, draft);
  if (at.value().if_object() != nullptr && !members.has("Headers"))
    at.error("'Headers' is missing", "routing-headers.required");
}

// What only a Handler uses: judged and kept.

void read_worker_threads(const Place& at, Draft&) {
  const RangeCode code(at.reading(), "worker-thread-count.range");
  const auto count = read_integer(at, 1, 1024);
  // The file has to work on a smaller machine as well. [EX 2.3, D4]
  const std::int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  if (count && *count > cores)
    at.warn(fmt::format("this machine has {} cores: so many are used", cores), "worker-thread-count.clamped");
}

void read_min_listen_time(const Place& at, Draft&) {
  const RangeCode code(at.reading(), "min-listen-time.range");
  const auto time = read_integer(at, 1, no_maximum);
  if (time && *time < min_listen_time_small)
    at.warn("milliseconds; below a second most interruptions are passed over", "min-listen-time.small");
}

void read_acknowledge_policy(const Place& at, Draft&) {
  static constexpr std::array<std::string_view, 3> names = {"AlwaysAfterHandling", "AlwaysBeforeHandling",
                                                            "OnlyOnSuccessHandling"};
  const RangeCode code(at.reading(), "acknowledge-policy.unknown");
  (void)read_choice(at, names, Letters::exact);
}

void read_reject_policy(const Place& at, Draft&) {
  static constexpr std::array<std::string_view, 3> names = {"Never", "ByHandler", "WhenOverloaded"};
  const RangeCode code(at.reading(), "reject-policy.unknown");
  (void)read_choice(at, names, Letters::exact);
}

void read_send_to(const Place& at, Draft& draft) {
  read_array(at, send_to_max, [&](const Place& item) {
    std::string name;
    read_text(item, 1, entity_name_chars_max, name);
    if (name.empty()) return;
    draft.later.push_back(item.later(LaterCheck::About::send_to, "send-to.unknown"));
    draft.later.back().target = std::move(name);
  });
}

void read_handler_status(const Place& at, Draft&) {
  static constexpr std::array<std::string_view, 2> names = {"Listening", "Stopped"};
  (void)read_choice(at, names, Letters::exact);
}
void read_receipts(const Place& at, Draft&) {
  static constexpr std::array<std::string_view, 2> names = {"None", "OnSettled"};
  (void)read_choice(at, names, Letters::exact);
}

constexpr std::array<Key<Draft>, 5> limits_keys = {{
    {"TimeLimitMs", check_integer<1, 300'000>},
    {"MemoryLimitBytes", check_integer<2'097'152, 268'435'456>},
    {"MaxSends", check_integer<0, 1000>},
    {"MaxSendBytes", check_integer<0, 67'108'864>},
    {"MaxLogLines", check_integer<0, 1000>},
}};
constexpr ObjectKeys<Draft> limits_object{"HandlerLimits", Unknown::attribute, limits_keys};

constexpr std::array<KeptMember, 5> kept_limits = {{
    {"TimeLimitMs", 5000},
    {"MemoryLimitBytes", 16'777'216},
    {"MaxSends", 100},
    {"MaxSendBytes", 4'194'304},
    {"MaxLogLines", 100},
}};

// Broker

// Empty is not the same as absent here.
template <std::string QueueSettings::* member, LaterCheck::About about>
void read_target(const Place& at, Draft& draft) {
  if (const auto* text = at.value().if_text(); text != nullptr && text->empty())
    return at.out_of_range("expected the name of an entity");
  read_forward<member, about>(at, draft);
}

constexpr std::array<Key<Draft>, 18> broker_keys = {{
    {"Status", [](const Place& at,
                  Draft& draft) { read_entity_status(at, Letters::exact, draft.entry.settings.status); }},
    {"HandlerStatus", read_handler_status},
    {"MaxDeliveryCount", read_delivery_count},
    {"LockDuration", read_time<&QueueSettings::lock_duration>},
    {"DefaultMessageTimeToLive", read_time<&QueueSettings::default_time_to_live>},
    {"DeadLetteringOnMessageExpiration", read_flag<&QueueSettings::dead_letter_on_expiration>},
    {"RequiresSession", read_flag<&QueueSettings::requires_session>},
    {"ForwardTo", read_target<&QueueSettings::forward_to, LaterCheck::About::forward_to>},
    {"ForwardDeadLetteredMessagesTo",
     read_target<&QueueSettings::forward_dead_letters_to, LaterCheck::About::forward_dead_letters_to>},
    {"AutoDeleteOnIdle", read_time<&QueueSettings::auto_delete_on_idle>},
    {"Receipts", read_receipts},
    {"SendTo", read_send_to},
    {"RetryDelayMs", check_integer<0, 300'000>},
    {"RetryDelayMaxMs", check_integer<0, 3'600'000>},
    {"RejectDelayMs", check_integer<0, 300'000>},
    {"MaxRejects", check_integer<0, 1'000'000>},
    {"BreakAfterFailures", check_integer<0, 10'000>},
    {"Limits", [](const Place& at, Draft& draft) { draft.limits = read_object(at, limits_object, draft); }},
}};
constexpr ObjectKeys<Draft> broker_object{"SubscriptionBroker", Unknown::attribute, broker_keys};

// The others are settings of the queue.
constexpr std::array<KeptMember, 8> kept_broker = {{
    {"HandlerStatus", "Listening"},
    {"Receipts", "None"},
    {"SendTo"},
    {"RetryDelayMs", 2000},
    {"RetryDelayMaxMs", 300'000},
    {"RejectDelayMs", 1000},
    {"MaxRejects", 0},
    {"BreakAfterFailures", 20},
}};

// Subscription

template <std::uint32_t QueueSettings::* member, std::int64_t max>
void read_prefetch(const Place& at, std::string_view code_of_range, Draft& draft) {
  const RangeCode code(at.reading(), code_of_range);
  read_count(at, 0, max, draft.entry.settings.*member);
}

constexpr std::array<Key<Draft>, 15> subscription_keys = {{
    {"Id", read_id},
    {"Name",
     [](const Place& at, Draft& draft) {
       const RangeCode code(at.reading(), "name.invalid");
       draft.name = read_subscription_name(at);
     }},
    {"Caption", read_note<caption_chars_max>},
    {"Description", read_note<description_chars_max>},
    {"ConsumerId",
     [](const Place& at, Draft&) {
       const RangeCode code(at.reading(), "consumer-id.invalid");
       std::string unused;
       read_text(at, 1, consumer_id_bytes_max, unused);
     }},
    {"RoutingKey", read_routing_key},
    {"RoutingHeaders", read_routing_headers},
    {"PrefetchSize",
     [](const Place& at, Draft& draft) {
       read_prefetch<&QueueSettings::prefetch_bytes, no_maximum>(at, "prefetch-size.range", draft);
     }},
    {"PrefetchCount",
     [](const Place& at, Draft& draft) {
       read_prefetch<&QueueSettings::prefetch_count, 65'535>(at, "prefetch-count.range", draft);
     }},
    {"WorkerThreadCount", read_worker_threads},
    {"MinListenTime", read_min_listen_time},
    {"AcknowledgePolicy", read_acknowledge_policy},
    {"RejectPolicy", read_reject_policy},
    {"Handler", [](const Place& at, Draft& draft) { read_handler(at, draft.later); }},
    {"Broker", [](const Place& at, Draft& draft) { draft.broker = read_object(at, broker_object, draft); }},
}};
constexpr ObjectKeys<Draft> subscription_object{"ExchangeSubscription", Unknown::attribute,
                                                subscription_keys};

constexpr std::array<KeptMember, 11> kept_subscription = {{
    {"Id"},
    {"Caption"},
    {"Description"},
    {"ConsumerId"},
    {"RoutingKey"},
    {"RoutingHeaders"},
    {"WorkerThreadCount", 1},
    {"MinListenTime", 120'000},
    {"AcknowledgePolicy", "OnlyOnSuccessHandling"},
    {"RejectPolicy", "Never"},
    {"Handler"},
}};

// The order of headers means nothing, so equal documents have equal texts.
void sort_headers(JsonValue::Object& document) {
  for (auto& member : document) {
    if (member.name != "RoutingHeaders") continue;
    for (auto& headers : std::get<JsonValue::Object>(member.value.value))
      std::ranges::sort(std::get<JsonValue::Object>(headers.value.value), {}, &JsonMember::name);
  }
}

std::string document_of(const Draft& draft, const Members& members) {
  auto document = keep(members, kept_subscription);
  sort_headers(document);
  auto broker = keep(draft.broker, kept_broker);
  broker.push_back({.name = "Limits", .value = {.value = keep(draft.limits, kept_limits)}});
  document.push_back({.name = "Broker", .value = {.value = std::move(broker)}});
  return to_json({.value = std::move(document)});
}

void check_handler_settings(const Place& at, const Members& members) {
  if (members.has("Handler")) return;
  for (const auto* key : {"WorkerThreadCount", "MinListenTime", "AcknowledgePolicy", "RejectPolicy"})
    if (const auto* member = members.find(key))
      return at.child(key, member->value).warn("has no effect without a Handler", "handler.absent");
}

}  // namespace

std::optional<SubscriptionDocument> read_subscription_document(const Place& at) {
  const auto errors_before = at.reading().findings.errors();
  Draft draft;
  const auto members = read_object(at, subscription_object, draft);
  if (at.value().if_object() == nullptr) return std::nullopt;
  if (!members.has("Name")) at.error("'Name' is missing", "name.invalid");
  check_handler_settings(at, members);
  QueueSettings& settings = draft.entry.settings;
  if (const auto* forward = draft.broker.find("ForwardTo");
      forward != nullptr && !settings.forward_to.empty()) {
    const auto broker = at.child("Broker", members.find("Broker")->value);
    const auto place = broker.child("ForwardTo", forward->value);
    if (settings.requires_session)
      place.error("a subscription with sessions cannot forward", "forward-to.session");
    if (members.has("Handler"))
      place.error("a subscription with a Handler cannot forward", "forward-to.handler");
  }
  settings.name = draft.name;
  auto wrong = broker::wrong_settings(settings);
  // Sessions with forwarding have been told, with a code.
  std::erase_if(wrong, [](const Error& error) { return error.code != Errc::argument_out_of_range; });
  report_wrong(at, members, "Broker", wrong);
  if (draft.name.empty()) return std::nullopt;
  // The document is kept as it was judged.
  if (at.reading().findings.errors() == errors_before) draft.entry.document = document_of(draft, members);
  return draft;
}

std::span<const KeptMember> kept_of_subscription() { return kept_subscription; }
std::span<const KeptMember> kept_of_broker() { return kept_broker; }
std::span<const KeptMember> kept_of_limits() { return kept_limits; }

std::vector<KnownObject> subscription_document_objects() {
  return {describe(subscription_object), describe(headers_object), describe(broker_object),
          describe(limits_object)};
}

}  // namespace omnibus::node
