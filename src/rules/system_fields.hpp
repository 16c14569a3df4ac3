// The properties behind `sys.` [contract SQL §6]: which there are, and which an action may change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace omnibus::rules {

enum class SystemField : std::uint8_t {
  content_type,
  correlation_id,
  label,
  message_id,
  to,
  reply_to,
  reply_to_session_id,
  session_id,
  partition_key,
  via_partition_key,
  time_to_live,
  expires_at,
  enqueued_time,
  scheduled_enqueue_time,
  sequence_number,
  enqueued_sequence_number,
  delivery_count,
  size,
  state,
  locked_until,
  lock_token,
  dead_letter_source,
  force_persistence,
};
inline constexpr std::size_t system_field_count = 23;

// By the name after `sys.`, in any case; `Subject` is another word for `Label`.
[[nodiscard]] std::optional<SystemField> system_field(std::string_view name);
[[nodiscard]] std::string_view name_of(SystemField field);
[[nodiscard]] bool is_writable(SystemField field);

}  // namespace omnibus::rules
