// A message as people and programs see it, to and from AMQP and JSON.
//
//   {"body":"tea","messageId":"17","subject":"order","properties":{"price":10,"size":{"type":"int","value":3}}}
//
// One message is one line of JSON. What `to_json` writes `from_json` reads back to an equal message; what
// only the broker can say (sequence number, times, delivery count) is written and ignored when read. Values
// of AMQP types that JSON does not have stand as {"type": name, "value": ...}; any other as
// {"type":"amqp","value": Base64 of its encoding}. Pure; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "amqp/codec/value.hpp"
#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace omnibus::client {

inline constexpr std::size_t message_json_bytes_max = 192 * 1024 * 1024;
inline constexpr std::size_t message_json_depth_max = 32;

struct DataBody {
  std::vector<std::string> sections{};
  friend bool operator==(const DataBody&, const DataBody&) = default;
};
struct ValueBody {
  amqp::Value value{};
  friend bool operator==(const ValueBody&, const ValueBody&) = default;
};
struct SequenceBody {
  std::vector<amqp::Value> sections{};  // lists
  friend bool operator==(const SequenceBody&, const SequenceBody&) = default;
};

struct Message {
  std::variant<DataBody, ValueBody, SequenceBody> body{};
  amqp::Value message_id{};  // string, ulong, uuid or binary; null: none
  amqp::Value correlation_id{};
  std::optional<std::string> subject{};
  std::optional<std::string> to{};
  std::optional<std::string> reply_to{};
  std::optional<std::string> content_type{};
  std::optional<std::string> content_encoding{};
  std::optional<std::string> session_id{};
  std::optional<std::string> reply_to_session_id{};
  std::optional<std::string> user_id{};  // bytes
  std::optional<std::string> partition_key{};
  std::optional<std::string> via_partition_key{};
  std::optional<std::chrono::milliseconds> time_to_live{};
  std::optional<Instant> scheduled{};
  std::optional<std::uint8_t> priority{};
  std::vector<std::pair<std::string, amqp::Value>> properties{};
  std::vector<std::pair<std::string, amqp::Value>> annotations{};  // that have no name here

  // Said by the broker.
  struct Told {
    std::optional<std::int64_t> sequence_number{};
    std::optional<std::int64_t> enqueued_sequence_number{};
    std::optional<Instant> enqueued{};
    std::optional<Instant> locked_until{};
    std::optional<std::string> state{};  // "active", "deferred", "scheduled"
    std::optional<std::string> dead_letter_source{};
    std::uint32_t delivery_count = 0;  // failed attempts
  } told{};

  static Message of_text(std::string_view text);
  // The bytes of a data body, or the text of a value; anything else in AMQP's readable notation.
  [[nodiscard]] std::string body_text() const;
  // What has to be equal in one batch: session or partition key.
  [[nodiscard]] std::string key() const;
};

[[nodiscard]] Payload encode(const Message& message);
// Fails with `decode_error`.
[[nodiscard]] Result<Message> decode(const Payload& payload);
[[nodiscard]] Result<Message> decode(Bytes bytes);

// Without a line end.
[[nodiscard]] std::string to_json(const Message& message);
// Fails with `argument_error`: no JSON object, a name that nobody knows, or a value of the wrong kind; the
// detail names it.
[[nodiscard]] Result<Message> from_json(std::string_view line);

// "name=value" with the type found out (true, 10, 2.5, anything else is text), or told: "name:int=10",
// "name:string=10". Types: string bool int long ulong double timestamp uuid. Fails with `argument_error`.
[[nodiscard]] Result<std::pair<std::string, amqp::Value>> parse_property(std::string_view text);

// Several encoded messages as one transfer of amqp::batch_message_format; all have the same key().
[[nodiscard]] Payload encode_batch(const Message& first, const std::vector<Payload>& messages);
// What a message takes of a batch.
[[nodiscard]] std::size_t batch_bytes_of(const Payload& message);
inline constexpr std::size_t batch_envelope_bytes_max = 1024;

}  // namespace omnibus::client
