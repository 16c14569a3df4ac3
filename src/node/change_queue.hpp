// Changes that are made one after the other: each is under way until next() is called, the others wait.
//
// So many may wait; who comes then is refused by whoever has the queue, before anything is queued. Lives on
// one core.
#pragma once

#include <deque>
#include <utility>

#include "net/reactor.hpp"

namespace omnibus::node {

class ChangeQueue {
 public:
  static constexpr std::size_t waiting_max = 1000;

  [[nodiscard]] bool is_full() const { return waiting_.size() >= waiting_max; }
  // Begins at once when nothing is under way.
  void add(net::Task change) {
    waiting_.push_back(std::move(change));
    if (!under_way_) next();
  }
  // What was under way has ended.
  void next() {
    under_way_ = !waiting_.empty();
    if (!under_way_) return;
    auto change = std::move(waiting_.front());
    waiting_.pop_front();
    change();
  }

 private:
  std::deque<net::Task> waiting_;
  bool under_way_ = false;
};

}  // namespace omnibus::node
