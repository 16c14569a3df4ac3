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
  const std::uint32_t place = sends_.add({.tag = tag, .bytes = bytes});
  if (*keyed) {
    send_to(**keyed, place, std::move(messages));
    return {};
  }
  sends_[place].messages = std::move(messages);
  // When all seem to be down, one of them says so.
  if (!send_next(place)) send_to(0, place, std::exchange(sends_[place].messages, {}));
  return {};
}

bool PartitionedSends::may_take(const Send& send, std::uint16_t partition) const {
  return (send.tried >> partition & 1) == 0 && context_.entities.available(entity_->partitions[partition]);
}

bool PartitionedSends::send_next(std::uint32_t place) {
  Send& send = sends_[place];
  if (!chosen_ || chosen_at_ != context_.entities.turn() || !may_take(send, *chosen_))
    chosen_ = choice_.next(*entity_, [&](std::uint16_t index) { return may_take(send, index); });
  if (!chosen_) return false;
  send.tried |= 1u << *chosen_;
  send_to(*chosen_, place, send.messages);
  // Only now: the first message for another place than the last one began a turn itself.
  chosen_at_ = context_.entities.turn();
  return true;
}

void PartitionedSends::send_to(std::uint16_t partition, std::uint32_t place,
                               std::vector<broker::IncomingMessage> messages) {
  const Route& route = entity_->partitions[partition];
  if (messages.size() == 1)
    return context_.entities.enqueue(route, *this, place, std::move(messages.front()));
  broker::Enqueue enqueue;
  enqueue.request = context_.entities.expect(*this, place, sends_[place].bytes);
  enqueue.messages = std::move(messages);
  context_.entities.send(route, std::move(enqueue));
}

void PartitionedSends::on_answer(std::uint64_t tag, broker::Answer& answer, Now now) {
  const auto place = static_cast<std::uint32_t>(tag);
  const auto* refused = std::get_if<broker::Refused>(&answer.effect);
  const bool was_busy = refused && refused->error.code == Errc::server_busy;
  if (was_busy && !sends_[place].messages.empty() && send_next(place)) return;
  const Send done = sends_.take(place);
  taker_.on_answer(done.tag, answer, now);
}

void PartitionedSends::forget() { context_.entities.forget(*this); }

}  // namespace omnibus::links
