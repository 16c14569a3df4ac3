#include "journal/io_thread.hpp"

#include <cerrno>
#include <utility>

namespace omnibus::journal {

IoThread::IoThread() {
  ::sem_init(&handed_over_, 0, 0);
  thread_ = std::thread([this] { work(); });
}

IoThread::~IoThread() {
  push(new Node);
  thread_.join();
  ::sem_destroy(&handed_over_);
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
  if (before == nullptr) ::sem_post(&handed_over_);
}

void IoThread::work() {
  for (bool ended = false; !ended;) {
    while (::sem_wait(&handed_over_) != 0 && errno == EINTR) {
    }
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
