// Which partition of a partitioned entity a message belongs to [contract 9.10].
//
// With a key it follows from the key, in every version and process alike; without one the sender's side
// chooses. Pure; runs on the connection's core.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "broker/message_facts.hpp"

namespace omnibus::broker {

// Jenkins' lookup3 as the SDKs of event hubs have it [event-hubs contract 5.4].
[[nodiscard]] std::int16_t key_hash(std::string_view key);
// Of `count` partitions.
[[nodiscard]] std::uint16_t partition_of_key(std::string_view key, std::uint16_t count);

// SessionId, else PartitionKey, else the text of MessageId when `by_message_id`: on entities with duplicate
// detection. Nothing: the message has no key. Fails with `decode_error`.
[[nodiscard]] Result<std::optional<std::string>> partition_key_of(const IncomingMessage& message,
                                                                  bool by_message_id);

// The one partition for a message or a batch; nothing: any. Sessions and keys that differ within a batch are
// `not_allowed` [contract 4.3]; ids that differ are what batches are made of, so there the first one decides.
[[nodiscard]] Result<std::optional<std::uint16_t>> partition_of(std::span<const IncomingMessage> messages,
                                                                bool by_message_id, std::uint16_t count);

// On a partitioned entity an id is the same only under the same key: two keys may share a partition, and
// whether they do must not matter.
[[nodiscard]] Result<void> compare_ids_within_keys(std::span<IncomingMessage> messages);

}  // namespace omnibus::broker
