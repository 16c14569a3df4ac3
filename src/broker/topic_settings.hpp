// What an administrator decides about a topic or exchange [admin contract 8.2], and in which ranges.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "broker/queue_settings.hpp"
#include "rules/routing.hpp"

namespace omnibus::broker {

struct TopicSettings {
  std::string name = "topic";                                        // as it appears in error texts
  std::uint64_t size_bytes_max = std::uint64_t{1024} * 1024 * 1024;  // of all its subscriptions together
  bool requires_duplicate_detection = false;                         // fixed at creation
  std::chrono::milliseconds duplicate_window = std::chrono::minutes{10};
  std::chrono::milliseconds default_time_to_live = unlimited;
  EntityStatus status = EntityStatus::active;
  std::chrono::milliseconds auto_delete_on_idle = unlimited;
  std::uint64_t message_bytes_max = 1024 * 1024;
  // Who decides: the rules of subscriptions, or this type and their bindings. Fixed at creation.
  std::optional<rules::ExchangeType> exchange{};
  // Of an exchange: what happens to a message that nothing matches [EX 2.4].
  rules::Unroutable unroutable = rules::Unroutable::accept;
  std::string alternate_exchange{};  // empty: none
  std::uint16_t partition = 0;
  bool is_partitioned = false;
  std::uint16_t partition_count = 1;

  friend bool operator==(const TopicSettings&, const TopicSettings&) = default;
};

// As for queues: all that is wrong, and the first of it.
[[nodiscard]] std::vector<Error> wrong_topic_settings(const TopicSettings& settings);
[[nodiscard]] std::optional<Error> check_topic_settings(const TopicSettings& settings);
[[nodiscard]] std::optional<Error> check_topic_update(const TopicSettings& present,
                                                      const TopicSettings& wanted);

}  // namespace omnibus::broker
