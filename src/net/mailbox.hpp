// The way from any shard to one shard: a bounded queue with many producers and one consumer.
//
// This is the one place where shards synchronise. try_push() says false when `capacity` messages wait;
// the message is then untouched and the caller keeps the pressure on its own side (no new credit, no
// reading) until on_space() calls back. The consumer gets what waits in batches of at most `batch_max`, one
// per turn of its loop, so that a flood from one side leaves turns for sockets and finished syncs; one
// wake-up is posted per batch, not per message. Messages of one producer keep their order. Made and destroyed
// on the owner's thread (or while it does not run); messages that still wait when the mailbox dies are
// dropped. Producers must not outlive it.
#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "net/reactor.hpp"

namespace omnibus::net {

template <class T>
class Mailbox {
 public:
  static constexpr std::size_t batch_max = 128;
  // The batch may be moved from; it is gone when the call returns.
  using Consumer = std::move_only_function<void(std::span<T> batch)>;

  Mailbox(Reactor& owner, std::size_t capacity, Consumer consumer)
      : state_(std::make_shared<State>(owner, capacity, std::move(consumer))) {
    check(capacity > 0, "a mailbox holds something");
  }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Any thread.
  [[nodiscard]] bool try_push(T&& message) {
    State& state = *state_;
    {
      const std::lock_guard lock(state.mutex);
      if (state.waiting.size() >= state.capacity) return false;
      state.waiting.push_back(std::move(message));
      if (std::exchange(state.woken, true)) return true;
    }
    wake(state);
    return true;
  }

  // Several at once, with one wake-up: takes the first ones out of `messages`, as many as there is room for.
  // Any thread.
  void push_from(std::vector<T>& messages) {
    if (messages.empty()) return;
    State& state = *state_;
    {
      const std::lock_guard lock(state.mutex);
      if (state.waiting.empty() && messages.size() <= state.capacity) {
        state.waiting.swap(messages);
      } else {
        const std::size_t room = state.capacity - std::min(state.capacity, state.waiting.size());
        const auto end = messages.begin() + static_cast<std::ptrdiff_t>(std::min(room, messages.size()));
        state.waiting.insert(state.waiting.end(), std::move_iterator(messages.begin()),
                             std::move_iterator(end));
        messages.erase(messages.begin(), end);
      }
      if (state.waiting.empty() || std::exchange(state.woken, true)) return;
    }
    wake(state);
  }

  // Posts `task` to `producer` once there is room: at once when there is, otherwise after the next
  // batch was taken. Room may be gone again by then; push and see. Any thread.
  void on_space(Reactor& producer, Task task) {
    {
      const std::lock_guard lock(state_->mutex);
      if (state_->waiting.size() >= state_->capacity) {
        state_->refused.emplace_back(&producer, std::move(task));
        return;
      }
    }
    producer.post(std::move(task));
  }

  // Any thread; a snapshot for metrics.
  [[nodiscard]] std::size_t waiting() const {
    const std::lock_guard lock(state_->mutex);
    return state_->waiting.size();
  }

 private:
  struct State : std::enable_shared_from_this<State> {
    State(Reactor& o, std::size_t c, Consumer f) : owner(o), capacity(c), consumer(std::move(f)) {}

    void drain() {
      if (taken == batch.size()) take();
      const std::size_t from = taken;
      taken = std::min(from + batch_max, batch.size());
      consumer(std::span<T>(batch).subspan(from, taken - from));
      if (taken == batch.size()) {
        batch.clear();
        taken = 0;
        const std::lock_guard lock(mutex);
        woken = !waiting.empty();
        if (!woken) return;
      }
      wake(*this);
    }
    void take() {
      std::vector<std::pair<Reactor*, Task>> resumed;
      {
        const std::lock_guard lock(mutex);
        batch.swap(waiting);
        resumed.swap(refused);
      }
      for (auto& [reactor, task] : resumed) reactor->post(std::move(task));
    }

    Reactor& owner;
    const std::size_t capacity;
    Consumer consumer;
    std::vector<T> batch;   // the owner's thread only
    std::size_t taken = 0;  // of the batch
    std::mutex mutex;
    std::vector<T> waiting;
    bool woken = false;
    std::vector<std::pair<Reactor*, Task>> refused;
  };

  static void wake(State& state) {
    state.owner.post([weak = state.weak_from_this()] {
      if (const auto alive = weak.lock()) alive->drain();
    });
  }

  std::shared_ptr<State> state_;
};

}  // namespace omnibus::net
