// What goes to a store and comes back, whoever carries it: mailboxes between threads in the node, events in
// the simulator.
//
// The upper half of every request and receiver id says whose it is (connection_of()), so that an answer finds
// its asker without a table.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "broker/answer.hpp"
#include "broker/commands.hpp"
#include "store/partition.hpp"

namespace omnibus::store {

// To a store.
struct StoreCommand {
  PartitionId partition = PartitionId::none;
  broker::Command command;
};
// To whoever asked.
struct ConnectionAnswer {
  std::uint32_t connection = 0;
  broker::Answer answer;
};

// Whose answer this is: the upper half of its request or receiver. Nothing for an effect that is no answer.
[[nodiscard]] inline std::optional<std::uint32_t> asker_of(const broker::Effect& effect) {
  return std::visit(
      [](const auto& one) -> std::optional<std::uint32_t> {
        if constexpr (requires { one.request; })
          return connection_of(one.request);
        else if constexpr (requires { one.receiver; })
          return connection_of(one.receiver);
        else
          return std::nullopt;
      },
      effect);
}

}  // namespace omnibus::store
