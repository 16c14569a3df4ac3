// Our end of a link on which a client receives from an entity [service-bus contract 3.4 to 3.7, 4.4].
//
// The attach is answered when the entity has answered: at once for a plain receiver, later for one that
// waits for a message session. Credit goes to the entity as a limit that counts from the attach, deliveries
// come back in order; one that finds the session window closed waits here. Settlements are answered when
// the entity says that they are durable.
#pragma once

#include <deque>

#include "base/slot_table.hpp"
#include "links/link_context.hpp"
#include "links/link_end.hpp"

namespace omnibus::links {

class ReceiverEnd final : public LinkEnd, private AnswerTaker, private DeliveryTaker {
 public:
  // How long a client waits for the next free session when it does not say.
  static constexpr std::chrono::milliseconds session_wait{60'000};

  ReceiverEnd(Claim claim, LinkContext& context, std::shared_ptr<const EntityFacts> entity,
              broker::SubQueue sub_queue);

  // Asks the entity. Fails when the attach cannot be meant; nothing has been asked then.
  [[nodiscard]] Result<void> start(amqp::Link& link, const amqp::Attach& attach, Now now);

  void on_credit(amqp::Link& link, Now now) override;
  void on_disposition(amqp::Link& link, const amqp::DispositionOf& disposition, Now now) override;
  void on_gone(amqp::Link& link) override;

 private:
  struct Waiting {
    broker::Deliver delivery;
    Payload message;
  };
  struct Unsettled {
    broker::LockToken lock;
    bool settling = false;  // the entity has been asked
  };
  // A settlement that the entity has not answered.
  struct Settling {
    std::uint32_t delivery_id = 0;
    amqp::State echo;
  };

  void on_answer(std::uint64_t tag, broker::Answer& answer, Now now) override;
  void on_delivery(broker::Answer& answer, Now now) override;

  void accept(const broker::SessionAccepted* session);
  void deliver(broker::Deliver& delivery, Payload stored);
  void send(const broker::Deliver& delivery, Payload message);
  // Sends what waits as far as it goes, and answers a drain that is due.
  void flush();
  // Tells the entity how far it may go, when that has changed.
  void tell_credit();
  void settle(const broker::LockToken& lock, broker::Outcome outcome, broker::RequestId request);

  LinkContext& context_;
  const std::shared_ptr<const EntityFacts> entity_;
  const broker::SubQueue sub_queue_;
  broker::ReceiveMode mode_ = broker::ReceiveMode::peek_lock;
  amqp::Link* link_ = nullptr;
  broker::ReceiverId receiver_ = broker::ReceiverId::none;
  bool known_to_entity_ = false;  // the entity has not let go of the receiver by itself

  // Deliveries count alike here and at the entity, but for those that could not be sent on (a damaged
  // message) or that a drain used up: `ahead_` is how much further the entity has counted.
  std::uint64_t sent_ = 0;
  std::int64_t ahead_ = 0;
  std::uint64_t told_limit_ = 0;
  bool told_drain_ = false;
  std::optional<std::uint64_t> drained_at_;  // the entity's count when it had no more; to be answered

  std::deque<Waiting> waiting_;
  SlotTable<Unsettled> unsettled_;  // a delivery's context is its place + 1
  SlotTable<Settling> settling_;    // a request's tag is its place
};

}  // namespace omnibus::links
