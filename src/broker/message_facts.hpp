// What a queue has to know about a message before it takes it, read once from the encoded bytes.
//
// read_message() and read_batch() judge what a sender sent [contract 4.2, 4.3, 5.3]; the errors are what the
// sender's rejected outcome carries. They are pure and run on the connection's core. Limits that depend on
// the queue (sessions required, quota, status) are the queue's to judge.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "broker/ids.hpp"

namespace omnibus::broker {

inline constexpr std::size_t identifier_chars_max = 128;                    // message, session, partition key
inline constexpr std::size_t application_property_bytes_max = 32 * 1024;    // one of them
inline constexpr std::size_t application_properties_bytes_max = 64 * 1024;  // all together
inline constexpr std::size_t dead_letter_text_chars_max = 4096;
inline constexpr std::size_t batch_messages_max = 100'000;

// A message-id for duplicate detection: type and bytes, hashed. Two ids that differ collide with a chance
// of 2^-128 per pair, which for a billion ids in the window is below 10^-20.
struct MessageIdHash {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend auto operator<=>(const MessageIdHash&, const MessageIdHash&) = default;
  [[nodiscard]] static MessageIdHash of(Bytes encoded_id, Bytes partition_key = {});
};

struct MessageFacts {
  std::optional<MessageIdHash> message_id{};  // nothing: the sender gave none, never a duplicate
  std::optional<std::string> session_id{};    // empty text is a session too
  std::optional<std::string> partition_key{};
  std::optional<std::uint32_t> ttl_ms{};  // header.ttl
  std::optional<Instant> scheduled{};     // x-opt-scheduled-enqueue-time, past or future
  std::uint32_t application_properties_bytes = 0;
  // At an exchange, from the address it was sent to; nothing: its subject. Not in the message.
  std::optional<std::string> routing_key{};
};

struct IncomingMessage {
  MessageFacts facts{};
  Payload bytes{};  // what is stored: the message as it came, with a message-id assigned when it had none
};

// One message (format 0). Fails with `decode_error`, `argument_out_of_range` (an identifier too long, ttl 0),
// `not_allowed` (PartitionKey differs from SessionId) or `message_size_exceeded`.
[[nodiscard]] Result<IncomingMessage> read_message(const Payload& message, Random& random);
// A batch (format 0x80013700): its messages in order, all or the first error.
[[nodiscard]] Result<std::vector<IncomingMessage>> read_batch(const Payload& envelope, Random& random);
// By the transfer's message-format; any other one is `not_implemented`.
[[nodiscard]] Result<std::vector<IncomingMessage>> read_transfer(std::uint32_t message_format,
                                                                 const Payload& bytes, Random& random);

}  // namespace omnibus::broker

template <>
struct std::hash<omnibus::broker::MessageIdHash> {
  std::size_t operator()(const omnibus::broker::MessageIdHash& id) const noexcept { return id.low; }
};
