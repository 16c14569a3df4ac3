#include "broker/lane.hpp"

#include <algorithm>
#include <bit>

#include "base/check.hpp"

namespace omnibus::broker {
namespace {

constexpr std::uint64_t bit(std::size_t index) { return std::uint64_t{1} << index; }
constexpr std::uint64_t below(std::size_t index) { return index >= 64 ? ~std::uint64_t{0} : bit(index) - 1; }

}  // namespace

Lane::Chunks::iterator Lane::chunk_of(SequenceNumber sequence) {
  auto next = chunks_.upper_bound(sequence);
  return next == chunks_.begin() ? chunks_.end() : std::prev(next);
}

std::size_t Lane::index_in(const Chunk& chunk, SequenceNumber sequence) const {
  const auto& slots = chunk.slots;
  if (slots.empty() || sequence <= number(slots.front())) return 0;
  if (sequence > number(slots.back())) return slots.size();
  // Numbers grow and have few gaps: both ends tell how far from them it is at most, and without a gap that is
  // its place. Entries between them are cold, each look at one is a miss of the cache.
  const std::uint64_t end = slots.size() - 1;
  const auto high = std::min<std::uint64_t>(end, sequence - number(slots.front()));
  const auto low = end - std::min<std::uint64_t>(end, number(slots.back()) - sequence);
  const auto at = std::lower_bound(
      slots.begin() + static_cast<std::ptrdiff_t>(low), slots.begin() + static_cast<std::ptrdiff_t>(high),
      sequence, [this](std::uint32_t slot, SequenceNumber wanted) { return number(slot) < wanted; });
  return static_cast<std::size_t>(at - slots.begin());
}

void Lane::note_ready(Chunks::iterator chunk, bool was_ready) {
  const bool is_ready = chunk->second.available != 0;
  if (is_ready == was_ready) return;
  if (is_ready)
    ready_.emplace(chunk->first, &chunk->second);
  else
    ready_.erase(chunk->first);
}

void Lane::insert(std::uint32_t slot) {
  const SequenceNumber sequence = number(slot);
  auto chunk = chunks_.end();
  if (!chunks_.empty() && sequence >= std::prev(chunks_.end())->first) {
    chunk = std::prev(chunks_.end());  // nearly always: numbers grow
    if (chunk->second.slots.size() == chunk_slots_max && number(chunk->second.slots.back()) < sequence)
      chunk = chunks_.end();
  } else {
    chunk = chunk_of(sequence);
  }
  if (chunk == chunks_.end()) {
    // Behind a full last chunk, before all chunks, or into an empty lane.
    chunks_[sequence].slots.push_back(slot);
    return;
  }
  if (chunk->second.slots.size() == chunk_slots_max) {
    auto& full = chunk->second;
    const std::size_t half = chunk_slots_max / 2;
    auto upper = chunks_.emplace(number(full.slots[half]), Chunk{}).first;
    upper->second.slots.assign(full.slots.begin() + half, full.slots.end());
    upper->second.available = full.available >> half;
    const bool was_ready = full.available != 0;
    full.slots.resize(half);
    full.available &= below(half);
    note_ready(chunk, was_ready);
    note_ready(upper, false);
    if (sequence >= upper->first) chunk = upper;
  }
  auto& into = chunk->second;
  const std::size_t index = index_in(into, sequence);
  check(index == into.slots.size() || number(into.slots[index]) != sequence, "a number is in a lane once");
  into.slots.insert(into.slots.begin() + static_cast<std::ptrdiff_t>(index), slot);
  into.available = (into.available & below(index)) | ((into.available & ~below(index)) << 1);
}

void Lane::remove(std::uint32_t slot) {
  auto chunk = chunk_of(number(slot));
  check(chunk != chunks_.end(), "a message is in its lane");
  auto& from = chunk->second;
  const std::size_t index = index_in(from, number(slot));
  check(index < from.slots.size() && from.slots[index] == slot, "a message is in its lane");
  const bool was_ready = from.available != 0;
  if ((from.available & bit(index)) != 0) --available_;
  from.slots.erase(from.slots.begin() + static_cast<std::ptrdiff_t>(index));
  from.available = (from.available & below(index)) | ((from.available & ~below(index + 1)) >> 1);
  note_ready(chunk, was_ready);
  if (from.slots.empty()) {
    chunks_.erase(chunk);
    return;
  }
  // Thin neighbours join, so that a few messages left behind of many do not keep a chunk each.
  const auto next = std::next(chunk);
  if (next == chunks_.end() || from.slots.size() + next->second.slots.size() > chunk_slots_max / 2) return;
  const bool ready = from.available != 0;
  from.available |= next->second.available << from.slots.size();
  from.slots.insert(from.slots.end(), next->second.slots.begin(), next->second.slots.end());
  if (next->second.available != 0) ready_.erase(next->first);
  chunks_.erase(next);
  note_ready(chunk, ready);
}

void Lane::set_available(std::uint32_t slot, bool available) {
  auto chunk = chunk_of(number(slot));
  check(chunk != chunks_.end(), "a message is in its lane");
  const std::size_t index = index_in(chunk->second, number(slot));
  check(index < chunk->second.slots.size() && chunk->second.slots[index] == slot, "a message is in its lane");
  const bool was_ready = chunk->second.available != 0;
  if (((chunk->second.available & bit(index)) != 0) == available) return;
  chunk->second.available ^= bit(index);
  available ? ++available_ : --available_;
  note_ready(chunk, was_ready);
}

std::uint32_t Lane::first_available() const {
  if (ready_.empty()) return no_slot;
  const Chunk& chunk = *ready_.begin()->second;
  // Who takes this one takes the next ones soon.
  const std::uint64_t next = chunk.available & (chunk.available - 1);
  const std::uint64_t after_next = next & (next - 1);
  if (after_next != 0)
    entries_->prefetch(chunk.slots[static_cast<std::size_t>(std::countr_zero(after_next))]);
  return chunk.slots[static_cast<std::size_t>(std::countr_zero(chunk.available))];
}

std::uint32_t Lane::at_or_after(SequenceNumber sequence) const {
  auto chunk = chunks_.upper_bound(sequence);
  if (chunk != chunks_.begin()) {
    const auto& before = std::prev(chunk)->second;
    const std::size_t index = index_in(before, sequence);
    if (index < before.slots.size()) return before.slots[index];
  }
  return chunk == chunks_.end() ? no_slot : chunk->second.slots.front();
}

std::uint32_t Lane::available_at_or_after(SequenceNumber sequence) const {
  auto ready = ready_.upper_bound(sequence);
  if (ready != ready_.begin()) {
    const Chunk& before = *std::prev(ready)->second;
    const std::uint64_t rest = before.available & ~below(index_in(before, sequence));
    if (rest != 0) return before.slots[static_cast<std::size_t>(std::countr_zero(rest))];
  }
  if (ready == ready_.end()) return no_slot;
  return ready->second->slots[static_cast<std::size_t>(std::countr_zero(ready->second->available))];
}

std::uint32_t Lane::find(SequenceNumber sequence) const {
  const std::uint32_t slot = at_or_after(sequence);
  return slot != no_slot && number(slot) == sequence ? slot : no_slot;
}

std::size_t Lane::bytes() const {
  std::size_t total = ready_.size() * (48 + sizeof(void*) * 2);
  for (const auto& [first, chunk] : chunks_) total += 48 + sizeof(Chunk) + chunk.slots.capacity() * 4 + 16;
  return total;
}

}  // namespace omnibus::broker
