// What the verbs that talk to a namespace tell the shell.
#pragma once

namespace omnibus::cli {

inline constexpr int exit_ok = 0;
inline constexpr int exit_failed = 1;       // refused, broken, not reached
inline constexpr int exit_wrong_usage = 2;  // the command line, or something it names on this machine
inline constexpr int exit_not_found = 3;    // there is no such entity
inline constexpr int exit_stopped = 130;    // by Ctrl-C, before the work was done

}  // namespace omnibus::cli
