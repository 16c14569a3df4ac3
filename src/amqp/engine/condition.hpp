// An AMQP error as people and peers see it, and the names of the standard conditions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "amqp/codec/performatives.hpp"

namespace omnibus::amqp {

namespace condition {
inline constexpr std::string_view internal_error = "amqp:internal-error";
inline constexpr std::string_view not_found = "amqp:not-found";
inline constexpr std::string_view unauthorized_access = "amqp:unauthorized-access";
inline constexpr std::string_view decode_error = "amqp:decode-error";
inline constexpr std::string_view resource_limit_exceeded = "amqp:resource-limit-exceeded";
inline constexpr std::string_view not_allowed = "amqp:not-allowed";
inline constexpr std::string_view invalid_field = "amqp:invalid-field";
inline constexpr std::string_view not_implemented = "amqp:not-implemented";
inline constexpr std::string_view illegal_state = "amqp:illegal-state";
inline constexpr std::string_view frame_size_too_small = "amqp:frame-size-too-small";
inline constexpr std::string_view connection_forced = "amqp:connection:forced";
inline constexpr std::string_view framing_error = "amqp:connection:framing-error";
inline constexpr std::string_view window_violation = "amqp:session:window-violation";
inline constexpr std::string_view errant_link = "amqp:session:errant-link";
inline constexpr std::string_view handle_in_use = "amqp:session:handle-in-use";
inline constexpr std::string_view unattached_handle = "amqp:session:unattached-handle";
inline constexpr std::string_view detach_forced = "amqp:link:detach-forced";
inline constexpr std::string_view transfer_limit_exceeded = "amqp:link:transfer-limit-exceeded";
inline constexpr std::string_view message_size_exceeded = "amqp:link:message-size-exceeded";
}  // namespace condition

struct Condition {
  std::string name;
  std::string description;
  std::vector<std::uint8_t> info;  // an encoded map, or empty
};

[[nodiscard]] std::vector<std::uint8_t> encode_condition(const Condition& condition);
// Nothing when `raw` is null; a value that is no error becomes a Condition that says so.
[[nodiscard]] std::optional<Condition> decode_condition(const RawValue& raw);

}  // namespace omnibus::amqp
