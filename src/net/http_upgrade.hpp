// From HTTP to WebSocket: which requests ask for it, and the answer. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/http.hpp"

namespace omnibus::net {

// `/$servicebus/websocket`, with or without a slash at its end, a query, percent-encoding.
[[nodiscard]] bool is_websocket_target(std::string_view target);

// The first in the client's list that is `amqp` or `AMQPWSB10`, as the client wrote it.
[[nodiscard]] std::optional<std::string> choose_subprotocol(std::string_view list);

// Sec-WebSocket-Accept for a key (RFC 6455 4.2.2).
[[nodiscard]] std::string websocket_accept(std::string_view key);

struct UpgradeAnswer {
  std::string accepted;  // the whole 101 answer; "" when refused
  HttpResponse refusal;
};

// Nullopt when the request is not for the WebSocket path: it is then an ordinary one.
[[nodiscard]] std::optional<UpgradeAnswer> answer_upgrade(const HttpRequest& request);

}  // namespace omnibus::net
