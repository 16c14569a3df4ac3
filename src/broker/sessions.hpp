// Message sessions: ordered groups that one link at a time holds [contract 3.5, 6.9, 6.10].
//
// Knows which sessions are free and have something to deliver, oldest message first, and which locks end
// when. A session exists while it has messages or state or a holder.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "broker/ids.hpp"
#include "broker/lane.hpp"

namespace omnibus::broker {

struct MessageSession {
  explicit MessageSession(const EntryTable& entries) : lane(entries) {}
  std::string id;
  Lane lane;  // all its messages in the active sub-queue
  std::optional<std::string> state;
  Instant state_set{};
  ReceiverId holder = ReceiverId::none;
  ConnectionId connection = ConnectionId::none;
  Instant locked_until{};
  std::vector<std::uint32_t> held;  // locks on its messages
  SequenceNumber offered = 0;       // its key among the free ones; 0: not there
};

class Sessions {
 public:
  explicit Sessions(const EntryTable& entries) : entries_(entries) {}

  [[nodiscard]] std::uint32_t find(std::string_view id) const;  // no_slot: none
  std::uint32_t find_or_add(std::string_view id);
  [[nodiscard]] MessageSession& operator[](std::uint32_t index) { return *all_[index]; }
  [[nodiscard]] const MessageSession& operator[](std::uint32_t index) const { return *all_[index]; }
  [[nodiscard]] bool exists(std::uint32_t index) const { return index < all_.size() && all_[index]; }
  [[nodiscard]] std::size_t size() const { return by_id_.size(); }
  [[nodiscard]] const std::map<std::string, std::uint32_t, std::less<>>& by_id() const { return by_id_; }

  // After anything changed that matters to who may take the session: its available messages or its holder.
  // Drops a session that has nothing left; its index is then void.
  void refresh(std::uint32_t index);
  // The free session whose oldest available message is the oldest; no_slot: none.
  [[nodiscard]] std::uint32_t next_free() const { return free_.empty() ? no_slot : free_.begin()->second; }

  void lock(std::uint32_t index, ReceiverId holder, ConnectionId connection, Instant until);
  void renew(std::uint32_t index, Instant until);
  void unlock(std::uint32_t index);
  [[nodiscard]] Instant first_due() const { return ends_.empty() ? never : ends_.begin()->first; }
  [[nodiscard]] std::uint32_t first_to_end() const { return ends_.begin()->second; }

 private:
  const EntryTable& entries_;
  std::vector<std::unique_ptr<MessageSession>> all_;
  std::vector<std::uint32_t> gone_;
  std::map<std::string, std::uint32_t, std::less<>> by_id_;
  std::set<std::pair<SequenceNumber, std::uint32_t>> free_;
  std::set<std::pair<Instant, std::uint32_t>> ends_;
};

}  // namespace omnibus::broker
