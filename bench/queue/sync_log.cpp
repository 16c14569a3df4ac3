// Loaded into the broker beside its own libraries (LD_PRELOAD): writes down when every fdatasync began and
// ended, in nanoseconds of the monotonic clock, to the file that OMNIBUS_SYNC_LOG names.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

long long now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

std::FILE* log_file() {
  static std::FILE* const file = [] {
    const char* name = std::getenv("OMNIBUS_SYNC_LOG");
    return name ? std::fopen(name, "w") : nullptr;
  }();
  return file;
}

}  // namespace

extern "C" int fdatasync(int fd) {
  const long long began = now();
  const long result = ::syscall(SYS_fdatasync, fd);
  if (std::FILE* file = log_file()) std::fprintf(file, "%lld %lld\n", began, now());
  return static_cast<int>(result);
}
