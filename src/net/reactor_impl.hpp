// The inside of a Reactor, for this room's own files.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <span>
#include <thread>
#include <unordered_map>

#include "base/result.hpp"
#include "net/reactor.hpp"

namespace omnibus::net {

// A stream as the reactor sees it: something to close when the loop ends.
class Resident {
 public:
  virtual ~Resident() = default;
  virtual void evict(Error why) = 0;
};

// A buffer that all connections of a shard share, made when first used: an idle connection owns none.
class SharedBuffer {
 public:
  explicit SharedBuffer(std::size_t size) : size_(size) {}
  std::span<std::uint8_t> get() {
    if (!bytes_) bytes_ = std::make_unique_for_overwrite<std::uint8_t[]>(size_);
    return {bytes_.get(), size_};
  }

 private:
  std::size_t size_;
  std::unique_ptr<std::uint8_t[]> bytes_;
};

struct Reactor::Impl {
  using Clock = std::chrono::steady_clock;

  // The order matters: handlers still queued die with the context, and may hold streams and timers
  // that refer to what stands above it.
  std::multimap<Tick, Timer*> timers;
  std::unordered_map<Resident*, std::shared_ptr<Resident>> residents;
  SharedBuffer read_buffer{64 * 1024};     // what came off a socket
  SharedBuffer decrypt_buffer{32 * 1024};  // what TLS made of it
  SharedBuffer unmask_buffer{32 * 1024};   // what WebSocket made of that
  SharedBuffer encrypt_buffer{16 * 1024};  // gathered output, one TLS record
  std::atomic<std::size_t> connections{0};
  std::atomic<std::thread::id> thread_id{};
  bool stopping = false;
  boost::asio::io_context context{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{context.get_executor()};
  boost::asio::steady_timer alarm{context};
  Tick alarm_at = Tick::max();
  std::thread thread;

  void set_alarm();
  void run_due_timers();
  void close_residents();
};

}  // namespace omnibus::net
