// Which message-ids were accepted within the window [contract 9.4].
//
// Ids are kept as hashes in buckets of a slice of the window each; a bucket goes as a whole once its newest
// id is too old. Each id has its own time, so the window is exact. 32 to 64 bytes per id. Beyond ids_max the
// oldest bucket, a quarter of them at most, goes early: a bound on memory is kept before the full window is,
// and how many went so is counted.
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/clock.hpp"
#include "broker/message_facts.hpp"

namespace omnibus::broker {

class DuplicateHistory {
 public:
  static constexpr std::size_t ids_max_default = 32'000'000;
  static constexpr int buckets_per_window = 16;

  explicit DuplicateHistory(std::size_t ids_max = ids_max_default) : ids_max_(ids_max) {}

  // Whether `id` was accepted less than `window` before `now`.
  [[nodiscard]] bool seen(const MessageIdHash& id, Instant now, std::chrono::milliseconds window) const;
  void add(const MessageIdHash& id, Instant accepted, std::chrono::milliseconds window);
  // Lets go of what no window reaches any more.
  void forget(Instant now, std::chrono::milliseconds window);
  [[nodiscard]] std::size_t size() const { return size_; }
  // Ids that went although the window still reached them.
  [[nodiscard]] std::uint64_t gone_early() const { return gone_early_; }
  // Before the first id.
  void set_ids_max(std::size_t ids_max) { ids_max_ = ids_max; }
  // What it takes in memory, for tests.
  [[nodiscard]] std::size_t bytes() const;

  // Visits from `position` on, at most `count` ids, for a checkpoint; answers where to go on, or 0 at the
  // end. Ids added in between may or may not be visited. Forgetting in between may skip some of the same age
  // only.
  template <class Visit>
  std::uint64_t visit(std::uint64_t position, std::size_t count, Visit&& visit) const;

 private:
  struct Item {
    MessageIdHash id;
    std::int64_t accepted = empty;
  };
  static constexpr std::int64_t empty = INT64_MIN;
  static constexpr int place_bits = 26;  // of a position; a bucket holds a quarter of ids_max at most
  struct Bucket {
    std::uint64_t number = 0;  // counts up; survives the departure of older ones
    std::int64_t first = 0;
    std::int64_t newest = 0;
    std::size_t used = 0;
    std::vector<Item> table;  // open addressing, a power of two

    [[nodiscard]] const Item* find(const MessageIdHash& id) const;
    bool add(const MessageIdHash& id, std::int64_t accepted);
  };

  std::size_t ids_max_;
  std::deque<Bucket> buckets_;  // oldest first
  std::uint64_t next_number_ = 1;
  std::size_t size_ = 0;
  std::uint64_t gone_early_ = 0;
};

// A position is bucket number, size of its table (as a power of two) and place in it. A table that grew since
// is visited again from its start, for growing puts ids elsewhere: adding an id twice changes nothing.
template <class Visit>
std::uint64_t DuplicateHistory::visit(std::uint64_t position, std::size_t count, Visit&& visit) const {
  std::uint64_t number = position >> 32;
  std::size_t at = position & ((1u << place_bits) - 1);
  const std::uint64_t size_log = (position >> place_bits) & 0x3f;
  for (const auto& bucket : buckets_) {
    if (bucket.number < number) continue;
    if (bucket.number > number || static_cast<std::uint64_t>(std::bit_width(bucket.table.size())) != size_log)
      at = 0;
    number = bucket.number;
    for (; at < bucket.table.size(); ++at) {
      if (bucket.table[at].accepted == empty) continue;
      if (count-- == 0)
        return (number << 32) |
               (static_cast<std::uint64_t>(std::bit_width(bucket.table.size())) << place_bits) | at;
      visit(bucket.table[at].id, bucket.table[at].accepted);
    }
  }
  return 0;
}

}  // namespace omnibus::broker
