// What one connection has asked of entities and not heard back.
//
// Gives out the ids by which answers find their way: the connection's number in the upper half, a number of
// its own in the lower. A command that finds the road full waits here, in order; the connection then reads
// no further input (congested()), so what waits is bounded by what one read can bring. Lives on one core.
//
// A send that waits for a disk which does not answer is given up: give_up() answers in the store's place, and
// what the store says later reaches nobody.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/slot_table.hpp"
#include "links/entity_port.hpp"
#include "links/link_end.hpp"

namespace omnibus::links {

// Whoever waits for answers to requests. `tag` is what it gave with the request.
class AnswerTaker {
 public:
  virtual ~AnswerTaker() = default;
  virtual void on_answer(std::uint64_t tag, broker::Answer& answer, Now now) = 0;
  // Instead, for a send whose messages were kept, when it is refused.
  virtual void on_refused(std::uint64_t tag, broker::Answer& refused, std::span<const Payload> /*kept*/,
                          Now now) {
    on_answer(tag, refused, now);
  }
  // A send was given up: nobody can say whether it will be there, and `refused` says so. `kept` are the
  // messages, if they were kept.
  virtual void on_given_up(std::uint64_t tag, broker::Answer& refused, std::span<const Payload> /*kept*/,
                           Now now) {
    on_answer(tag, refused, now);
  }
};

// Whoever gets what a receiver gets: ReceiverAttached to DetachReceiver.
class DeliveryTaker {
 public:
  virtual ~DeliveryTaker() = default;
  virtual void on_delivery(broker::Answer& answer, Now now) = 0;
};

class EntityClient {
 public:
  // More bytes of messages than this on their way and the connection pauses.
  static constexpr std::uint64_t bytes_under_way_max = 16u << 20;
  // What goes as one command at most: the entity serves others in between.
  static constexpr std::size_t completes_max = 256;
  static constexpr std::size_t enqueues_max = 128;
  static constexpr std::uint64_t enqueues_bytes_max = 256u << 10;

  // `port` outlives the client. `connection` is unique in the process and not 0.
  EntityClient(EntityPort& port, std::uint32_t connection) : port_(port), connection_(connection) {}
  EntityClient(const EntityClient&) = delete;
  EntityClient& operator=(const EntityClient&) = delete;

  [[nodiscard]] std::shared_ptr<const EntityFacts> find(std::string_view name) { return port_.find(name); }
  [[nodiscard]] bool available(const Route& route) const { return port_.available(route); }
  [[nodiscard]] broker::ConnectionId connection() const {
    return static_cast<broker::ConnectionId>(connection_);
  }

  // An id for one request; its one answer goes to `taker`, unless it is forgotten before. `bytes` are what
  // the request holds in memory until then.
  [[nodiscard]] broker::RequestId expect(AnswerTaker& taker, std::uint64_t tag, std::uint64_t bytes = 0);
  // The same for a send to `route`, which give_up() knows.
  [[nodiscard]] broker::RequestId expect_send(const Route& route, AnswerTaker& taker, std::uint64_t tag,
                                              std::uint64_t bytes);
  // The messages of a send stay at hand until it is answered, for who may send them elsewhere.
  void keep(broker::RequestId send, std::span<const broker::IncomingMessage> messages);
  // The same for a question that is asked rarely.
  using OnAnswer = std::move_only_function<void(broker::Answer& answer, Now now)>;
  [[nodiscard]] broker::RequestId expect(OnAnswer on_answer);
  // Answers that `taker` waits for will be dropped.
  void forget(const AnswerTaker& taker);

  // An id for one receiver, until close(). Of several partitions: `entity` is whose they are.
  [[nodiscard]] broker::ReceiverId open(DeliveryTaker& taker, const Route& route,
                                        std::shared_ptr<const EntityFacts> entity = nullptr);
  // Tells the entity. What was on its way to the receiver is given back.
  void close(broker::ReceiverId receiver);

  void send(const Route& route, broker::Command command);
  // What is gathered here goes with the next command of the connection, or by flush(), which the end of each
  // input and of each answer calls.
  // A Complete that nobody waits for. Those of one receiver and partition that follow one another go as one
  // command.
  void complete(const Route& route, broker::ReceiverId receiver, const broker::LockToken& lock);
  // A message alone; the answer goes to `taker`. Those to one place that follow one another go as one
  // command.
  enum class Keep : std::uint8_t { no, yes };
  void enqueue(const Route& route, AnswerTaker& taker, std::uint64_t tag, broker::IncomingMessage&& message,
               Keep keeps = Keep::no);
  void flush();
  // The same at the end of an input whose rest is still to come: turn() stays.
  void flush_amid_input();
  // Changes with each flush(): what is sent under one number came without a pause and may go together.
  [[nodiscard]] std::uint64_t turn() const { return turn_; }
  void on_room();
  // The disk of a store does not answer: every send that waits for it is refused with `internal_error`, as
  // after a failed write [contract 4.6, 9.10].
  void give_up(std::uint16_t store, Now now);
  [[nodiscard]] bool congested() const { return !backlog_.empty() || bytes_under_way_ > bytes_under_way_max; }

  void deliver(broker::Answer& answer, Now now);

 private:
  static constexpr std::uint32_t no_store = 0xffff'ffff;
  // Small, because every message touches it twice, the second time when it is no longer at hand.
  struct Expected {
    AnswerTaker* taker = nullptr;  // null: free, or nobody waits any more
    std::uint64_t tag = 0;
    std::uint32_t bytes = 0;         // of one transfer
    std::uint32_t store = no_store;  // where a send waits
    Slice kept{};                    // a message that lies in one block; others are in kept_
  };
  static_assert(sizeof(Expected) == 40);
  struct Receiver {
    DeliveryTaker* taker = nullptr;  // null: closed, what was on its way may still come
    Route route;
    std::shared_ptr<const EntityFacts> entity{};
  };

  [[nodiscard]] std::uint64_t id(std::uint32_t number) const {
    return std::uint64_t{connection_} << 32 | number;
  }
  void hear(broker::Answer& answer, Now now);
  void answer(broker::RequestId request, broker::Answer& answer, Now now);
  void send_now(const Route& route, broker::Command command);
  // What keep() put there.
  [[nodiscard]] std::vector<Payload> take_kept(std::uint32_t place, Slice alone);
  void to_receiver(broker::ReceiverId receiver, broker::Answer& answer, Now now);

  EntityPort& port_;
  const std::uint32_t connection_;
  SlotTable<Expected> expected_;  // a request's number is its place here plus one
  std::unordered_map<std::uint32_t, std::vector<Payload>> kept_;  // by place
  std::uint64_t bytes_under_way_ = 0;
  std::unordered_map<std::uint32_t, OnAnswer> questions_;         // by place
  boost::unordered_flat_map<std::uint32_t, Receiver> receivers_;  // every delivery looks here
  std::uint32_t last_receiver_ = 0;
  std::deque<std::pair<Route, broker::Command>> backlog_;
  broker::Settle completes_;  // gathered by complete(); no tokens: none
  Route completes_at_;
  broker::EnqueueEach enqueues_;  // gathered by enqueue()
  Route enqueues_at_;
  std::uint64_t enqueues_bytes_ = 0;
  std::uint64_t turn_ = 0;
  std::size_t enqueues_last_ = 0;  // how many went the last time: as many are likely to come
};

}  // namespace omnibus::links
