// The one table from our error codes to what client SDKs expect [service-bus contract 8.1].
#pragma once

#include <string_view>

#include "amqp/engine/condition.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/result.hpp"

namespace omnibus::links {

struct WireError {
  std::string_view condition;
  int status;  // on $cbs and $management
};
[[nodiscard]] WireError wire_error(Errc code);

// The error as an AMQP condition. Its description ends with a tracking id and the time, as the cloud's
// does: people quote it, the log has the same id.
[[nodiscard]] amqp::Condition to_condition(const Error& error, std::string_view tracking_id, Instant now);

// JS and Java find out by this text that an entity is missing and that a retry is pointless.
[[nodiscard]] Error entity_not_found(std::string_view name);

[[nodiscard]] std::string new_tracking_id(Random& random);

}  // namespace omnibus::links
