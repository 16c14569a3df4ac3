// What is due first, of things that mostly become due in the order in which they came.
//
// Messages of one time to live and locks of one duration do: they stand in a line, where joining, leaving and
// being first cost the same however many there are. A thing that is due before the last of the line waits in
// a heap. Who leaves the line leaves a gap; gaps at its ends go at once, those between when there are more of
// them than things and the room is needed. `Table`, `Due` and `Place` are the heap's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "broker/deadline_heap.hpp"

namespace omnibus::broker {

template <class Table, auto Due, auto Place>
class DeadlineQueue {
 public:
  explicit DeadlineQueue(Table& table) : table_(table), heap_(table) {}

  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t size() const { return standing_ + heap_.size(); }
  [[nodiscard]] std::uint32_t first() const { return line_is_first() ? at(0) : heap_.first(); }
  [[nodiscard]] std::int64_t first_due() const { return line_is_first() ? due(at(0)) : heap_.first_due(); }
  [[nodiscard]] std::size_t bytes() const { return line_.capacity() * sizeof(std::uint32_t) + heap_.bytes(); }

  void add(std::uint32_t index) {
    if (standing_ > 0 && due(index) < last_due_) return heap_.add(index);
    if (used_ == line_.size()) make_room();
    last_due_ = due(index);
    join(index);
  }
  void remove(std::uint32_t index) {
    const std::uint32_t place = table_[index].*Place;
    if ((place & in_line) == 0) return heap_.remove(index);
    at((place & ~in_line) - front_) = gap;
    --standing_;
    while (used_ > 0 && at(used_ - 1) == gap) --used_;
    while (used_ > 0 && at(0) == gap) {
      ++front_;
      --used_;
    }
  }
  // After the thing's time has changed.
  void moved_in_time(std::uint32_t index) {
    if ((table_[index].*Place & in_line) == 0) return heap_.moved_in_time(index);
    remove(index);
    add(index);
  }

 private:
  // A place in the line is its number since the line began, cut to what is left beside this bit.
  static constexpr std::uint32_t in_line = 0x8000'0000;
  static constexpr std::uint32_t gap = 0xffff'ffff;
  static constexpr std::size_t room_min = 16;

  [[nodiscard]] std::int64_t due(std::uint32_t index) const { return table_[index].*Due; }
  [[nodiscard]] bool line_is_first() const {
    return standing_ > 0 && (heap_.empty() || due(at(0)) <= heap_.first_due());
  }
  // The room is a power of two, so that numbers may wrap.
  [[nodiscard]] std::uint32_t& at(std::uint32_t from_front) {
    return line_[(front_ + from_front) & (line_.size() - 1)];
  }
  [[nodiscard]] std::uint32_t at(std::uint32_t from_front) const {
    return line_[(front_ + from_front) & (line_.size() - 1)];
  }
  void join(std::uint32_t index) {
    table_[index].*Place = ((front_ + used_) & ~in_line) | in_line;
    at(used_++) = index;
    ++standing_;
  }
  void make_room() {
    const bool is_sparse = standing_ < used_ / 2;
    std::vector<std::uint32_t> line(is_sparse ? line_.size() : std::max(room_min, line_.size() * 2), gap);
    line.swap(line_);
    const std::uint32_t first = front_;
    const std::uint32_t count = used_;
    front_ = used_ = 0;
    standing_ = 0;
    for (std::uint32_t i = 0; i < count; ++i)
      if (const std::uint32_t index = line[(first + i) & (line.size() - 1)]; index != gap) join(index);
  }

  Table& table_;
  DeadlineHeap<Table, Due, Place> heap_;
  std::vector<std::uint32_t> line_;
  std::uint32_t front_ = 0;     // number of the first
  std::uint32_t used_ = 0;      // gaps included
  std::uint32_t standing_ = 0;  // without them
  std::int64_t last_due_ = 0;   // of who joined last
};

}  // namespace omnibus::broker
