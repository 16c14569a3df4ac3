// What is wrong with a Schedule before its messages are looked at; the same for queues and topics.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "broker/commands.hpp"

namespace omnibus::broker {

// `used(number)`: a message has it. Numbers of the entity lie between `base` and `next`, without these.
template <class Used>
[[nodiscard]] std::optional<Error> schedule_refusal(const Schedule& command, std::string_view entity,
                                                    SequenceNumber base, SequenceNumber next,
                                                    const Used& used) {
  for (const auto& message : command.messages)
    if (!message.facts.scheduled)
      return Error{Errc::argument_error, "a scheduled message needs x-opt-scheduled-enqueue-time"};
  if (command.reserved.empty()) return std::nullopt;
  if (command.reserved.size() != command.messages.size())
    return Error{Errc::argument_error,
                 fmt::format("{} numbers for {} messages", command.reserved.size(), command.messages.size())};
  for (const SequenceNumber number : command.reserved)
    if (number <= base || number >= next || used(number))
      return Error{Errc::argument_error,
                   fmt::format("number {} was not reserved in '{}', or is used", number, entity)};
  return std::nullopt;
}

}  // namespace omnibus::broker
