// Values in numbered places that are used again.
//
// A place keeps its number from add() to take(); the next add() takes the place that was left last, so the
// table grows no further than the most values it held at once. Not for values that outlive its growth by
// reference: adding may move them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.hpp"

namespace omnibus {

template <class T>
class SlotTable {
 public:
  std::uint32_t add(T value) {
    ++used_;
    if (free_.empty()) {
      values_.push_back(std::move(value));
      return static_cast<std::uint32_t>(values_.size() - 1);
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    values_[place] = std::move(value);
    return place;
  }
  // Empties a place that add() gave out. Nobody remembers here which ones are in use: taking twice is the
  // caller's mistake.
  T take(std::uint32_t place) {
    check(place < values_.size() && used_ > 0, "a place that was given out");
    --used_;
    free_.push_back(place);
    return std::exchange(values_[place], T{});
  }
  [[nodiscard]] bool knows(std::uint64_t place) const { return place < values_.size(); }
  [[nodiscard]] T& operator[](std::uint32_t place) { return values_[place]; }
  [[nodiscard]] const T& operator[](std::uint32_t place) const { return values_[place]; }
  [[nodiscard]] std::size_t size() const { return used_; }
  [[nodiscard]] std::size_t capacity() const { return values_.size(); }

  // Every place, the empty ones too: they hold a T{}.
  [[nodiscard]] auto begin() { return values_.begin(); }
  [[nodiscard]] auto end() { return values_.end(); }

 private:
  std::vector<T> values_;
  std::vector<std::uint32_t> free_;
  std::size_t used_ = 0;
};

}  // namespace omnibus
