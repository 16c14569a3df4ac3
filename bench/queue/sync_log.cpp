// Loaded into the broker beside its own libraries (LD_PRELOAD): writes down when every call that touches the
// journal's files began and ended, in nanoseconds of the monotonic clock, to the file that OMNIBUS_SYNC_LOG
// names. One line a call: s (a sync of a file), w (a write) or o (any other), begin, end.
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
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

template <class... Arguments>
long timed(char kind, long call, Arguments... arguments) {
  const long long began = now();
  const long result = ::syscall(call, arguments...);
  if (std::FILE* file = log_file()) std::fprintf(file, "%c %lld %lld\n", kind, began, now());
  return result;
}

}  // namespace

extern "C" {

int fdatasync(int fd) { return static_cast<int>(timed('s', SYS_fdatasync, fd)); }

int fsync(int fd) { return static_cast<int>(timed('o', SYS_fsync, fd)); }

ssize_t pwritev(int fd, const iovec* vectors, int count, off_t offset) {
  return timed('w', SYS_pwritev, fd, vectors, count, offset, 0L);
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
  return static_cast<int>(timed('o', SYS_fallocate, fd, mode, offset, length));
}

int ftruncate(int fd, off_t length) { return static_cast<int>(timed('o', SYS_ftruncate, fd, length)); }

int renameat(int from, const char* name, int to, const char* other) {
  return static_cast<int>(timed('o', SYS_renameat, from, name, to, other));
}

int unlinkat(int folder, const char* name, int flags) {
  return static_cast<int>(timed('o', SYS_unlinkat, folder, name, flags));
}
}
