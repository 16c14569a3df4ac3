// What a client's delivery state means to a queue, and what it hears when that is done
// [service-bus contract 4.4].
#pragma once

#include <optional>

#include "amqp/engine/delivery_state.hpp"
#include "broker/commands.hpp"

namespace omnibus::links {

struct AskedOutcome {
  broker::Outcome outcome;
  // The same type of state without details: Java compares the types, others take an error for a failure.
  amqp::State echo;
};

// Nothing for states that decide nothing yet (`received`). Fails with `decode_error`, `invalid_field` or
// `not_implemented`.
[[nodiscard]] Result<std::optional<AskedOutcome>> read_outcome(const amqp::StateView& state);

}  // namespace omnibus::links
