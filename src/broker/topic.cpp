#include "broker/topic.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/text.hpp"
#include "broker/schedule_check.hpp"
#include "broker/topic_parts.hpp"

namespace omnibus::broker {
namespace {

// Scheduled messages whose bytes are being fetched at the same time.
constexpr std::size_t distributing_max = 256;
// How long the deletion of an idle topic may take before it is asked for again.
constexpr std::chrono::minutes idle_patience{1};

}  // namespace

Topic::Parts::Parts(TopicSettings with, Random& from, Instant created, rules::RuleLimits most)
    : settings(std::move(with)), random(from), limits(most), rule_set(most), accessed(created) {
  if (settings.exchange) {
    exchange.emplace(*settings.exchange);
    exchange_name = std::make_shared<const std::string>(settings.name);
  }
  next_sequence = sequence_base(settings.partition) + 1;
}

Topic::Topic(TopicSettings settings, Random& random, Instant created, rules::RuleLimits limits)
    : parts_(std::make_unique<Parts>(std::move(settings), random, created, limits)) {}
Topic::~Topic() = default;

const TopicSettings& Topic::settings() const { return parts_->settings; }
Instant Topic::next_deadline() const { return parts_->next_deadline(); }
std::vector<SubscriptionId> Topic::take_touched() { return std::exchange(parts_->touched, {}); }

void Topic::set_duplicate_ids_max(std::size_t ids_max) { parts_->history.set_ids_max(ids_max); }
std::uint64_t Topic::duplicate_ids_gone_early() const { return parts_->history.gone_early(); }

TopicCounts Topic::counts() const {
  return {parts_->scheduled.size(),
          parts_->subscriptions.size(),
          parts_->size_bytes(),
          parts_->accessed,
          parts_->rule_set.sql_filter_count(),
          parts_->rule_set.correlation_filter_count()};
}

const Totals& Topic::totals() const { return parts_->totals; }

template <class One>
void Topic::Parts::on(const One& command) {
  const Error error{
      Errc::not_allowed,
      fmt::format("'{}' is a topic: this is for its subscriptions or for queues", settings.name)};
  if constexpr (requires { command.request; })
    refuse(command.request, error);
  else if constexpr (std::is_same_v<One, AttachReceiver>)
    emit(ReceiverRefused{command.receiver, error});
}

void Topic::apply(Instant now, const Command& command, Effects& effects) {
  Parts& parts = *parts_;
  parts.now = now;
  parts.effects = &effects;
  if (!parts.failed) parts.pass_time();
  std::visit([&](const auto& one) { parts.on(one); }, command);
  parts.effects = nullptr;
}

void Topic::Parts::refuse(RequestId request, Error error) {
  check(!decided, "a step of a transaction was judged before it is carried out");
  if (request != RequestId::none) emit(Refused{request, std::move(error)});
}

void Topic::Parts::emit_when_durable(Effect effect) {
  if (appended <= durable && waiting.empty())
    emit(std::move(effect));
  else
    waiting.push_back({appended, std::move(effect)});
}

void Topic::Parts::append(const TopicRecord& record) {
  writer.clear();
  encode_topic_record(writer, record);
  appended = effects->sink.append(writer.bytes(), {});
}

Error Topic::Parts::recovering() const {
  return {Errc::server_busy, fmt::format("the store of '{}' is recovering", settings.name)};
}

void Topic::Parts::on(const Enqueue& command) {
  check(!command.forwarded || command.messages.size() == 1, "a forwarded message comes alone");
  take(command.request, command.messages, command.forwarded, command.steps);
}

void Topic::Parts::on(const EnqueueEach& command) {
  for (std::size_t i = 0; i < command.messages.size(); ++i)
    take(command.requests.at(i), {&command.messages[i], 1}, std::nullopt, 0);
}

void Topic::Parts::take(RequestId request, std::span<const IncomingMessage> messages,
                        const std::optional<ForwardedFrom>& forwarded, std::uint8_t steps) {
  if (auto error = refuse_messages(messages)) return refuse(request, std::move(*error));
  const auto routed = publish(messages, forwarded, steps, nullptr);
  if (!routed) return refuse(request, routed.error());
  if (request == RequestId::none) return;
  if (!*routed) {
    Unrouted rest = unrouted(request, messages, steps);
    // The first of a duplicate may not be durable yet.
    if (rest.messages.size() < messages.size()) return emit_when_durable(std::move(rest));
    return emit(std::move(rest));
  }
  // Also when all were duplicates, for the same reason.
  emit_when_durable(Accepted{request});
}

std::optional<Error> Topic::Parts::schedule_refusal(const Schedule& command) const {
  return broker::schedule_refusal(command, settings.name, sequence_base(settings.partition), next_sequence,
                                  [this](SequenceNumber number) { return scheduled.contains(number); });
}

void Topic::Parts::on(const Schedule& command) {
  if (auto error = schedule_refusal(command); error && !decided)
    return refuse(command.request, std::move(*error));
  broker::Scheduled answer{command.request, command.reserved};
  if (auto error = refuse_messages(command.messages)) return refuse(command.request, std::move(*error));
  if (command.reserved.empty()) {
    const auto routed = publish(command.messages, std::nullopt, 0, &answer.sequences);
    if (!routed) return refuse(command.request, routed.error());
  }
  // One record for each: one that is dropped as a duplicate leaves a gap.
  for (std::size_t i = 0; i < command.reserved.size(); ++i) {
    std::vector<SequenceNumber> given;
    const bool is_free = !scheduled.contains(command.reserved[i]);
    const auto routed = publish({&command.messages[i], 1}, std::nullopt, 0, &given,
                                is_free ? command.reserved[i] : SequenceNumber{0});
    if (!routed) return refuse(command.request, routed.error());
  }
  if (command.request != RequestId::none) emit_when_durable(std::move(answer));
}

// As with queues: a record without messages, which is awaited.
void Topic::Parts::on(const ReserveNumbers& command) {
  if (auto error = refuse_messages({})) return refuse(command.request, std::move(*error));
  if (command.count > reserved_max)
    return refuse(command.request,
                  {Errc::argument_out_of_range, fmt::format("at most {} numbers at once", reserved_max)});
  broker::Scheduled answer{command.request, {}};
  PublishedRecord record;
  record.first = next_sequence;
  record.next = record.first + command.count;
  record.enqueued = now;
  for (SequenceNumber number = record.first; number < record.next; ++number)
    answer.sequences.push_back(number);
  if (command.count > 0) write(record, {});
  if (command.request != RequestId::none) emit_when_durable(std::move(answer));
}

void Topic::Parts::on(const EnqueueTransfer& command) {
  refuse(command.request,
         {Errc::not_implemented, fmt::format("'{}' is a topic: nothing is sent via it yet", settings.name)});
}

void Topic::Parts::on(const CancelScheduled& command) {
  if (failed) return refuse(command.request, recovering());
  if (!may_send(settings.status))
    return refuse(command.request,
                  {Errc::entity_disabled, fmt::format("sending to '{}' is disabled", settings.name)});
  std::set<SequenceNumber> wanted;
  for (const SequenceNumber sequence : command.sequences) {
    const auto found = scheduled.find(sequence);
    if (found == scheduled.end() || found->second.state == Scheduled::State::pending ||
        found->second.state == Scheduled::State::leaving || !wanted.insert(sequence).second)
      return refuse(command.request,
                    {Errc::message_not_found,
                     fmt::format("no message {} is scheduled in '{}'", sequence, settings.name)});
  }
  accessed = now;
  if (!wanted.empty()) append(CancelledRecord{command.sequences});
  for (const SequenceNumber sequence : wanted) effects->sink.release(unschedule(scheduled.find(sequence)));
  if (command.request != RequestId::none) emit_when_durable(Done{command.request});
}

// Of a topic that is what is scheduled; the rest is in its subscriptions.
void Topic::Parts::on(const Purge& command) {
  if (failed) return refuse(command.request, recovering());
  CancelledRecord record;
  if (command.sub_queue == SubQueue::active)
    for (const auto& [sequence, one] : scheduled) {
      if (record.sequences.size() >= command.count) break;
      if (one.state != Scheduled::State::pending && one.state != Scheduled::State::leaving)
        record.sequences.push_back(sequence);
    }
  if (!record.sequences.empty()) append(record);
  for (const SequenceNumber sequence : record.sequences)
    effects->sink.release(unschedule(scheduled.find(sequence)));
  if (command.request != RequestId::none)
    emit_when_durable(Deleted{command.request, static_cast<std::uint32_t>(record.sequences.size())});
}

void Topic::Parts::on(const UpdateTopic& command) {
  settings = command.settings;
  if (command.request != RequestId::none) emit(Done{command.request});
}

void Topic::Parts::on(const Persisted& command) {
  if (failed) return;
  durable = std::max(durable, command.through);
  for (; !waiting.empty() && waiting.front().at <= durable; waiting.pop_front())
    emit(std::move(waiting.front().effect));
  for (; !fresh.empty() && fresh.front().first <= durable; fresh.pop_front()) {
    const auto found = scheduled.find(fresh.front().second);
    if (found != scheduled.end() && found->second.state == Scheduled::State::pending)
      wait_until(found->second.due, found->first, found->second);
  }
}

void Topic::Parts::on(const StoreFailed&) {
  failed = true;
  const Error error{Errc::internal_error, fmt::format("the store of '{}' could not write", settings.name)};
  for (const auto& one : waiting)
    for_each_request(one.effect, [&](RequestId request) { refuse(request, error); });
  waiting.clear();
  fresh.clear();
}

void Topic::Parts::wait_until(Instant when, SequenceNumber number, Scheduled& message) {
  message.state = Scheduled::State::waiting;
  message.looked_at = when;
  due.emplace(when, number);
}

StoredMessage Topic::Parts::unschedule(Schedules::iterator at) {
  Scheduled& message = at->second;
  if (message.state == Scheduled::State::waiting) due.erase({message.looked_at, at->first});
  if (message.state == Scheduled::State::distributing) --distributing;
  if (message.state == Scheduled::State::leaving) --leaving;
  scheduled_bytes -= message.stored.size;
  const StoredMessage dead = message.stored;
  scheduled.erase(at);
  return dead;
}

void Topic::Parts::pass_time() {
  while (!due.empty() && due.begin()->first <= now && distributing < distributing_max) {
    const SequenceNumber number = due.begin()->second;
    due.erase(due.begin());
    Scheduled& message = scheduled.at(number);
    message.state = Scheduled::State::distributing;
    ++distributing;
    MessageStatus status;
    status.stored = message.stored;
    status.sequence = number;
    status.enqueued = message.enqueued;
    status.state = MessageState::scheduled;
    emit(Distribute{std::move(status)});
  }
  if (settings.requires_duplicate_detection) history.forget(now, settings.duplicate_window);
  if (idle_deadline() <= now) {
    emit(DeleteIdle{});
    idle_asked = now;
  }
}

Instant Topic::Parts::idle_deadline() const {
  if (settings.auto_delete_on_idle >= unlimited) return never;
  const Instant idle = accessed + settings.auto_delete_on_idle;
  return idle_asked >= idle ? idle_asked + idle_patience : idle;
}

Instant Topic::Parts::next_deadline() const {
  if (failed) return never;
  Instant first = idle_deadline();
  if (!due.empty() && distributing < distributing_max) first = std::min(first, due.begin()->first);
  return first;
}

void Topic::visit_messages(const std::function<void(const StoredMessage&)>& visit) const {
  for (const auto& [number, message] : parts_->scheduled) visit(message.stored);
  SharedPayloads seen;
  for (const auto& [id, subscription] : parts_->subscriptions) {
    if (!subscription.queue) continue;
    subscription.queue->visit_messages([&](const StoredMessage& message) {
      if (seen.count(message)) visit(message);
    });
  }
}

std::size_t Topic::drop_scheduled(std::size_t count, RecordSink& sink) {
  std::size_t dropped = 0;
  for (; dropped < count && !parts_->scheduled.empty(); ++dropped)
    sink.release(parts_->unschedule(parts_->scheduled.begin()));
  return dropped;
}

std::string Topic::describe() const {
  const Parts& parts = *parts_;
  std::string out = fmt::format("next {} size {} shared {}\n", parts.next_sequence, parts.size_bytes(),
                                parts.shared->shared());
  for (const auto& [number, message] : parts.scheduled)
    out += fmt::format(
        "scheduled {} at {}+{} size {} enqueued {} due {} hops {} origin {} key '{}' steps {}\n", number,
        message.stored.record.value, message.stored.offset, message.stored.size, to_ms(message.enqueued),
        to_ms(message.due), message.hops, message.origin, message.routing_key.value_or("-"), message.steps);
  for (const auto& [id, subscription] : parts.subscriptions) {
    out += fmt::format("subscription {}", id);
    for (const rules::Rule* rule : parts.rule_set.list(id)) out += fmt::format(" '{}'", rule->name);
    if (subscription.binding) {
      RecordWriter binding;
      put_binding(binding, *subscription.binding);
      out += fmt::format(" binding {}", hex(binding.bytes()));
    }
    out += '\n';
  }
  std::vector<std::string> ids;
  std::uint64_t at = 0;
  do {
    at = parts.history.visit(at, 1000, [&](const MessageIdHash& id, std::int64_t accepted) {
      ids.push_back(fmt::format("id {:016x}{:016x} {}\n", id.high, id.low, accepted));
    });
  } while (at != 0);
  std::sort(ids.begin(), ids.end());
  for (const auto& id : ids) out += id;
  return out;
}

}  // namespace omnibus::broker
