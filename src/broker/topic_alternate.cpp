#include <algorithm>
#include <limits>

#include "base/text.hpp"
#include "broker/topic_parts.hpp"

// What nobody matches and the settings of an exchange want elsewhere [EX 2.4].
//
// A transfer of which nothing matches is answered Unrouted and leaves no trace: its sender's end walks on,
// and the sender hears what the last exchange says. Where something is kept (others of the transfer matched,
// or the message was scheduled) the sender has its outcome already: the message stays here among the
// scheduled ones until the alternate exchange has it.

namespace omnibus::broker {
namespace {

// Messages on their way to the alternate at the same time.
constexpr std::size_t leaving_max = 256;
// An alternate that refuses is asked again after this, twice as long after each further refusal.
constexpr std::chrono::seconds patience_first{1};
constexpr std::chrono::seconds patience_longest{60};

}  // namespace

bool Topic::Parts::leads_on(std::uint8_t steps) const {
  return exchange && !settings.alternate_exchange.empty() && steps < rules::AlternateWalk::steps_max &&
         ascii_lower(settings.alternate_exchange) != ascii_lower(settings.name);
}

Unrouted Topic::Parts::unrouted(RequestId request, std::span<const IncomingMessage> messages,
                                std::uint8_t steps) const {
  Unrouted rest{request, settings.unroutable, {}, {}, settings.requires_duplicate_detection};
  if (!leads_on(steps)) return rest;
  rest.alternate = settings.alternate_exchange;
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (!duplicates[i]) rest.messages.push_back(messages[i]);
  return rest;
}

bool Topic::Parts::leave(SequenceNumber number, Scheduled& message, const MessageFacts& facts) {
  auto ttl = settings.default_time_to_live;
  if (facts.ttl_ms) ttl = std::min(ttl, std::chrono::milliseconds{*facts.ttl_ms});
  const Instant since = std::max(message.due, message.enqueued);
  // Its time begins anew where it is taken, so only one that was refused can have grown too old here.
  if (message.refusals > 0 && ttl < unlimited && since + ttl <= now) return false;
  if (leaving >= leaving_max) {
    try_later(number, message);
    return true;
  }
  --distributing;
  ++leaving;
  message.state = Scheduled::State::leaving;
  MessageChanges with = message.changes ? *message.changes : MessageChanges{};
  with.routing_key = message.routing_key;
  Forward effect;
  effect.target = settings.alternate_exchange;
  effect.status.stored = message.stored;
  effect.status.sequence = number;
  effect.status.enqueued = message.enqueued;
  effect.status.state = MessageState::scheduled;
  effect.first_sequence = message.origin;
  effect.hops = message.hops;
  effect.changes = std::make_shared<const MessageChanges>(std::move(with));
  effect.steps = message.steps;
  emit(std::move(effect));
  return true;
}

void Topic::Parts::try_later(SequenceNumber number, Scheduled& message) {
  if (message.state == Scheduled::State::distributing) --distributing;
  if (message.state == Scheduled::State::leaving) --leaving;
  std::chrono::seconds patience = patience_first;
  for (unsigned i = 1; i < message.refusals && patience < patience_longest; ++i) patience *= 2;
  wait_until(now + std::min(patience, patience_longest), number, message);
}

void Topic::Parts::on(const Forwarded& command) {
  const auto found = scheduled.find(command.sequence);
  if (failed || found == scheduled.end() || found->second.state != Scheduled::State::leaving) return;
  if (command.error) {
    // Full, disabled, gone, not an exchange: an administrator can change all of these, and the message was
    // promised to somebody.
    Scheduled& message = found->second;
    if (message.refusals < std::numeric_limits<std::uint8_t>::max()) ++message.refusals;
    return try_later(command.sequence, message);
  }
  append(CancelledRecord{{command.sequence}});
  effects->sink.release(unschedule(found));
}

void Topic::Parts::on(const Remember& command) {
  if (failed || !settings.requires_duplicate_detection) return;
  PublishedRecord record;
  record.first = next_sequence;
  record.enqueued = now;
  for (const MessageIdHash& id : command.ids) record.items.emplace_back().message_id = id;
  record.next = record.first + static_cast<SequenceNumber>(record.items.size());
  if (!record.items.empty()) write(record, {});
}

}  // namespace omnibus::broker
