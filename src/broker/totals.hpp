// What happened in a queue or topic since its machine was made: for people who watch it.
//
// Plain numbers of the core that owns the machine. No decision depends on them, nothing of them is journaled,
// and what replay repeats is not counted again: after a restart, or when a store opened again, they begin at
// 0.
#pragma once

#include <cstdint>

namespace omnibus::broker {

struct Totals {
  std::uint64_t received = 0;   // messages taken in: sent, scheduled, forwarded here, copies of a topic's
  std::uint64_t delivered = 0;  // given to a receiver, each time anew
  std::uint64_t completed = 0;  // settled as done, or received and deleted
  std::uint64_t abandoned = 0;
  std::uint64_t released = 0;  // given back without counting an attempt
  std::uint64_t deferred = 0;
  std::uint64_t dead_lettered = 0;  // for whatever reason, expired ones among them
  std::uint64_t expired = 0;        // their time to live was over: dead letters, or gone
  std::uint64_t locks_expired = 0;  // of messages, those of a session's lock each
  std::uint64_t duplicates = 0;     // not taken in: their id was known

  friend bool operator==(const Totals&, const Totals&) = default;
  Totals& operator+=(const Totals& more) {
    received += more.received;
    delivered += more.delivered;
    completed += more.completed;
    abandoned += more.abandoned;
    released += more.released;
    deferred += more.deferred;
    dead_lettered += more.dead_lettered;
    expired += more.expired;
    locks_expired += more.locks_expired;
    duplicates += more.duplicates;
    return *this;
  }
};

}  // namespace omnibus::broker
