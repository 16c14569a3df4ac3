#include "journal/sim_disk.hpp"

#include <algorithm>
#include <set>

namespace omnibus::journal {
namespace {

constexpr std::uint64_t sector_bytes = 512;

}  // namespace

class SimFile final : public File {
 public:
  SimFile(std::shared_ptr<SimDisk> disk, std::shared_ptr<SimDisk::Inode> inode, bool writable)
      : disk_(std::move(disk)),
        inode_(std::move(inode)),
        generation_(disk_->generation_),
        writable_(writable) {}

  Result<std::size_t> read(std::uint64_t offset, std::span<std::uint8_t> into) override {
    if (generation_ != disk_->generation_) return fail(Errc::io, "a handle from before the crash");
    constexpr std::uint64_t page_bytes = 4096;
    if (disk_->fail_reads_ || (disk_->fail_cold_reads_ && !writable_) ||
        (disk_->fail_uncached_reads_ && offset >= page_bytes) ||
        (inode_ == disk_->bad_inode_ && offset < disk_->bad_to_ && offset + into.size() > disk_->bad_from_))
      return fail(Errc::io, "read: Input/output error");
    const auto& bytes = inode_->current;
    if (offset >= bytes.size()) return std::size_t{0};
    const std::size_t part = std::min<std::size_t>(into.size(), bytes.size() - offset);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), part, into.begin());
    disk_->bytes_read_ += part;
    return part;
  }

  Result<std::size_t> read_from_disk(std::uint64_t offset, std::span<std::uint8_t> into) override {
    if (disk_->fail_uncached_reads_) return fail(Errc::io, "read: Input/output error");
    return read(offset, into);
  }

  Result<void> write(std::uint64_t offset, std::span<const Bytes> pieces) override {
    SimDisk::Change change;
    change.offset = offset;
    for (const Bytes piece : pieces) change.bytes.insert(change.bytes.end(), piece.begin(), piece.end());
    const auto operated = disk_->operate(generation_);
    if (!operated) {
      // Cut short in the middle: some of it reached the cache.
      if (generation_ == disk_->generation_ && disk_->operations_ == disk_->stop_at_ + 1) {
        change.bytes.resize(disk_->random_.below(change.bytes.size() + 1));
        put(std::move(change));
      }
      return operated;
    }
    if (!writable_) return fail(Errc::io, "write: opened for reading");
    if (disk_->fail_writes_) {
      change.bytes.resize(disk_->random_.below(change.bytes.size() + 1));
      put(std::move(change));
      return fail(Errc::io, "write: Input/output error");
    }
    const std::uint64_t end = offset + change.bytes.size();
    const std::uint64_t room = disk_->capacity_ - std::min(disk_->capacity_, disk_->bytes_used());
    if (end > inode_->current.size() && end - inode_->current.size() > room) {
      const std::uint64_t fits = inode_->current.size() + room;
      change.bytes.resize(fits > offset ? fits - offset : 0);
      put(std::move(change));
      return fail(Errc::resource_limit_exceeded, "write: No space left on device");
    }
    put(std::move(change));
    return {};
  }

  Result<void> sync() override {
    const auto operated = disk_->operate(generation_);
    if (!operated) return operated;
    ++disk_->syncs_;
    if (std::exchange(disk_->fail_sync_, false)) {
      // The kernel marks the pages clean: some were written, the others never will be.
      disk_->persist_some(*inode_);
      return fail(Errc::io, "sync: Input/output error");
    }
    for (const auto& change : inode_->pending) SimDisk::apply(inode_->durable, change);
    inode_->pending.clear();
    return {};
  }

  Result<void> allocate(std::uint64_t bytes) override {
    const auto operated = disk_->operate(generation_);
    if (!operated) return operated;
    if (bytes <= inode_->current.size()) return {};
    const std::uint64_t used = disk_->bytes_used();
    if (used + bytes - inode_->current.size() > disk_->capacity_)
      return fail(Errc::resource_limit_exceeded, "allocate: No space left on device");
    put(SimDisk::Change{0, {}, bytes});
    return {};
  }

  Result<void> truncate(std::uint64_t bytes) override {
    const auto operated = disk_->operate(generation_);
    if (!operated) return operated;
    put(SimDisk::Change{0, {}, bytes});
    return {};
  }

  Result<std::uint64_t> size() override {
    if (generation_ != disk_->generation_) return fail(Errc::io, "a handle from before the crash");
    return inode_->current.size();
  }

 private:
  void put(SimDisk::Change change) {
    SimDisk::apply(inode_->current, change);
    inode_->pending.push_back(std::move(change));
  }

  std::shared_ptr<SimDisk> disk_;
  std::shared_ptr<SimDisk::Inode> inode_;
  std::uint64_t generation_;
  bool writable_;
};

