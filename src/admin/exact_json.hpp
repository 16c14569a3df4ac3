// JSON whose numbers are read as they are written.
//
// Boost.JSON 1.81 computes a double from its digits with rounding at each step: 1E23 comes out one bit too
// small, as do three of ten doubles that it wrote itself. A message that goes through JSON has to
// come back equal, so doubles are read from their text by std::from_chars, and all else by Boost.
// Pure; any thread.
#pragma once

#include <boost/json/value.hpp>
#include <string_view>

#include "base/result.hpp"

namespace omnibus::admin {

// Fails with `argument_error`: no JSON, deeper than `depth_max`, or a number beyond every double.
[[nodiscard]] Result<boost::json::value> parse_exact_json(std::string_view text, std::size_t depth_max);

}  // namespace omnibus::admin
