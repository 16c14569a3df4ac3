// What the readers of queues, topics and exchanges share: the properties that mean the same for all of them
// [HTTP 8], and their names. Private to the config files.
//
// A draft is an entity while it is read: its `entry` with the settings, and what has to be judged `later`.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "broker/queue_settings.hpp"
#include "node/config_reader.hpp"

namespace omnibus::node {

// As many as a file can name at all; the quotas are looked at when they are known.
inline constexpr std::size_t entities_in_file_max = json_values_max;
// The kind of those that can be the alternate of others.
inline constexpr std::string_view exchange_kind = "exchange";
inline constexpr std::size_t forward_bytes_max = 1024;
using broker::user_metadata_bytes_max;
inline constexpr std::uint64_t kilobyte = 1024;
inline constexpr std::uint64_t megabyte = 1024 * kilobyte;

// The emulator's own defaults, which are not the cloud's. [HTTP 16.1]
inline constexpr std::chrono::hours file_time_to_live{1};
inline constexpr std::chrono::seconds file_duplicate_window{20};
inline constexpr std::uint32_t file_delivery_count_max = 3;

void read_size_bytes(const Place& at, std::uint64_t& into);
void read_entity_status(const Place& at, Letters letters, broker::EntityStatus& into);
// A bare name or an address; the name of the entity. Empty: none, or a mistake that is a finding.
[[nodiscard]] std::string read_forward_target(const Place& at);
// Of an exchange.
void refuse_partitioning(const Place& at);

template <auto member, class Draft>
void read_flag(const Place& at, Draft& draft) {
  read_bool(at, draft.entry.settings.*member);
}
template <auto member, class Draft>
void read_time(const Place& at, Draft& draft) {
  read_duration(at, draft.entry.settings.*member);
}
// Means nothing here, as it means nothing in the cloud.
template <class Draft>
void read_unused_flag(const Place& at, Draft&) {
  bool ignored = false;
  read_bool(at, ignored);
}
template <class Draft>
void read_size(const Place& at, Draft& draft) {
  read_size_bytes(at, draft.entry.settings.size_bytes_max);
}
template <class Draft>
void read_status(const Place& at, Draft& draft) {
  read_entity_status(at, Letters::any_case, draft.entry.settings.status);
}
// How many there are is said elsewhere in the file: finish_entities() puts it in.
template <class Draft>
void read_partitioning(const Place& at, Draft& draft) {
  auto& settings = draft.entry.settings;
  read_bool(at, settings.is_partitioned);
  if (settings.is_partitioned) settings.partition_count = broker::partitions_min;
}
template <class Draft>
void read_message_size(const Place& at, Draft& draft) {
  const auto value = read_integer(at, broker::message_kilobytes_min, broker::message_kilobytes_max);
  if (!value) return;
  draft.entry.settings.message_bytes_max = static_cast<std::uint64_t>(*value) * kilobyte;
  draft.later.push_back(at.later(LaterCheck::About::message_size, at.reading().range_code));
}
template <class Draft>
void read_delivery_count(const Place& at, Draft& draft) {
  read_count(at, 1, 2000, draft.entry.settings.delivery_count_max);
}
template <auto member, LaterCheck::About about, class Draft>
void read_forward(const Place& at, Draft& draft) {
  std::string& target = draft.entry.settings.*member;
  target = read_forward_target(at);
  if (target.empty()) return;
  auto& check = draft.later.emplace_back(
      at.later(about, at.reading().range_code.empty() ? "" : "forward-to.not-found"));
  check.target = target;
}
template <class Draft>
void read_express(const Place& at, Draft& draft) {
  read_bool(at, draft.is_express);
}
// Nothing but an administrator's note.
template <class Draft>
void read_user_metadata(const Place& at, Draft& draft) {
  read_text(at, 0, user_metadata_bytes_max, draft.entry.user_metadata);
}
template <class Draft>
void read_entity_rules(const Place& at, Draft& draft) {
  read_rules(at, draft.entry.rules);
}

// An entity's name, by its rules; empty when there is a finding instead.
[[nodiscard]] std::string read_entity_name(const Place& at);
[[nodiscard]] std::string read_subscription_name(const Place& at);
// Whatever else is wrong with the entity, so that others can refer to it. False: it has none, or another
// entity of the namespace has it, which is then a finding.
[[nodiscard]] bool take_entity_name(const Place& entity, const std::string& name, std::string_view kind,
                                    std::string_view code = {});

// Settings that do not go. A text begins with the property's name when it is about one; the line of that one
// in the object `key` is then better than the entity's.
void report_wrong(const Place& entity, const Members& members, std::string_view key,
                  const std::vector<Error>& wrong);

// What a draft wanted to be judged later is about this entity, by way of `via`.
void judge_later(Reading& reading, std::vector<LaterCheck> checks, const std::string& entity,
                 const std::string& via);
// How many entities the namespace has by now, said at the array that was read.
void judge_count_later(const Place& array, const NamespaceSettings& space);
// How many subscriptions and filters a topic has, said at the topic.
void judge_topic_later(const Place& topic, const TopicEntry& entry);

// What others say about a text of the file may hold a piece of it.
[[nodiscard]] std::string without_control(std::string text);

// `orders/Subscriptions/audit`
[[nodiscard]] std::string subscription_path(std::string_view topic, std::string_view subscription);

}  // namespace omnibus::node
