#include "broker/lock_table.hpp"

#include <limits>

#include "base/check.hpp"

namespace omnibus::broker {

std::uint32_t LockTable::add(const Lock& lock) {
  std::uint32_t index;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(locks_.size());
    locks_.push_back(lock);
  } else {
    index = free_.back();
    free_.pop_back();
    locks_[index] = lock;
  }
  check(by_token_.emplace(lock.token, index).second, "a lock token is used once");
  if (!lock.of_session && !lock.held) deadlines_.add(index);
  return index;
}

void LockTable::remove(std::uint32_t index) {
  if (!locks_[index].of_session && !locks_[index].held) deadlines_.remove(index);
  by_token_.erase(locks_[index].token);
  locks_[index] = Lock{};
  free_.push_back(index);
  if (by_token_.empty()) {  // a burst of locks does not keep its memory
    locks_.clear();
    free_.clear();
    if (locks_.capacity() > 65536) locks_.shrink_to_fit(), free_.shrink_to_fit();
  }
}

void LockTable::hold(std::uint32_t index) {
  Lock& lock = locks_[index];
  check(!lock.held, "a lock is held once");
  if (!lock.of_session) deadlines_.remove(index);
  lock.of_session = false;
  lock.held = true;
}

void LockTable::let_go(std::uint32_t index, bool to_session) {
  Lock& lock = locks_[index];
  check(lock.held, "only a held lock is let go");
  lock.held = false;
  lock.of_session = to_session;
  if (!to_session) deadlines_.add(index);
}

void LockTable::renew(std::uint32_t index, std::int64_t until) {
  locks_[index].until = until;
  if (!locks_[index].held) deadlines_.moved_in_time(index);
}

std::uint32_t LockTable::find(const LockToken& token) const {
  const auto found = by_token_.find(token);
  return found == by_token_.end() ? no_slot : found->second;
}

std::int64_t LockTable::first_due() const {
  return deadlines_.empty() ? std::numeric_limits<std::int64_t>::max() : deadlines_.first_due();
}

}  // namespace omnibus::broker
