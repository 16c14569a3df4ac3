// Small text tools that several rooms need. All are bounded by their input and never throw on bad text.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"

namespace omnibus {

[[nodiscard]] std::string ascii_lower(std::string_view text);
[[nodiscard]] bool equals_ignoring_case(std::string_view a, std::string_view b);
[[nodiscard]] bool starts_with_ignoring_case(std::string_view text, std::string_view prefix);

// %XX becomes its byte; a '%' that is not followed by two hex digits is nullopt. With `plus_is_space`
// a '+' becomes a blank, as in form encoding.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space = false);

[[nodiscard]] std::string base64_encode(Bytes bytes);
// Takes the standard and the URL alphabet, with or without padding; anything else is nullopt.
[[nodiscard]] std::optional<std::string> base64_decode(std::string_view text);

[[nodiscard]] std::string hex(Bytes bytes);
[[nodiscard]] std::optional<std::string> unhex(std::string_view text);

[[nodiscard]] bool is_utf8(std::string_view text);

// An ISO 8601 duration: [-]P[nY][nM][nD][T[nH][nM][n[.f]S]] with a year of 365 and a month of 30 days
// [admin contract 8]. What is finer than a millisecond is cut off; what is longer than
// iso_duration_max is iso_duration_max, as clients write "unlimited". Anything else is nullopt.
inline constexpr std::chrono::milliseconds iso_duration_max{922'337'203'685'477};
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_iso_duration(std::string_view text);

}  // namespace omnibus
