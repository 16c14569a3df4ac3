// JSON of the peer, strictly: one object, bounded depth, and no name twice in an object.
//
// Two readers that pick different twins are how signed claims get forged, so twins are refused
// rather than resolved. Private to this room.
#pragma once

#include <boost/json.hpp>

#include <optional>
#include <string_view>

#include "base/result.hpp"

namespace omnibus::auth {

inline constexpr std::size_t json_depth_max = 8;

// nullopt when the text is not exactly one such object. Memory is bounded by a small multiple of the text.
[[nodiscard]] std::optional<boost::json::object> parse_json_object(std::string_view text);

// The text of a member, or nullopt when it is absent or not a string.
[[nodiscard]] std::optional<std::string_view> text_member(const boost::json::object& object,
                                                          std::string_view name);

}  // namespace omnibus::auth
