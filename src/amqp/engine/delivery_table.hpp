// The unsettled deliveries of one direction of a session, found by delivery-id.
//
// Ids arrive in sequence, so recent ones live in a ring indexed by id. A few that stay unsettled for
// long would make the ring as long as all that came after them; when it gets sparse they move to a map,
// and the ring starts over. Memory is thus proportional to what is unsettled, never to what has passed.
//
// An id is in the ring or in the map, never in both; the ring's span may cover ids that are in the map.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/check.hpp"

namespace omnibus::amqp {

// Entry is a small copyable struct; one whose `link` is null counts as absent.
template <class Entry>
class DeliveryTable {
 public:
  [[nodiscard]] std::size_t size() const { return live_ + old_.size(); }

  // Ids must ascend (in serial arithmetic); gaps are deliveries that were settled at once.
  void add(std::uint32_t id, const Entry& entry) {
    std::uint32_t index = id - base_;
    if (span_ == 0 || (live_ == 0 && !visiting_)) {
      base_ = id;
      head_ = 0;
      span_ = 0;
      index = 0;
    } else if (index >= sparse_span_min && index / 4 >= live_) {
      if (visiting_) {
        // The ring keeps its base while somebody walks it, so the newcomer goes straight to the map.
        old_.emplace(id, entry);
        return;
      }
      spill();
      base_ = id;
      index = 0;
    }
    check(index >= span_ && index < 0x8000'0000u, "delivery ids ascend");
    while (index >= ring_.size()) grow();
    while (span_ <= index) at(span_++) = Entry{};
    at(index) = entry;
    ++live_;
  }

  [[nodiscard]] Entry* find(std::uint32_t id) {
    const std::uint32_t index = id - base_;
    if (index < span_ && at(index).link) return &at(index);
    if (old_.empty()) return nullptr;
    const auto found = old_.find(id);
    return found == old_.end() ? nullptr : &found->second;
  }

  void erase(std::uint32_t id) {
    const std::uint32_t index = id - base_;
    if (index < span_ && at(index).link) {
      at(index) = Entry{};
      --live_;
      trim();
    } else if (!old_.empty()) {
      old_.erase(id);
    }
  }

  // Calls visit(id, entry) for each present id of first..last (serial order), however wide the range is.
  // visit returns whether to erase the entry, and may add and erase entries itself: it runs application
  // code, which answers one message by sending the next.
  template <class Visit>
  void for_range(std::uint32_t first, std::uint32_t last, Visit visit) {
    if (static_cast<std::int32_t>(last - first) < 0) return;
    // What the visitor adds is not visited: the range speaks of deliveries the peer knew.
    const std::uint32_t span = span_;
    visiting_ = true;
    if (!old_.empty()) {
      std::vector<std::uint32_t> ids;
      if (first <= last) {
        collect_old(first, last, ids);
      } else {
        collect_old(first, UINT32_MAX, ids);
        collect_old(0, last, ids);
      }
      for (const std::uint32_t id : ids) {
        const auto row = old_.find(id);
        if (row != old_.end() && visit(id, row->second)) old_.erase(id);
      }
    }
    if (span > 0) visit_ring(first, last, span, visit);
    visiting_ = false;
    trim();
  }

  template <class Predicate>
  void erase_if(Predicate predicate) {
    std::erase_if(old_, [&](const auto& row) { return predicate(row.second); });
    for (std::uint32_t index = 0; index < span_; ++index) {
      if (at(index).link && predicate(at(index))) {
        at(index) = Entry{};
        --live_;
      }
    }
    trim();
  }

 private:
  static constexpr std::uint32_t sparse_span_min = 64;
  static constexpr std::size_t idle_ring_max = 256;

  Entry& at(std::uint32_t index) { return ring_[(head_ + index) & (ring_.size() - 1)]; }

  template <class Visit>
  void visit_ring(std::uint32_t first, std::uint32_t last, std::uint32_t span, Visit& visit) {
    // Clip to the ring, so that a range of four billion ids costs no more than the ring.
    std::uint32_t from = first - base_;
    std::uint32_t to = last - base_;
    if (static_cast<std::int32_t>(from) < 0) from = 0;
    if (static_cast<std::int32_t>(to) < 0) return;
    if (to >= span) to = span - 1;
    for (std::uint32_t index = from; index <= to; ++index) {
      if (!at(index).link || !visit(base_ + index, at(index))) continue;
      if (!at(index).link) continue;  // the visitor erased it already
      at(index) = Entry{};
      --live_;
    }
  }

  void grow() {
    std::vector<Entry> bigger(ring_.empty() ? 8 : ring_.size() * 2);
    for (std::uint32_t index = 0; index < span_; ++index) bigger[index] = at(index);
    ring_.swap(bigger);
    head_ = 0;
  }
  // Drops settled entries at the front.
  void trim() {
    if (visiting_) return;
    if (live_ == 0) {
      span_ = 0;
      if (ring_.size() > idle_ring_max) std::vector<Entry>{}.swap(ring_);
      return;
    }
    while (!at(0).link) {
      head_ = (head_ + 1) & static_cast<std::uint32_t>(ring_.size() - 1);
      ++base_;
      --span_;
    }
  }
  void spill() {
    for (std::uint32_t index = 0; index < span_; ++index)
      if (at(index).link) old_.emplace(base_ + index, at(index));
    live_ = 0;
    span_ = 0;
    head_ = 0;
  }
  void collect_old(std::uint32_t first, std::uint32_t last, std::vector<std::uint32_t>& ids) const {
    for (auto row = old_.lower_bound(first); row != old_.end() && row->first <= last; ++row)
      ids.push_back(row->first);
  }

  std::vector<Entry> ring_;  // a power of two long
  std::uint32_t head_ = 0;
  std::uint32_t base_ = 0;
  std::uint32_t span_ = 0;
  std::size_t live_ = 0;
  bool visiting_ = false;
  std::map<std::uint32_t, Entry> old_;
};

}  // namespace omnibus::amqp
