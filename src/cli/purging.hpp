// Emptying an entity.
#pragma once

#include <string>

#include "cli/target.hpp"

namespace omnibus::cli {

// Asks first unless `yes`, empties `entity` (a queue, subscription or dead-letter queue), says how many, and
// gives the exit code. `named` is what the user called it.
int purge(const Target& target, const std::string& entity, const std::string& named, bool yes);

}  // namespace omnibus::cli
