// Any bytes as the description of a partition and as a checkpoint: refused, or understood and written again.
#include <algorithm>

#include "base/check.hpp"
#include "broker/queue.hpp"
#include "broker/topic.hpp"
#include "store/catalogue_records.hpp"
#include "store/checkpoint_stream.hpp"

using namespace omnibus;
using namespace omnibus::store;

// The input: one byte that says where the stream is cut, then the bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t cut = 1 + data[0];
  const Bytes bytes{data + 1, size - 1};
  if (const auto info = decode_partition(PartitionId{1}, bytes)) {
    const auto again = decode_partition(PartitionId{1}, encode_partition(*info));
    check(again && *again == *info, "a partition is read as it was written");
  }

  // As recovery reads it, and once more in other parts: the same pieces come out.
  const auto read = [&](std::size_t part) {
    std::vector<std::vector<std::uint8_t>> pieces;
    std::unique_ptr<broker::Queue> queue;
    std::unique_ptr<broker::Topic> topic;
    Random random{1};
    CheckpointReader reader;
    bool ok = true;
    for (std::size_t at = 0; at < bytes.size() && ok; at += part) {
      const auto fed =
          reader.feed(bytes.subspan(at, std::min(part, bytes.size() - at)), [&](const Piece& piece) {
            put_piece(pieces.emplace_back(), piece);
            if (piece.kind == PieceKind::head) (void)decode_head(piece.bytes);
            if (piece.kind == PieceKind::partition) {
              const auto info = decode_partition(piece.partition, piece.bytes);
              if (!info) return Result<void>{};
              queue.reset();
              topic.reset();
              if (info->kind == PartitionKind::topic)
                topic = std::make_unique<broker::Topic>(info->topic_settings, random, info->created);
              else
                queue = std::make_unique<broker::Queue>(info->settings, random, info->created);
            }
            if (piece.kind == PieceKind::slice && queue) return queue->read_checkpoint(piece.bytes);
            if (piece.kind == PieceKind::slice && topic) return topic->read_checkpoint(piece.bytes);
            return Result<void>{};
          });
      ok = fed.has_value();
    }
    return pieces;
  };
  check(read(cut) == read(bytes.size() + 1), "where the stream is cut makes no difference");
  return 0;
}
