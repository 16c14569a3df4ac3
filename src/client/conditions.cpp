#include "client/conditions.hpp"

#include <array>
#include <utility>

namespace omnibus::client {
namespace {

constexpr std::array<std::pair<std::string_view, Errc>, 32> conditions = {{
    {"amqp:connection:framing-error", Errc::framing_error},
    {"amqp:decode-error", Errc::decode_error},
    {"amqp:invalid-field", Errc::invalid_field},
    {"amqp:not-allowed", Errc::not_allowed},
    {"amqp:not-implemented", Errc::not_implemented},
    {"amqp:frame-size-too-small", Errc::frame_size_too_small},
    {"amqp:illegal-state", Errc::illegal_state},
    {"amqp:session:window-violation", Errc::window_violation},
    {"amqp:session:errant-link", Errc::errant_link},
    {"amqp:unauthorized-access", Errc::unauthorized_access},
    {"com.microsoft:auth-failed", Errc::auth_failed},
    {"amqp:not-found", Errc::not_found},
    {"com.microsoft:argument-error", Errc::argument_error},
    {"com.microsoft:argument-out-of-range", Errc::argument_out_of_range},
    {"com.microsoft:entity-disabled", Errc::entity_disabled},
    {"com.microsoft:entity-already-exists", Errc::entity_already_exists},
    {"amqp:resource-limit-exceeded", Errc::resource_limit_exceeded},
    {"amqp:link:message-size-exceeded", Errc::message_size_exceeded},
    {"com.microsoft:message-lock-lost", Errc::message_lock_lost},
    {"com.microsoft:message-not-found", Errc::message_not_found},
    {"com.microsoft:session-lock-lost", Errc::session_lock_lost},
    {"com.microsoft:session-cannot-be-locked", Errc::session_cannot_be_locked},
    {"com.microsoft:session-not-found", Errc::session_not_found},
    {"com.microsoft:timeout", Errc::timeout},
    {"com.microsoft:operation-timeout", Errc::timeout},
    {"com.microsoft:server-busy", Errc::server_busy},
    {"amqp:link:detach-forced", Errc::detach_forced},
    {"amqp:connection:forced", Errc::connection_forced},
    {"amqp:transaction:unknown-id", Errc::transaction_unknown_id},
    {"amqp:transaction:rollback", Errc::transaction_rollback},
    {"amqp:transaction:timeout", Errc::transaction_timeout},
    {"amqp:internal-error", Errc::internal_error},
}};

}  // namespace

Errc code_of_condition(std::string_view condition) {
  for (const auto& [name, code] : conditions)
    if (name == condition) return code;
  return Errc::internal_error;
}

Error error_of(const amqp::Condition& condition) {
  std::string detail = condition.description.empty() ? condition.name : condition.description;
  for (const std::string_view tail : {" TrackingId:", " Reference:"})
    if (const auto at = detail.find(tail); at != std::string::npos) detail.erase(at);
  return {code_of_condition(condition.name), std::move(detail)};
}

}  // namespace omnibus::client
