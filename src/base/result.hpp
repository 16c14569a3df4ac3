// Result<T>: a value or an Error, must-use, spelled like std::expected.
//
// Two kinds of trouble travel this way: the peer is wrong, or the world (disk, socket) is wrong. When
// *we* are wrong, check() stops the process instead.
#pragma once

#include <fmt/format.h>

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace omnibus {

// The code is for programs; links/conditions.cpp maps it to what client SDKs expect.
enum class Errc : unsigned char {
  // The peer broke the protocol.
  framing_error,
  decode_error,
  invalid_field,
  not_allowed,
  not_implemented,
  frame_size_too_small,
  illegal_state,
  window_violation,
  errant_link,
  handle_in_use,
  unattached_handle,
  // The peer may not do this.
  unauthorized_access,
  auth_failed,
  // The request cannot be served.
  not_found,
  argument_error,
  argument_out_of_range,
  entity_disabled,
  entity_already_exists,
  resource_limit_exceeded,
  message_size_exceeded,
  message_lock_lost,
  message_not_found,
  session_lock_lost,
  session_cannot_be_locked,
  session_not_found,
  timeout,
  server_busy,
  detach_forced,
  connection_forced,
  transaction_unknown_id,
  transaction_rollback,
  transaction_timeout,
  // The world is wrong.
  io,
  internal_error,
};

[[nodiscard]] std::string_view name_of(Errc code);

// The detail is for people: it names the thing and the numbers, and never holds a secret.
struct Error {
  Errc code;
  std::string detail;
};

template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
};

template <class... Args>
[[nodiscard]] std::unexpected<Error> fail(Errc code, fmt::format_string<Args...> text, Args&&... args) {
  return std::unexpected(Error{code, fmt::format(text, std::forward<Args>(args)...)});
}

[[nodiscard]] inline std::unexpected<Error> fail(Error error) { return std::unexpected(std::move(error)); }

}  // namespace omnibus
