#include "auth/key_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "auth/access_rules.hpp"
#include "auth/secrets.hpp"

namespace omnibus::auth {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }

 private:
  int fd_;
};

std::unexpected<Error> io_failure(std::string_view step, const std::filesystem::path& path, int reason) {
  return fail(Errc::io, "cannot {} '{}': {}", step, path.string(), std::strerror(reason));
}

Result<void> write_all(int fd, std::string_view text, const std::filesystem::path& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_failure("write", path, errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

Result<KeyFile> read_key_file(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open() && errno == ENOENT) return fail(Errc::not_found, "no key file '{}'", path.string());
  if (!file.is_open()) return io_failure("open", path, errno);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return io_failure("look at", path, errno);
  if (!S_ISREG(status.st_mode)) return fail(Errc::io, "key file '{}' is not a plain file", path.string());

  std::array<char, key_file_bytes_max + 1> buffer{};
  std::size_t size = 0;
  while (size < buffer.size()) {
    const ssize_t got = ::read(file.get(), buffer.data() + size, buffer.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_failure("read", path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > key_file_bytes_max)
    return fail(Errc::io, "key file '{}' is longer than {} bytes", path.string(), key_file_bytes_max);

  std::string_view text(buffer.data(), size);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  if (!is_good_key(text)) return fail(Errc::io, "key file '{}' holds no key", path.string());
  return KeyFile{.key = std::string(text), .readable_by_others = (status.st_mode & (S_IRWXG | S_IRWXO)) != 0};
}

Result<void> write_key_file(const std::filesystem::path& path, std::string_view key) {
  if (!is_good_key(key)) return fail(Errc::argument_error, "the key for '{}' is not usable", path.string());
  // Written beside and renamed: a crash leaves the old file or the new one, never half a key.
  std::filesystem::path fresh = path;
  fresh += ".new";
  {
    const Descriptor file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.is_open()) return io_failure("create", fresh, errno);
    // A leftover of an interrupted write may have another mode.
    if (::fchmod(file.get(), 0600) != 0) return io_failure("protect", fresh, errno);
    auto written = write_all(file.get(), std::string(key) + "\n", fresh);
    if (!written) return written;
    if (::fsync(file.get()) != 0) return io_failure("sync", fresh, errno);
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return io_failure("name", path, errno);
  const auto parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const Descriptor folder(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) return io_failure("open", parent, errno);
  if (::fsync(folder.get()) != 0) return io_failure("sync", parent, errno);
  return {};
}

Result<DefaultKey> default_key(bool only_loopback, const std::filesystem::path& path) {
  if (only_loopback) return DefaultKey{.key = std::string(loopback_key)};
  auto kept = read_key_file(path);
  if (kept) return DefaultKey{.key = kept->key, .readable_by_others = kept->readable_by_others};
  if (kept.error().code != Errc::not_found) return fail(kept.error());

  auto key = generate_key();
  if (!key) return fail(key.error());
  auto written = write_key_file(path, *key);
  if (!written) return fail(written.error());
  return DefaultKey{.key = *key, .newly_generated = true};
}

}  // namespace omnibus::auth
