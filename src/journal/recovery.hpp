// Acquires a store and reads back what survived, a bounded piece at a time.
//
// Lives on the thread of background tasks while it works; moved to the owner's core when done. The order
// is what makes it safe: lock, raise the epoch, and only then look at the segments; a torn batch is cut
// off and the last whole one written once more and synced before anybody sees a record, because a process
// that died after a failed sync leaves pages that read well and were never written.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "journal/checkpoint_file.hpp"
#include "journal/disk.hpp"
#include "journal/epoch_file.hpp"
#include "journal/journal.hpp"
#include "journal/record_chunk.hpp"
#include "journal/segment_reader.hpp"

namespace omnibus::journal {

struct SegmentOnDisk {
  std::optional<SegmentHeader> header;
  // Just past its last record, as the next segment says or the tail was found; 0: as long as the file.
  std::uint32_t end = 0;
  std::uint64_t file_bytes = 0;
  bool damaged = false;  // damage was met in it, some time
};

// What lies in a store's folder, without changing it. Also what `check` looks at.
struct StoreContents {
  std::optional<EpochFile::State> epoch;
  std::uint64_t store = 0;  // 0: a new store
  Epoch epoch_seen = 0;     // the highest of the epoch file and all segments
  std::map<std::uint32_t, SegmentOnDisk> segments;
  std::vector<std::uint64_t> checkpoints;  // numbers, ascending
  std::vector<std::string> leftovers;      // names a crash left behind
  std::vector<std::uint32_t> set_aside;    // numbers of damaged segments that are kept, ascending
};
// `epoch` may be null: then there is no epoch file.
[[nodiscard]] Result<StoreContents> look_at_store(Folder& folder, EpochFile* epoch);

// What is wrong with the sequence of segments from `first` on: missing ones, damaged headers.
[[nodiscard]] std::vector<Damage> gaps_between(const StoreContents& contents, std::uint32_t first);

[[nodiscard]] Damage damage_of(const SegmentReader::Gap& gap, std::uint32_t segment);

class Recovery {
 public:
  // `store` is the identity a new store gets, and an old one must have when it is not 0.
  Recovery(std::shared_ptr<Folder> folder, std::uint64_t store);

  // Everything up to the point where records can be read. Nothing after a failure.
  [[nodiscard]] std::optional<Failure> acquire();

  struct Chunk {
    std::vector<std::uint8_t> checkpoint;  // a piece of it; then there are no records
    RecordChunk records;
    bool done = false;
    std::optional<Failure> failure;
  };
  [[nodiscard]] Chunk next();

  // After done.
  [[nodiscard]] const Opened& opened() const { return opened_; }
  [[nodiscard]] const StoreContents& contents() const { return contents_; }
  [[nodiscard]] std::unique_ptr<EpochFile> take_epoch() { return std::move(epoch_); }
  [[nodiscard]] std::unique_ptr<FolderLock> take_lock() { return std::move(lock_); }

 private:
  [[nodiscard]] Result<void> remove_leftovers();
  [[nodiscard]] Result<void> choose_checkpoint();
  [[nodiscard]] Result<void> cut_ends();
  [[nodiscard]] Result<void> mend_tail();
  // Makes an empty segment whose header says where `previous` ends.
  [[nodiscard]] Result<void> seal_behind(std::uint32_t previous, std::uint32_t previous_end);
  [[nodiscard]] Result<void> read_records(RecordChunk& into, bool& done);

  std::shared_ptr<Folder> folder_;
  std::uint64_t store_;
  std::unique_ptr<FolderLock> lock_;
  std::unique_ptr<EpochFile> epoch_;
  StoreContents contents_;
  Opened opened_;
  std::optional<CheckpointReader> checkpoint_;
  std::vector<Damage> damages_;  // found before the first record
  std::deque<std::uint32_t> to_read_;
  std::unique_ptr<File> file_;
  std::optional<SegmentReader> reader_;
};

}  // namespace omnibus::journal
