#include "broker/duplicate_history.hpp"

#include <algorithm>

namespace omnibus::broker {
namespace {

std::int64_t ms(Instant at) { return at.time_since_epoch().count(); }

}  // namespace

const DuplicateHistory::Item* DuplicateHistory::Bucket::find(const MessageIdHash& id) const {
  if (table.empty()) return nullptr;
  const std::size_t mask = table.size() - 1;
  for (std::size_t at = id.low & mask; table[at].accepted != empty; at = (at + 1) & mask)
    if (table[at].id == id) return &table[at];
  return nullptr;
}

bool DuplicateHistory::Bucket::add(const MessageIdHash& id, std::int64_t accepted) {
  if ((used + 1) * 4 > table.size() * 3) {
    std::vector<Item> larger(std::max<std::size_t>(16, table.size() * 2));
    std::swap(table, larger);
    for (const auto& item : larger) {
      if (item.accepted == empty) continue;
      std::size_t at = item.id.low & (table.size() - 1);
      while (table[at].accepted != empty) at = (at + 1) & (table.size() - 1);
      table[at] = item;
    }
  }
  newest = std::max(newest, accepted);
  std::size_t at = id.low & (table.size() - 1);
  for (; table[at].accepted != empty; at = (at + 1) & (table.size() - 1)) {
    if (table[at].id == id) {
      table[at].accepted = std::max(table[at].accepted, accepted);
      return false;
    }
  }
  table[at] = {id, accepted};
  ++used;
  return true;
}

bool DuplicateHistory::seen(const MessageIdHash& id, Instant now, std::chrono::milliseconds window) const {
  for (auto bucket = buckets_.rbegin(); bucket != buckets_.rend(); ++bucket) {
    const Item* item = bucket->find(id);
    if (item && item->accepted > ms(now) - window.count()) return true;
  }
  return false;
}

void DuplicateHistory::add(const MessageIdHash& id, Instant accepted, std::chrono::milliseconds window) {
  const std::int64_t slice = std::max<std::int64_t>(1, window.count() / buckets_per_window);
  const bool is_over = buckets_.empty() || ms(accepted) >= buckets_.back().first + slice ||
                       buckets_.back().used >= std::max<std::size_t>(1, ids_max_ / 4);
  // One that is told of twice in a row stays where it is.
  if (buckets_.empty() || (is_over && !buckets_.back().find(id))) {
    auto& bucket = buckets_.emplace_back();
    bucket.number = next_number_++;
    bucket.first = bucket.newest = ms(accepted);
  }
  if (buckets_.back().add(id, ms(accepted))) ++size_;
  while (size_ > ids_max_ && buckets_.size() > 1) {
    if (buckets_.front().newest > ms(accepted) - window.count()) gone_early_ += buckets_.front().used;
    size_ -= buckets_.front().used;
    buckets_.pop_front();
  }
}

void DuplicateHistory::forget(Instant now, std::chrono::milliseconds window) {
  while (!buckets_.empty() && buckets_.front().newest <= ms(now) - window.count()) {
    size_ -= buckets_.front().used;
    buckets_.pop_front();
  }
}

std::size_t DuplicateHistory::bytes() const {
  std::size_t bytes = 0;
  for (const Bucket& bucket : buckets_) bytes += sizeof bucket + bucket.table.size() * sizeof(Item);
  return bytes;
}

}  // namespace omnibus::broker
