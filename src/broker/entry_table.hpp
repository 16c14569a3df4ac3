// One entry per message: all that the machine remembers of it. Entries live in pages and are named by slot,
// which stays the same for the entry's life. One cache line each.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "broker/ids.hpp"

namespace omnibus::broker {

enum class EntryState : std::uint8_t {
  free,
  pending,     // stored, not durable: nobody may see it yet
  available,   // next in its turn
  locked,      // somebody holds it; `link` names the lock
  deferred,    // only by sequence number
  scheduled,   // until `due`
  forwarding,  // on its way to another entity
};
inline constexpr std::size_t entry_state_count = 7;

inline constexpr std::uint32_t no_slot = 0xffffffff;

struct Entry {
  std::int64_t sequence;
  std::uint64_t record;   // Location of the record that holds its bytes
  std::int64_t enqueued;  // ms
  std::int64_t due;       // ms: activation while scheduled, otherwise expiry; max: never
  // While scheduled the header's ttl in ms, 0 for none; later the number it was stored under, when activation
  // gave it another, or 0. Of a copy the number it had at its topic.
  std::int64_t ttl_or_origin;
  std::uint32_t offset;
  std::uint32_t size;
  std::uint32_t session;  // index of its message session, or no_slot
  std::uint32_t link;     // place among the deadlines, or the lock
  std::uint16_t delivery_count;
  std::uint16_t properties_bytes;  // of the stored application properties, capped
  EntryState state;
  SubQueue sub_queue;
  std::uint8_t hops;
  std::uint8_t flags;

  enum Flag : std::uint8_t {
    changed = 1,       // has MessageChanges
    was_deferred = 2,  // locked, and deferred again when it comes back
    stays = 4,         // in the dead-letter sub-queue for good: forwarding it failed
    is_scheduled = 8,  // `due` is its activation
    is_copy = 16,      // a topic's: its bytes lie in a record of the topic, shared with other copies
  };
  [[nodiscard]] bool has(Flag flag) const { return (flags & flag) != 0; }
  void set(Flag flag, bool on) { flags = static_cast<std::uint8_t>(on ? flags | flag : flags & ~flag); }
};
static_assert(sizeof(Entry) == 64);

class EntryTable {
 public:
  [[nodiscard]] std::uint32_t add();  // zeroed, state free
  void remove(std::uint32_t slot);
  [[nodiscard]] Entry& operator[](std::uint32_t slot) {
    return pages_[slot / page_entries]->entries[slot % page_entries];
  }
  [[nodiscard]] const Entry& operator[](std::uint32_t slot) const {
    return pages_[slot / page_entries]->entries[slot % page_entries];
  }
  // It is looked at soon. Entries that were left a while ago are cold, and messages come and go in bursts.
  void prefetch(std::uint32_t slot) const { __builtin_prefetch(&(*this)[slot], 1); }
  [[nodiscard]] std::size_t size() const { return used_; }
  [[nodiscard]] std::size_t bytes() const;

 private:
  static constexpr std::uint32_t page_entries = 512;
  struct Page {
    Entry entries[page_entries];
    std::uint16_t free[page_entries];  // the first so many, the last one is used first
    std::uint32_t free_count = page_entries;
    bool listed = false;  // in open_
  };
  std::vector<std::unique_ptr<Page>> pages_;  // null: given back
  std::vector<std::uint32_t> open_;           // pages that may have room
  std::vector<std::uint32_t> gone_;           // numbers of pages given back
  std::size_t used_ = 0;
};

}  // namespace omnibus::broker
