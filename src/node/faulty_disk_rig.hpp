// A real folder that fails when the test says so.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "journal/disk.hpp"
#include "journal/segment_format.hpp"

namespace omnibus::node {

enum class Fault : std::uint8_t {
  none,
  sync,   // no sync succeeds
  space,  // nothing more is reserved
  gone,   // the folder, with all that is in it
  // What the next one who comes there meets. A segment is begun by the first record after the store opened.
  new_segment_fails,    // then it is none
  new_segment_hangs,    // then it is `hanging`
  third_segment_hangs,  // where its records are read, in the middle of a recovery; then `hanging`
  hanging,              // until it is another one
};

inline void hang_if(Fault fault, std::atomic<Fault>& now) {
  if (now.compare_exchange_strong(fault, Fault::hanging)) now.wait(Fault::hanging);
}
// Who hangs goes on.
inline void set(std::atomic<Fault>& fault, Fault to) {
  fault = to;
  fault.notify_all();
}

class FaultyFile final : public journal::File {
 public:
  FaultyFile(std::unique_ptr<journal::File> file, bool is_third, std::atomic<Fault>& fault)
      : file_(std::move(file)), is_third_(is_third), fault_(fault) {}
  Result<std::size_t> read(std::uint64_t offset, std::span<std::uint8_t> into) override {
    // The header alone is looked at before.
    if (is_third_ && into.size() > sizeof(journal::SegmentHeader))
      hang_if(Fault::third_segment_hangs, fault_);
    if (fault_ == Fault::gone) return fail(Errc::io, "the disk is gone");
    return file_->read(offset, into);
  }
  Result<void> write(std::uint64_t offset, std::span<const Bytes> pieces) override {
    if (fault_ == Fault::gone) return fail(Errc::io, "the disk is gone");
    return file_->write(offset, pieces);
  }
  Result<void> sync() override {
    if (fault_ == Fault::gone || fault_ == Fault::sync) return fail(Errc::io, "the sync failed");
    return file_->sync();
  }
  Result<void> allocate(std::uint64_t size) override {
    if (fault_ == Fault::gone) return fail(Errc::io, "the disk is gone");
    if (fault_ == Fault::space) return fail(Errc::resource_limit_exceeded, "no space left on device");
    return file_->allocate(size);
  }
  Result<void> truncate(std::uint64_t size) override {
    if (fault_ == Fault::gone) return fail(Errc::io, "the disk is gone");
    return file_->truncate(size);
  }
  Result<std::uint64_t> size() override {
    if (fault_ == Fault::gone) return fail(Errc::io, "the disk is gone");
    return file_->size();
  }

 private:
  std::unique_ptr<journal::File> file_;
  const bool is_third_;  // segment
  std::atomic<Fault>& fault_;
};

class FaultyFolder final : public journal::Folder {
 public:
  FaultyFolder(std::shared_ptr<journal::Folder> folder, std::atomic<Fault>& fault)
      : folder_(std::move(folder)), fault_(fault) {}
  Result<std::vector<std::string>> list() override {
    if (fault_ == Fault::gone) return gone();
    return folder_->list();
  }
  Result<std::unique_ptr<journal::File>> create(std::string_view name) override {
    if (fault_ == Fault::gone) return gone();
    return faulty(name, folder_->create(name));
  }
  Result<std::unique_ptr<journal::File>> open(std::string_view name, Mode mode) override {
    if (fault_ == Fault::gone) return gone();
    return faulty(name, folder_->open(name, mode));
  }
  Result<void> rename(std::string_view from, std::string_view to) override {
    if (fault_ == Fault::gone) return gone();
    if (journal::segment_of_name(to)) {
      Fault fails = Fault::new_segment_fails;
      if (fault_.compare_exchange_strong(fails, Fault::none)) return fail(Errc::io, "the rename failed");
      hang_if(Fault::new_segment_hangs, fault_);
    }
    return folder_->rename(from, to);
  }
  Result<void> remove(std::string_view name) override {
    if (fault_ == Fault::gone) return gone();
    return folder_->remove(name);
  }
  Result<void> sync() override {
    if (fault_ == Fault::gone || fault_ == Fault::sync) return fail(Errc::io, "the sync failed");
    return folder_->sync();
  }
  Result<std::unique_ptr<journal::FolderLock>> lock() override {
    if (fault_ == Fault::gone) return gone();
    return folder_->lock();
  }

 private:
  static std::unexpected<Error> gone() { return fail(Errc::not_found, "there is no such folder"); }
  Result<std::unique_ptr<journal::File>> faulty(std::string_view name,
                                                Result<std::unique_ptr<journal::File>> file) {
    if (!file) return file;
    return std::make_unique<FaultyFile>(*std::move(file), name == journal::segment_name(3), fault_);
  }

  std::shared_ptr<journal::Folder> folder_;
  std::atomic<Fault>& fault_;
};

}  // namespace omnibus::node
