// Which request of the data plane an address stands for [admin contract 3, 15]. Pure; any core.
//
//   /{entity}/messages                        /{entity}/messages/head
//   /{entity}/messages/{id or number}/{lock}
//
// Words are read from the right and in any case of letters, so that names may hold slashes; the entity stays
// escaped as it came, for links::resolve_address(), which knows exchanges and their routing keys.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "broker/ids.hpp"

namespace omnibus::rest {

// How long somebody waits for a message who does not say, and who says more than this.
inline constexpr std::chrono::seconds poll_usual{60};
inline constexpr std::chrono::seconds poll_longest{3600};

struct RestPath {
  enum class Kind : unsigned char { messages, head, lock };
  Kind kind = Kind::messages;
  std::string entity{};      // "/orders%2Feast", not decoded
  broker::LockToken lock{};  // of Kind::lock
  std::chrono::milliseconds timeout{poll_usual};
};

// Nothing: the request is for somebody else. Fails with `argument_error`: it is ours and cannot be read.
[[nodiscard]] Result<std::optional<RestPath>> parse_rest_path(std::string_view method,
                                                              std::string_view target);

// "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", braces allowed; nothing: it is none.
[[nodiscard]] std::optional<broker::LockToken> lock_token_from(std::string_view text);

// The first value under a name of the query, decoded; nothing: it is not there, or a broken escape.
[[nodiscard]] std::optional<std::string> query_value(std::string_view target, std::string_view name);

}  // namespace omnibus::rest
