// Preloaded into the broker: while the file named by READ_ONLY_WHEN exists, what would change a file or a folder fails
// with EROFS, as it does once the kernel has made a file system read-only because of an error. Reading goes on. Where
// files are open for writing nobody can bring that about by remounting, and no user can without mounting.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int read_only(void) {
  const char* when = getenv("READ_ONLY_WHEN");
  const int before = errno;
  const int is = when && access(when, F_OK) == 0;
  errno = is ? EROFS : before;
  return is;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwritev(int file, const struct iovec* pieces, int count, off_t offset) {
  return read_only() ? -1 : REAL(pwritev)(file, pieces, count, offset);
}
int fallocate(int file, int mode, off_t offset, off_t bytes) {
  return read_only() ? -1 : REAL(fallocate)(file, mode, offset, bytes);
}
int ftruncate(int file, off_t bytes) { return read_only() ? -1 : REAL(ftruncate)(file, bytes); }
int fdatasync(int file) { return read_only() ? -1 : REAL(fdatasync)(file); }
int fsync(int file) { return read_only() ? -1 : REAL(fsync)(file); }
int mkdir(const char* path, mode_t mode) { return read_only() ? -1 : REAL(mkdir)(path, mode); }
int unlinkat(int folder, const char* path, int flags) {
  return read_only() ? -1 : REAL(unlinkat)(folder, path, flags);
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  return read_only() ? -1 : REAL(renameat)(from_folder, from, to_folder, to);
}
int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if ((flags & (O_WRONLY | O_RDWR | O_CREAT)) && read_only()) return -1;
  return REAL(openat)(folder, path, flags, mode);
}
