// What a connection has to write: a queue of byte runs, ready for a vectored write.
//
// Frame headers and performatives are encoded into chunks of its own; payloads of some size are held by
// reference, so the bytes of a message go from its block to the socket without a copy. Small payloads
// are copied into the chunk: an entry of its own in the vector costs more than moving a few cache lines.
#pragma once

#include <sys/uio.h>

#include <deque>
#include <span>

#include "base/bytes.hpp"

namespace omnibus::amqp {

class OutputQueue {
 public:
  // Payload runs up to this size are copied. Chosen by judgement; the crossing point is not measured yet.
  static constexpr std::size_t inline_bytes_max = 1024;

  // A place for `bytes` contiguous bytes. Valid until the next call on the queue; commit() tells how
  // many were used.
  std::uint8_t* reserve(std::size_t bytes) {
    if (!chunk_ || chunk_.get()->capacity() - used_ < bytes) next_chunk(bytes);
    return chunk_.get()->data() + used_;
  }
  void commit(std::size_t bytes) {
    if (bytes == 0) return;
    size_ += bytes;
    if (!runs_.empty() && runs_.back().block.get() == chunk_.get() &&
        runs_.back().offset + runs_.back().size == used_) {
      runs_.back().size += static_cast<std::uint32_t>(bytes);
    } else {
      runs_.push_back(Slice{chunk_, used_, static_cast<std::uint32_t>(bytes)});
    }
    used_ += static_cast<std::uint32_t>(bytes);
  }
  void append(Bytes bytes) {
    put_raw_at(reserve(bytes.size()), bytes);
    commit(bytes.size());
  }
  // Shares the slice's block, or copies when it is small.
  void append(const Slice& slice) {
    if (slice.size <= inline_bytes_max) return append(slice.bytes());
    size_ += slice.size;
    runs_.push_back(slice);
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  // Fills `out` from the front of the queue and returns how many entries it used.
  std::size_t gather(std::span<iovec> out) const;
  // The first `bytes` bytes were written.
  void consume(std::size_t bytes);

 private:
  static void put_raw_at(std::uint8_t* p, Bytes bytes) {
    if (!bytes.empty()) std::memcpy(p, bytes.data(), bytes.size());
  }
  void next_chunk(std::size_t bytes_min);

  std::deque<Slice> runs_;
  BlockRef chunk_;
  std::uint32_t used_ = 0;      // of chunk_
  std::uint32_t consumed_ = 0;  // of runs_.front()
  std::uint32_t next_capacity_ = 0;
  std::size_t size_ = 0;
};

}  // namespace omnibus::amqp
