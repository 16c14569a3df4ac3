#include "node/config_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "auth/faults.hpp"

namespace omnibus::node {
namespace {

constexpr std::size_t step_bytes = 64 * 1024;

Result<std::string> read_open_file(int file, const std::string& path, std::size_t bytes_max) {
  const auto failure = [&](const char* step) {
    return fail(Errc::io, "cannot {} '{}': {}", step, auth::shown(path), std::strerror(errno));
  };
  struct stat status{};
  if (::fstat(file, &status) != 0) return failure("look at");
  if (!S_ISREG(status.st_mode)) return fail(Errc::io, "'{}' is not a plain file", auth::shown(path));
  std::string text;
  // Not by the size the file claims to have: it may grow meanwhile, and some files claim none.
  while (text.size() <= bytes_max) {
    const std::size_t before = text.size();
    text.resize(before + std::min(step_bytes, bytes_max + 1 - before));
    const ssize_t got = ::read(file, text.data() + before, text.size() - before);
    text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return text;
    if (got < 0 && errno != EINTR) return failure("read");
  }
  return fail(Errc::io, "'{}' has more than {} bytes", auth::shown(path), bytes_max);
}

}  // namespace

Result<std::string> read_plain_file(const std::string& path, std::size_t bytes_max) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return fail(Errc::io, "cannot open '{}': {}", auth::shown(path), std::strerror(errno));
  auto text = read_open_file(file, path, bytes_max);
  ::close(file);
  return text;
}

}  // namespace omnibus::node
