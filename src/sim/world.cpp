#include "sim/world.hpp"

#include <algorithm>

namespace omnibus::sim {

void World::at(Tick due, const Life& life, Task task) {
  queue_.push_back({std::max(due, tick_), ++asked_, life, std::move(task)});
  std::ranges::push_heap(queue_, is_later);
}

bool World::step(Tick end) {
  if (queue_.empty() || queue_.front().due > end) return false;
  std::ranges::pop_heap(queue_, is_later);
  Event event = std::move(queue_.back());
  queue_.pop_back();
  tick_ = event.due;
  // Held while it runs: whoever ends a life from inside its own task goes on to the end of the task.
  if (const Life life = event.life.lock()) {
    ++events_;
    event.task();
  }
  return true;
}

void World::run_until(Tick end) {
  while (step(end)) {
  }
  tick_ = std::max(tick_, end);
}

bool World::run_until(Tick end, const std::function<bool()>& done) {
  while (!done())
    if (!step(end)) {
      tick_ = std::max(tick_, end);
      return done();
    }
  return true;
}

// FNV-1a, eight bytes at a time.
void World::trace(Bytes bytes) {
  constexpr std::uint64_t prime = 0x100000001b3;
  hash_ =
      (hash_ ^ static_cast<std::uint64_t>(tick_.time_since_epoch().count()) ^ (bytes.size() << 48)) * prime;
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    word = word << 8 | bytes[i];
    if (i % 8 == 7) hash_ = (hash_ ^ word) * prime;
  }
  hash_ = (hash_ ^ word) * prime;
  hash_ ^= hash_ >> 29;
}

}  // namespace omnibus::sim
