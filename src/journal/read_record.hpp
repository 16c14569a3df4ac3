// One record from its place, for a payload that is no longer in memory. Runs on the thread of read tasks.
#pragma once

#include <memory>

#include "journal/disk.hpp"
#include "journal/journal.hpp"

namespace omnibus::journal {

enum class ReadTrouble : std::uint8_t {
  none,
  passing,  // nothing of the segment can be read for now: that says nothing about the record
  place,    // the segment can be read, its bytes here cannot
  damaged,  // the bytes are there and are no valid record, or there is no such segment
};

struct ReadOutcome {
  Result<StoredRecord> record;
  std::shared_ptr<File> file;  // the segment's, to be used again; null when it is better opened anew
  ReadTrouble trouble = ReadTrouble::none;
};

// `file` is the open segment, or null: then it is opened.
[[nodiscard]] ReadOutcome read_record(Folder& folder, std::shared_ptr<File> file, std::uint64_t store,
                                      Position position, std::uint32_t body_bytes_most);

}  // namespace omnibus::journal
