#include "broker/copy_edits.hpp"
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
  broker::Enqueue command{answer, {}, request.facts};
  Payload bytes = request.message;
  // What a rule's action made of a copy becomes the message itself: filters at the target see it so, and
  // session and time to live are those it was given [contract 9.7].
  if (const auto& changes = request.facts.changes; changes && !changes->edits.empty()) {
    auto edited = broker::edited_message(bytes, changes->edits);
    if (!edited) return fail(std::move(edited.error()));
    bytes = std::move(*edited);
    broker::MessageChanges rest = *changes;
    rest.edits.clear();
    command.forwarded->changes = std::make_shared<const broker::MessageChanges>(std::move(rest));
  }
  auto message = broker::read_message(bytes, random);
  if (!message) return fail(std::move(message.error()));
  command.messages.push_back(std::move(*message));
  return command;
}

}  // namespace omnibus::store
