// Which message session a receiver asks for, and the answer in the form it asked in
// [service-bus contract 3.5].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "amqp/codec/performatives.hpp"
#include "base/result.hpp"

namespace omnibus::links {

inline constexpr std::string_view session_filter_name = "com.microsoft:session-filter";

struct SessionFilter {
  std::optional<std::string> id;  // nothing: the next one that is free
};

// Nothing when the source has no session filter. Fails with `decode_error`, `invalid_field` or
// `not_implemented` (the preview of shared sessions).
[[nodiscard]] Result<std::optional<SessionFilter>> read_session_filter(const amqp::Source& source);

// The source as it came with `id` in its session filter, described where the client described it: Go
// insists on that, the others on the plain string.
[[nodiscard]] Result<std::vector<std::uint8_t>> with_session(const amqp::RawValue& source,
                                                             std::string_view id);

}  // namespace omnibus::links
