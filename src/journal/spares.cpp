#include "journal/spares.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "journal/run_task.hpp"
#include "journal/segment_format.hpp"

namespace omnibus::journal {
namespace {

// Between the two is what has gathered behind one slow sync: it says nothing about the load.
constexpr std::uint64_t small_batch_bytes = 4u << 10;
constexpr std::uint64_t large_batch_bytes = 64u << 10;
constexpr std::uint32_t small_batches_min = 32;
// A piece of zeros for so many batches: a spare is ready long before a segment of small batches is full, and
// batches seldom find the disk busy with it.
constexpr std::uint32_t batches_per_piece = 16;
constexpr std::uint8_t zeros[256u << 10] = {};
// Of a whole one; so much is left to a checkpoint, which frees more.
constexpr std::uint64_t small_share = 64;
constexpr std::uint64_t small_bytes_min = 64u << 10;
// Beside the next one: about what dies at one checkpoint. More would keep from the disk what it gives to
// none.
constexpr std::size_t stock_max = 4;

// A file of the first of these sizes that there is room for.
Result<Spare> reserve(Folder& folder, std::string name, std::span<const std::uint64_t> sizes) {
  auto file = folder.create(name);
  if (!file) return fail(file.error());
  Result<void> done;
  for (const std::uint64_t size : sizes) {
    done = (*file)->allocate(size);
    if (done) done = (*file)->sync();
    if (done) return Spare{std::move(*file), std::move(name), size};
    if (done.error().code != Errc::resource_limit_exceeded) break;
    // What was reserved of it is given back.
    if (auto cut = (*file)->truncate(0); !cut) return fail(cut.error());
  }
  file->reset();
  static_cast<void>(folder.remove(name));
  return fail(done.error());
}

// The file of a dead segment under a passing name, as long as a segment that is written into it becomes.
Result<Spare> reuse(Folder& folder, std::uint32_t segment, std::string name, std::uint64_t bytes) {
  auto done = folder.rename(segment_name(segment), name);
  // Before a byte is written over: a crash must not leave other records under the old name.
  if (done) done = folder.sync();
  if (!done) return fail(done.error());
  auto file = folder.open(name, Folder::Mode::write);
  if (!file) return fail(file.error());
  const auto size = (*file)->size();
  if (!size) return fail(size.error());
  done = (*file)->allocate(bytes + sizeof(RecordHeader));
  if (done) done = (*file)->sync();
  if (!done) return fail(done.error());
  return Spare{std::move(*file), std::move(name), bytes, *size, true};
}

}  // namespace

Spares::Spares(std::shared_ptr<Folder> folder, std::uint64_t segment_bytes, const Runners& runners,
               std::function<void(bool enough)> on_space,
               std::function<void(const std::string& what)> on_warning)
    : folder_(std::move(folder)),
      segment_bytes_(segment_bytes),
      runners_(runners),
      on_space_(std::move(on_space)),
      on_warning_(std::move(on_warning)) {}

void Spares::start(const std::shared_ptr<char>& session) {
  session_ = session;
  spare_ = {};
  stock_.clear();
  taking_over_ = 0;
  under_way_ = full_ = exhausted_ = false;
  small_batches_ = 0;
}

bool Spares::should_be_written() const { return small_batches_ >= small_batches_min; }

bool Spares::wants_more() const { return !full_ && stock_.size() + taking_over_ < stock_max; }

Spare Spares::take() {
  const auto from_stock = [this] {
    Spare one;
    if (!stock_.empty()) {
      one = std::move(stock_.back());
      stock_.pop_back();
    }
    return one;
  };
  Spare spare = spare_.file ? std::move(spare_) : from_stock();
  spare_ = from_stock();
  return spare;
}

void Spares::put(Spare spare) {
  const bool is_better = spare.written > spare_.written || spare.bytes > spare_.bytes;
  if (!spare_.file || is_better) std::swap(spare, spare_);
  if (!spare.file) return;
  if (spare.bytes >= segment_bytes_ && stock_.size() < stock_max) return stock_.push_back(std::move(spare));
  discard(std::move(spare));
}

std::vector<Spare> Spares::take_all() {
  std::vector<Spare> all = std::exchange(stock_, {});
  if (spare_.file) all.push_back(std::exchange(spare_, {}));
  return all;
}

void Spares::remove(std::uint32_t segment, std::move_only_function<void()> done) {
  run_task(
      runners_.background, runners_.post, session_,
      [folder = folder_, segment] {
        // A removal that a crash undoes, or that fails, leaves a segment which the next open finds dead.
        auto removed = folder->remove(segment_name(segment));
        if (removed) removed = folder->sync();
        return removed;
      },
      [this, segment, done = std::move(done)](const Result<void>& removed) mutable {
        if (!removed)
          on_warning_(fmt::format("the file of dead segment {} cannot be removed: {}", segment,
                                  removed.error().detail));
        done();
      });
}

void Spares::use_again(std::uint32_t segment, std::move_only_function<void()> done) {
  ++taking_over_;
  run_task(
      runners_.background, runners_.post, session_,
      [folder = folder_, segment, name = spare_name(++made_), bytes = segment_bytes_] {
        auto spare = reuse(*folder, segment, name, bytes);
        // Under whichever of its names it is; then it is as if it had been removed at once.
        if (!spare)
          for (const std::string& left : {segment_name(segment), name})
            static_cast<void>(folder->remove(left));
        return spare;
      },
      [this, segment, done = std::move(done)](Result<Spare> spare) mutable {
        --taking_over_;
        if (spare) {
          put(std::move(*spare));
          // The disk may have been found full meanwhile.
          if (std::exchange(full_, false)) on_space_(true);
          exhausted_ = false;
        } else {
          on_warning_(fmt::format("the file of dead segment {} cannot be used again: {}", segment,
                                  spare.error().detail));
        }
        done();
      });
}

void Spares::give_back() {
  for (Spare& spare : std::exchange(stock_, {})) discard(std::move(spare));
}

void Spares::count(std::uint64_t batch_bytes) {
  if (batch_bytes > large_batch_bytes) small_batches_ = 0;
  if (batch_bytes > small_batch_bytes) return;
  ++small_batches_;
  if (should_be_written() && small_batches_ % batches_per_piece == 0) write_piece();
}

void Spares::make(Least least, std::move_only_function<void()> tried) {
  if (under_way_ || (spare_.file && spare_.bytes >= segment_bytes_)) return;
  under_way_ = true;
  std::vector<std::uint64_t> sizes{segment_bytes_};
  if (!spare_.file && least == Least::small)
    for (std::uint64_t size = segment_bytes_ / small_share; size >= small_bytes_min; size /= 2)
      sizes.push_back(size);
  // A name of its own: the spare before may be on its way to become a segment. A small one stays until there
  // is a whole one: somebody may need it meanwhile.
  run_task(
      runners_.background, runners_.post, session_,
      [folder = folder_, sizes = std::move(sizes), name = spare_name(++made_)] {
        return reserve(*folder, name, sizes);
      },
      [this, tried = std::move(tried)](Result<Spare> spare) mutable {
        under_way_ = false;
        const bool was_full = full_;
        if (spare) {
          full_ = spare->bytes < segment_bytes_;
          put(std::move(*spare));
          exhausted_ = false;
        } else if (spare.error().code == Errc::resource_limit_exceeded) {
          full_ = true;
          exhausted_ = !spare_.file;
        }
        // Other errors show themselves, and stop the journal, when the segment is really needed.
        if (full_ != was_full) on_space_(!full_);
        if (tried) tried();
      });
}

void Spares::discard(Spare spare) {
  // Only space is at stake, and the next open tidies up as well.
  runners_.background(
      [folder = folder_, spare = std::move(spare)] { static_cast<void>(folder->remove(spare.name)); });
}

void Spares::write_piece() {
  if (!spare_.file || spare_.bytes < segment_bytes_ || is_written()) return;
  under_way_ = true;
  struct Outcome {
    Spare spare;
    Result<void> done;
  };
  run_task(
      runners_.background, runners_.post, session_,
      [spare = std::exchange(spare_, {}), until = segment_bytes_]() mutable {
        const Bytes piece = Bytes{zeros}.first(std::min<std::uint64_t>(sizeof zeros, until - spare.written));
        auto done = spare.file->write(spare.written, {&piece, 1});
        if (done) done = spare.file->sync();
        // A disk that fails is found out by the batches; it gets no more zeros.
        spare.written = done ? spare.written + piece.size() : until;
        return Outcome{std::move(spare), std::move(done)};
      },
      [this](Outcome outcome) {
        under_way_ = false;
        if (!outcome.done)
          on_warning_(
              fmt::format("{} gets no more zeros: {}", outcome.spare.name, outcome.done.error().detail));
        put(std::move(outcome.spare));
      });
}

}  // namespace omnibus::journal
