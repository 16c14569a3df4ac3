// Runs a Proton container with a time limit.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <proton/container.hpp>
#include <proton/messaging_handler.hpp>
#include <string>
#include <thread>

#include "report.hpp"

namespace interop {

inline constexpr std::chrono::seconds give_up{10};

// Until the handler stops the container. Throws when that takes too long, or `trouble` has a text in the end.
inline void run_within_limit(proton::messaging_handler& handler, std::string& trouble) {
  proton::container container(handler);
  // A timer of the container's own would keep it running until it is due.
  std::mutex mutex;
  std::condition_variable ended;
  bool over = false;
  std::thread watchdog([&] {
    std::unique_lock lock(mutex);
    if (ended.wait_for(lock, give_up, [&] { return over; })) return;
    trouble = "timed out";
    container.stop();
  });
  container.run();
  {
    const std::lock_guard lock(mutex);
    over = true;
  }
  ended.notify_one();
  watchdog.join();
  check(trouble.empty(), trouble);
}

}  // namespace interop
