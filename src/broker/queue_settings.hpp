// What an administrator decides about a queue [admin contract 8.1], and in which ranges.
//
// Lives on the queue's core. valid() is asked by administration before the settings reach a queue.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "broker/ids.hpp"

namespace omnibus::broker {

enum class EntityStatus : std::uint8_t { active, disabled, send_disabled, receive_disabled };

// Unlimited durations are this; it is far below overflow when added to a wall clock.
inline constexpr std::chrono::milliseconds unlimited{std::chrono::hours{24} * 365 * 10000};

// How many partitions a partitioned entity can have.
inline constexpr std::uint16_t partitions_min = 2;
inline constexpr std::uint16_t partitions_max = 32;

// What an administrator may choose from [admin contract 8.1]: sizes of entities and messages, and how long
// his note may be.
inline constexpr std::array<std::uint32_t, 9> entity_megabytes = {1024,  2048,  3072,  4096, 5120,
                                                                  10240, 20480, 40960, 81920};
inline constexpr std::uint32_t message_kilobytes_min = 1024;
inline constexpr std::uint32_t message_kilobytes_max = 102'400;
inline constexpr std::size_t user_metadata_bytes_max = 1024;

struct QueueSettings {
  std::string name = "queue";  // as it appears in error texts and x-opt-deadletter-source
  std::chrono::milliseconds lock_duration = std::chrono::minutes{1};
  std::uint64_t size_bytes_max = std::uint64_t{1024} * 1024 * 1024;
  bool requires_duplicate_detection = false;  // fixed at creation
  bool requires_session = false;              // fixed at creation
  std::chrono::milliseconds default_time_to_live = unlimited;
  bool dead_letter_on_expiration = false;
  bool dead_letter_on_filter_error = true;  // of a subscription: a rule that fails sends a copy there
  std::chrono::milliseconds duplicate_window = std::chrono::minutes{10};
  std::uint32_t delivery_count_max = 10;
  EntityStatus status = EntityStatus::active;
  std::string forward_to{};               // empty: none
  std::string forward_dead_letters_to{};  // empty: none
  std::chrono::milliseconds auto_delete_on_idle = unlimited;
  std::uint64_t message_bytes_max = 1024 * 1024;
  // What one consumer may hold at once, unsettled; 0: no limit. One message always passes [EX 2.5].
  std::uint32_t prefetch_count = 0;
  std::uint32_t prefetch_bytes = 0;
  // Of a partitioned entity, which is so many queues of one name [contract 9.10]. Fixed at creation.
  std::uint16_t partition = 0;  // upper 16 bits of every sequence number
  bool is_partitioned = false;  // x-opt-partition-id is shown
  std::uint16_t partition_count = 1;

  friend bool operator==(const QueueSettings&, const QueueSettings&) = default;
};

// Whether three numbers make one partition of an entity, or the whole of a plain one.
[[nodiscard]] constexpr bool is_a_partition(bool is_partitioned, std::uint16_t partition,
                                            std::uint16_t count) {
  if (!is_partitioned) return partition == 0 && count == 1;
  return count >= partitions_min && count <= partitions_max && partition < count;
}

// The ranges of the admin contract: `argument_out_of_range` begins with the name of the value and says its
// range. All that is wrong, and the first of it.
[[nodiscard]] std::vector<Error> wrong_settings(const QueueSettings& settings);
[[nodiscard]] std::optional<Error> check_settings(const QueueSettings& settings);
// Whether `wanted` may replace `present` on a living queue: sessions, duplicate detection and partitions
// are for life [admin contract 8.1, mode C].
[[nodiscard]] std::optional<Error> check_update(const QueueSettings& present, const QueueSettings& wanted);

[[nodiscard]] inline bool may_send(EntityStatus status) {
  return status == EntityStatus::active || status == EntityStatus::receive_disabled;
}
[[nodiscard]] inline bool may_receive(EntityStatus status) {
  return status == EntityStatus::active || status == EntityStatus::send_disabled;
}

}  // namespace omnibus::broker
