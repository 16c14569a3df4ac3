#include "base/bytes.hpp"

#include <algorithm>
#include <new>

#include "base/check.hpp"

namespace omnibus {

Block* Block::make(std::uint32_t capacity) {
  void* memory = ::operator new(sizeof(Block) + capacity);
  return new (memory) Block(capacity);
}

void Block::destroy() {
  this->~Block();
  ::operator delete(this);
}

Payload Payload::copy_of(Bytes bytes) {
  Payload copy;
  if (bytes.empty()) return copy;
  check(bytes.size() <= UINT32_MAX, "a piece fits a block");
  const auto size = static_cast<std::uint32_t>(bytes.size());
  BlockRef block{Block::make(size)};
  std::memcpy(block.get()->data(), bytes.data(), size);
  copy.append(Slice{std::move(block), 0, size});
  return copy;
}

void Payload::append(Slice slice) {
  if (slice.size == 0) return;
  size_ += slice.size;
  if (first_.size == 0)
    first_ = std::move(slice);
  else if (second_.size == 0)
    second_ = std::move(slice);
  else
    rest_.push_back(std::move(slice));
}

Bytes Payload::contiguous(std::vector<std::uint8_t>& scratch) const {
  if (second_.size == 0) return first_.bytes();
  scratch.clear();
  scratch.reserve(size_);
  for (std::size_t i = 0; i < slice_count(); ++i) {
    const Bytes part = slice(i).bytes();
    scratch.insert(scratch.end(), part.begin(), part.end());
  }
  return scratch;
}

std::string Payload::to_string() const {
  std::string text;
  text.reserve(size_);
  for (std::size_t i = 0; i < slice_count(); ++i) text += as_text(slice(i).bytes());
  return text;
}

void PayloadBuilder::append(Bytes piece, bool more_expected) {
  while (!piece.empty()) {
    if (!block_ || used_ == block_.get()->capacity()) {
      close_block();
      // Doubling keeps a stream of small frames from making a block each; the cap keeps one message
      // from asking the allocator for a huge run.
      const std::size_t wanted =
          more_expected ? std::max(piece.size() * 2, std::min<std::size_t>(size_, block_bytes_max))
                        : piece.size();
      const std::size_t capacity =
          more_expected ? std::min<std::size_t>(wanted, std::max<std::size_t>(block_bytes_max, piece.size()))
                        : wanted;
      check(capacity <= UINT32_MAX, "a piece fits a block");
      block_ = BlockRef{Block::make(static_cast<std::uint32_t>(capacity))};
      used_ = 0;
    }
    const std::size_t room = block_.get()->capacity() - used_;
    const std::size_t part = std::min(room, piece.size());
    std::memcpy(block_.get()->data() + used_, piece.data(), part);
    used_ += static_cast<std::uint32_t>(part);
    size_ += part;
    piece = piece.subspan(part);
  }
}

void PayloadBuilder::reserve(std::size_t bytes) {
  if (bytes == 0 || (block_ && used_ < block_.get()->capacity())) return;
  check(bytes <= UINT32_MAX, "a piece fits a block");
  close_block();
  block_ = BlockRef{Block::make(static_cast<std::uint32_t>(bytes))};
}

void PayloadBuilder::close_block() {
  if (block_) done_.append(Slice{std::move(block_), 0, used_});
  block_ = BlockRef{};
  used_ = 0;
}

Payload PayloadBuilder::take() {
  close_block();
  size_ = 0;
  return std::exchange(done_, Payload{});
}

}  // namespace omnibus
