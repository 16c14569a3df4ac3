#include "store/payload_cache.hpp"

#include <algorithm>

#include "amqp/codec/message.hpp"

namespace omnibus::store {
namespace {

// A place in the table and in the map that finds it, which are up to half empty, and the allocator's own.
constexpr std::uint64_t entry_bytes = 256;
constexpr std::uint64_t slice_bytes = sizeof(Slice) + sizeof(std::uint32_t);
// Bytes that lie in much larger blocks are copied: they would keep the rest of the block alive.
constexpr std::uint64_t waste_factor_max = 2;
constexpr std::uint64_t waste_bytes_min = 4096;

}  // namespace

std::uint64_t PayloadCache::charge_of(const Payload& bytes) {
  std::uint64_t charged = entry_bytes;
  const Block* last = nullptr;
  for (std::size_t i = 0; i < bytes.slice_count(); ++i) {
    const Block* block = bytes.slice(i).block.get();
    // Slices of one block follow one another; a block that comes up again later is charged twice.
    if (block != last) charged += block->capacity();
    last = block;
  }
  if (bytes.slice_count() > 1) charged += bytes.slice_count() * slice_bytes;
  return charged;
}

void PayloadCache::appended(broker::Location record, std::uint32_t offset,
                            std::span<const Payload* const> messages) {
  if (messages.size() == 1) return add(record, offset, *messages[0], 1);
  Payload all;
  for (const Payload* message : messages)
    for (std::size_t i = 0; i < message->slice_count(); ++i) all.append(message->slice(i));
  add(record, offset, std::move(all), static_cast<std::uint32_t>(messages.size()));
}

void PayloadCache::read_back(broker::Location record, const Payload& body) { add(record, 0, body, 0); }

void PayloadCache::add(broker::Location record, std::uint32_t offset, Payload bytes, std::uint32_t messages) {
  std::uint64_t charged = charge_of(bytes);
  if (charged > bytes.size() * waste_factor_max + waste_bytes_min + entry_bytes) {
    std::vector<std::uint8_t> scratch;
    bytes = Payload::copy_of(bytes.contiguous(scratch));
    charged = charge_of(bytes);
  }
  if (charged > bytes_max_ || bytes.empty()) return;
  if (places_.contains(record.value)) return;
  while (bytes_ + charged > bytes_max_) drop(oldest_);
  const std::uint32_t place = kept_.add({});
  places_.emplace(record.value, place);
  Kept& kept = kept_[place];
  if (bytes.slice_count() > 1) {
    kept.starts.reserve(bytes.slice_count());
    std::uint32_t start = 0;
    for (std::size_t i = 0; i < bytes.slice_count(); ++i) {
      kept.starts.push_back(start);
      start += bytes.slice(i).size;
    }
  }
  kept.bytes = std::move(bytes);
  kept.offset = offset;
  kept.messages_left = messages;
  kept.charged = charged;
  kept.record = record.value;
  kept.older = newest_;
  if (newest_ != nobody) kept_[newest_].newer = place;
  newest_ = place;
  if (oldest_ == nobody) oldest_ = place;
  bytes_ += charged;
}

std::optional<Payload> PayloadCache::find(const broker::StoredMessage& message) {
  const auto found = places_.find(message.record.value);
  if (found == places_.end()) {
    ++misses_;
    return std::nullopt;
  }
  const Kept& kept = kept_[found->second];
  if (message.offset < kept.offset ||
      message.offset - kept.offset + std::uint64_t{message.size} > kept.bytes.size()) {
    ++misses_;
    return std::nullopt;
  }
  ++hits_;
  const std::uint32_t from = message.offset - kept.offset;
  if (from == 0 && message.size == kept.bytes.size()) return kept.bytes;
  if (kept.starts.empty()) return amqp::part_of(kept.bytes, {from, from + message.size});
  auto at = static_cast<std::size_t>(std::upper_bound(kept.starts.begin(), kept.starts.end(), from) -
                                     kept.starts.begin() - 1);
  Payload part;
  std::uint32_t skip = from - kept.starts[at];
  for (std::uint32_t left = message.size; left > 0; ++at, skip = 0) {
    const Slice& slice = kept.bytes.slice(at);
    const std::uint32_t taken = std::min(slice.size - skip, left);
    part.append({slice.block, slice.offset + skip, taken});
    left -= taken;
  }
  return part;
}

void PayloadCache::released(const broker::StoredMessage& message) {
  const auto found = places_.find(message.record.value);
  if (found == places_.end()) return;
  Kept& kept = kept_[found->second];
  const bool ends_it = message.offset + std::uint64_t{message.size} == kept.offset + kept.bytes.size();
  if (kept.messages_left == 0 ? ends_it : --kept.messages_left == 0) drop(found->second);
}

void PayloadCache::drop(std::uint32_t place) {
  const Kept kept = kept_.take(place);
  if (kept.older != nobody)
    kept_[kept.older].newer = kept.newer;
  else
    oldest_ = kept.newer;
  if (kept.newer != nobody)
    kept_[kept.newer].older = kept.older;
  else
    newest_ = kept.older;
  bytes_ -= kept.charged;
  places_.erase(kept.record);
}

void PayloadCache::clear() {
  kept_ = {};
  places_.clear();
  bytes_ = 0;
  oldest_ = newest_ = nobody;
}

}  // namespace omnibus::store
