// `Queues` of a namespace: the emulator's keys with its defaults, and every other settable property of a
// queue beside them. [HTTP 8.1, 13, 16]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "auth/faults.hpp"
#include "base/text.hpp"
#include "broker/queue_settings.hpp"
#include "node/config_reader.hpp"
#include "node/entity_name.hpp"

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;
using broker::QueueSettings;

// As many as a file can name at all; the quota is looked at when it is known.
constexpr std::size_t queues_max = json_values_max;
constexpr std::size_t forward_bytes_max = 1024;
constexpr std::size_t user_metadata_bytes_max = 1024;
constexpr std::uint64_t kilobyte = 1024;
constexpr std::uint64_t megabyte = 1024 * kilobyte;

// A queue while it is read.
struct QueueDraft {
  QueueEntry entry;
  bool is_express = false;
  std::vector<LaterCheck> later{};
};

void check_later(const Place& at, LaterCheck::About about, QueueDraft& draft) {
  draft.later.push_back(
      {.about = about,
       .name_space = at.reading().name_space,
       .finding = {.severity = Finding::Severity::error, .line = at.value().line, .key = at.path()}});
}

template <bool QueueSettings::* member>
void read_flag(const Place& at, QueueDraft& draft) {
  read_bool(at, draft.entry.settings.*member);
}
template <std::chrono::milliseconds QueueSettings::* member>
void read_time(const Place& at, QueueDraft& draft) {
  read_duration(at, draft.entry.settings.*member);
}
// Means nothing here, as it means nothing in the cloud.
void read_unused_flag(const Place& at, QueueDraft&) {
  bool ignored = false;
  read_bool(at, ignored);
}

template <std::string QueueSettings::* member, LaterCheck::About about>
void read_forward(const Place& at, QueueDraft& draft) {
  std::string text;
  read_text(at, 0, forward_bytes_max, text);
  if (text.empty()) return;
  auto target = forward_target(text);
  if (!target) return at.error(target.error().detail);
  draft.entry.settings.*member = *std::move(target);
  check_later(at, about, draft);
}

void read_size(const Place& at, QueueDraft& draft) {
  static constexpr std::array<std::int64_t, 9> sizes = {1024,  2048,  3072,  4096, 5120,
                                                        10240, 20480, 40960, 81920};
  const auto* value = std::get_if<std::int64_t>(&at.value().value);
  if (value == nullptr || std::ranges::find(sizes, *value) == sizes.end())
    return at.error(fmt::format("expected one of {}", fmt::join(sizes, ", ")));
  draft.entry.settings.size_bytes_max = static_cast<std::uint64_t>(*value) * megabyte;
}

