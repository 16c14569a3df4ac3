// One simulated TCP connection: bytes arrive in order, in pieces, late, and up to some point.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>

#include "sim/world.hpp"

namespace omnibus::sim {

class WireEnd {
 public:
  virtual ~WireEnd() = default;
  virtual void on_bytes(Bytes bytes) = 0;
  // Nothing comes or goes any more. Told once, unless this end closed it.
  virtual void on_lost() = 0;
  // Nobody at this end can know it yet: from now on nothing arrives at the other. For who keeps a history.
  virtual void on_cut() {}
};

struct WireSettings {
  Nanos fastest = std::chrono::microseconds{50};
  Nanos slowest = std::chrono::milliseconds{2};
  // One piece in so many is cut into smaller ones.
  std::uint64_t splits = 8;
};

class Wire : public std::enable_shared_from_this<Wire> {
 public:
  enum class Side : std::uint8_t { client, broker };

  Wire(World& world, const WireSettings& settings) : world_(world), settings_(settings) {}
  void join(Side side, WireEnd& end) { end_of(side).end = &end; }

  // From that side to the other.
  void send(Side from, std::string bytes);
  // That side is done: the other hears so after what is on its way.
  void close(Side from);
  // That side is gone without a word: the other hears so after `later`, and none of what is on its way.
  void vanish(Side from, Nanos later);
  // It breaks: some of what is on its way arrives, and each side hears of it within `longest`.
  void cut(Nanos longest);
  // What is sent to either side from now on arrives `wait` from now at the earliest.
  void stall(Nanos wait);

 private:
  struct Piece {
    std::string bytes;
    bool is_end = false;
  };
  struct End {
    WireEnd* end = nullptr;
    std::deque<Piece> coming;
    Tick last{};
    Tick stalled{};
    bool is_gone = false;  // hears nothing any more
  };
  End& end_of(Side side) { return ends_.at(static_cast<std::size_t>(side)); }
  static Side other(Side side) { return side == Side::client ? Side::broker : Side::client; }
  void push(Side to, Piece piece);
  void arrive(Side to);
  void lose(Side side);

  World& world_;
  const WireSettings& settings_;
  std::array<End, 2> ends_{};
  bool is_cut_ = false;
};

}  // namespace omnibus::sim
