#include "journal/posix_disk.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace omnibus::journal {
namespace {

constexpr const char* lock_name = "lock";

std::unexpected<Error> system_failure(std::string_view what, const std::string& path, int number) {
  Errc code = Errc::io;
  if (number == ENOSPC || number == EDQUOT) code = Errc::resource_limit_exceeded;
  if (number == ENOENT) code = Errc::not_found;
  if (number == EWOULDBLOCK) code = Errc::server_busy;
  return fail(code, "{} '{}': {}", what, path, std::generic_category().message(number));
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int get() const { return number_; }

 private:
  int number_;
};

template <class Call>
auto retry_interrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class PosixFile final : public File {
 public:
  PosixFile(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  Result<std::size_t> read(std::uint64_t offset, std::span<std::uint8_t> into) override {
    std::size_t done = 0;
    while (done < into.size()) {
      const ssize_t got = retry_interrupted([&] {
        return ::pread(descriptor_.get(), into.data() + done, into.size() - done,
                       static_cast<off_t>(offset + done));
      });
      if (got < 0) return system_failure("read of", path_, errno);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  Result<std::size_t> read_from_disk(std::uint64_t offset, std::span<std::uint8_t> into) override {
    // Advice that is not taken leaves an ordinary read. Only whole pages are let go of.
    constexpr std::uint64_t page_bytes = 4096;
    const std::uint64_t from = offset / page_bytes * page_bytes;
    const std::uint64_t to = (offset + into.size() + page_bytes - 1) / page_bytes * page_bytes;
    (void)::posix_fadvise(descriptor_.get(), static_cast<off_t>(from), static_cast<off_t>(to - from),
                          POSIX_FADV_DONTNEED);
    return read(offset, into);
  }

  Result<void> write(std::uint64_t offset, std::span<const Bytes> pieces) override {
    constexpr std::size_t vectors_max = 512;  // below IOV_MAX everywhere
    std::array<iovec, vectors_max> vectors;
    std::size_t piece = 0;
    std::size_t inside = 0;  // bytes of `piece` already written
    while (piece < pieces.size()) {
      std::size_t count = 0;
      for (std::size_t i = piece; i < pieces.size() && count < vectors_max; ++i) {
        const Bytes rest = pieces[i].subspan(i == piece ? inside : 0);
        if (!rest.empty()) vectors[count++] = {const_cast<std::uint8_t*>(rest.data()), rest.size()};
      }
      if (count == 0) break;
      const ssize_t put = retry_interrupted([&] {
        return ::pwritev(descriptor_.get(), vectors.data(), static_cast<int>(count),
                         static_cast<off_t>(offset));
      });
      if (put < 0) return system_failure("write to", path_, errno);
      if (put == 0) return fail(Errc::io, "write to '{}': the disk took nothing", path_);
      offset += static_cast<std::uint64_t>(put);
      auto left = static_cast<std::size_t>(put);
      while (left > 0) {
        const std::size_t part = std::min(left, pieces[piece].size() - inside);
        left -= part;
        inside += part;
        if (inside == pieces[piece].size()) {
          ++piece;
          inside = 0;
        }
      }
    }
    return {};
  }

  Result<void> sync() override {
    // Not repeated on EINTR: an interrupted sync is a failed one.
    if (::fdatasync(descriptor_.get()) != 0) return system_failure("sync of", path_, errno);
    return {};
  }

  Result<void> allocate(std::uint64_t bytes) override {
    const int answer =
        retry_interrupted([&] { return ::fallocate(descriptor_.get(), 0, 0, static_cast<off_t>(bytes)); });
    if (answer == 0) return {};
    if (errno != EOPNOTSUPP && errno != ENOSYS) return system_failure("reserving space for", path_, errno);
    const auto now = size();
    if (!now) return fail(now.error());
    if (*now >= bytes) return {};
    return truncate(bytes);
  }

  Result<void> truncate(std::uint64_t bytes) override {
    if (retry_interrupted([&] { return ::ftruncate(descriptor_.get(), static_cast<off_t>(bytes)); }) != 0)
      return system_failure("resize of", path_, errno);
    return {};
  }

  Result<std::uint64_t> size() override {
    struct stat status = {};
    if (::fstat(descriptor_.get(), &status) != 0) return system_failure("size of", path_, errno);
    return static_cast<std::uint64_t>(status.st_size);
  }

 private:
  Descriptor descriptor_;
  std::string path_;
};

// flock() belongs to the open file, so a second opener in the same process is kept out as well.
class PosixLock final : public FolderLock {
 public:
  explicit PosixLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

 private:
  Descriptor descriptor_;
};

class PosixFolder final : public Folder {
 public:
  PosixFolder(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  Result<std::vector<std::string>> list() override {
    // A descriptor of its own: a directory stream has a place in it.
    const int number = ::openat(descriptor_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (number < 0) return system_failure("listing", path_, errno);
    DIR* stream = ::fdopendir(number);
    if (!stream) {
      const int why = errno;
      ::close(number);
      return system_failure("listing", path_, why);
    }
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    const int why = errno;
    ::closedir(stream);
    if (why != 0) return system_failure("listing", path_, why);
    return names;
  }

  Result<std::unique_ptr<File>> create(std::string_view name) override {
    return open_file(name, O_RDWR | O_CREAT | O_TRUNC);
  }
  Result<std::unique_ptr<File>> open(std::string_view name, Mode mode) override {
    return open_file(name, mode == Mode::read ? O_RDONLY : O_RDWR);
  }

  Result<void> rename(std::string_view from, std::string_view to) override {
    if (::renameat(descriptor_.get(), std::string(from).c_str(), descriptor_.get(),
                   std::string(to).c_str()) != 0)
      return system_failure("rename of", full(from), errno);
    return {};
  }
  Result<void> remove(std::string_view name) override {
    if (::unlinkat(descriptor_.get(), std::string(name).c_str(), 0) != 0)
      return system_failure("removal of", full(name), errno);
    return {};
  }
  Result<void> sync() override {
    if (::fsync(descriptor_.get()) != 0) return system_failure("sync of folder", path_, errno);
    return {};
  }
  Result<std::unique_ptr<FolderLock>> lock() override {
    Descriptor file{::openat(descriptor_.get(), lock_name, O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    if (file.get() < 0) return system_failure("opening", full(lock_name), errno);
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return system_failure("lock on", full(lock_name), errno);
    return std::make_unique<PosixLock>(std::move(file));
  }

 private:
  [[nodiscard]] std::string full(std::string_view name) const { return path_ + "/" + std::string(name); }
  Result<std::unique_ptr<File>> open_file(std::string_view name, int flags) {
    Descriptor file{::openat(descriptor_.get(), std::string(name).c_str(), flags | O_CLOEXEC, 0600)};
    if (file.get() < 0) return system_failure("opening", full(name), errno);
    return std::make_unique<PosixFile>(std::move(file), full(name));
  }

  Descriptor descriptor_;
  std::string path_;
};

}  // namespace

Result<std::shared_ptr<Folder>> open_posix_folder(const std::string& path) {
  const bool made = ::mkdir(path.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return system_failure("making folder", path, errno);
  if (made) {
    Descriptor parent{::open((path + "/..").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (parent.get() < 0 || ::fsync(parent.get()) != 0)
      return system_failure("sync of the folder above", path, errno);
  }
  Descriptor folder{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (folder.get() < 0) return system_failure("opening folder", path, errno);
  return std::make_shared<PosixFolder>(std::move(folder), path);
}

}  // namespace omnibus::journal
