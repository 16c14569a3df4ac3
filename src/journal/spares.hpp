// The files that become the next segments: the space of one is reserved before it is needed, so that a full
// disk is noticed a segment early.
//
// A sync of reserved space that nobody has written yet has to change what the file system knows of the file,
// which takes longer, and much longer now and then, than writing over what was written. So the files of
// segments that are dead are used again, as many as die between two checkpoints. Where there is none, small
// batches, which feel such a sync most, get a file that is written with zeros: one that no batch waits for, a
// piece now and then, so that the disk stays free. Where there is more to write, what a sync costs is shared
// by many, and the zeros would be as much again.
//
// Where a disk has no room for a whole segment and there is none to go on with, a small one lets the owner
// settle what it has, which is what frees space.
//
// Lives on the owner's core; the disk is touched by the background runner.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "journal/disk.hpp"
#include "journal/journal.hpp"

namespace omnibus::journal {

// A file whose space is reserved already, under a passing name.
struct Spare {
  std::unique_ptr<File> file;
  std::string name;
  std::uint64_t bytes = 0;    // reserved
  std::uint64_t written = 0;  // from its beginning: with zeros, or with the records of a dead segment
  bool used_before = false;
};

class Spares {
 public:
  // `on_space` hears when the disk has no room for a spare, and when it has again; `on_warning` why a file
  // could not be used again, removed or written with zeros.
  Spares(std::shared_ptr<Folder> folder, std::uint64_t segment_bytes, const Runners& runners,
         std::function<void(bool enough)> on_space, std::function<void(const std::string& what)> on_warning);

  // As in a new process; what is under way comes back to nobody once `session` is gone.
  void start(const std::shared_ptr<char>& session);
  enum class Least : std::uint8_t { whole, small };
  // Unless there is a whole one, or it is on its way; `tried` hears when it is there or cannot be.
  void make(Least least, std::move_only_function<void()> tried = {});
  [[nodiscard]] Spare take();
  [[nodiscard]] std::vector<Spare> take_all();
  // A segment is dead: its file is used again, which takes that nobody reads it, or removed; also one that
  // cannot be used again is. `done` hears when its name is gone, or cannot be removed.
  void use_again(std::uint32_t segment, std::move_only_function<void()> done);
  void remove(std::uint32_t segment, std::move_only_function<void()> done);
  // Gives the space of all but the next one back to the disk.
  void give_back();
  // A batch is durable.
  void count(std::uint64_t batch_bytes);

  [[nodiscard]] bool is_there() const { return spare_.file != nullptr; }
  [[nodiscard]] std::uint64_t bytes() const { return spare_.bytes; }
  [[nodiscard]] bool is_written() const { return spare_.file && spare_.written >= segment_bytes_; }
  // The disk has no room for a whole one; exhausted: not even for a small one.
  [[nodiscard]] bool is_full() const { return full_; }
  [[nodiscard]] bool is_exhausted() const { return exhausted_; }
  // Files of dead segments are welcome: there are not enough, and the disk has room.
  [[nodiscard]] bool wants_more() const;
  // Batches are small: a segment that is written already would serve them better.
  [[nodiscard]] bool should_be_written() const;

 private:
  void write_piece();
  void put(Spare spare);
  void discard(Spare spare);

  std::shared_ptr<Folder> folder_;
  const std::uint64_t segment_bytes_;
  const Runners& runners_;
  std::function<void(bool)> on_space_;
  std::function<void(const std::string&)> on_warning_;
  std::weak_ptr<char> session_;
  Spare spare_;               // the next one
  std::vector<Spare> stock_;  // more whole ones
  std::uint32_t taking_over_ = 0;
  std::uint32_t made_ = 0;
  bool under_way_ = false;
  bool full_ = false;
  bool exhausted_ = false;
  std::uint32_t small_batches_ = 0;  // since the last large one
};

}  // namespace omnibus::journal
