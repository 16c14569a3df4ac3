// A store's checkpoint as one stream of pieces, each tagged with its partition.
//
// The journal keeps the bytes and not where they were cut, so every piece has a header of its own. The reader
// takes the stream in parts of any size and holds at most one piece that is not whole yet. Pure.
// Layout: docs/formats/store-records.md.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "store/partition.hpp"

namespace omnibus::store {

enum class PieceKind : std::uint8_t {
  head = 1,       // of the whole checkpoint, first and once
  partition = 2,  // what the catalogue knows of it; before its slices
  slice = 3,      // of its machine
  prepared = 4,   // a transaction that waits for another store's decision, whole
  committed = 5,  // one that this store decided and not all have done
};

struct Piece {
  PieceKind kind = PieceKind::head;
  PartitionId partition = PartitionId::none;
  Bytes bytes;
};

inline constexpr std::size_t piece_header_bytes = 9;
inline constexpr std::uint32_t piece_bytes_max = 1u << 30;

// Appends one piece to `out`.
void put_piece(std::vector<std::uint8_t>& out, const Piece& piece);

// The body of the head.
struct CheckpointHead {
  std::uint32_t next_partition = 1;  // the id given next
};
[[nodiscard]] std::vector<std::uint8_t> encode_head(const CheckpointHead& head);
[[nodiscard]] Result<CheckpointHead> decode_head(Bytes bytes);

class CheckpointReader {
 public:
  using Take = std::function<Result<void>(const Piece&)>;
  // Calls `take` for every piece that has become whole. An error, its own or the taker's, stays.
  [[nodiscard]] Result<void> feed(Bytes bytes, const Take& take);
  // All that came made whole pieces.
  [[nodiscard]] bool at_boundary() const { return held_.empty(); }

 private:
  [[nodiscard]] Result<std::size_t> take_pieces(Bytes bytes, const Take& take);
  std::vector<std::uint8_t> held_;
};

}  // namespace omnibus::store
