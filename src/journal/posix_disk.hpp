// The real disk.
#pragma once

#include <memory>
#include <string>

#include "journal/disk.hpp"

namespace omnibus::journal {

// Makes the folder when it is missing (its parent must exist), and makes that durable.
[[nodiscard]] Result<std::shared_ptr<Folder>> open_posix_folder(const std::string& path);

}  // namespace omnibus::journal
