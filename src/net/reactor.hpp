// One event loop on one thread: a shard. Whatever lives on a reactor is touched by its thread alone.
//
// post() and stop() may be called from any thread; everything else, and all of Timer, only on the
// reactor's own thread (or while it does not run). A stopped reactor first closes the streams that live
// on it (each handler gets its on_closed), then leaves its loop; it is not started again.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace omnibus::net {

using Task = std::move_only_function<void()>;

class Reactor {
 public:
  explicit Reactor(std::string name = "shard");
  // Stops and joins when that has not been done. Streams that are left are closed on this thread.
  ~Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  void start();  // the loop on a thread of its own
  void run();    // the loop on this thread, until stop()
  void stop();   // any thread; returns at once
  void join();   // waits for the thread of start()

  // Runs `task` in a later turn of the loop, in the order of the calls of one thread. Any thread.
  void post(Task task);

  [[nodiscard]] bool on_this_thread() const;
  [[nodiscard]] Tick now() const { return tick_now(); }
  // How many accepted connections this shard carries. Any thread.
  [[nodiscard]] std::size_t connections() const;
  [[nodiscard]] const std::string& name() const { return name_; }

  struct Impl;  // the room's own business: reactor_impl.hpp
  [[nodiscard]] Impl& impl() { return *impl_; }

 private:
  std::string name_;
  std::unique_ptr<Impl> impl_;
};

// Calls back once, at a time or soon after, never before. After cancel() or arm() the earlier callback
// does not run any more. The callback may destroy or re-arm its own timer. An unarmed timer costs no
// more than its own size.
class Timer {
 public:
  explicit Timer(Reactor& reactor) : reactor_(reactor) {}
  ~Timer() { cancel(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void arm(Tick at, Task callback);
  void cancel();
  [[nodiscard]] bool armed() const { return armed_; }

 private:
  friend struct Reactor::Impl;
  Reactor& reactor_;
  Task callback_;
  std::multimap<Tick, Timer*>::iterator place_;
  bool armed_ = false;
};

// The shards of a process.
class ShardPool {
 public:
  // `count` 0 means one per core.
  explicit ShardPool(std::size_t count = 0);
  ~ShardPool();

  void start();
  void stop();  // every shard, and waits for them

  [[nodiscard]] std::size_t size() const { return shards_.size(); }
  [[nodiscard]] Reactor& operator[](std::size_t index) { return *shards_[index]; }
  // The shard with the fewest connections; the first of equals. Any thread.
  [[nodiscard]] Reactor& least_loaded();

 private:
  std::vector<std::unique_ptr<Reactor>> shards_;
};

}  // namespace omnibus::net