class SimLock final : public FolderLock {
 public:
  explicit SimLock(std::shared_ptr<SimDisk> disk) : disk_(std::move(disk)), generation_(disk_->generation_) {
    disk_->locked_ = true;
  }
  ~SimLock() override {
    if (generation_ == disk_->generation_) disk_->locked_ = false;
  }
  SimLock(const SimLock&) = delete;
  SimLock& operator=(const SimLock&) = delete;

 private:
  std::shared_ptr<SimDisk> disk_;
  std::uint64_t generation_;
};

class SimFolder final : public Folder {
 public:
  explicit SimFolder(std::shared_ptr<SimDisk> disk)
      : disk_(std::move(disk)), generation_(disk_->generation_) {}

  Result<std::vector<std::string>> list() override {
    if (generation_ != disk_->generation_) return fail(Errc::io, "a handle from before the crash");
    return disk_->names();
  }
  Result<std::unique_ptr<File>> create(std::string_view name) override {
    const auto operated = disk_->operate(generation_);
    if (!operated) return fail(operated.error());
    auto inode = std::make_shared<SimDisk::Inode>();
    disk_->change_names({std::string(name), inode, {}});
    return std::make_unique<SimFile>(disk_, std::move(inode), true);
  }
  Result<std::unique_ptr<File>> open(std::string_view name, Mode mode) override {
    if (generation_ != disk_->generation_) return fail(Errc::io, "a handle from before the crash");
    const auto found = disk_->current_.find(name);
    if (found == disk_->current_.end()) return fail(Errc::not_found, "open '{}': no such file", name);
    return std::make_unique<SimFile>(disk_, found->second, mode == Mode::write);
  }
  Result<void> rename(std::string_view from, std::string_view to) override {
    const auto operated = disk_->operate(generation_);
    if (!operated) return operated;
    const auto found = disk_->current_.find(from);
    if (found == disk_->current_.end()) return fail(Errc::not_found, "rename '{}': no such file", from);
    disk_->change_names({std::string(to), found->second, std::string(from)});
    return {};
  }
  Result<void> remove(std::string_view name) override {
    const auto operated = disk_->operate(generation_);
    if (!operated) return operated;
    if (!disk_->current_.contains(name)) return fail(Errc::not_found, "remove '{}': no such file", name);
    disk_->change_names({std::string(name), nullptr, {}});
    return {};
  }
  Result<void> sync() override {
    const auto operated = disk_->operate(generation_);
    if (!operated) return operated;
    disk_->durable_ = disk_->current_;
    disk_->pending_.clear();
    return {};
  }
  Result<std::unique_ptr<FolderLock>> lock() override {
    const auto operated = disk_->operate(generation_);
    if (!operated) return fail(operated.error());
    if (disk_->locked_) return fail(Errc::server_busy, "the folder is locked");
    return std::make_unique<SimLock>(disk_);
  }

 private:
  std::shared_ptr<SimDisk> disk_;
  std::uint64_t generation_;
};

