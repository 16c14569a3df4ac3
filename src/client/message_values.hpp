// AMQP values as JSON and as words of a command line. For this room's own files. Pure; any thread.
#pragma once

#include <boost/json/value.hpp>
#include <string_view>

#include "amqp/codec/value.hpp"
#include "base/result.hpp"

namespace omnibus::client {

[[nodiscard]] boost::json::value json_of(const amqp::Value& value);
// Fails with `argument_error`.
[[nodiscard]] Result<amqp::Value> value_of(const boost::json::value& json);

[[nodiscard]] bool is_property_type(std::string_view type);
[[nodiscard]] amqp::Value guess_value(std::string_view text);
// Fails with `argument_error`.
[[nodiscard]] Result<amqp::Value> value_of_type(std::string_view type, std::string_view text);

}  // namespace omnibus::client
