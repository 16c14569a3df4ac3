// The unsettled deliveries of one direction of a session, found by delivery-id.
//
// Ids arrive in sequence, so recent ones live in a ring indexed by id. A few that stay unsettled for
// long would make the ring as long as all that came after them; when it gets sparse they move to a map,
// and the ring starts over. Memory is thus proportional to what is unsettled, never to what has passed.
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
    if (visiting_) {
      // The ring keeps its base while somebody walks it.
    } else if (live_ == 0) {
      base_ = id;
      head_ = 0;
      span_ = 0;
    } else if (id - base_ >= sparse_span_min && (id - base_) / 4 >= live_) {
      spill();
      base_ = id;
    }
    const std::uint32_t index = id - base_;
    check(index >= span_ && index < 0x8000'0000u, "delivery ids ascend");
    while (index >= ring_.size()) grow();
    while (span_ <= index) at(span_++) = Entry{};
    at(index) = entry;
    ++live_;
  }

  [[nodiscard]] Entry* find(std::uint32_t id) {
    const std::uint32_t index = id - base_;
    if (index < span_) return at(index).link ? &at(index) : nullptr;
    if (old_.empty()) return nullptr;
    const auto found = old_.find(id);
    return found == old_.end() ? nullptr : &found->second;
  }

  void erase(std::uint32_t id) {
    const std::uint32_t index = id - base_;
    if (index < span_) {
      if (!at(index).link) return;
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
    if (!old_.empty()) {
      if (first <= last) {
        visit_old(first, last, visit);
      } else {
        visit_old(first, UINT32_MAX, visit);
        visit_old(0, last, visit);
      }
    }
    if (span_ == 0) return;
    // Clip to the ring, so that a range of four billion ids costs no more than the ring.
    std::uint32_t from = first - base_;
    std::uint32_t to = last - base_;
    if (static_cast<std::int32_t>(from) < 0) from = 0;
    if (static_cast<std::int32_t>(to) < 0) return;
    if (to >= span_) to = span_ - 1;
    visiting_ = true;
    for (std::uint32_t index = from; index <= to; ++index) {
      if (!at(index).link || !visit(base_ + index, at(index))) continue;
      if (!at(index).link) continue;  // the visitor erased it already
      at(index) = Entry{};
      --live_;
    }
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
  template <class Visit>
  void visit_old(std::uint32_t first, std::uint32_t last, Visit& visit) {
    std::vector<std::uint32_t> ids;
    for (auto row = old_.lower_bound(first); row != old_.end() && row->first <= last; ++row)
      ids.push_back(row->first);
    for (const std::uint32_t id : ids) {
      const auto row = old_.find(id);
      if (row != old_.end() && visit(id, row->second)) old_.erase(id);
    }
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
