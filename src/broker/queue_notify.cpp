#include "broker/queue_parts.hpp"

namespace omnibus::broker {

void Queue::Parts::tell_waiting() {
  for (const SubQueue sub_queue : {SubQueue::active, SubQueue::dead_letter, SubQueue::transfer_dead_letter}) {
    const auto& armed = receivers.armed(sub_queue);
    if (armed.empty() || !lanes[static_cast<std::size_t>(sub_queue)].has_available()) continue;
    const std::vector<ReceiverId> ids{armed.begin(), armed.end()};
    for (const ReceiverId id : ids) tell_or_arm(*receivers.find(id));
  }
}

void Queue::Parts::tell_or_arm(Receiver& receiver) {
  const std::uint32_t slot = lanes[static_cast<std::size_t>(receiver.sub_queue)].first_available();
  // With credit it is served; one that lacks room is told when it has let go of something.
  const bool could_get =
      slot != no_slot && !receiver.has_credit() && receivers.has_room(receiver, entries[slot].size);
  if (!could_get) return receivers.arm(receiver);
  receivers.disarm(receiver);
  emit(MessagesAvailable{receiver.id});
}

}  // namespace omnibus::broker
