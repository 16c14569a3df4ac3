// What a client says of a queue, topic or subscription when it makes or changes one [admin contract 5, 8].
//
// Read from the description in any order; what is not known is passed over, what is read-only too. Pure; any
// core.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/admin_port.hpp"
#include "admin/atom_xml.hpp"

namespace omnibus::admin {

struct EntityRequest {
  EntityKind kind = EntityKind::queue;
  // Nothing: not said.
  std::optional<std::chrono::milliseconds> lock_duration{};
  std::optional<std::int64_t> megabytes{};
  std::optional<bool> requires_duplicate_detection{};
  std::optional<bool> requires_session{};
  std::optional<std::chrono::milliseconds> default_time_to_live{};
  std::optional<bool> dead_letter_on_expiration{};
  std::optional<bool> dead_letter_on_filter_error{};
  std::optional<std::chrono::milliseconds> duplicate_window{};
  std::optional<std::int64_t> delivery_count_max{};
  std::optional<bool> batched_operations{};
  std::optional<broker::EntityStatus> status{};
  std::optional<std::string> forward_to{};  // as written
  std::optional<std::string> forward_dead_letters_to{};
  std::optional<std::string> user_metadata{};
  std::optional<std::chrono::milliseconds> auto_delete_on_idle{};
  std::optional<bool> is_partitioned{};
  std::optional<bool> express{};
  std::optional<bool> ordering{};
  std::optional<std::int64_t> message_kilobytes{};
  std::optional<std::vector<auth::RuleDocument>> access_rules{};
  std::optional<rules::Rule> default_rule{};  // of a subscription
};

// What is inside an entry: its content's first element. Fails with `argument_error` when there is none.
[[nodiscard]] Result<const XmlElement*> content_of(const XmlElement& entry);
// Fails with `argument_error`: another element than a description, or a value that is not what its name says.
[[nodiscard]] Result<EntityRequest> read_entity_request(const XmlElement& description, Instant now);

// The access rules that are wanted in place of `present`: those that stay keep the time of their creation,
// and their keys when none are given. Fails with `argument_error`.
[[nodiscard]] Result<std::vector<auth::AccessRule>> merged_access_rules(
    const std::vector<auth::RuleDocument>& documents, const std::vector<auth::AccessRule>& present,
    Instant now);

// What the broker's profile decides for new entities.
struct EntityDefaults {
  std::uint64_t message_bytes_max = 1024 * 1024;
  bool message_size_settable = true;
  std::uint16_t partition_count = 16;
};

// The entity that is to be made. Fails with `argument_error` and its kin.
[[nodiscard]] Result<Entity> new_entity(const EntityRequest& request, std::string name,
                                        const EntityDefaults& defaults, Instant now);
// `present` as the request wants it: a value that is not said goes back to its default, one that is fixed at
// the creation has to be the same or unsaid.
[[nodiscard]] Result<Entity> changed_entity(const EntityRequest& request, const Entity& present,
                                            const EntityDefaults& defaults, Instant now);

}  // namespace omnibus::admin
