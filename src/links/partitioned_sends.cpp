#include "links/partitioned_sends.hpp"

#include "base/check.hpp"
#include "broker/message_facts.hpp"
#include "links/transactional_sends.hpp"

namespace omnibus::links {

PartitionedSends::PartitionedSends(LinkContext& context, std::shared_ptr<const EntityFacts> entity,
                                   AnswerTaker& taker, std::optional<std::string> destination)
    : context_(context),
      entity_(std::move(entity)),
      taker_(taker),
      destination_(std::move(destination)),
      is_in_several_stores_(by_store(entity_->partitions).size() > 1),
      choice_(context.random) {
  static_assert(broker::partitions_max <= 32, "a bit for each partition");
  check(entity_->partitions.size() <= broker::partitions_max, "an entity has so many partitions at most");
  // What is read again would come without its routing key.
  check(!entity_->exchange, "an exchange has no partitions");
}

Result<std::optional<std::uint16_t>> PartitionedSends::partition_of(
    std::span<broker::IncomingMessage> messages) const {
  if (!destination_) return keyed_partition(*entity_, messages);
  const auto key = via_partition_key(messages);
  if (!key) return fail(key.error());
  if (!*key) return std::optional<std::uint16_t>{};
  return std::optional{
      broker::partition_of_key(**key, static_cast<std::uint16_t>(entity_->partitions.size()))};
}

Result<void> PartitionedSends::send(std::vector<broker::IncomingMessage> messages, std::uint64_t tag,
                                    std::uint64_t bytes) {
  const auto keyed = partition_of(messages);
  if (!keyed) return fail(keyed.error());
  send_somewhere(*keyed, new_send(tag, bytes), std::move(messages));
  return {};
}

Result<void> PartitionedSends::send(broker::IncomingMessage message, std::uint64_t tag) {
  const auto keyed = partition_of({&message, 1});
  if (!keyed) return fail(keyed.error());
  send_somewhere(*keyed, new_send(tag, message.bytes.size()), std::move(message));
  return {};
}

std::uint32_t PartitionedSends::new_send(std::uint64_t tag, std::uint64_t bytes) {
  return sends_.add({.tag = tag, .bytes = static_cast<std::uint32_t>(bytes)});
}

template <class Sent>
void PartitionedSends::send_somewhere(const std::optional<std::uint16_t>& keyed, std::uint32_t place,
                                      Sent sent) {
  if (keyed) {
    sends_[place].tried = ~0u;
    return send_to(*keyed, place, std::move(sent));
  }
  if (is_in_several_stores_) keep(place, sent);
  // When all seem to be down, one of them says so.
  send_to(choose_next(place).value_or(0), place, std::move(sent));
  // Only now: the first message for another place than the last one began a turn itself.
  chosen_at_ = context_.entities.turn();
}

bool PartitionedSends::may_take(const Send& send, std::uint16_t partition) const {
  return (send.tried >> partition & 1) == 0 && context_.entities.available(entity_->partitions[partition]);
}

std::optional<std::uint16_t> PartitionedSends::choose_next(std::uint32_t place) {
  Send& send = sends_[place];
  if (!chosen_ || chosen_at_ != context_.entities.turn() || !may_take(send, *chosen_))
    chosen_ = choice_.next(*entity_, [&](std::uint16_t index) { return may_take(send, index); });
  if (chosen_) send.tried |= 1u << *chosen_;
  return chosen_;
}

void PartitionedSends::send_to(std::uint16_t partition, std::uint32_t place,
                               std::vector<broker::IncomingMessage> messages) {
  if (messages.size() == 1 && !destination_) return send_to(partition, place, std::move(messages.front()));
  const Route& route = entity_->partitions[partition];
  const auto request = context_.entities.expect_send(route, *this, place, sends_[place].bytes);
  if (destination_)
    context_.entities.send(route, broker::EnqueueTransfer{request, std::move(messages), *destination_});
  else
    context_.entities.send(route, broker::Enqueue{request, std::move(messages)});
}

void PartitionedSends::send_to(std::uint16_t partition, std::uint32_t place,
                               broker::IncomingMessage message) {
  context_.entities.enqueue(entity_->partitions[partition], *this, place, std::move(message));
}

void PartitionedSends::keep(std::uint32_t place, const broker::IncomingMessage& message) {
  if (message.bytes.slice_count() == 1)
    sends_[place].kept = message.bytes.slice(0);
  else
    kept_[place] = {message.bytes};
}

void PartitionedSends::keep(std::uint32_t place, const std::vector<broker::IncomingMessage>& messages) {
  std::vector<Payload>& kept = kept_[place];
  kept.reserve(messages.size());
  for (const auto& message : messages) kept.push_back(message.bytes);
}

std::vector<broker::IncomingMessage> PartitionedSends::read_again(std::uint32_t place) const {
  Payload alone;
  std::span<const Payload> kept;
  if (const auto several = kept_.find(place); several != kept_.end()) {
    kept = several->second;
  } else if (sends_[place].kept.block) {
    alone.append(sends_[place].kept);
    kept = {&alone, 1};
  }
  std::vector<broker::IncomingMessage> messages;
  for (const Payload& bytes : kept) {
    auto message = broker::read_message(bytes, context_.random);
    if (!message) return {};
    messages.push_back(*std::move(message));
  }
  return messages;
}

bool PartitionedSends::try_another(std::uint32_t place, std::vector<broker::IncomingMessage> messages) {
  if (messages.empty()) messages = read_again(place);
  if (messages.empty()) return false;
  const auto next = choose_next(place);
  if (!next) return false;
  send_to(*next, place, std::move(messages));
  chosen_at_ = context_.entities.turn();
  return true;
}

void PartitionedSends::on_answer(std::uint64_t tag, broker::Answer& answer, Now now) {
  const auto place = static_cast<std::uint32_t>(tag);
  auto* refused = std::get_if<broker::Refused>(&answer.effect);
  // Nothing of it was written.
  if (refused && refused->error.code == Errc::server_busy && try_another(place, std::move(refused->messages)))
    return;
  end(place, answer, now);
}

void PartitionedSends::on_given_up(std::uint64_t tag, broker::Answer& refused, Now now) {
  const auto place = static_cast<std::uint32_t>(tag);
  if (!try_another(place, {})) end(place, refused, now);
}

void PartitionedSends::end(std::uint32_t place, broker::Answer& answer, Now now) {
  const Send done = sends_.take(place);
  if (!kept_.empty()) kept_.erase(place);
  taker_.on_answer(done.tag, answer, now);
}

void PartitionedSends::forget() { context_.entities.forget(*this); }

}  // namespace omnibus::links
