#include "node/store_door.hpp"

#include <filesystem>
#include <utility>

#include "base/check.hpp"
#include "node/store_folders.hpp"

namespace omnibus::node {

StoreDoor::StoreDoor(std::string path, std::uint64_t identity, bool is_new, Open open)
    : path_(std::move(path)), identity_(identity), is_new_(is_new), open_(std::move(open)) {
  check(identity_ != 0, "a store has an identity");
}

Result<std::shared_ptr<journal::Folder>> StoreDoor::enter() const {
  std::error_code trouble;
  // Opening would make it.
  if (!is_new_ && !std::filesystem::is_directory(path_, trouble))
    return fail(Errc::io, "'{}' is not there{}{}", path_, trouble ? ": " : "",
                trouble ? trouble.message() : "");
  auto folder = open_(path_);
  if (!folder) return fail(folder.error());
  if (!was_locked_)
    // Somebody who has it changes what is looked at. Not `server_busy`, of which a store does not try again.
    if (const auto free = ReadLock::take(path_); !free) return fail(Errc::io, "{}", free.error().detail);
  const auto found = store_identity(**folder);
  if (!found) return fail(found.error());
  if (*found == 0 && !is_new_)
    return fail(Errc::io, "'{}' holds no store, but {:016x} was there: is its disk mounted?", path_,
                identity_);
  if (*found != 0 && *found != identity_)
    return fail(Errc::io, "'{}' holds store {:016x}, but {:016x} was there", path_, *found, identity_);
  return folder;
}

Result<std::unique_ptr<journal::FolderLock>> StoreDoor::lock() {
  auto folder = enter();
  if (!folder) return fail(folder.error());
  auto lock = (*folder)->lock();
  if (!lock) return lock;
  was_locked_ = true;
  const std::lock_guard guard(mutex_);
  inside_ = *std::move(folder);
  return lock;
}

Result<std::shared_ptr<journal::Folder>> StoreDoor::inside() const {
  const std::lock_guard guard(mutex_);
  if (!inside_) return fail(Errc::io, "'{}' is not open", path_);
  return inside_;
}

Result<std::vector<std::string>> StoreDoor::list() {
  const auto folder = inside();
  if (!folder) return fail(folder.error());
  return (*folder)->list();
}

Result<std::unique_ptr<journal::File>> StoreDoor::create(std::string_view name) {
  const auto folder = inside();
  if (!folder) return fail(folder.error());
  return (*folder)->create(name);
}

Result<std::unique_ptr<journal::File>> StoreDoor::open(std::string_view name, Mode mode) {
  const auto folder = inside();
  if (!folder) return fail(folder.error());
  return (*folder)->open(name, mode);
}

Result<void> StoreDoor::rename(std::string_view from, std::string_view to) {
  const auto folder = inside();
  if (!folder) return fail(folder.error());
  return (*folder)->rename(from, to);
}

Result<void> StoreDoor::remove(std::string_view name) {
  const auto folder = inside();
  if (!folder) return fail(folder.error());
  return (*folder)->remove(name);
}

Result<void> StoreDoor::sync() {
  const auto folder = inside();
  if (!folder) return fail(folder.error());
  return (*folder)->sync();
}

}  // namespace omnibus::node
