// Values and dates as headers and BrokerProperties write them [admin contract 15]. Pure; any core.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "amqp/codec/value.hpp"
#include "base/clock.hpp"

namespace omnibus::rest {

// "Sun, 06 Nov 1994 08:49:37 GMT".
[[nodiscard]] std::string to_http_date(Instant time);
// That form with any day of the week, or ISO 8601. Nothing: it is no date of the years 1 to 9999.
[[nodiscard]] std::optional<Instant> from_http_date(std::string_view text);

// A header's value by how it looks: "text" in quotes is a string, or a timestamp when it is a date; integers
// are long, other numbers double, true and false boolean; anything else is a string as it stands.
[[nodiscard]] amqp::Value value_from_header(std::string_view text);
// The other way. Only ASCII comes out. Nothing for what a header cannot hold: maps, lists, arrays, null.
[[nodiscard]] std::optional<std::string> header_from_value(const amqp::Value& value);

// JSON text with every character past ASCII escaped: fit for a header.
[[nodiscard]] std::string ascii_json(std::string_view json);
// A JSON string, quotes included.
[[nodiscard]] std::string json_text(std::string_view text);

}  // namespace omnibus::rest
