// Messages as HTTP carries them, and as AMQP does [admin contract 15]. Pure; any core.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "amqp/codec/value.hpp"
#include "base/bytes.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "broker/effects.hpp"
#include "broker/message_facts.hpp"
#include "net/http.hpp"
#include "rest/broker_properties.hpp"

namespace omnibus::rest {

inline constexpr std::string_view batch_content_type = "application/vnd.microsoft.servicebus.json";

// One message that a client sends.
struct Draft {
  BrokerProperties properties{};
  std::optional<std::string> content_type{};
  amqp::Map user_properties{};
  std::string body{};
};

// A request is one message, or a batch when its content type says so. Fails with `argument_error`.
[[nodiscard]] bool is_batch(const net::HttpRequest& request);
[[nodiscard]] Result<Draft> read_single(net::HttpRequest& request);  // takes its body
// An array of {"Body", "BrokerProperties", "UserProperties", "IsBodyBase64"}; not empty.
[[nodiscard]] Result<std::vector<Draft>> read_batch(std::string_view body);

// The encoded message, as if a client of AMQP had sent it. `now` is the time of messages.
[[nodiscard]] Payload encode(const Draft& draft, Instant now);
// All of them as the entity takes them. Fails as broker::read_message() does, and with
// `message_size_exceeded` when one, or all together, have more bytes than that.
[[nodiscard]] Result<std::vector<broker::IncomingMessage>> read_drafts(const std::vector<Draft>& drafts,
                                                                       std::uint64_t bytes_max, Instant now,
                                                                       Random& random);

// What a receiver is told of a message.
struct Shown {
  boost::json::object broker_properties{};
  std::optional<std::string> content_type{};
  std::vector<std::pair<std::string, amqp::Value>> user_properties{};
  std::string body{};  // data sections joined, or a string; of any other body its AMQP encoding
};
// `stored` is as the store has it. Fails with `decode_error` when it is no message any more.
[[nodiscard]] Result<Shown> show(const Payload& stored, const broker::HeldMessage& held);

// Headers and body of an answer.
[[nodiscard]] net::HttpResponse message_response(int status, const Shown& message);

}  // namespace omnibus::rest
