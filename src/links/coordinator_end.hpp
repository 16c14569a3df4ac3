// Our end of a controller link: declares and discharges transactions [service-bus contract 7, AMQP 4.2].
//
// A commit is one command to the entities; its outcome leaves when it is durable everywhere. It goes on when
// the link goes, unlike the open transactions, which are rolled back then.
#pragma once

#include "amqp/codec/message.hpp"
#include "links/link_context.hpp"
#include "links/link_end.hpp"

namespace omnibus::links {

class CoordinatorEnd final : public LinkEnd, private AnswerTaker {
 public:
  static constexpr std::uint32_t window = 100;
  static constexpr std::uint64_t control_bytes_max = 16 * 1024;

  // Open to everybody, as $cbs is: what is done in a transaction needs its right, the transaction needs none.
  explicit CoordinatorEnd(LinkContext& context) : LinkEnd(std::nullopt), context_(context) {}

  // Answers the attach and grants the first credit.
  void accept(amqp::Link& link);

  void on_transfer(amqp::Link& link, amqp::Delivery& delivery, Now now) override;
  void on_gone(amqp::Link& link) override;

 private:
  void on_answer(std::uint64_t tag, broker::Answer& answer, Now now) override;
  // The outcome of a control message; nothing: it comes with the answer to a commit.
  [[nodiscard]] Result<std::optional<amqp::State>> control(const amqp::Delivery& delivery);
  [[nodiscard]] Result<std::optional<amqp::State>> discharge(const amqp::Discharge& discharge,
                                                             std::uint32_t delivery_id);
  void settle(std::uint32_t delivery_id, const amqp::State& outcome);

  LinkContext& context_;
  amqp::Link* link_ = nullptr;
  std::uint32_t unanswered_ = 0;
};

}  // namespace omnibus::links
