// AMQP error conditions as our error codes: the other way round from what the broker does. Pure; any thread.
#pragma once

#include <string_view>

#include "amqp/engine/condition.hpp"
#include "base/result.hpp"

namespace omnibus::client {

// `internal_error` for a condition that nobody knows.
[[nodiscard]] Errc code_of_condition(std::string_view condition);
// With the description, or the condition itself when there is none; without tracking ids.
[[nodiscard]] Error error_of(const amqp::Condition& condition);

}  // namespace omnibus::client
