// The receivers of one partition, as their links see them: what outlives the queue when the store fails.
//
// A plain link stays up while the store is away. When the queue is made anew, its receiver attaches again
// with the credit it has left; the new queue counts deliveries from zero, the link goes on counting, and the
// difference is kept here. A part of a group gets credit as drains only: what it got is used up when the
// drain is answered, whichever queue answers it. A session ends with the queue. Lives on one core.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <vector>

#include "broker/commands.hpp"
#include "broker/effects.hpp"

namespace omnibus::store {

class ReceiverMemory {
 public:
  // Commands on their way to the queue; the credit is counted as the queue counts it.
  void attaching(const broker::AttachReceiver& attach);
  void crediting(broker::SetCredit& credit);
  void closing(broker::ReceiverId receiver) { drop(receiver); }

  // An effect on its way to the link, brought to what the link has to hear. False: it has heard it before.
  [[nodiscard]] bool passes(broker::Effect& effect);

  // While there is no queue. The answers that the link gets at once are appended to `out`.
  void attach_to_nobody(const broker::AttachReceiver& attach, const Error& busy,
                        std::vector<broker::Effect>& out);
  void credit_from_nobody(const broker::SetCredit& credit, std::vector<broker::Effect>& out);
  // The queue is gone: sessions end, plain receivers are kept.
  void lost(const Error& busy, const Error& session_lost, std::vector<broker::Effect>& out);
  // The partition is gone.
  void detach_all(const Error& why, std::vector<broker::Effect>& out);
  // What makes the kept receivers known to a new queue, ids ascending.
  [[nodiscard]] std::vector<broker::Command> attach_again();

  [[nodiscard]] bool empty() const { return all_.empty(); }
  [[nodiscard]] std::vector<broker::ReceiverId> ids() const;

 private:
  struct Known {
    broker::AttachReceiver attach;
    bool told = false;        // the link knows that it is attached
    std::uint64_t limit = 0;  // both as the link counts
    std::uint64_t delivered = 0;
    std::uint64_t before = 0;  // deliveries by earlier queues
    [[nodiscard]] bool has_session() const { return attach.session.index() != 0; }
    // Its credit comes as drains only.
    [[nodiscard]] bool is_part() const { return attach.credit == broker::AttachReceiver::Credit::part; }
  };
  void drop(broker::ReceiverId receiver);

  boost::unordered_flat_map<broker::ReceiverId, Known> all_;
  std::size_t counted_ = 0;  // those whose deliveries are counted: all but parts
};

}  // namespace omnibus::store
