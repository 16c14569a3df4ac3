#include "journal/io_thread.hpp"

#include <utility>

namespace omnibus::journal {

IoThread::IoThread() : thread_([this] { work(); }) {}

IoThread::~IoThread() {
  push(new Node);
  thread_.join();
}

void IoThread::run(Task task) { push(new Node{std::move(task)}); }

void IoThread::push(Node* node) {
  // Once it is handed over the node is the thread's, which may have run and deleted it already.
  Node* before = newest_.load(std::memory_order_relaxed);
  do {
    node->next = before;
  } while (
      !newest_.compare_exchange_weak(before, node, std::memory_order_release, std::memory_order_relaxed));
  // Not null any more means the thread is awake or about to look again.
  if (before == nullptr) newest_.notify_one();
}

void IoThread::work() {
  for (bool ended = false; !ended;) {
    newest_.wait(nullptr, std::memory_order_acquire);
    Node* taken = newest_.exchange(nullptr, std::memory_order_acquire);
    Node* oldest = nullptr;
    while (taken) {
      Node* next = std::exchange(taken->next, oldest);
      oldest = std::exchange(taken, next);
    }
    while (oldest) {
      if (oldest->task)
        oldest->task();
      else
        ended = true;
      delete std::exchange(oldest, oldest->next);
    }
  }
}

}  // namespace omnibus::journal
