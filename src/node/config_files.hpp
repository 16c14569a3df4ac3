// Files that the configuration names, and the configuration itself: plain ones, read whole, bounded.
#pragma once

#include <string>

#include "base/result.hpp"

namespace omnibus::node {

// `io`, naming the file, when it cannot be opened, is no plain file (a pipe would make us wait) or has more
// than `bytes_max` bytes. The detail never holds what is in the file.
[[nodiscard]] Result<std::string> read_plain_file(const std::string& path, std::size_t bytes_max);

}  // namespace omnibus::node
