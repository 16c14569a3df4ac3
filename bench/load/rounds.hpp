// One figure of every round: what is told is the median, and how far the rounds lie apart.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace omnibus::bench {

class Rounds {
 public:
  void add(double value) { values_.push_back(value); }
  [[nodiscard]] bool empty() const { return values_.empty(); }
  [[nodiscard]] std::size_t size() const { return values_.size(); }
  // "0.42 (0.31 to 0.55)"
  [[nodiscard]] std::string text(int digits) const {
    if (values_.empty()) return "not measured";
    auto sorted = values_;
    std::ranges::sort(sorted);
    return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", sorted[sorted.size() / 2], digits, sorted.front(),
                       digits, sorted.back(), digits);
  }

 private:
  std::vector<double> values_;
};

}  // namespace omnibus::bench
