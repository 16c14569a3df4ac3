// How values are spread, in steps of powers of two. Plain numbers of one core; adding costs two additions.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace omnibus {

class Spread {
 public:
  // The step i counts values up to 2^i that are above 2^(i-1); the last one counts all above, too.
  static constexpr std::size_t steps = 40;

  void add(std::uint64_t value) {
    const auto step = value <= 1 ? 0 : static_cast<std::size_t>(std::bit_width(value - 1));
    ++counts_[std::min(step, steps - 1)];
    sum_ += value;
  }
  void add(const Spread& more) {
    for (std::size_t i = 0; i < steps; ++i) counts_[i] += more.counts_[i];
    sum_ += more.sum_;
  }
  // How many values are at most 2^step.
  [[nodiscard]] std::uint64_t up_to(std::size_t step) const {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i <= step; ++i) all += counts_.at(i);
    return all;
  }
  [[nodiscard]] std::uint64_t count() const { return up_to(steps - 1); }
  [[nodiscard]] std::uint64_t sum() const { return sum_; }

 private:
  std::array<std::uint64_t, steps> counts_{};
  std::uint64_t sum_ = 0;
};

}  // namespace omnibus
