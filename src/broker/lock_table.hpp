// Who holds which message, and until when.
//
// A lock on a message of a plain sub-queue ends by itself; one in a message session lives as long as the
// session's lock and is kept in the session's own list, so its `until` is not looked at.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <vector>

#include "broker/deadline_queue.hpp"
#include "broker/entry_table.hpp"
#include "broker/ids.hpp"

namespace omnibus::broker {

struct Lock {
  LockToken token;
  std::int64_t until = 0;  // ms
  ReceiverId receiver = ReceiverId::none;
  std::uint32_t slot = no_slot;
  std::uint32_t place = no_slot;  // among the deadlines, or in the session's list
  bool of_session = false;
  bool held = false;  // by a prepared transaction: it ends with that, and by nothing else
};

class LockTable {
 public:
  LockTable() : deadlines_(locks_) {}
  LockTable(const LockTable&) = delete;
  LockTable& operator=(const LockTable&) = delete;

  std::uint32_t add(const Lock& lock);
  void remove(std::uint32_t index);
  void renew(std::uint32_t index, std::int64_t until);
  // A held lock has no end of its own. It is not of a session, or has just left its list.
  void hold(std::uint32_t index);
  void let_go(std::uint32_t index, bool to_session);
  // no_slot when nobody holds that token.
  [[nodiscard]] std::uint32_t find(const LockToken& token) const;
  [[nodiscard]] Lock& operator[](std::uint32_t index) { return locks_[index]; }
  [[nodiscard]] const Lock& operator[](std::uint32_t index) const { return locks_[index]; }

  // Places that are free are among them; they have no slot.
  [[nodiscard]] const std::vector<Lock>& all() const { return locks_; }

  [[nodiscard]] std::size_t size() const { return by_token_.size(); }
  // The plain lock that ends first; never (max) when there is none.
  [[nodiscard]] std::int64_t first_due() const;
  [[nodiscard]] std::uint32_t first() const { return deadlines_.first(); }

 private:
  std::vector<Lock> locks_;
  std::vector<std::uint32_t> free_;
  boost::unordered_flat_map<LockToken, std::uint32_t, std::hash<LockToken>> by_token_;
  DeadlineQueue<std::vector<Lock>, &Lock::until, &Lock::place> deadlines_;
};

}  // namespace omnibus::broker
