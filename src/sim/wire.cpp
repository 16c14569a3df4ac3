#include "sim/wire.hpp"

#include <algorithm>

namespace omnibus::sim {

void Wire::send(Side from, std::string bytes) {
  if (is_cut_ || end_of(from).is_gone || bytes.empty()) return;
  if (!world_.one_in(settings_.splits)) return push(other(from), {std::move(bytes)});
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const std::size_t part = world_.between(1, rest.size());
    push(other(from), {std::string{rest.substr(0, part)}});
    rest.remove_prefix(part);
  }
}

void Wire::close(Side from) {
  if (is_cut_ || end_of(from).is_gone) return;
  end_of(from).is_gone = true;
  push(other(from), {{}, true});
}

void Wire::vanish(Side from, Nanos later) {
  end_of(from).is_gone = true;
  is_cut_ = true;
  End& to = end_of(other(from));
  to.coming.clear();
  // The task holds the wire: nobody else may any more.
  const auto self = shared_from_this();
  const Life life = begin_life();
  world_.after(later, life, [self, life, side = other(from)] { self->lose(side); });
}

void Wire::cut(Nanos longest) {
  if (is_cut_) return;
  is_cut_ = true;
  for (End& end : ends_)
    if (!end.is_gone) end.end->on_cut();
  const auto self = shared_from_this();
  for (const Side side : {Side::client, Side::broker}) {
    End& end = end_of(side);
    end.coming.resize(world_.random().below(end.coming.size() + 1));
    const Tick heard = std::max(end.last, world_.tick() + world_.between(Nanos{0}, longest));
    const Life life = begin_life();
    world_.at(heard, life, [self, life, side] { self->lose(side); });
  }
}

void Wire::stall(Nanos wait) {
  for (End& end : ends_) end.stalled = std::max(end.stalled, world_.tick() + wait);
}

void Wire::push(Side to, Piece piece) {
  End& end = end_of(to);
  end.coming.push_back(std::move(piece));
  const Tick due = world_.tick() + world_.between(settings_.fastest, settings_.slowest);
  end.last = std::max({end.last, end.stalled, due});
  const auto self = shared_from_this();
  const Life life = begin_life();
  world_.at(end.last, life, [self, life, to] { self->arrive(to); });
}

void Wire::arrive(Side to) {
  End& end = end_of(to);
  if (end.coming.empty() || end.is_gone) return;
  const Piece piece = std::move(end.coming.front());
  end.coming.pop_front();
  if (piece.is_end) return lose(to);
  world_.trace(piece.bytes);
  end.end->on_bytes(as_bytes(piece.bytes));
}

void Wire::lose(Side side) {
  End& end = end_of(side);
  if (end.is_gone) return;
  end.is_gone = true;
  is_cut_ = true;
  end.end->on_lost();
}

}  // namespace omnibus::sim
