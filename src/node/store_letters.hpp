// What stores say to each other, from shard to shard.
//
// One per store, on its shard. What finds another store's mailbox full waits here, in order; transactions
// under way bound how much that is. A letter to a store that does not exist is lost, but a Prepare is
// refused.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "net/mailbox.hpp"
#include "net/reactor.hpp"
#include "node/life.hpp"
#include "node/roads.hpp"
#include "store/store_message.hpp"

namespace omnibus::node {

struct StoreLetter {
  std::uint16_t from = 0;
  store::StoreMessage message{};
};

class StoreLetters {
 public:
  using Take = std::function<void(std::span<StoreLetter>)>;
  // `roads` outlive it; `take` comes on the reactor's thread, never from inside send().
  StoreLetters(net::Reactor& reactor, const Roads& roads, std::uint16_t number, std::size_t letters_max,
               Take take);

  // On the reactor's thread.
  void send(std::uint16_t to, store::StoreMessage&& message);
  // Any thread.
  [[nodiscard]] net::Mailbox<StoreLetter>& mailbox() { return mailbox_; }

 private:
  struct Road {
    std::deque<StoreLetter> waiting;
    bool asked = false;  // to be told of room
  };
  void go_on(std::uint16_t to);
  void refuse(std::uint16_t to, const store::StoreMessage& message);

  net::Reactor& reactor_;
  const Roads& roads_;
  const std::uint16_t number_;
  const Life life_ = begin_life();
  Take take_;
  net::Mailbox<StoreLetter> mailbox_;
  std::map<std::uint16_t, Road> waiting_;  // by store, where any wait
};

}  // namespace omnibus::node
