#include "node/store_folders.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>

#include "journal/epoch_file.hpp"
#include "journal/recovery.hpp"

namespace omnibus::node {

namespace fs = std::filesystem;

fs::path store_path(const fs::path& data, std::uint16_t number) {
  return data / fmt::format("store-{}", number);
}

Result<std::vector<StoreFolder>> list_stores(const fs::path& data) {
  std::vector<StoreFolder> result;
  std::error_code trouble;
  for (fs::directory_iterator entry(data, trouble), end; !trouble && entry != end; entry.increment(trouble)) {
    const std::string name = entry->path().filename().string();
    constexpr std::string_view prefix = "store-";
    if (!name.starts_with(prefix)) continue;
    std::uint32_t number = 0;
    const char* const last = name.data() + name.size();
    const auto [stopped, wrong] = std::from_chars(name.data() + prefix.size(), last, number);
    if (wrong != std::errc{} || stopped != last || name != fmt::format("store-{}", number)) continue;
    if (number >= stores_max)
      return fail(Errc::io, "'{}': a data folder has at most {} stores", entry->path().string(), stores_max);
    result.push_back({static_cast<std::uint16_t>(number), entry->path()});
  }
  if (trouble) return fail(Errc::io, "cannot read '{}': {}", data.string(), trouble.message());
  std::ranges::sort(result, {}, &StoreFolder::number);
  return result;
}

Result<void> place_store(const fs::path& data, std::uint16_t number, const fs::path& folder, bool is_known) {
  const fs::path link = store_path(data, number);
  std::error_code trouble;
  if (is_known && fs::read_symlink(link, trouble).lexically_normal() == folder.lexically_normal()) return {};
  trouble.clear();
  if (!is_known) fs::create_directories(folder, trouble);
  if (trouble)
    return fail(Errc::io, "cannot make the folder '{}' of store {}: {}", folder.string(), number,
                trouble.message());
  if (fs::exists(fs::symlink_status(link, trouble))) {
    if (fs::equivalent(link, folder, trouble)) return {};
    return fail(Errc::invalid_field,
                "store {} is to be in '{}', but there is one in '{}' already: move it there while no broker "
                "runs, and "
                "put a link to it in its place",
                number, folder.string(), link.string());
  }
  fs::create_directory_symlink(folder, link, trouble);
  if (trouble) return fail(Errc::io, "cannot make the link '{}': {}", link.string(), trouble.message());
  return {};
}

Result<std::uint64_t> store_identity(journal::Folder& folder) {
  const auto names = folder.list();
  if (!names) return fail(names.error());
  // Opening an epoch file would make one.
  std::unique_ptr<journal::EpochFile> epoch;
  if (std::ranges::find(*names, journal::epoch_name) != names->end()) {
    auto opened = journal::EpochFile::open(folder);
    if (!opened) return fail(opened.error());
    epoch = *std::move(opened);
  }
  const auto contents = journal::look_at_store(folder, epoch.get());
  if (!contents) return fail(contents.error());
  return contents->store;
}

Result<ReadLock> ReadLock::take(const fs::path& folder) {
  const std::string file = folder / "lock";
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENOENT) return ReadLock(-1);
    return fail(Errc::io, "cannot open '{}': {}", file, std::generic_category().message(errno));
  }
  ReadLock lock(descriptor);
  if (::flock(descriptor, LOCK_SH | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      return fail(Errc::server_busy, "'{}' is in use by a broker: stop it first", folder.string());
    return fail(Errc::io, "cannot lock '{}': {}", file, std::generic_category().message(errno));
  }
  return lock;
}

ReadLock::ReadLock(ReadLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

ReadLock::~ReadLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace omnibus::node
