#include "store/store.hpp"

namespace omnibus::store {

std::string_view name_of(StoreState state) {
  switch (state) {
    case StoreState::closed:
      return "closed";
    case StoreState::opening:
      return "opening";
    case StoreState::open:
      return "open";
    case StoreState::failed:
      return "failed";
    case StoreState::closing:
      return "closing";
  }
  return "unknown";
}

Result<broker::Enqueue> forward_command(const ForwardRequest& request, broker::RequestId answer,
                                        Random& random) {
  auto message = broker::read_message(request.message, random);
  if (!message) return fail(std::move(message.error()));
  broker::Enqueue command{answer, {}, request.facts};
  command.messages.push_back(std::move(*message));
  return command;
}

}  // namespace omnibus::store
