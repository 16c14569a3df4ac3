// Our end of a link on which a client receives from an entity whose partitions are in several stores
// [service-bus contract 9.10].
//
// One receiver at each store for all partitions there, none of which has credit by itself. A store says when
// it has something; the link then lends it credit of the client's for what it has, as a drain, so that what
// is not used comes back at once. What is lent and what waits to be sent is never more than the client gave,
// and no message is locked that the client did not ask for. Whose turn it is goes round, so that no store
// starves. A partition tells as many links as what it has is worth; without credit to lend, a link passes,
// and asks anew when it has some. A client's drain is answered when every store has been asked since and none
// has anything.
//
// A store that is down answers that it has nothing, and speaks up when it is back: nothing is to be done
// about it here.
#pragma once

#include <vector>

#include "links/receiver_link.hpp"

namespace omnibus::links {

class PartitionedReceiver final : public ReceiverLink, private DeliveryTaker {
 public:
  PartitionedReceiver(Claim claim, LinkContext& context, std::shared_ptr<const EntityFacts> entity,
                      broker::SubQueue sub_queue)
      : ReceiverLink(std::move(claim), context, std::move(entity), sub_queue) {}

  [[nodiscard]] Result<void> start(amqp::Link& link, const amqp::Attach& attach, Now now) override;
  void on_credit(amqp::Link& link, Now now) override;

 private:
  // The partitions of one store.
  struct Part {
    Route route;  // of the first, which stands for all
    broker::ReceiverId receiver = broker::ReceiverId::none;
    std::uint64_t limit = 0;  // as its receiver counts deliveries
    std::uint32_t lent = 0;   // credit it has now
    std::uint32_t told = 0;   // so many it had when it last said so
    bool available = false;   // it said so since it was last asked
    bool passed = false;      // it said so, and was told to ask others; it will not say so again
    bool asked = false;       // and has not answered
    bool late = false;        // it was asked after the client's drain began
    bool checked = false;     // and has answered that
  };

  void on_delivery(broker::Answer& answer, Now now) override;
  [[nodiscard]] Source source_of(const broker::LockToken& lock) const override;
  void flush() override;
  void close() override;

  [[nodiscard]] Part& part_of(broker::ReceiverId receiver);
  [[nodiscard]] std::uint32_t free_credit() const;
  void ask(Part& part, std::uint32_t credit);
  // There is nothing to lend and none that will come back: others may have what the partitions told of.
  void pass();
  // Shares what is free among those who have something; a drain asks the others too.
  void lend();

  std::vector<Part> parts_;  // receivers have ascending numbers
  std::size_t turn_ = 0;     // who is next
  std::uint32_t lent_ = 0;   // by all together
  std::uint32_t given_ = 0;  // the client's credit when it last gave some
  bool accepted_ = false;
  bool ended_ = false;  // refused or detached
  bool draining_ = false;
};

}  // namespace omnibus::links
