// Links that want messages, their credit, and whose turn it is [contract 3.7].
//
// Plain receivers of a sub-queue stand in a line in the order in which their credit arrived; who was served
// goes to its end. A receiver of a message session is served by its session alone and stands in no line.
//
// A prefetch limit bounds what a peek-lock link holds: delivered and neither settled nor given back
// [contract EX 2.5]. Who holds its full count leaves the line until something is let go; who lacks room for
// the message whose turn it is steps aside, and takes a later one that fits when nobody in the line does.
// Without limits nothing is counted.
#pragma once

#include <cstdint>
#include <list>
#include <set>
#include <unordered_map>
#include <utility>

#include "broker/commands.hpp"
#include "broker/entry_table.hpp"

namespace omnibus::broker {

// 0: no limit.
struct Prefetch {
  std::uint32_t count = 0;
  std::uint32_t bytes = 0;
  friend bool operator==(const Prefetch&, const Prefetch&) = default;
};

struct Receiver {
  enum class State : std::uint8_t { plain, waiting_for_session, holds_session };
  enum class Stands : std::uint8_t { nowhere, in_line, aside };
  ReceiverId id = ReceiverId::none;
  ConnectionId connection = ConnectionId::none;
  SubQueue sub_queue = SubQueue::active;
  ReceiveMode mode = ReceiveMode::peek_lock;
  State state = State::plain;
  Stands stands = Stands::nowhere;
  bool drain = false;               // asked while waiting for a session
  std::uint32_t session = no_slot;  // when it holds one
  std::uint32_t on_the_way = 0;     // deliveries that wait for their removal to be durable
  std::uint64_t delivery_limit = 0;
  std::uint64_t delivered = 0;
  std::uint32_t held = 0;        // while there are limits
  std::uint64_t held_bytes = 0;  // likewise
  Instant wait_until{};
  std::list<Receiver*>::iterator place;  // in its line, or among those that wait for a session

  [[nodiscard]] bool has_credit() const { return delivery_limit > delivered; }
};

class Receivers {
 public:
  [[nodiscard]] Receiver* find(ReceiverId id);
  [[nodiscard]] const Receiver* find(ReceiverId id) const;
  // `id` is not attached yet.
  Receiver& add(const AttachReceiver& attach);
  void remove(Receiver& receiver);
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] std::vector<ReceiverId> ids() const;  // ascending, for deterministic order

  void set_limit(Receiver& receiver, std::uint64_t limit);
  // Whether anybody in a sub-queue may be able to take a message.
  [[nodiscard]] bool anyone(SubQueue sub_queue) const {
    return !lines_[static_cast<std::size_t>(sub_queue)].empty() ||
           !aside_[static_cast<std::size_t>(sub_queue)].empty();
  }
  // Who takes the next message of a sub-queue, which has this many bytes, or null.
  [[nodiscard]] Receiver* next(SubQueue sub_queue, std::uint32_t bytes);
  // It got one of this many bytes: counts it and sends it to the end of its line, or out of it.
  void served(Receiver& receiver, std::uint32_t bytes);

  // Limits that differ from those before make everybody count anew: hold() follows for every lock.
  // Answers whether it does.
  bool set_prefetch(const Prefetch& prefetch);
  [[nodiscard]] bool is_limited() const { return prefetch_ != Prefetch{}; }
  // Whether the limits let it have one more, of this many bytes.
  [[nodiscard]] bool has_room(const Receiver& receiver, std::uint32_t bytes) const;
  // A lock of the receiver is there, or is gone. Only while there are limits; null: the link has left.
  void hold(ReceiverId id, std::uint32_t bytes);
  Receiver* let_go(ReceiverId id, std::uint32_t bytes);

  void wait_for_session(Receiver& receiver, Instant until);
  void stop_waiting(Receiver& receiver);
  [[nodiscard]] Receiver* first_waiting() { return waiting_.empty() ? nullptr : waiting_.front(); }
  [[nodiscard]] Instant first_wait_end() const {
    return wait_ends_.empty() ? never : wait_ends_.begin()->first;
  }
  [[nodiscard]] Receiver* first_to_give_up() { return find(wait_ends_.begin()->second); }

 private:
  [[nodiscard]] bool is_full(const Receiver& receiver) const {
    return prefetch_.count != 0 && receiver.held >= prefetch_.count;
  }
  [[nodiscard]] std::uint64_t room_of(const Receiver& receiver) const;
  void leave(Receiver& receiver);
  // Into the line when it may get something, out of it when not; who stands somewhere stays there.
  void find_place(Receiver& receiver);

  Prefetch prefetch_;
  std::unordered_map<ReceiverId, Receiver> all_;
  std::list<Receiver*> lines_[sub_queue_count];
  // Who lacked room for a message, by the room it has.
  std::set<std::pair<std::uint64_t, ReceiverId>> aside_[sub_queue_count];
  std::list<Receiver*> waiting_;
  std::set<std::pair<Instant, ReceiverId>> wait_ends_;
};

}  // namespace omnibus::broker
