#include "store/checkpointer.hpp"

#include "base/check.hpp"
#include "store/catalogue_records.hpp"

namespace omnibus::store {
namespace {

// Small slices: one holds texts and session states as well, and is put together in memory.
constexpr std::size_t slice_items = 64;
// What a message takes in it, at least; work is measured in this.
constexpr std::size_t item_bytes = 64;

class SliceSink final : public broker::CheckpointSink {
 public:
  SliceSink(std::vector<std::uint8_t>& out, PartitionId partition) : out_(out), partition_(partition) {}
  void write(Bytes slice) override { put_piece(out_, {PieceKind::slice, partition_, slice}); }

 private:
  std::vector<std::uint8_t>& out_;
  PartitionId partition_;
};

}  // namespace

void Checkpointer::begin(journal::Journal& journal, const CheckpointHead& head) {
  check(state_ == State::idle, "one checkpoint at a time");
  state_ = State::writing;
  covers_ = journal.appended();
  slot_ = 0;
  begun_ = PartitionId::none;
  coordinated_.reset();
  prepared_.reset();
  journal.begin_checkpoint();
  buffer_.clear();
  put_piece(buffer_, {PieceKind::head, PartitionId::none, encode_head(head)});
  journal.checkpoint_append(buffer_);
}

void Checkpointer::step(journal::Journal& journal, std::uint32_t items_max) {
  if (state_ != State::writing) return;
  for (std::size_t items = 0; items < items_max && journal.checkpoint_ready();) {
    if (write_transaction(journal)) {
      items += 1 + buffer_.size() / item_bytes;
      continue;
    }
    // A partition that is being deleted is left out: the record that says so comes behind what is covered.
    while (slot_ < partitions_.slots() && (!partitions_.at(slot_) || partitions_.at(slot_)->deleting)) {
      ++slot_;
      begun_ = PartitionId::none;
    }
    if (slot_ == partitions_.slots()) {
      state_ = State::ending;
      journal.end_checkpoint(covers_);
      return;
    }
    write_partition(journal, *partitions_.at(slot_));
    items += 1 + buffer_.size() / item_bytes;
  }
}

// Each as it is when its turn comes: one that begins later, or ends, has a record behind what is covered.
bool Checkpointer::write_transaction(journal::Journal& journal) {
  buffer_.clear();
  if (const TransactionId* id = transactions_.coordinated.after(coordinated_)) {
    coordinated_ = *id;
    const Coordinated& one = *transactions_.coordinated.find(*id);
    if (one.state != Coordinated::State::preparing)
      put_piece(buffer_, {PieceKind::committed, PartitionId::none,
                          encode_committed({*id, {one.participants.begin(), one.participants.end()}})});
  } else if (const TransactionId* waits = transactions_.prepared.after(prepared_)) {
    prepared_ = *waits;
    const Participation& one = *transactions_.prepared.find(*waits);
    // The end of one that was carried out may have its record before what is covered.
    if (one.state != Participation::State::deciding) {
      Payload messages;
      auto whole = encode_prepared(one.record, messages);
      for (std::size_t i = 0; i < messages.slice_count(); ++i) {
        const Bytes bytes = messages.slice(i).bytes();
        whole.insert(whole.end(), bytes.begin(), bytes.end());
      }
      put_piece(buffer_, {PieceKind::prepared, PartitionId::none, whole});
    }
  } else {
    return false;
  }
  if (!buffer_.empty()) journal.checkpoint_append(buffer_);
  return true;
}

void Checkpointer::write_partition(journal::Journal& journal, Partition& partition) {
  buffer_.clear();
  if (begun_ != partition.info.id) {
    begun_ = partition.info.id;
    put_piece(buffer_, {PieceKind::partition, partition.info.id, encode_partition(partition.info)});
    if (partition.topic)
      partition.topic->begin_checkpoint();
    else
      partition.queue->begin_checkpoint();
  }
  SliceSink sink{buffer_, partition.info.id};
  const bool more = partition.topic ? partition.topic->write_checkpoint(sink, slice_items)
                                    : partition.queue->write_checkpoint(sink, slice_items);
  if (!buffer_.empty()) journal.checkpoint_append(buffer_);
  if (!more) ++slot_;
}

}  // namespace omnibus::store
