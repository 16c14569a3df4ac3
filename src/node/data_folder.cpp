#include "node/data_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/temporary_folder.hpp"

namespace omnibus::node {

namespace fs = std::filesystem;

Result<std::unique_ptr<DataFolder>> DataFolder::open(const fs::path& path) {
  std::error_code trouble;
  const bool made = fs::create_directories(path, trouble);
  if (trouble)
    return fail(Errc::io, "cannot make the data folder '{}': {}", path.string(), trouble.message());
  if (made) fs::permissions(path, fs::perms::owner_all, trouble);
  const std::string lock_file = path / "lock";
  const int lock = ::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return fail(Errc::io, "cannot open '{}': {}", lock_file, std::strerror(errno));
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    const int why = errno;
    ::close(lock);
    if (why == EWOULDBLOCK)
      return fail(Errc::io, "the data folder '{}' is in use by another broker", path.string());
    return fail(Errc::io, "cannot lock '{}': {}", lock_file, std::strerror(why));
  }
  return std::unique_ptr<DataFolder>(new DataFolder(path, lock, false));
}

Result<std::unique_ptr<DataFolder>> DataFolder::temporary() {
  const auto path = make_temporary_folder("omnibus-");
  if (!path) return fail(path.error());
  auto folder = open(*path);
  if (folder) (*folder)->temporary_ = true;
  return folder;
}

DataFolder::~DataFolder() {
  ::close(lock_);
  std::error_code ignored;  // nothing can be done about leftovers of a temporary folder
  if (temporary_) fs::remove_all(path_, ignored);
}

Result<void> DataFolder::write_file(const std::string& name, std::string_view content) const {
  const fs::path target = path_ / name;
  const fs::path draft = path_ / (name + ".new");
  {
    std::ofstream out(draft, std::ios::binary | std::ios::trunc);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    out.flush();
    if (!out) return fail(Errc::io, "cannot write '{}'", draft.string());
  }
  std::error_code trouble;
  fs::rename(draft, target, trouble);
  if (trouble) return fail(Errc::io, "cannot rename '{}': {}", draft.string(), trouble.message());
  return {};
}

Result<void> DataFolder::write_durable(const std::string& name, std::string_view content) const {
  const fs::path target = path_ / name;
  const fs::path draft = path_ / (name + ".new");
  const auto failed = [](std::string_view step, const fs::path& path) {
    return fail(Errc::io, "cannot {} '{}': {}", step, path.string(), std::strerror(errno));
  };
  const int file = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return failed("make", draft);
  Result<void> result;
  while (!content.empty() && result) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      result = failed("write", draft);
    else
      content.remove_prefix(static_cast<std::size_t>(written));
  }
  if (result && ::fsync(file) != 0) result = failed("sync", draft);
  ::close(file);
  if (result && ::rename(draft.c_str(), target.c_str()) != 0) result = failed("rename", draft);
  if (!result) return result;
  const int folder = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return failed("open", path_);
  if (::fsync(folder) != 0) result = failed("sync", path_);
  ::close(folder);
  return result;
}

void DataFolder::remove_file(const std::string& name) const {
  std::error_code ignored;  // absent is as good as removed
  fs::remove(path_ / name, ignored);
}

}  // namespace omnibus::node
