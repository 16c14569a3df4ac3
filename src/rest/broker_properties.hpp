// The JSON object that carries what the broker knows of a message [admin contract 15]. Pure; any core.
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace omnibus::rest {

// JSON of a client is read so deep at most; its memory is a small multiple of the text's, which is bounded.
inline constexpr std::size_t json_depth_max = 8;

// What a sender may say.
struct BrokerProperties {
  std::optional<std::string> message_id{};
  std::optional<std::string> correlation_id{};
  std::optional<std::string> label{};
  std::optional<std::string> to{};
  std::optional<std::string> reply_to{};
  std::optional<std::string> reply_to_session_id{};
  std::optional<std::string> session_id{};
  std::optional<std::string> partition_key{};
  std::optional<std::string> via_partition_key{};
  std::optional<std::string> content_type{};  // in a batch, whose items have no headers
  std::optional<std::chrono::milliseconds> time_to_live{};
  std::optional<Instant> scheduled{};

  friend bool operator==(const BrokerProperties&, const BrokerProperties&) = default;
};

// One JSON document, bounded in depth. Fails with `argument_error`; `what` is how the error calls it.
[[nodiscard]] Result<boost::json::value> parse_json(std::string_view text, std::string_view what);

// Names that nobody knows, and those that only a receiver is told, are passed over. Fails with
// `argument_error` and names the member.
[[nodiscard]] Result<BrokerProperties> read_broker_properties(std::string_view json);
[[nodiscard]] Result<BrokerProperties> read_broker_properties(const boost::json::object& object);

// `hh:mm:ss`, `d.hh:mm:ss`, each with a fraction of up to seven digits; nothing: it is no span.
[[nodiscard]] std::optional<std::chrono::milliseconds> from_time_span(std::string_view text);

}  // namespace omnibus::rest
