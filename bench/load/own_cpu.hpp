// What the load itself takes of the machine that it shares with the broker.
#pragma once

#include <sys/resource.h>

namespace omnibus::bench {

// CPU seconds of this process so far.
[[nodiscard]] inline double own_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace omnibus::bench
