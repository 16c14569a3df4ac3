// Looks at a store that nobody has open, without changing it: what is in it and what is wrong with it.
// Reads every byte; memory is bounded by the largest record.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "journal/disk.hpp"
#include "journal/journal.hpp"

namespace omnibus::journal {

struct SegmentReport {
  std::uint32_t segment = 0;
  Epoch epoch = 0;  // 0: its header is damaged
  std::uint64_t records = 0;
  std::uint64_t lasting = 0;
  std::uint64_t bytes = 0;
};

struct StoreReport {
  std::uint64_t store = 0;
  Epoch epoch = 0;
  std::vector<SegmentReport> segments;
  std::uint64_t checkpoint = 0;  // the number of the newest valid one; 0: none
  Position covers;
  std::uint64_t checkpoint_bytes = 0;
  std::uint64_t records = 0;
  // Dead segments in which damage was met: no longer part of the store, kept for people.
  struct SetAside {
    std::uint32_t segment = 0;
    std::uint64_t bytes = 0;
  };
  std::vector<SetAside> set_aside;
  // A batch that the next open will cut off; not damage.
  Position torn_from;
  std::uint64_t torn_bytes = 0;
  std::vector<Damage> damages;
  [[nodiscard]] bool good() const { return damages.empty(); }
};

// `each` sees every valid record in order. Fails when the folder cannot be read, holds no store, or is of
// an unknown version.
using EachRecord = std::function<void(const RecordView&)>;
[[nodiscard]] Result<StoreReport> inspect(Folder& folder, const EachRecord& each = {});

// One line per segment, checkpoint and damage; the last says whether all is good.
[[nodiscard]] std::string to_text(const StoreReport& report);
// "1:64 kind 7 partition 3 lasting 12 bytes 48656c6c6f..." with at most 32 bytes of the body.
[[nodiscard]] std::string to_text(const RecordView& record);

}  // namespace omnibus::journal
