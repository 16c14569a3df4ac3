#include "base/check.hpp"
#include "broker/queue_parts.hpp"

// Messages that are sent via this queue [contract 7]: kept here until the entity they are for has them. One
// that is refused for good comes to rest among the transfer dead letters; one whose destination is full stays
// and is tried again.

namespace omnibus::broker {
namespace {

// On their way at the same time.
constexpr std::size_t transfers_max = 64;
// A round that found a destination full is followed by the next after this, twice as long after each further.
constexpr std::chrono::seconds patience_first{1};
constexpr std::chrono::seconds patience_longest{60};

constexpr auto transfer_lane = static_cast<std::size_t>(SubQueue::transfer);

}  // namespace

std::optional<Error> Queue::Parts::destination_refusal(const EnqueueTransfer& command) const {
  if (command.destination.empty())
    return Error{Errc::argument_error, fmt::format("a message via '{}' needs a destination", settings.name)};
  if (payloads)
    return Error{Errc::not_allowed,
                 fmt::format("'{}' is a subscription: nothing is sent via it", settings.name)};
  return std::nullopt;
}

void Queue::Parts::on(const EnqueueTransfer& command) {
  if (auto error = destination_refusal(command)) return refuse(command.request, std::move(*error));
  if (auto error = refuse_messages(command.messages, true)) return refuse(command.request, std::move(*error));
  active_now();
  StoredRecord& record = stored_record;
  record.items.clear();
  record.first = next_sequence;
  record.next = record.first + static_cast<SequenceNumber>(command.messages.size());
  record.enqueued = now;
  bodies.clear();
  for (const auto& [facts, bytes] : command.messages) {
    auto& item = record.items.emplace_back();
    item.size = static_cast<std::uint32_t>(bytes.size());
    item.properties_bytes = facts.application_properties_bytes;
    item.sub_queue = SubQueue::transfer;
    MessageChanges with;
    with.destination = command.destination;
    with.routing_key = facts.routing_key;
    item.changes = intern(std::move(with));
    bodies.push_back(&bytes);
  }
  if (!record.items.empty()) append_stored(record);
  if (command.request != RequestId::none) emit_when_durable(Accepted{command.request});
}

void Queue::Parts::serve_transfers() {
  const Lane& lane = lanes[transfer_lane];
  if (transfers_retry_at <= now) {
    transfers_retry_at = never;
    transfer_from = 0;
  }
  while (transfers_on_the_way < transfers_max) {
    const std::uint32_t slot = lane.available_at_or_after(transfer_from);
    if (slot == no_slot) return;
    Entry& entry = entries[slot];
    transfer_from = entry.sequence + 1;
    MessageChanges with = changes.at(slot) ? *changes.at(slot) : MessageChanges{};
    Forward effect;
    effect.transfer = true;
    effect.target = with.destination.value_or("");
    with.destination.reset();
    effect.changes = std::make_shared<const MessageChanges>(std::move(with));
    set_state(slot, EntryState::forwarding);
    effect.status = status_of(slot);
    ++transfers_on_the_way;
    emit(std::move(effect));
  }
}

void Queue::Parts::transferred(std::uint32_t slot, const std::optional<Error>& error) {
  --transfers_on_the_way;
  if (!error) {
    transfer_patience = patience_first;
    return remove(slot);
  }
  if (error->code == Errc::resource_limit_exceeded) {
    // Behind where the round is: tried again in the next.
    set_state(slot, EntryState::available);
    if (transfers_retry_at == never) {
      transfer_patience = std::max<std::chrono::seconds>(transfer_patience, patience_first);
      transfers_retry_at = now + transfer_patience;
      transfer_patience = std::min(transfer_patience * 2, patience_longest);
    }
    return;
  }
  MessageChanges with = *changes.at(slot);
  const std::string destination = with.destination.value_or("");
  with.destination.reset();
  dead_letter(slot, "TransferFailed", fmt::format("'{}': {}", destination, error->detail),
              std::make_shared<const MessageChanges>(std::move(with)));
}

Instant Queue::Parts::transfer_deadline() const {
  if (lanes[transfer_lane].empty()) return never;
  const bool waits = transfers_on_the_way < transfers_max &&
                     lanes[transfer_lane].available_at_or_after(transfer_from) != no_slot;
  return waits ? std::min(now, transfers_retry_at) : transfers_retry_at;
}

}  // namespace omnibus::broker
