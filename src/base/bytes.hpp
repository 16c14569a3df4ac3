// Bytes that others own, and bytes that are shared.
//
// A Payload is an immutable run of bytes held in one or more reference-counted Blocks: a message as it
// came off the wire. Copying a Payload shares the blocks; the bytes themselves are copied once, when
// they leave the socket buffer. References may be dropped on any core.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibus {

using Bytes = std::span<const std::uint8_t>;

inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline bool same_bytes(Bytes a, Bytes b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

// Header and bytes in one allocation.
class Block {
 public:
  static Block* make(std::uint32_t capacity);
  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    // A sole owner needs no atomic read-modify-write: nobody else can raise the count from one.
    if (references_.load(std::memory_order_acquire) == 1 ||
        references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      destroy();
  }
  [[nodiscard]] std::uint32_t capacity() const { return capacity_; }
  std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(this + 1); }

 private:
  explicit Block(std::uint32_t capacity) : capacity_(capacity) {}
  void destroy();
  std::atomic<std::uint32_t> references_{1};
  std::uint32_t capacity_;
};

class BlockRef {
 public:
  BlockRef() = default;
  explicit BlockRef(Block* owned) : block_(owned) {}
  BlockRef(const BlockRef& other) : block_(other.block_) {
    if (block_) block_->retain();
  }
  BlockRef(BlockRef&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  BlockRef& operator=(BlockRef other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~BlockRef() {
    if (block_) block_->release();
  }
  [[nodiscard]] Block* get() const { return block_; }
  explicit operator bool() const { return block_ != nullptr; }

 private:
  Block* block_ = nullptr;
};

// Part of a block.
struct Slice {
  BlockRef block;
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  [[nodiscard]] Bytes bytes() const { return block ? Bytes{block.get()->data() + offset, size} : Bytes{}; }
};

class Payload {
 public:
  Payload() = default;
  static Payload copy_of(Bytes bytes);
  static Payload copy_of(std::string_view text) { return copy_of(as_bytes(text)); }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t slice_count() const {
    return (first_.size != 0) + (second_.size != 0) + rest_.size();
  }
  [[nodiscard]] const Slice& slice(std::size_t index) const {
    return index == 0 ? first_ : index == 1 ? second_ : rest_[index - 2];
  }

  void append(Slice slice);
  void clear() { *this = Payload{}; }

  // All bytes as one run when they lie in one block; otherwise gathers them into `scratch`.
  [[nodiscard]] Bytes contiguous(std::vector<std::uint8_t>& scratch) const;
  [[nodiscard]] std::string to_string() const;

 private:
  // A message on its way out is what we wrote in front and what the sender sent: two, mostly.
  Slice first_;
  Slice second_;
  std::vector<Slice> rest_;
  std::size_t size_ = 0;
};

// Fills a Payload piece by piece, without ever moving bytes it already holds. A size that is known
// makes one block; a message of unknown size grows by blocks that double up to block_bytes_max.
class PayloadBuilder {
 public:
  static constexpr std::uint32_t block_bytes_max = 256 * 1024;

  // `more_expected` tells that this piece is not the last: the block is then made with room to spare.
  void append(Bytes piece, bool more_expected);
  // The next `bytes` bytes will come in pieces: one block is made for all of them.
  void reserve(std::size_t bytes);
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] Payload take();
  void clear() { *this = PayloadBuilder{}; }

 private:
  void close_block();
  Payload done_;
  BlockRef block_;
  std::uint32_t used_ = 0;
  std::size_t size_ = 0;
};

}  // namespace omnibus
