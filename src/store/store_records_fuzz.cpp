// Any bytes as the description of a partition, as a record of a transaction and as a checkpoint: refused, or
// understood and written again.
#include <algorithm>

#include "base/check.hpp"
#include "broker/queue.hpp"
#include "broker/topic.hpp"
#include "store/catalogue_records.hpp"
#include "store/checkpoint_stream.hpp"
#include "store/transaction_records.hpp"

using namespace omnibus;
using namespace omnibus::store;

namespace {

std::vector<std::uint8_t> whole(const PreparedRecord& record) {
  Payload messages;
  std::vector<std::uint8_t> out = encode_prepared(record, messages);
  const std::string bytes = messages.to_string();
  out.insert(out.end(), bytes.begin(), bytes.end());
  return out;
}

void read_transactions(Bytes bytes) {
  if (const auto prepared = decode_prepared(bytes)) {
    // What cannot be told twice in two ways, such as rules, is compared by what is written of it.
    const auto once = whole(*prepared);
    const auto again = decode_prepared(once);
    check(again && whole(*again) == once, "a prepared transaction is read as it was written");
  }
  if (const auto committed = decode_committed(bytes))
    check(same_bytes(encode_committed(*committed), bytes), "a committed one is written as it was read");
  if (const auto decided = decode_decided(bytes))
    check(same_bytes(encode_decided(*decided), bytes), "a decided one is written as it was read");
  if (const auto forgotten = decode_forgotten(bytes))
    check(same_bytes(encode_forgotten(*forgotten), bytes), "a forgotten one is written as it was read");
  for (std::uint16_t kind = 6; kind <= 9; ++kind) (void)describe_record(kind, bytes);
}

}  // namespace

// The input: one byte that says where the stream is cut, then the bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t cut = 1 + data[0];
  const Bytes bytes{data + 1, size - 1};
  if (const auto info = decode_partition(PartitionId{1}, bytes)) {
    const auto again = decode_partition(PartitionId{1}, encode_partition(*info));
    check(again && *again == *info, "a partition is read as it was written");
  }
  read_transactions(bytes);

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
