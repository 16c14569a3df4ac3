// What is due first, of things that others own and that can leave at any time.
//
// A binary heap of indexes; each thing remembers its place in it, so leaving costs O(log n) and nothing stale
// stays behind. `Table` is indexed by the same numbers; `Due` and `Place` read and write one thing's fields.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace omnibus::broker {

template <class Table, auto Due, auto Place>
class DeadlineHeap {
 public:
  explicit DeadlineHeap(Table& table) : table_(table) {}

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::uint32_t first() const { return heap_.front(); }
  [[nodiscard]] std::int64_t first_due() const { return due(heap_.front()); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  [[nodiscard]] std::size_t bytes() const { return heap_.capacity() * sizeof(std::uint32_t); }

  void add(std::uint32_t index) {
    heap_.push_back(index);
    rise(heap_.size() - 1);
  }
  void remove(std::uint32_t index) {
    const std::size_t at = table_[index].*Place;
    const std::uint32_t last = heap_.back();
    heap_.pop_back();
    if (last == index) return;
    put(at, last);
    moved(at);
  }
  // After the thing's time has changed.
  void moved_in_time(std::uint32_t index) { moved(table_[index].*Place); }

 private:
  [[nodiscard]] std::int64_t due(std::uint32_t index) const { return table_[index].*Due; }
  void put(std::size_t at, std::uint32_t index) {
    heap_[at] = index;
    table_[index].*Place = static_cast<std::uint32_t>(at);
  }
  void moved(std::size_t at) {
    if (at > 0 && due(heap_[at]) < due(heap_[(at - 1) / 2]))
      rise(at);
    else
      sink(at);
  }
  void rise(std::size_t at) {
    const std::uint32_t index = heap_[at];
    for (; at > 0 && due(index) < due(heap_[(at - 1) / 2]); at = (at - 1) / 2) put(at, heap_[(at - 1) / 2]);
    put(at, index);
  }
  void sink(std::size_t at) {
    const std::uint32_t index = heap_[at];
    for (std::size_t child = at * 2 + 1; child < heap_.size(); child = at * 2 + 1) {
      if (child + 1 < heap_.size() && due(heap_[child + 1]) < due(heap_[child])) ++child;
      if (due(index) <= due(heap_[child])) break;
      put(at, heap_[child]);
      at = child;
    }
    put(at, index);
  }

  Table& table_;
  std::vector<std::uint32_t> heap_;
};

}  // namespace omnibus::broker
