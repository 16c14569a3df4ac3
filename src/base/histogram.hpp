// How often each duration was seen, to about 1.5 %: 64 steps per power of two of nanoseconds.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <vector>

namespace omnibus {

class Histogram {
 public:
  void add(std::chrono::nanoseconds value) {
    ++counts_[place(static_cast<std::uint64_t>(std::max<std::int64_t>(value.count(), 0)))];
    ++total_;
  }
  void add(const Histogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    total_ += other.total_;
  }
  [[nodiscard]] std::uint64_t total() const { return total_; }
  // The value that `share` of all are not above, in milliseconds.
  [[nodiscard]] double percentile(double share) const {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(total_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > wanted || (seen == total_ && total_ > 0)) return static_cast<double>(upper(i)) / 1e6;
    }
    return 0;
  }

 private:
  static constexpr std::uint64_t steps = 64;
  static std::size_t place(std::uint64_t v) {
    if (v < steps) return v;
    const auto shift = static_cast<std::uint64_t>(std::bit_width(v)) - 7;
    return static_cast<std::size_t>((shift + 1) * steps + ((v >> shift) - steps));
  }
  static std::uint64_t upper(std::size_t i) {
    if (i < steps) return i;
    const std::uint64_t shift = i / steps - 1;
    return ((i % steps + steps + 1) << shift) - 1;
  }
  std::vector<std::uint64_t> counts_ = std::vector<std::uint64_t>(60 * steps);
  std::uint64_t total_ = 0;
};

}  // namespace omnibus
