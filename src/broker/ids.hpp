// The names by which the broker, the links and the journal speak of the same things.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <limits>

#include "amqp/codec/value.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"

namespace omnibus::broker {

// A place in the journal. Only the journal knows what it means; here it is compared and given back.
// Zero is no place.
struct Location {
  std::uint64_t value = 0;
  friend auto operator<=>(const Location&, const Location&) = default;
};

// The holder of a lock names it by this token: random, never used twice, in RFC 4122 order. One of a
// partitioned entity says in its last two bytes which partition gave it.
struct LockToken {
  std::array<std::uint8_t, 16> bytes{};
  friend auto operator<=>(const LockToken&, const LockToken&) = default;

  [[nodiscard]] static LockToken make(Random& random);
  [[nodiscard]] static LockToken make(Random& random, std::uint16_t partition);
  // Good only for a token of a partitioned entity; of any other it is noise.
  [[nodiscard]] std::uint16_t partition() const {
    return static_cast<std::uint16_t>(bytes[14] << 8 | bytes[15]);
  }
  [[nodiscard]] amqp::Uuid uuid() const { return {bytes}; }
  [[nodiscard]] static LockToken from(const amqp::Uuid& uuid) { return {uuid.bytes}; }
  // The delivery-tag form: the same token in the byte order of a .NET Guid [contract 4.1].
  [[nodiscard]] std::array<std::uint8_t, 16> delivery_tag() const;
  [[nodiscard]] static LockToken from_delivery_tag(const std::array<std::uint8_t, 16>& tag);
};

// Chosen by the link layer, unique in the node for as long as the thing lives. 0 is nobody.
enum class ReceiverId : std::uint64_t { none = 0 };
enum class ConnectionId : std::uint64_t { none = 0 };
// Given back in the answer. `none` asks for no answer: the change is journaled, not awaited [contract 4.6].
enum class RequestId : std::uint64_t { none = 0 };

// Partition id in the upper 16 bits, counter from 1 in the lower 48 [contract 9.9].
using SequenceNumber = std::int64_t;
inline constexpr unsigned partition_shift = 48;
[[nodiscard]] constexpr SequenceNumber sequence_base(std::uint16_t partition) {
  return static_cast<SequenceNumber>(partition) << partition_shift;
}
// Negative numbers belong to no partition; they come out as large ones.
[[nodiscard]] constexpr std::uint16_t partition_of(SequenceNumber sequence) {
  return static_cast<std::uint16_t>(static_cast<std::uint64_t>(sequence) >> partition_shift);
}

enum class SubQueue : std::uint8_t {
  active,
  dead_letter,
  transfer_dead_letter,
  transfer,  // kept for another entity [contract 7, send-via]; nobody receives from it or peeks into it
};
inline constexpr std::size_t sub_queue_count = 4;

enum class ReceiveMode : std::uint8_t { peek_lock, receive_and_delete };

// x-opt-message-state on the wire [contract 5.2].
enum class MessageState : std::uint8_t { active = 0, deferred = 1, scheduled = 2 };

// A time that never comes.
inline constexpr Instant never{std::chrono::milliseconds{std::numeric_limits<std::int64_t>::max()}};

}  // namespace omnibus::broker

template <>
struct std::hash<omnibus::broker::LockToken> {
  // Tokens are random already: any eight bytes are a hash.
  std::size_t operator()(const omnibus::broker::LockToken& token) const noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, token.bytes.data(), sizeof word);
    return word;
  }
};