std::shared_ptr<SimDisk> SimDisk::make(std::uint64_t seed) {
  return std::shared_ptr<SimDisk>(new SimDisk(seed));
}

std::shared_ptr<Folder> SimDisk::folder() { return std::make_shared<SimFolder>(shared_from_this()); }

Result<void> SimDisk::operate(std::uint64_t generation) {
  if (generation != generation_) return fail(Errc::io, "a handle from before the crash");
  if (++operations_ > stop_at_) return fail(Errc::io, "the machine has stopped");
  return {};
}

void SimDisk::apply(Content& content, const Change& change) {
  if (change.resize) {
    content.resize(*change.resize);
    return;
  }
  if (change.bytes.empty()) return;
  content.resize(std::max<std::size_t>(content.size(), change.offset + change.bytes.size()));
  std::copy(change.bytes.begin(), change.bytes.end(),
            content.begin() + static_cast<std::ptrdiff_t>(change.offset));
}

void SimDisk::apply(Names& names, const NameChange& change) {
  if (!change.also_removed.empty()) names.erase(change.also_removed);
  if (change.inode)
    names[change.name] = change.inode;
  else
    names.erase(change.name);
}

void SimDisk::change_names(NameChange change) {
  apply(current_, change);
  pending_.push_back(std::move(change));
}

// Each change that was not synced is lost, kept, kept up to some byte, or kept in some of its sectors.
void SimDisk::persist_some(Inode& inode) {
  for (Change& change : inode.pending) {
    const std::uint64_t fate = random_.below(4);
    if (fate == 0) continue;
    if (fate == 1 || change.resize) {
      apply(inode.durable, change);
      continue;
    }
    if (fate == 2) {
      change.bytes.resize(random_.below(change.bytes.size() + 1));
      apply(inode.durable, change);
      continue;
    }
    for (std::uint64_t at = 0; at < change.bytes.size();) {
      const std::uint64_t end = std::min<std::uint64_t>(
          change.bytes.size(), at + sector_bytes - (change.offset + at) % sector_bytes);
      if (random_.below(2) == 0) {
        Change part;
        part.offset = change.offset + at;
        part.bytes.assign(change.bytes.begin() + static_cast<std::ptrdiff_t>(at),
                          change.bytes.begin() + static_cast<std::ptrdiff_t>(end));
        apply(inode.durable, part);
      }
      at = end;
    }
  }
  inode.pending.clear();
}

void SimDisk::crash() {
  // Folders are journaled by the file system: a beginning of what was done survives.
  const std::uint64_t kept = random_.below(pending_.size() + 1);
  for (std::uint64_t i = 0; i < kept; ++i) apply(durable_, pending_[i]);
  pending_.clear();
  current_ = durable_;
  std::set<Inode*> done;
  for (auto& [name, inode] : current_) {
    if (!done.insert(inode.get()).second) continue;
    persist_some(*inode);
    inode->current = inode->durable;
  }
  kill();
}

void SimDisk::kill() {
  ++generation_;
  locked_ = false;
  stop_at_ = UINT64_MAX;
}

std::uint64_t SimDisk::bytes_used() const {
  std::uint64_t used = 0;
  for (const auto& [name, inode] : current_) used += inode->current.size();
  return used;
}

std::vector<std::string> SimDisk::names() const {
  std::vector<std::string> found;
  for (const auto& [name, inode] : current_) found.push_back(name);
  return found;
}

void SimDisk::fail_reads_at(const std::string& name, std::uint64_t from, std::uint64_t to) {
  const auto found = current_.find(name);
  bad_inode_ = found == current_.end() ? nullptr : found->second;
  bad_from_ = from;
  bad_to_ = to;
}

std::vector<std::uint8_t>* SimDisk::contents(const std::string& name) {
  const auto found = current_.find(name);
  return found == current_.end() ? nullptr : &found->second->current;
}

}  // namespace omnibus::journal
