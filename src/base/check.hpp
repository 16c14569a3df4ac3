// check(): an invariant of ours. When it does not hold we are wrong, and going on could lose or double
// a message; the process stops, in release too.
#pragma once

#include <source_location>

namespace omnibus {

[[noreturn]] void check_failed(const char* what, std::source_location where);

constexpr void check(bool holds, const char* what = "invariant",
                     std::source_location where = std::source_location::current()) {
  if (!holds) [[unlikely]]
    check_failed(what, where);
}

}  // namespace omnibus
