// A thread that runs tasks in the order they are handed over, so that the owner's core never waits for a
// disk. The hand-over is a lock-free list; whoever hands over never waits.
//
// How much can wait is bounded by what journals hand over: one batch, a few checkpoint pieces, one piece
// of recovery or relocation each, and the single reads their owner asked for.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <thread>

#include "journal/journal.hpp"

namespace omnibus::journal {

class IoThread {
 public:
  IoThread();
  // Runs what was handed over, then ends.
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  // Any thread.
  void run(Task task);
  [[nodiscard]] Runner runner() {
    return [this](Task task) { run(std::move(task)); };
  }

 private:
  struct Node {
    Task task;  // none: the end
    Node* next = nullptr;
  };
  void push(Node* node);
  void work();

  std::atomic<Node*> newest_{nullptr};
  // Not std::atomic::wait: that yields the core several times before it sleeps, which on a busy machine costs
  // more than the sleep.
  sem_t handed_over_{};
  std::thread thread_;
};

}  // namespace omnibus::journal