void read_message_size(const Place& at, QueueDraft& draft) {
  const auto value = read_integer(at, 1024, 102'400);
  if (!value) return;
  draft.entry.settings.message_bytes_max = static_cast<std::uint64_t>(*value) * kilobyte;
  check_later(at, LaterCheck::About::message_size, draft);
}

void read_status(const Place& at, QueueDraft& draft) {
  using enum broker::EntityStatus;
  static constexpr std::array<std::string_view, 4> names = {"Active", "Disabled", "SendDisabled",
                                                            "ReceiveDisabled"};
  static constexpr std::array<broker::EntityStatus, 4> values = {active, disabled, send_disabled,
                                                                 receive_disabled};
  if (const auto chosen = read_choice(at, names, Letters::any_case))
    draft.entry.settings.status = values.at(*chosen);
}

void read_partitioning(const Place& at, QueueDraft&) {
  bool wanted = false;
  read_bool(at, wanted);
  if (wanted) at.error("partitioned queues are not supported yet");
}

void read_user_metadata(const Place& at, QueueDraft&) {
  std::string text;
  read_text(at, 0, user_metadata_bytes_max, text);
  if (!text.empty()) at.warn("not kept yet");
}

constexpr auto any_case = Letters::any_case;
constexpr std::array<Key<QueueDraft>, 19> property_keys = {{
    {"LockDuration", read_time<&QueueSettings::lock_duration>, any_case},
    {"MaxSizeInMegabytes", read_size, any_case},
    {"RequiresDuplicateDetection", read_flag<&QueueSettings::requires_duplicate_detection>, any_case},
    {"RequiresSession", read_flag<&QueueSettings::requires_session>, any_case},
    {"DefaultMessageTimeToLive", read_time<&QueueSettings::default_time_to_live>, any_case},
    {"DeadLetteringOnMessageExpiration", read_flag<&QueueSettings::dead_letter_on_expiration>, any_case},
    {"DuplicateDetectionHistoryTimeWindow", read_time<&QueueSettings::duplicate_window>, any_case},
    {"MaxDeliveryCount",
     [](const Place& at, QueueDraft& draft) {
       read_count(at, 1, 2000, draft.entry.settings.delivery_count_max);
     },
     any_case},
    {"EnableBatchedOperations", read_unused_flag, any_case},
    {"IsAnonymousAccessible", read_unused_flag, any_case},
    {"AuthorizationRules", [](const Place& at, QueueDraft& draft) { read_rules(at, draft.entry.rules); },
     any_case},
    {"Status", read_status, any_case},
    {"ForwardTo", read_forward<&QueueSettings::forward_to, LaterCheck::About::forward_to>, any_case},
    {"UserMetadata", read_user_metadata, any_case},
    {"AutoDeleteOnIdle", read_time<&QueueSettings::auto_delete_on_idle>, any_case},
    {"EnablePartitioning", read_partitioning, any_case},
    {"ForwardDeadLetteredMessagesTo",
     read_forward<&QueueSettings::forward_dead_letters_to, LaterCheck::About::forward_dead_letters_to>,
     any_case},
    {"EnableExpress", [](const Place& at, QueueDraft& draft) { read_bool(at, draft.is_express); }, any_case},
    {"MaxMessageSizeInKilobytes", read_message_size, any_case},
}};
constexpr ObjectKeys<QueueDraft> property_object{"QueueProperties", Unknown::error, property_keys};

void read_queue_name(const Place& at, QueueDraft& draft) {
  std::string name;
  read_text(at, 1, entity_name_bytes_max, name);
  if (name.empty()) return;
  if (const auto good = check_entity_name(name); !good) return at.error(good.error().detail);
  draft.entry.settings.name = std::move(name);
}

constexpr std::array<Key<QueueDraft>, 2> queue_keys = {{
    {"Name", read_queue_name, any_case},
    {"Properties", [](const Place& at, QueueDraft& draft) { read_object(at, property_object, draft); },
     any_case},
}};
constexpr ObjectKeys<QueueDraft> queue_object{"Queue", Unknown::error, queue_keys};

// The emulator's own defaults, which are not the cloud's.
QueueDraft new_draft() {
  QueueDraft draft;
  draft.entry.settings.default_time_to_live = 1h;
  draft.entry.settings.duplicate_window = 20s;
  draft.entry.settings.delivery_count_max = 3;
  return draft;
}

// The text begins with the property's name when it is about one; its line is then better than the queue's.
void out_of_range(const Place& queue, const Members& members, const std::string& text) {
  const auto* found = members.find("Properties");
  const auto* properties = found != nullptr ? found->value.if_object() : nullptr;
  if (properties != nullptr) {
    const auto place = queue.child("Properties", found->value);
    const auto word = std::string_view(text).substr(0, text.find(' '));
    for (const auto& member : *properties)
      if (equals_ignoring_case(member.name, word)) return place.child(word, member.value).error(text);
  }
  queue.error(text);
}

void read_queue(const Place& at, NamespaceSettings& into, std::map<std::string, std::size_t>& lines) {
  const auto errors_before = at.reading().findings.errors();
  QueueDraft draft = new_draft();
  const auto members = read_object(at, queue_object, draft);
  if (at.value().if_object() == nullptr) return;
  if (!members.has("Name")) at.error("'Name' is missing");
  if (at.reading().findings.errors() != errors_before) return;

  QueueSettings& settings = draft.entry.settings;
  if (const auto wrong = broker::check_settings(settings)) return out_of_range(at, members, wrong->detail);
  if (draft.is_express && settings.requires_duplicate_detection)
    return at.error("'EnableExpress' and 'RequiresDuplicateDetection' do not go together");
  for (const auto* target : {&settings.forward_to, &settings.forward_dead_letters_to})
    if (equals_ignoring_case(*target, settings.name)) return at.error("a queue cannot forward to itself");
  const auto [first, is_new] = lines.try_emplace(ascii_lower(settings.name), at.value().line);
  if (!is_new)
    return at.error(
        fmt::format("queue '{}' is there already, on line {}", auth::shown(settings.name), first->second));
  for (auto& check : draft.later) {
    check.queue = into.queues.size();
    at.reading().later.push_back(std::move(check));
  }
  into.queues.push_back(std::move(draft.entry));
}

}  // namespace

void read_queues(const Place& at, NamespaceSettings& into) {
  std::map<std::string, std::size_t> lines;
  read_array(at, queues_max, [&](const Place& item) { read_queue(item, into, lines); });
  if (!into.queues.empty())
    at.reading().later.push_back(
        {.about = LaterCheck::About::how_many,
         .name_space = at.reading().name_space,
         .finding = {.severity = Finding::Severity::error, .line = at.value().line, .key = at.path()}});
}

void finish_queues(Reading& reading, Config& config) {
  const bool is_standard = config.profile == Config::Profile::standard;
  // A queue with a mistake is not among the queues; then a missing target may only seem to be missing.
  const bool complete = reading.findings.errors() == 0;
  std::map<std::size_t, std::set<std::string>> names;
  for (std::size_t space = 0; space < config.namespaces.size(); ++space)
    for (auto& queue : config.namespaces[space].queues) {
      names[space].insert(ascii_lower(queue.settings.name));
      if (is_standard) queue.settings.message_bytes_max = 256 * kilobyte;
    }
  const auto add = [&](const LaterCheck& at, Finding::Severity severity, std::string text) {
    Finding finding = at.finding;
    finding.severity = severity;
    finding.text = std::move(text);
    reading.findings.add(std::move(finding));
  };
  for (const LaterCheck& later : reading.later) {
    auto& queues = config.namespaces[later.name_space].queues;
    const auto forward = [&](std::string& target) {
      const auto name = ascii_lower(target);
      if (names[later.name_space].contains(name)) return;
      if (reading.topics.contains(name)) {
        add(later, Finding::Severity::warning, "topics are not supported yet: nothing is forwarded");
        target.clear();
      } else if (complete) {
        add(later, Finding::Severity::error, "there is no entity of this name in the file");
      }
    };
    switch (later.about) {
      case LaterCheck::About::forward_to:
        forward(queues[later.queue].settings.forward_to);
        break;
      case LaterCheck::About::forward_dead_letters_to:
        forward(queues[later.queue].settings.forward_dead_letters_to);
        break;
      case LaterCheck::About::message_size:
        if (is_standard) add(later, Finding::Severity::error, "not with the profile \"Standard\"");
        break;
      case LaterCheck::About::how_many:
        if (config.entities_max != 0 && queues.size() > config.entities_max)
          add(later, Finding::Severity::error,
              fmt::format("{} entities, 'Quotas.Entities' allows {}", queues.size(), config.entities_max));
        break;
    }
  }
}

std::vector<KnownObject> queue_objects() { return {describe(queue_object), describe(property_object)}; }

}  // namespace omnibus::node
