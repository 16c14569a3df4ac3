#include "links/partitioned_sends.hpp"

#include "base/check.hpp"
#include "broker/message_facts.hpp"
#include "links/transactional_sends.hpp"

namespace omnibus::links {
namespace {

// The tag of a request says what is to be known when it is refused, so that an ordinary send needs no place
// of its own: the taker's tag and the partition that was tried; or a place in the table of those that were
// tried more than once.
constexpr std::uint64_t retried_bit = std::uint64_t{1} << 63;
constexpr unsigned partition_shift = 40;
static_assert(PartitionedSends::tag_limit == std::uint64_t{1} << partition_shift);

std::uint64_t first_tag(std::uint64_t tag, std::uint16_t partition) {
  check(tag < PartitionedSends::tag_limit, "a tag leaves room for a partition");
  return tag | std::uint64_t{partition} << partition_shift;
}

}  // namespace

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
  send_first(*keyed, tag, std::move(messages), bytes);
  return {};
}

Result<void> PartitionedSends::send(broker::IncomingMessage&& message, std::uint64_t tag) {
  const auto keyed = partition_of({&message, 1});
  if (!keyed) return fail(keyed.error());
  const std::uint64_t bytes = message.bytes.size();
  send_first(*keyed, tag, std::move(message), bytes);
  return {};
}

template <class Sent>
void PartitionedSends::send_first(const std::optional<std::uint16_t>& keyed, std::uint64_t tag, Sent&& sent,
                                  std::uint64_t bytes) {
  if (keyed) return send_to(*keyed, taker_, tag, std::forward<Sent>(sent), bytes);
  // When all seem to be down, one of them says so.
  const std::uint16_t partition = choose_next(0).value_or(0);
  ++sends_along_;
  bytes_along_ += bytes;
  if (is_in_several_stores_)
    send_to(partition, *this, first_tag(tag, partition), std::forward<Sent>(sent), bytes);
  else
    send_to(partition, taker_, tag, std::forward<Sent>(sent), bytes);
  // Only now: the first message for another place than the last one began a turn itself.
  chosen_at_ = context_.entities.turn();
}

bool PartitionedSends::may_take(std::uint32_t tried, std::uint16_t partition) const {
  return (tried >> partition & 1) == 0 && context_.entities.available(entity_->partitions[partition]);
}

std::optional<std::uint16_t> PartitionedSends::choose_next(std::uint32_t tried) {
  // What goes along asks nobody again; a store that went down meanwhile gives it back.
  const bool goes_along = chosen_ && chosen_at_ == context_.entities.turn() &&
                          sends_along_ < EntityClient::enqueues_max &&
                          bytes_along_ < EntityClient::enqueues_bytes_max;
  if (goes_along && (tried == 0 || may_take(tried, *chosen_))) return chosen_;
  sends_along_ = 0;
  bytes_along_ = 0;
  chosen_ = choice_.next(*entity_, [&](std::uint16_t index) { return may_take(tried, index); });
  return chosen_;
}

void PartitionedSends::send_to(std::uint16_t partition, AnswerTaker& taker, std::uint64_t tag,
                               std::vector<broker::IncomingMessage>&& messages, std::uint64_t bytes) {
  if (messages.size() == 1 && !destination_)
    return send_to(partition, taker, tag, std::move(messages.front()), bytes);
  const Route& route = entity_->partitions[partition];
  const auto request = context_.entities.expect_send(route, taker, tag, bytes);
  if (&taker == this) context_.entities.keep(request, messages);
  if (destination_)
    context_.entities.send(route, broker::EnqueueTransfer{request, std::move(messages), *destination_});
  else
    context_.entities.send(route, broker::Enqueue{request, std::move(messages)});
}

void PartitionedSends::send_to(std::uint16_t partition, AnswerTaker& taker, std::uint64_t tag,
                               broker::IncomingMessage&& message, std::uint64_t /*bytes*/) {
  context_.entities.enqueue(entity_->partitions[partition], taker, tag, std::move(message),
                            &taker == this ? EntityClient::Keep::yes : EntityClient::Keep::no);
}

bool PartitionedSends::try_another(std::uint64_t tag, std::vector<broker::IncomingMessage> messages) {
  if (messages.empty()) return false;
  const bool is_first = (tag & retried_bit) == 0;
  const auto place = static_cast<std::uint32_t>(tag);
  const std::uint32_t tried = is_first ? 1u << (tag >> partition_shift) : retried_[place].partitions;
  const auto next = choose_next(tried);
  if (!next) return false;
  const std::uint32_t with_next = tried | 1u << *next;
  std::uint64_t bytes = 0;
  for (const auto& message : messages) bytes += message.bytes.size();
  if (is_first)
    tag = retried_bit | retried_.add({tag % tag_limit, with_next});
  else
    retried_[place].partitions = with_next;
  send_to(*next, *this, tag, std::move(messages), bytes);
  chosen_at_ = context_.entities.turn();
  return true;
}

std::vector<broker::IncomingMessage> PartitionedSends::read_again(std::span<const Payload> kept) const {
  std::vector<broker::IncomingMessage> messages;
  for (const Payload& bytes : kept) {
    auto message = broker::read_message(bytes, context_.random);
    if (!message) return {};
    messages.push_back(*std::move(message));
  }
  return messages;
}

void PartitionedSends::on_answer(std::uint64_t tag, broker::Answer& answer, Now now) {
  end(tag, answer, now);
}

void PartitionedSends::on_refused(std::uint64_t tag, broker::Answer& answer, std::span<const Payload> kept,
                                  Now now) {
  auto& refused = std::get<broker::Refused>(answer.effect);
  // Busy: nothing of it was written. A store gives messages back where it can.
  if (refused.error.code == Errc::server_busy &&
      try_another(tag, refused.messages.empty() ? read_again(kept) : std::move(refused.messages)))
    return;
  end(tag, answer, now);
}

void PartitionedSends::on_given_up(std::uint64_t tag, broker::Answer& refused, std::span<const Payload> kept,
                                   Now now) {
  if (!try_another(tag, read_again(kept))) end(tag, refused, now);
}

void PartitionedSends::end(std::uint64_t tag, broker::Answer& answer, Now now) {
  const bool is_first = (tag & retried_bit) == 0;
  const std::uint64_t own = is_first ? tag % tag_limit : retried_.take(static_cast<std::uint32_t>(tag)).tag;
  taker_.on_answer(own, answer, now);
}

void PartitionedSends::forget() {
  context_.entities.forget(*this);
  context_.entities.forget(taker_);
}

}  // namespace omnibus::links
