// Segments in which damage was met: their bytes are left to people, who may get more out of them than the
// journal could. Such a segment has a mark from then on; when it is dead, it is set aside under another name
// in place of being removed or used again. Touches the disk: for the background runner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "journal/disk.hpp"

namespace omnibus::journal {

// Files that are kept aside; beyond it the oldest goes.
constexpr std::size_t set_aside_max = 16;

[[nodiscard]] Result<void> mark_damaged(Folder& folder, std::uint32_t segment);
// Says what was done, or could not be: a line each, for the log.
[[nodiscard]] std::vector<std::string> set_aside(Folder& folder, std::uint32_t segment);

}  // namespace omnibus::journal
