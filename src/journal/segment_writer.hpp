// Writes batches, segment after segment, and says when each is durable.
//
// Lives on the thread that runs `write` tasks; the owner's core only hands batches over. After an error
// the writer stays closed: a failed sync leaves the kernel's cache in a state nobody can vouch for, and
// a failed write leaves a torn batch that only recovery may judge. Layout: docs/formats/journal.md.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "journal/batch.hpp"
#include "journal/disk.hpp"
#include "journal/epoch_file.hpp"
#include "journal/spares.hpp"

namespace omnibus::journal {

// One that no batch is written into any more.
struct LeftSegment {
  std::unique_ptr<File> file;  // none: nothing was left
  std::uint32_t end = 0;
  // Cuts off what was reserved and not used. Only for tidiness: the next open does without.
  void cut();
};

class SegmentWriter {
 public:
  struct Start {
    std::uint64_t store = 0;
    Epoch epoch = 0;
    // The newest segment that recovery found and where its records end.
    std::uint32_t previous = 0;
    std::uint32_t previous_end = 0;
    std::uint64_t segment_bytes = 0;
    bool preallocate = true;
  };
  // Holds the lock as long as it lives, also while a batch outlives the journal that sent it.
  SegmentWriter(std::shared_ptr<Folder> folder, std::unique_ptr<EpochFile> epoch,
                std::unique_ptr<FolderLock> lock, Start start);

  // Writes and syncs; everything in the batch is durable when it returns well. A batch of a new segment
  // makes that segment first, out of `spare` when there is one.
  [[nodiscard]] std::optional<Failure> write(Batch& batch, Spare spare);
  // The segment before, after a batch that began another: to be cut where no batch waits for it.
  [[nodiscard]] LeftSegment take_left();
  // No batch comes any more.
  void finish();

 private:
  // Makes the file that the batch begins; answers with the passing name it has until it is safe.
  [[nodiscard]] Result<std::string> roll(const Batch& batch, Spare spare);
  [[nodiscard]] Failure closed_by(Error error);

  std::shared_ptr<Folder> folder_;
  std::unique_ptr<EpochFile> epoch_;
  std::unique_ptr<FolderLock> lock_;
  Start start_;
  std::unique_ptr<File> file_;
  LeftSegment left_;
  std::uint32_t segment_ = 0;  // the one file_ is; 0: none yet
  std::uint32_t end_ = 0;
  Batch::EndMark end_mark_ = Batch::EndMark::without;  // with: file_ was another segment before
  std::optional<Failure> closed_;
};

}  // namespace omnibus::journal
