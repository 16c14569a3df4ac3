#include "amqp/frames/output_queue.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace omnibus::amqp {
namespace {

// An idle connection writes a heartbeat now and then and should not hold a big chunk for it; a busy one
// doubles its way up.
constexpr std::uint32_t first_chunk_bytes = 512;
constexpr std::uint32_t chunk_bytes_max = 64 * 1024;

}  // namespace

void OutputQueue::next_chunk(std::size_t bytes_min) {
  next_capacity_ = std::clamp(next_capacity_ * 2, first_chunk_bytes, chunk_bytes_max);
  chunk_ = BlockRef{Block::make(std::max(next_capacity_, static_cast<std::uint32_t>(bytes_min)))};
  used_ = 0;
}

std::size_t OutputQueue::gather(std::span<iovec> out) const {
  std::size_t filled = 0;
  std::uint32_t skip = consumed_;
  for (const Slice& run : runs_) {
    if (filled == out.size()) break;
    const Bytes bytes = run.bytes().subspan(skip);
    skip = 0;
    // writev() takes mutable pointers but only reads them.
    out[filled++] = iovec{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  }
  return filled;
}

void OutputQueue::consume(std::size_t bytes) {
  check(bytes <= size_, "no more is consumed than was queued");
  size_ -= bytes;
  while (bytes > 0) {
    const std::size_t left = runs_.front().size - consumed_;
    if (bytes < left) {
      consumed_ += static_cast<std::uint32_t>(bytes);
      return;
    }
    bytes -= left;
    consumed_ = 0;
    runs_.pop_front();
  }
  if (size_ == 0) {
    // Everything is on the wire: start the next burst small again.
    chunk_ = BlockRef{};
    used_ = 0;
    next_capacity_ /= 2;
    std::deque<Slice>{}.swap(runs_);
  }
}

}  // namespace omnibus::amqp
