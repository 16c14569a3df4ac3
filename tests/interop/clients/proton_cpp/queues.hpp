// Qpid Proton (C++) with a queue: links, credit and outcomes.
#pragma once

#include <map>
#include <string>

#include "report.hpp"

namespace interop {

// The scenarios plain-queue/*. `report` outlives them.
std::map<std::string, Scenario> queue_scenarios(const Report& report);

}  // namespace interop
