#include "links/conditions.hpp"

#include <fmt/chrono.h>

#include <array>

#include "base/text.hpp"

namespace omnibus::links {

WireError wire_error(Errc code) {
  switch (code) {
    case Errc::framing_error:
      return {"amqp:connection:framing-error", 400};
    case Errc::decode_error:
      return {"amqp:decode-error", 400};
    case Errc::invalid_field:
      return {"amqp:invalid-field", 400};
    case Errc::not_allowed:
      return {"amqp:not-allowed", 400};
    case Errc::not_implemented:
      return {"amqp:not-implemented", 501};
    case Errc::frame_size_too_small:
      return {"amqp:frame-size-too-small", 400};
    case Errc::illegal_state:
      return {"amqp:illegal-state", 400};
    case Errc::window_violation:
      return {"amqp:session:window-violation", 400};
    case Errc::errant_link:
      return {"amqp:session:errant-link", 400};
    case Errc::handle_in_use:
      return {"amqp:session:handle-in-use", 400};
    case Errc::unattached_handle:
      return {"amqp:session:unattached-handle", 400};
    case Errc::unauthorized_access:
      return {"amqp:unauthorized-access", 401};
    case Errc::auth_failed:
      return {"com.microsoft:auth-failed", 401};
    case Errc::not_found:
      return {"amqp:not-found", 404};
    case Errc::argument_error:
      return {"com.microsoft:argument-error", 400};
    case Errc::argument_out_of_range:
      return {"com.microsoft:argument-out-of-range", 400};
    case Errc::entity_disabled:
      return {"com.microsoft:entity-disabled", 400};
    case Errc::entity_already_exists:
      return {"com.microsoft:entity-already-exists", 409};
    case Errc::resource_limit_exceeded:
      return {"amqp:resource-limit-exceeded", 403};
    case Errc::message_size_exceeded:
      return {"amqp:link:message-size-exceeded", 403};
    case Errc::message_lock_lost:
      return {"com.microsoft:message-lock-lost", 410};
    case Errc::message_not_found:
      return {"com.microsoft:message-not-found", 404};
    case Errc::session_lock_lost:
      return {"com.microsoft:session-lock-lost", 410};
    case Errc::session_cannot_be_locked:
      return {"com.microsoft:session-cannot-be-locked", 410};
    case Errc::session_not_found:
      return {"com.microsoft:session-not-found", 404};
    case Errc::timeout:
      return {"com.microsoft:timeout", 408};
    case Errc::server_busy:
      return {"com.microsoft:server-busy", 503};
    case Errc::detach_forced:
      return {"amqp:link:detach-forced", 500};
    case Errc::connection_forced:
      return {"amqp:connection:forced", 500};
    case Errc::transaction_unknown_id:
      return {"amqp:transaction:unknown-id", 400};
    case Errc::transaction_rollback:
      return {"amqp:transaction:rollback", 400};
    case Errc::transaction_timeout:
      return {"amqp:transaction:timeout", 408};
    case Errc::io:
    case Errc::internal_error:
      return {"amqp:internal-error", 500};
  }
  return {"amqp:internal-error", 500};
}

amqp::Condition to_condition(const Error& error, std::string_view tracking_id, Instant now) {
  return {std::string(wire_error(error.code).condition),
          fmt::format("{} TrackingId:{}, SystemTracker:omnibus, Timestamp:{:%Y-%m-%dT%H:%M:%S}", error.detail,
                      tracking_id, std::chrono::floor<std::chrono::seconds>(now)),
          {}};
}

Error entity_not_found(std::string_view name) {
  return {Errc::not_found, fmt::format("The messaging entity '{}' could not be found.", name)};
}

std::string new_tracking_id(Random& random) {
  std::array<std::uint8_t, 16> bytes;
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
  return hex(bytes);
}

}  // namespace omnibus::links
