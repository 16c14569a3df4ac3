#include "broker/queue_parts.hpp"

namespace omnibus::broker {

void Queue::Parts::tell_waiting() {
  for (const SubQueue sub_queue : {SubQueue::active, SubQueue::dead_letter, SubQueue::transfer_dead_letter}) {
    const auto& armed = receivers.armed(sub_queue);
    const std::uint32_t available = lanes[static_cast<std::size_t>(sub_queue)].available();
    for (auto next = armed.begin();
         next != armed.end() && receivers.words(sub_queue) * Receivers::together < available;) {
      Receiver& receiver = *receivers.find((next++)->second);
      if (!could_get_something(receiver)) continue;
      receivers.disarm(receiver);
      receivers.give_the_word(receiver);
      emit(MessagesAvailable{receiver.id, available});
    }
  }
}

// With credit it is served; one that lacks room is told when it has let go of something.
bool Queue::Parts::could_get_something(const Receiver& receiver) const {
  const std::uint32_t slot = lanes[static_cast<std::size_t>(receiver.sub_queue)].first_available();
  return slot != no_slot && !receiver.has_credit() && receivers.has_room(receiver, entries[slot].size);
}

// Who took all it could and left something hears so at once: its link may have more credit by now, and a
// drain of its client is not over. The word goes to the next one all the same, so that the more there is, the
// more are asked.
void Queue::Parts::asked_and_served(Receiver& receiver) {
  receivers.take_the_word(receiver);
  receivers.disarm(receiver);
  if (could_get_something(receiver))
    emit(MessagesAvailable{receiver.id, lanes[static_cast<std::size_t>(receiver.sub_queue)].available()});
  else
    receivers.arm(receiver);
}

}  // namespace omnibus::broker
