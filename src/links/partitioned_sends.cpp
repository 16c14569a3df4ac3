#include "links/partitioned_sends.hpp"

#include "base/check.hpp"

namespace omnibus::links {

PartitionedSends::PartitionedSends(LinkContext& context, std::shared_ptr<const EntityFacts> entity,
                                   AnswerTaker& taker)
    : context_(context), entity_(std::move(entity)), taker_(taker), choice_(context.random) {
  static_assert(broker::partitions_max <= 32, "a bit for each partition");
  check(entity_->partitions.size() <= broker::partitions_max, "an entity has so many partitions at most");
}

Result<void> PartitionedSends::send(std::vector<broker::IncomingMessage> messages, std::uint64_t tag,
                                    std::uint64_t bytes) {
  const auto keyed = keyed_partition(*entity_, messages);
  if (!keyed) return fail(keyed.error());
  send_somewhere(*keyed, sends_.add({.tag = tag, .bytes = bytes}), std::move(messages));
  return {};
}

Result<void> PartitionedSends::send(broker::IncomingMessage message, std::uint64_t tag) {
  const auto keyed = keyed_partition(*entity_, {&message, 1});
  if (!keyed) return fail(keyed.error());
  send_somewhere(*keyed, sends_.add({.tag = tag, .bytes = message.bytes.size()}), std::move(message));
  return {};
}

template <class Sent>
void PartitionedSends::send_somewhere(const std::optional<std::uint16_t>& keyed, std::uint32_t place,
                                      Sent sent) {
  sends_[place].keyed = keyed.has_value();
  if (keyed) return send_to(*keyed, place, std::move(sent));
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
  if (messages.size() == 1) return send_to(partition, place, std::move(messages.front()));
  broker::Enqueue enqueue;
  enqueue.request = context_.entities.expect(*this, place, sends_[place].bytes);
  enqueue.messages = std::move(messages);
  context_.entities.send(entity_->partitions[partition], std::move(enqueue));
}

void PartitionedSends::send_to(std::uint16_t partition, std::uint32_t place,
                               broker::IncomingMessage message) {
  context_.entities.enqueue(entity_->partitions[partition], *this, place, std::move(message));
}

void PartitionedSends::on_answer(std::uint64_t tag, broker::Answer& answer, Now now) {
  const auto place = static_cast<std::uint32_t>(tag);
  auto* refused = std::get_if<broker::Refused>(&answer.effect);
  if (refused && !refused->messages.empty() && !sends_[place].keyed)
    if (const auto next = choose_next(place)) {
      send_to(*next, place, std::move(refused->messages));
      chosen_at_ = context_.entities.turn();
      return;
    }
  const Send done = sends_.take(place);
  taker_.on_answer(done.tag, answer, now);
}

void PartitionedSends::forget() { context_.entities.forget(*this); }

}  // namespace omnibus::links
