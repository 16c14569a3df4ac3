// How lines of the log look: text for people, or one JSON object per line for programs.
#pragma once

#include <spdlog/formatter.h>

#include <memory>
#include <string>
#include <string_view>

namespace omnibus::cli {

// {"time":"...","level":"info","connection":"7","peer":"...","message":"..."}: what a line begins with as
// `name=value` or `name='value'` becomes a member, the rest is the message.
[[nodiscard]] std::unique_ptr<spdlog::formatter> json_log_format();

// The body of the object for one line, without time and level.
[[nodiscard]] std::string json_members(std::string_view line);

}  // namespace omnibus::cli
