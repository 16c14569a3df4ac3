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
  broker::Enqueue command{answer, {}, {}, {}};
  if (!request.transfer) command.forwarded = request.facts;
  if (request.walk) command.steps = request.walk->steps();
  Payload bytes = request.message;
  // What a rule's action made of a copy becomes the message itself: filters at the target see it so, and
  // session and time to live are those it was given [contract 9.7].
  if (const auto& changes = request.facts.changes; changes && !changes->edits.empty() && !request.transfer) {
    auto edited = broker::edited_message(bytes, changes->edits);
    if (!edited) return fail(std::move(edited.error()));
    bytes = std::move(*edited);
    broker::MessageChanges rest = *changes;
    rest.edits.clear();
    command.forwarded->changes = std::make_shared<const broker::MessageChanges>(std::move(rest));
  }
  auto message = broker::read_message(bytes, random);
  if (!message) return fail(std::move(message.error()));
  if (request.transfer && request.facts.changes)
    message->facts.routing_key = request.facts.changes->routing_key;
  command.messages.push_back(std::move(*message));
  return command;
}

std::optional<ForwardEnd> walk_on(ForwardRequest& request, const broker::Unrouted& unrouted) {
  if (!request.walk) request.walk.emplace(request.target);
  if (!unrouted.alternate.empty() && request.walk->go_to(unrouted.alternate)) {
    request.target = unrouted.alternate;
    return std::nullopt;
  }
  // Nobody is there whom it could be given back to: a queue keeps it as a dead letter, an exchange has no
  // such place and has told its sender already that it was accepted.
  if (unrouted.unroutable == rules::Unroutable::accept || request.from_exchange) return ForwardEnd{};
  return ForwardEnd{
      Error{Errc::not_found, fmt::format("no subscription of '{}' matches the message", request.target)}};
}

}  // namespace omnibus::store
