// A sender and a receiver that load a broker over AMQP, on our engine, each on a reactor of the caller's.
//
// Every message carries the moment it was sent, so whoever receives it knows how long it took. Counters may
// be read from any thread. A connection that ends, a refused link or a rejected message stops the whole
// benchmark with a message: figures of a run with errors are none.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/histogram.hpp"
#include "net/reactor.hpp"

namespace omnibus::bench {

// Stops a reactor that carries load: connections that end by this are no trouble.
void end_load(net::Reactor& reactor);

struct LoadTarget {
  std::uint16_t port = 0;
  std::string address = "bench";
  std::string user{};  // SASL PLAIN with this name; empty: ANONYMOUS
  std::string password{};
};

struct SenderLoad {
  std::uint32_t body_bytes = 1024;
  std::uint32_t window = 1000;     // messages without an outcome at any time
  std::uint64_t messages_max = 0;  // 0: until stop()
  double rate = 0;                 // messages per second; 0: as fast as outcomes come
  // With a rate: a message carries the moment it was due, so a broker that holds the sender up pays for it.
  bool stamp_due = false;
  bool durable = false;  // says so in the header of every message
  // How many more may be sent before it is asked again; 0 asks again a little later. Empty: no such bound.
  std::function<std::uint32_t()> room{};
};

struct SenderCounts {
  std::atomic<std::uint64_t> sent{0};
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<bool> stop{false};
  std::atomic<bool> pause{false};  // with a rate: what would be due meanwhile is not made up for
  std::mutex mutex;
  Histogram outcome_after;  // guarded by mutex
};
// The counts outlive the reactor's run.
void start_sender(net::Reactor& reactor, const LoadTarget& target, const SenderLoad& load,
                  SenderCounts& counts);

struct Arrival {
  Tick sent;
  Tick received;
};

struct ReceiverCounts {
  std::atomic<std::uint64_t> received{0};
  std::mutex mutex;
  Histogram latency;                         // guarded by mutex
  std::vector<Arrival>* arrivals = nullptr;  // each single one, for who wants them; guarded by mutex
};
// Accepts every message at once, settled; credit is kept between half of `credit` and all of it.
void start_receiver(net::Reactor& reactor, const LoadTarget& target, std::uint32_t credit,
                    ReceiverCounts& counts);

// A connection with one session and one link that never sends. One that the broker ends before its link is
// attached is counted as refused; it stops nothing.
struct IdleCounts {
  std::atomic<std::uint64_t> attached{0};
  std::atomic<std::uint64_t> refused{0};
};
void start_idle(net::Reactor& reactor, const LoadTarget& target, IdleCounts& counts);

// No broker: the other end of a TCP connection, which accepts every message. The pool and the counts outlive
// it.
class SinkServer {
 public:
  SinkServer(net::ShardPool& pool, ReceiverCounts& counts);
  ~SinkServer();
  [[nodiscard]] std::uint16_t port() const;

 private:
  struct Accepting;
  std::unique_ptr<Accepting> accepting_;
};

}  // namespace omnibus::bench
