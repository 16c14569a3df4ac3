// Our end of a link on which a client sends to an entity [service-bus contract 3.3, 4.2, 4.3].
//
// Every transfer becomes an Enqueue or one of an EnqueueEach; its outcome leaves when the entity has
// answered, which for a success means that the message is durable. Credit is a window over what is not
// answered yet, so a slow disk slows senders down and nothing piles up. Which partition takes it is
// PartitionedSends' to know. What an exchange matches nothing of is sent on by AlternateSends, and its
// outcome is what the last exchange on the way says [EX 2.4].
//
// What belongs to a transaction is judged here, enlisted and answered at once; the commit sends it. With a
// destination, the entity only keeps the messages and sends them on [service-bus contract 7].
#pragma once

#include <vector>

#include "links/alternate_sends.hpp"
#include "links/link_context.hpp"
#include "links/link_end.hpp"
#include "links/partitioned_sends.hpp"
#include "links/transactional_sends.hpp"

namespace omnibus::links {

class SenderEnd final : public LinkEnd, private AnswerTaker {
 public:
  static constexpr std::uint32_t window = 1000;
  // The largest batch a client is told of where single messages may be larger still.
  static constexpr std::uint64_t batch_bytes_max = 1024 * 1024;

  // `routing_key` is of the address, for every message; nothing: the entity takes what the message says.
  SenderEnd(Claim claim, LinkContext& context, std::shared_ptr<const EntityFacts> entity,
            std::optional<std::string> routing_key = std::nullopt);
  // Sends via `entity` to `destination`; `address` is how the client named it.
  SenderEnd(Claim claim, LinkContext& context, std::shared_ptr<const EntityFacts> entity,
            const EntityFacts& destination, std::string address);

  // Answers the attach and grants the first credit.
  void accept(amqp::Link& link);

  void on_transfer(amqp::Link& link, amqp::Delivery& delivery, Now now) override;
  void on_gone(amqp::Link& link) override;
  [[nodiscard]] std::string_view sends_to() const override { return entity_->name; }

 private:
  void on_answer(std::uint64_t tag, broker::Answer& answer, Now now) override;
  [[nodiscard]] Result<std::vector<broker::IncomingMessage>> read(const amqp::Delivery& delivery);
  [[nodiscard]] Result<void> send(std::vector<broker::IncomingMessage> messages, std::uint64_t tag,
                                  std::uint64_t bytes);
  // The state that answers it.
  [[nodiscard]] Result<amqp::State> enlist(const amqp::Delivery& delivery, Now now);
  [[nodiscard]] Result<void> enlist(Transaction& transaction, const amqp::Delivery& delivery);
  void refuse(std::uint32_t delivery_id, bool settled, const Error& error, Now now);
  void refill();

  LinkContext& context_;
  const std::shared_ptr<const EntityFacts> entity_;
  const std::optional<std::string> routing_key_;
  const std::optional<std::string> destination_;        // of what is sent via the entity
  const std::string via_address_;                       // as the client named the destination
  const std::unique_ptr<PartitionedSends> partitions_;  // null for a plain entity
  const std::uint64_t message_bytes_max_;
  amqp::Link* link_ = nullptr;
  std::uint32_t unanswered_ = 0;
  AlternateSends alternates_;
};

}  // namespace omnibus::links
