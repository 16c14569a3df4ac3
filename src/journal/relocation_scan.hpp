// Reads the lasting records of an old segment, a bounded stretch at a time. Runs on the thread of
// background tasks.
#pragma once

#include <memory>
#include <optional>

#include "journal/disk.hpp"
#include "journal/record_chunk.hpp"
#include "journal/segment_reader.hpp"

namespace omnibus::journal {

class RelocationScan {
 public:
  // `end` is where its records end; 0: not known.
  RelocationScan(std::shared_ptr<Folder> folder, std::uint64_t store, std::uint32_t segment,
                 std::uint32_t end, std::size_t bytes_per_chunk);

  struct Chunk {
    RecordChunk records;
    bool ended = false;
    std::optional<Error> failed;  // it cannot be read for now
  };
  // A segment that is not there is told as damage, and ended; so is one that cannot be read.
  [[nodiscard]] Chunk next();

 private:
  std::shared_ptr<Folder> folder_;
  std::uint64_t store_;
  std::uint32_t segment_;
  std::uint32_t end_;
  std::size_t bytes_per_chunk_;
  std::unique_ptr<File> file_;
  std::optional<SegmentReader> reader_;
};

}  // namespace omnibus::journal
