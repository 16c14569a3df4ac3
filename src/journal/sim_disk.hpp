// A disk in memory that fails the way disks fail, repeatably from a seed.
//
// What was not synced may be lost, torn or kept at crash(), each change on its own; a name that was not
// synced with its folder may be missing. Can be told to run out of space, to fail writes or syncs, and to
// stop in the middle of any operation. One thread. Used by tests and by the simulator.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "journal/disk.hpp"

namespace omnibus::journal {

class SimDisk : public std::enable_shared_from_this<SimDisk> {
 public:
  [[nodiscard]] static std::shared_ptr<SimDisk> make(std::uint64_t seed);

  // The one folder it has. Handles from before a crash fail.
  [[nodiscard]] std::shared_ptr<Folder> folder();

  // The machine loses power and comes back: everything below is as the platters have it.
  void crash();
  // The operation after the next `operations` ones is cut short, and every later one fails, until crash().
  void stop_after(std::uint64_t operations) { stop_at_ = operations_ + operations; }
  // The process dies, the machine goes on: nothing is lost, locks are free, handles fail.
  void kill();

  void set_capacity(std::uint64_t bytes) { capacity_ = bytes; }
  void fail_writes(bool fails) { fail_writes_ = fails; }
  // The next sync of a file fails, and what it should have made durable never will be, although it reads
  // well until the next crash.
  void fail_next_sync(bool fails = true) { fail_sync_ = fails; }
  void fail_reads(bool fails) { fail_reads_ = fails; }
  // Only of files that were opened for reading: the epoch, which is read with each write, still can be.
  void fail_cold_reads(bool fails) { fail_cold_reads_ = fails; }
  // Only of what the system does not have in memory, which is the first page of every file.
  void fail_uncached_reads(bool fails) { fail_uncached_reads_ = fails; }
  // A bad spot: what touches these bytes of a file cannot be read.
  void fail_reads_at(const std::string& name, std::uint64_t from, std::uint64_t to);

  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  [[nodiscard]] std::uint64_t syncs() const { return syncs_; }
  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }
  [[nodiscard]] std::uint64_t bytes_used() const;
  [[nodiscard]] bool stopped() const { return operations_ > stop_at_; }
  [[nodiscard]] std::vector<std::string> names() const;
  // The bytes of a file as they read, to be damaged or compared; null when there is none.
  [[nodiscard]] std::vector<std::uint8_t>* contents(const std::string& name);

 private:
  friend class SimFile;
  friend class SimFolder;
  friend class SimLock;
  using Content = std::vector<std::uint8_t>;
  struct Change {
    std::uint64_t offset = 0;
    Content bytes;
    std::optional<std::uint64_t> resize;
  };
  struct Inode {
    Content current;
    Content durable;
    std::vector<Change> pending;
  };
  struct NameChange {
    std::string name;
    std::shared_ptr<Inode> inode;  // null: removed
    std::string also_removed;      // the old name of a rename
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>, std::less<>>;

  explicit SimDisk(std::uint64_t seed) : random_(seed) {}
  static void apply(Content& content, const Change& change);
  static void apply(Names& names, const NameChange& change);
  void change_names(NameChange change);
  void persist_some(Inode& inode);
  [[nodiscard]] Result<void> operate(std::uint64_t generation);

  Random random_;
  Names current_;
  Names durable_;
  std::vector<NameChange> pending_;
  std::uint64_t generation_ = 1;
  bool locked_ = false;
  std::uint64_t operations_ = 0;
  std::uint64_t stop_at_ = UINT64_MAX;
  std::uint64_t syncs_ = 0;
  std::uint64_t bytes_read_ = 0;
  std::uint64_t capacity_ = UINT64_MAX;
  bool fail_writes_ = false;
  bool fail_sync_ = false;
  bool fail_reads_ = false;
  bool fail_cold_reads_ = false;
  bool fail_uncached_reads_ = false;
  std::shared_ptr<Inode> bad_inode_;
  std::uint64_t bad_from_ = 0;
  std::uint64_t bad_to_ = 0;
};

}  // namespace omnibus::journal
