#include "base/result.hpp"

namespace omnibus {

std::string_view name_of(Errc code) {
  switch (code) {
    case Errc::framing_error:
      return "framing_error";
    case Errc::decode_error:
      return "decode_error";
    case Errc::invalid_field:
      return "invalid_field";
    case Errc::not_allowed:
      return "not_allowed";
    case Errc::not_implemented:
      return "not_implemented";
    case Errc::frame_size_too_small:
      return "frame_size_too_small";
    case Errc::illegal_state:
      return "illegal_state";
    case Errc::window_violation:
      return "window_violation";
    case Errc::errant_link:
      return "errant_link";
    case Errc::handle_in_use:
      return "handle_in_use";
    case Errc::unattached_handle:
      return "unattached_handle";
    case Errc::unauthorized_access:
      return "unauthorized_access";
    case Errc::auth_failed:
      return "auth_failed";
    case Errc::not_found:
      return "not_found";
    case Errc::argument_error:
      return "argument_error";
    case Errc::argument_out_of_range:
      return "argument_out_of_range";
    case Errc::entity_disabled:
      return "entity_disabled";
    case Errc::entity_already_exists:
      return "entity_already_exists";
    case Errc::resource_limit_exceeded:
      return "resource_limit_exceeded";
    case Errc::message_size_exceeded:
      return "message_size_exceeded";
    case Errc::message_lock_lost:
      return "message_lock_lost";
    case Errc::message_not_found:
      return "message_not_found";
    case Errc::session_lock_lost:
      return "session_lock_lost";
    case Errc::session_cannot_be_locked:
      return "session_cannot_be_locked";
    case Errc::session_not_found:
      return "session_not_found";
    case Errc::timeout:
      return "timeout";
    case Errc::server_busy:
      return "server_busy";
    case Errc::detach_forced:
      return "detach_forced";
    case Errc::connection_forced:
      return "connection_forced";
    case Errc::transaction_unknown_id:
      return "transaction_unknown_id";
    case Errc::transaction_rollback:
      return "transaction_rollback";
    case Errc::transaction_timeout:
      return "transaction_timeout";
    case Errc::io:
      return "io";
    case Errc::internal_error:
      return "internal_error";
  }
  return "unknown";
}

}  // namespace omnibus
