// Links that want messages, their credit, and whose turn it is [contract 3.7].
//
// Plain receivers of a sub-queue stand in a line in the order in which their credit arrived; who was served
// goes to its end. A receiver of a message session is served by its session alone and stands in no line.
#pragma once

#include <cstdint>
#include <list>
#include <set>
#include <unordered_map>

#include "broker/commands.hpp"
#include "broker/entry_table.hpp"

namespace omnibus::broker {

struct Receiver {
  enum class State : std::uint8_t { plain, waiting_for_session, holds_session };
  ReceiverId id = ReceiverId::none;
  ConnectionId connection = ConnectionId::none;
  SubQueue sub_queue = SubQueue::active;
  ReceiveMode mode = ReceiveMode::peek_lock;
  State state = State::plain;
  bool in_line = false;
  bool drain = false;               // asked while waiting for a session
  std::uint32_t session = no_slot;  // when it holds one
  std::uint32_t on_the_way = 0;     // deliveries that wait for their removal to be durable
  std::uint64_t delivery_limit = 0;
  std::uint64_t delivered = 0;
  Instant wait_until{};
  std::list<Receiver*>::iterator place;  // in its line, or among those that wait for a session

  [[nodiscard]] bool has_credit() const { return delivery_limit > delivered; }
};

class Receivers {
 public:
  [[nodiscard]] Receiver* find(ReceiverId id);
  // `id` is not attached yet.
  Receiver& add(const AttachReceiver& attach);
  void remove(Receiver& receiver);
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] std::vector<ReceiverId> ids() const;  // ascending, for deterministic order

  void set_limit(Receiver& receiver, std::uint64_t limit);
  // Whose turn it is in a sub-queue, or null.
  [[nodiscard]] Receiver* next(SubQueue sub_queue);
  // It got one: counts it and sends it to the end of its line, or out of it.
  void served(Receiver& receiver);

  void wait_for_session(Receiver& receiver, Instant until);
  void stop_waiting(Receiver& receiver);
  [[nodiscard]] Receiver* first_waiting() { return waiting_.empty() ? nullptr : waiting_.front(); }
  [[nodiscard]] Instant first_wait_end() const {
    return wait_ends_.empty() ? never : wait_ends_.begin()->first;
  }
  [[nodiscard]] Receiver* first_to_give_up() { return find(wait_ends_.begin()->second); }

 private:
  void leave_line(Receiver& receiver);
  std::unordered_map<ReceiverId, Receiver> all_;
  std::list<Receiver*> lines_[sub_queue_count];
  std::list<Receiver*> waiting_;
  std::set<std::pair<Instant, ReceiverId>> wait_ends_;
};

}  // namespace omnibus::broker
