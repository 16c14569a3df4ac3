// Why a token was refused, as a program reads it.
//
// Every `auth_failed` error of this room begins its detail with one of these words and a colon, as the
// cloud does; on AMQP people read it, over HTTP it chooses the sub-code of the 401 answer.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace omnibus::auth {

enum class Fault : unsigned char {
  none,               // not a refused token
  malformed_token,    // cannot be read, or is not valid yet
  invalid_signature,  // the key does not fit, or the rule is unknown: deliberately the same
  expired_token,
  invalid_audience,  // good, but not for this path or this service
  invalid_issuer,    // a JWT of an issuer nobody configured
  no_rights,         // good, but its claims give no right here
};

[[nodiscard]] std::string_view word_of(Fault fault);
[[nodiscard]] Fault fault_of(const Error& error);

template <class... Args>
[[nodiscard]] std::unexpected<Error> refuse(Fault fault, fmt::format_string<Args...> text, Args&&... args) {
  return std::unexpected(
      Error{Errc::auth_failed,
            fmt::format("{}: {}", word_of(fault), fmt::format(text, std::forward<Args>(args)...))});
}

// Text of the peer as it may appear in a detail: cut to 128 bytes, without control characters.
[[nodiscard]] std::string shown(std::string_view text);

}  // namespace omnibus::auth
