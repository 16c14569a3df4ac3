// Moves the clock of messages and waits until everybody has acted on it. One per shard; answers come there.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "node/clock.hpp"
#include "node/life.hpp"
#include "node/roads.hpp"
#include "rest/tool_service.hpp"

namespace omnibus::node {

class TestClock final : public rest::ClockPort {
 public:
  // All outlive this.
  TestClock(Clock& clock, const Roads& roads, Shard& home) : clock_(clock), roads_(roads), home_(home) {}

  [[nodiscard]] Instant now() const override { return clock_.now(); }
  [[nodiscard]] std::chrono::milliseconds ahead() const override { return clock_.ahead(); }
  void advance(std::chrono::milliseconds by, std::move_only_function<void()> done) override;

 private:
  Clock& clock_;
  const Roads& roads_;
  Shard& home_;
  const Life life_ = begin_life();
  // What is given to us may only be let go at home: it holds the right to answer a client of this shard.
  std::unordered_map<std::uint64_t, std::move_only_function<void()>> waiting_;
  std::uint64_t last_ = 0;
};

}  // namespace omnibus::node
