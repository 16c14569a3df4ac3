// Our end of a link on which a client receives from one place: a plain entity, a message session, which lives
// in one partition of its entity, or an entity whose partitions are all in one store, which gives what they
// have as one [service-bus contract 3.5, 3.7, 9.10].
//
// The attach is answered when the entity has answered: at once for a plain receiver, later for one that
// waits for a message session. Who wants the next session of a partitioned entity asks all partitions and
// stays with the first that has one. Credit goes to the entity as a limit that counts from the attach,
// deliveries come back in order.
#pragma once

#include <vector>

#include "links/receiver_link.hpp"

namespace omnibus::links {

class ReceiverEnd final : public ReceiverLink, private DeliveryTaker {
 public:
  ReceiverEnd(Claim claim, LinkContext& context, std::shared_ptr<const EntityFacts> entity,
              broker::SubQueue sub_queue)
      : ReceiverLink(std::move(claim), context, std::move(entity), sub_queue) {}

  [[nodiscard]] Result<void> start(amqp::Link& link, const amqp::Attach& attach, Now now) override;
  void on_credit(amqp::Link& link, Now now) override;

 private:
  // A partition that was asked for a session and has not answered.
  struct Candidate {
    broker::ReceiverId receiver = broker::ReceiverId::none;
    Route route;
  };

  void on_delivery(broker::Answer& answer, Now now) override;
  [[nodiscard]] Source source_of(const broker::LockToken& lock) const override {
    return {entity_->is_partitioned() ? entity_->partitions.at(lock.partition()) : route_, receiver_};
  }
  void flush() override;
  void close() override;

  void ask_for_session(const broker::AttachReceiver& command);
  void accepted(const broker::SessionAccepted& session);
  void refused(const broker::ReceiverRefused& refused, Now now);
  // Tells the entity how far it may go, when that has changed.
  void tell_credit();

  std::vector<Candidate> candidates_;
  std::optional<Error> search_error_;
  Route route_;
  broker::ReceiverId receiver_ = broker::ReceiverId::none;
  bool known_to_entity_ = false;  // the entity has not let go of the receiver by itself

  // Deliveries count alike here and at the entity, but for those that could not be sent on (a damaged
  // message) or that a drain used up: `ahead_` is how much further the entity has counted.
  std::int64_t ahead_ = 0;
  std::uint64_t told_limit_ = 0;
  bool told_drain_ = false;
  std::optional<std::uint64_t> drained_at_;  // the entity's count when it had no more; to be answered
};

}  // namespace omnibus::links
