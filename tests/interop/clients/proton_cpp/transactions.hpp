// Scenarios with transactions. Proton's C++ library has none: these drive its engine by hand.
#pragma once

#include <map>
#include <string>

#include "report.hpp"

namespace interop {

// `report` outlives what is returned.
std::map<std::string, Scenario> transaction_scenarios(const Report& report);

}  // namespace interop
