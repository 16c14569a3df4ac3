// Qpid Proton (C++) with exchanges, and with a topic.
#pragma once

#include <map>
#include <string>

#include "report.hpp"

namespace interop {

// The scenarios exchange/* and topic/publish. `report` outlives them.
std::map<std::string, Scenario> exchange_scenarios(const Report& report);

}  // namespace interop
