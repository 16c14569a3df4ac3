#include "broker/queue.hpp"

#include "base/check.hpp"
#include "broker/queue_parts.hpp"

namespace omnibus::broker {

Queue::Parts::Parts(QueueSettings with, Random& from, Instant created)
    : settings(std::move(with)), random(from), accessed(created) {
  next_sequence = sequence_base(settings.partition) + 1;
}

Queue::Queue(QueueSettings settings, Random& random, Instant created)
    : parts_(std::make_unique<Parts>(std::move(settings), random, created)) {}
Queue::~Queue() = default;

void Queue::apply(Instant now, const Command& command, Effects& effects) {
  parts_->now = now;
  parts_->effects = &effects;
  parts_->run(command);
  parts_->effects = nullptr;
}

bool Queue::take_sync_wish() { return std::exchange(parts_->sync_wanted, false); }

Instant Queue::next_deadline() const { return parts_->next_deadline(); }
const QueueSettings& Queue::settings() const { return parts_->settings; }

void Queue::set_duplicate_ids_max(std::size_t ids_max) { parts_->history.set_ids_max(ids_max); }
std::uint64_t Queue::duplicate_ids_gone_early() const { return parts_->history.gone_early(); }

QueueCounts Queue::counts() const {
  const auto count = [&](SubQueue sub_queue, EntryState state) {
    return parts_->state_counts[static_cast<std::size_t>(sub_queue)][static_cast<std::size_t>(state)];
  };
  const auto in = [&](SubQueue sub_queue) {
    return count(sub_queue, EntryState::available) + count(sub_queue, EntryState::locked) +
           count(sub_queue, EntryState::deferred) + count(sub_queue, EntryState::forwarding);
  };
  QueueCounts counts;
  counts.deferred = count(SubQueue::active, EntryState::deferred);
  counts.active = in(SubQueue::active)-counts.deferred;
  counts.scheduled = count(SubQueue::active, EntryState::scheduled);
  counts.dead_letter = in(SubQueue::dead_letter);
  counts.transfer_dead_letter = in(SubQueue::transfer_dead_letter);
  counts.transfer = in(SubQueue::transfer);
  counts.locked = parts_->locks.size();
  counts.sessions = parts_->sessions.size();
  counts.receivers = parts_->receivers.size();
  counts.size_bytes = parts_->size_bytes;
  counts.accessed = parts_->accessed;
  return counts;
}

std::uint32_t Queue::available(SubQueue sub_queue) const {
  return parts_->failed ? 0 : parts_->lanes[static_cast<std::size_t>(sub_queue)].available();
}

const Totals& Queue::totals() const { return parts_->totals; }

void Queue::Parts::run(const Command& command) {
  if (!failed) pass_time();
  std::visit([this](const auto& one) { on(one); }, command);
  if (failed) return;
  serve();
}

void Queue::Parts::refuse(RequestId request, Error error) {
  check(!decided, "a step of a transaction was judged before it is carried out");
  if (request != RequestId::none) emit(Refused{request, std::move(error)});
}

void Queue::Parts::emit_when_durable(Effect effect) {
  if (appended <= durable && waiting.empty())
    emit(std::move(effect));
  else
    wait_for_journal({appended, std::move(effect), {}});
}

void Queue::Parts::wait_for_journal(Waiting what) {
  sync_wanted |= what.effect.has_value();
  waiting.push_back(std::move(what));
}

void Queue::Parts::done_when_durable(RequestId request) {
  if (request != RequestId::none) emit_when_durable(Done{request});
}

Location Queue::Parts::append(const Record& record) {
  writer.clear();
  encode_record(writer, record);
  appended = effects->sink.append(writer.bytes(), {});
  return appended;
}

void Queue::Parts::release(const StoredMessage& message) {
  if (message.record == Location{}) return;
  if (!payloads || payloads->let_go(message)) effects->sink.release(message);
}

std::optional<Error> Queue::Parts::receive_refused() const {
  if (failed) return Error{Errc::server_busy, fmt::format("the store of '{}' is recovering", settings.name)};
  if (!may_receive(settings.status))
    return Error{Errc::entity_disabled, fmt::format("receiving from '{}' is disabled", settings.name)};
  return std::nullopt;
}

void Queue::Parts::on(const Persisted& command) {
  if (failed) return;
  durable = std::max(durable, command.through);
  for (; !waiting.empty() && waiting.front().at <= durable; waiting.pop_front()) {
    auto& first = waiting.front();
    if (first.effect) {
      if (const auto* deliver = std::get_if<Deliver>(&*first.effect))
        if (Receiver* receiver = receivers.find(deliver->receiver)) --receiver->on_the_way;
      emit(std::move(*first.effect));
    }
    release(first.release);
  }
  for (; !fresh.empty() && fresh.front().first <= durable; fresh.pop_front()) {
    const std::uint32_t slot = fresh.front().second;
    constexpr std::size_t ahead = 4;
    if (fresh.size() > ahead) entries.prefetch(fresh[ahead].second);
    set_state(slot, entries[slot].has(Entry::is_scheduled) ? EntryState::scheduled : EntryState::available);
  }
}

void Queue::Parts::on(const StoreFailed&) {
  failed = true;
  for (const auto& one : waiting) {
    // The deliveries it waits behind will not come; the credit is used up all the same.
    if (one.effect && std::holds_alternative<LinkDrained>(*one.effect)) emit(*one.effect);
    if (!one.effect) continue;
    for_each_request(*one.effect, [&](RequestId request) {
      refuse(request,
             {Errc::internal_error, fmt::format("the store of '{}' could not write", settings.name)});
    });
  }
  waiting.clear();
  fresh.clear();
}

void Queue::Parts::on(const Wake&) {}

void Queue::Parts::on(const UpdateSettings& command) {
  settings = command.settings;
  for (const ReceiverId id : receivers.ids()) {
    Receiver& receiver = *receivers.find(id);
    std::optional<Error> why = receive_refused();
    const bool forwards =
        (receiver.sub_queue == SubQueue::active && !settings.forward_to.empty()) ||
        (receiver.sub_queue == SubQueue::dead_letter && !settings.forward_dead_letters_to.empty());
    if (!why && forwards)
      why = Error{Errc::not_allowed, fmt::format("'{}' forwards its messages now", settings.name)};
    if (!why) continue;
    if (receiver.state == Receiver::State::waiting_for_session) {
      emit(ReceiverRefused{id, *why});
    } else {
      emit(DetachReceiver{id, *why});
    }
    on(CloseReceiver{id});
  }
  dead_letter_forward_from = 0;
  if (command.request != RequestId::none) emit(Done{command.request});
}

}  // namespace omnibus::broker
