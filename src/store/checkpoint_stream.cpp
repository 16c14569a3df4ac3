#include "store/checkpoint_stream.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace omnibus::store {
namespace {

constexpr std::uint8_t head_version = 1;

std::uint32_t get_u32(const std::uint8_t* at) {
  std::uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void put_u32(std::vector<std::uint8_t>& out, std::uint32_t value) {
  const std::size_t at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

// Where the whole of the first piece ends, as far as its header tells; more than is there when unknown.
Result<std::uint64_t> first_piece_bytes(Bytes bytes) {
  if (bytes.size() < piece_header_bytes) return piece_header_bytes;
  const std::uint32_t size = get_u32(bytes.data() + 5);
  if (bytes[0] < 1 || bytes[0] > 5 || size > piece_bytes_max)
    return fail(Errc::decode_error, "a checkpoint piece of kind {} with {} bytes", bytes[0], size);
  return piece_header_bytes + std::uint64_t{size};
}

}  // namespace

void put_piece(std::vector<std::uint8_t>& out, const Piece& piece) {
  check(piece.bytes.size() <= piece_bytes_max, "a checkpoint piece has a bound");
  out.push_back(static_cast<std::uint8_t>(piece.kind));
  put_u32(out, static_cast<std::uint32_t>(piece.partition));
  put_u32(out, static_cast<std::uint32_t>(piece.bytes.size()));
  out.insert(out.end(), piece.bytes.begin(), piece.bytes.end());
}

std::vector<std::uint8_t> encode_head(const CheckpointHead& head) {
  std::vector<std::uint8_t> out{head_version};
  put_u32(out, head.next_partition);
  return out;
}

Result<CheckpointHead> decode_head(Bytes bytes) {
  if (bytes.size() < 5 || bytes[0] != head_version)
    return fail(Errc::decode_error, "the checkpoint's head has {} bytes or an unknown version", bytes.size());
  return CheckpointHead{get_u32(bytes.data() + 1)};
}

Result<std::size_t> CheckpointReader::take_pieces(Bytes bytes, const Take& take) {
  std::size_t used = 0;
  for (;;) {
    const Bytes rest = bytes.subspan(used);
    const auto size = first_piece_bytes(rest);
    if (!size) return fail(size.error());
    if (rest.size() < piece_header_bytes || rest.size() < *size) return used;
    Piece piece;
    piece.kind = static_cast<PieceKind>(rest[0]);
    piece.partition = static_cast<PartitionId>(get_u32(rest.data() + 1));
    piece.bytes = rest.subspan(piece_header_bytes, *size - piece_header_bytes);
    if (auto taken = take(piece); !taken) return fail(std::move(taken.error()));
    used += *size;
  }
}

Result<void> CheckpointReader::feed(Bytes bytes, const Take& take) {
  // Only the piece that was cut is put together; the rest is read where it lies.
  while (!held_.empty() && !bytes.empty()) {
    const auto size = first_piece_bytes(held_);
    if (!size) return fail(size.error());
    const std::size_t part = std::min<std::uint64_t>(*size - held_.size(), bytes.size());
    held_.insert(held_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(part));
    bytes = bytes.subspan(part);
    const auto used = take_pieces(held_, take);
    if (!used) return fail(used.error());
    if (*used > 0) held_.clear();
  }
  const auto used = take_pieces(bytes, take);
  if (!used) return fail(used.error());
  held_.insert(held_.end(), bytes.begin() + static_cast<std::ptrdiff_t>(*used), bytes.end());
  return {};
}

}  // namespace omnibus::store
