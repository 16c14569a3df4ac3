#include "rules/system_fields.hpp"

#include <array>

#include "base/text.hpp"

namespace omnibus::rules {
namespace {

struct Entry {
  std::string_view name;
  bool writable;
};

// In the order of the enumeration.
constexpr std::array<Entry, system_field_count> entries{{
    {"ContentType", true},
    {"CorrelationId", true},
    {"Label", true},
    {"MessageId", true},
    {"To", true},
    {"ReplyTo", true},
    {"ReplyToSessionId", true},
    {"SessionId", true},
    {"PartitionKey", true},
    {"ViaPartitionKey", true},
    {"TimeToLive", true},
    {"ExpiresAtUtc", false},
    {"EnqueuedTimeUtc", false},
    {"ScheduledEnqueueTimeUtc", true},
    {"SequenceNumber", false},
    {"EnqueuedSequenceNumber", false},
    {"DeliveryCount", false},
    {"Size", false},
    {"State", false},
    {"LockedUntilUtc", false},
    {"LockToken", false},
    {"DeadLetterSource", false},
    {"ForcePersistence", false},
}};
static_assert(static_cast<std::size_t>(SystemField::force_persistence) + 1 == system_field_count);

}  // namespace

std::optional<SystemField> system_field(std::string_view name) {
  if (equals_ignoring_case(name, "Subject")) return SystemField::label;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (equals_ignoring_case(name, entries[i].name)) return static_cast<SystemField>(i);
  return std::nullopt;
}

std::string_view name_of(SystemField field) { return entries[static_cast<std::size_t>(field)].name; }
bool is_writable(SystemField field) { return entries[static_cast<std::size_t>(field)].writable; }

}  // namespace omnibus::rules
