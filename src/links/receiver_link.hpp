// What every link has on which a client receives [service-bus contract 3.4 to 3.7, 4.4].
//
// Answers the attach, puts deliveries into transfers, and turns dispositions into settlements, which are
// answered when the entity says that they are durable. A delivery that finds the session window closed waits
// here. A settlement within a transaction is enlisted and answered at once: the lock goes with the commit,
// and after a rollback the message can still be settled by $management until its lock ends [contract 7].
// Where messages come from and who gets the link's credit is the derived class's to know.
#pragma once

#include <deque>

#include "base/slot_table.hpp"
#include "links/link_context.hpp"
#include "links/link_end.hpp"

namespace omnibus::links {

class ReceiverLink : public LinkEnd, private AnswerTaker {
 public:
  // How long a client waits for the next free session when it does not say.
  static constexpr std::chrono::milliseconds session_wait{60'000};

  // Asks the entity. Fails when the attach cannot be meant; nothing has been asked then.
  [[nodiscard]] virtual Result<void> start(amqp::Link& link, const amqp::Attach& attach, Now now) = 0;

  void on_disposition(amqp::Link& link, const amqp::DispositionOf& disposition, Now now) final;
  void on_gone(amqp::Link& link) final;

 protected:
  ReceiverLink(Claim claim, LinkContext& context, std::shared_ptr<const EntityFacts> entity,
               broker::SubQueue sub_queue)
      : LinkEnd(std::move(claim)), context_(context), entity_(std::move(entity)), sub_queue_(sub_queue) {}

  // The partition that gave a lock, and by which receiver.
  struct Source {
    Route route;
    broker::ReceiverId receiver = broker::ReceiverId::none;
  };
  [[nodiscard]] virtual Source source_of(const broker::LockToken& lock) const = 0;
  // Sends what waits as far as it goes, and answers a drain that is due.
  virtual void flush() = 0;
  // Lets go of all receivers.
  virtual void close() = 0;

  // What the client asks for, but for the receiver's id.
  [[nodiscard]] Result<broker::AttachReceiver> read_attach(amqp::Link& link, const amqp::Attach& attach,
                                                           Now now);
  void accept(const broker::SessionAccepted* session);
  void refuse(const Error& error, Now now);
  void detach(const Error& error, Now now);
  // False: it cannot be sent on; the lock stays, so that it is tried again and at last becomes a dead letter.
  [[nodiscard]] bool deliver(broker::Deliver& delivery, const Payload& stored);
  void send_waiting();
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] bool is_attached() const { return link_->state() == amqp::Link::State::attached; }

  LinkContext& context_;
  const std::shared_ptr<const EntityFacts> entity_;
  const broker::SubQueue sub_queue_;
  broker::ReceiveMode mode_ = broker::ReceiveMode::peek_lock;
  amqp::Link* link_ = nullptr;
  std::uint64_t sent_ = 0;

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

  void on_answer(std::uint64_t tag, broker::Answer& answer, Now now) final;
  void send(const broker::Deliver& delivery, Payload message);
  void settle(const broker::LockToken& lock, broker::Outcome outcome, broker::RequestId request);
  void on_transactional_disposition(const amqp::DispositionOf& disposition, Now now);
  // The state that answers it.
  [[nodiscard]] Result<amqp::State> enlist(const amqp::DispositionOf& disposition, Now now);

  std::deque<Waiting> waiting_;
  SlotTable<Unsettled> unsettled_;  // a delivery's context is its place + 1
  SlotTable<Settling> settling_;    // a request's tag is its place
};

}  // namespace omnibus::links
