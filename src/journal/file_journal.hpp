// The journal in a folder: segments, checkpoints, an epoch. See journal.hpp for what it promises.
//
// Lives on the owner's core. What touches the disk is handed to runners as tasks that own everything they
// use, one batch at a time, and comes back through `post`; the journal may be destroyed while tasks are
// under way (that is a crash as far as the store is concerned), but not from inside a callback.
//
// Space comes back by segment. One is deleted when no lasting record in it is held, the last checkpoint
// covers it, and everything that led to this is durable itself; one that is mostly dead has its last
// records relocated (file_journal_space.cpp). What is kept in memory is a few words per segment, not per
// record.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "journal/batch.hpp"
#include "journal/checkpoint_file.hpp"
#include "journal/disk.hpp"
#include "journal/journal.hpp"
#include "journal/record_chunk.hpp"
#include "journal/recovery.hpp"
#include "journal/run_task.hpp"
#include "journal/segment_writer.hpp"
#include "journal/spares.hpp"

namespace omnibus::journal {

class RelocationScan;

struct FileJournalSettings {
  // The identity of a new store, random and not 0; seeds its checksums. 0: only open what exists.
  std::uint64_t store = 0;
  // A larger record gets a segment of its own.
  std::uint64_t segment_bytes = 64u << 20;
  std::uint32_t record_bytes_max = 256u << 20;
  // Bound on what waits for the disk in memory.
  std::uint64_t gathered_bytes_max = 512u << 20;
  // Reserve a segment's space before it is needed: a full disk is noticed a segment early.
  bool preallocate = true;
  // An old segment with a smaller share of live bytes is emptied by relocation.
  double relocate_below = 0.3;
  // How much is read for relocation between two syncs.
  std::size_t relocate_bytes = 256u << 10;
};

// What a FileJournal remembers of work that goes on over many turns.
struct RelocationUnderWay {
  std::uint32_t segment = 0;
  std::shared_ptr<RelocationScan> scan;
  bool reading = false;
  bool ended = false;
  bool failed = false;  // it could not be read to its end
  Position wait_for;
};
struct CheckpointUnderWay {
  std::shared_ptr<CheckpointWriter> writer;
  std::vector<std::uint8_t> buffer;
  std::uint32_t pieces_under_way = 0;
  bool ended = false;
  bool installing = false;
  Position covers;
  Position wait_for;
};

class FileJournal final : public Journal {
 public:
  FileJournal(std::shared_ptr<Folder> folder, FileJournalSettings settings, Runners runners,
              JournalOwner& owner);
  ~FileJournal() override;
  FileJournal(const FileJournal&) = delete;
  FileJournal& operator=(const FileJournal&) = delete;

  void open() override;
  void close(std::move_only_function<void()> done) override;
  [[nodiscard]] Result<Position> append(const Record& record) override;
  void commit() override;
  void hold(Position position, std::uint32_t bytes) override;
  void release(Position position, std::uint32_t bytes) override;
  void read(Position position, ReadDone done) override;
  void begin_checkpoint() override;
  [[nodiscard]] bool checkpoint_ready() const override;
  void checkpoint_append(Bytes piece) override;
  void end_checkpoint(Position covers) override;
  void probe_space() override;
  [[nodiscard]] bool is_open() const override { return state_ == State::open; }
  [[nodiscard]] Position appended() const override { return appended_; }
  [[nodiscard]] Position durable() const override { return durable_; }
  [[nodiscard]] Stats stats() const override;

 private:
  enum class State : std::uint8_t { closed, opening, open, closing, failed };
  struct Segment {
    std::uint32_t end = 0;
    bool end_known = true;  // false: the segment after it is gone, so this is only how long the file is
    std::uint64_t live_shares = 0;
    std::uint64_t live_bytes = 0;
    // Of lasting records, as they were appended: how much the held bytes were, and what they took with heads
    // and frames. 0 for what an earlier process wrote.
    std::uint64_t held_bytes = 0;
    std::uint64_t lasting_bytes = 0;
    bool damaged = false;   // damage was met in it
    Position release_mark;  // what must be durable before the segment may go
    // Relocation was tried and could not empty it: damage keeps it, or it could not be read.
    enum class Stuck : std::uint8_t { no, until_checkpoint, for_good } stuck = Stuck::no;
  };
  template <class Work, class Then>
  void run(const Runner& runner, const std::shared_ptr<char>& token, Work work, Then then) {
    run_task(runner, runners_.post, token, std::move(work), std::move(then));
  }
  void recover_next(std::shared_ptr<Recovery> recovery);
  void recovered(Recovery::Chunk chunk, const std::shared_ptr<Recovery>& recovery);
  void start_writing(Recovery& recovery);
  void fail_with(Failure failure);
  void append_to_batch(const Record& record, std::uint64_t stride, std::uint16_t flags);
  void submit();
  void written(std::unique_ptr<Batch> batch, const std::optional<Failure>& failure);
  void go_on_closing();
  void released_from(std::uint32_t number);
  void maintain();
  void remove_segment(std::uint32_t number);
  void end_relocation();
  void relocate_next();
  void relocate_chunk(const RecordChunk& chunk, bool ended);
  void relocation_failed(const Error& error);
  // Tells of it, and remembers the segment it is in.
  void met(const Damage& damage);
  void try_stuck_again();
  void prepare_spare();
  void send_checkpoint_piece();
  void install_checkpoint();
  [[nodiscard]] bool rolls_for(std::uint64_t stride, bool with_previous) const;
  [[nodiscard]] bool is_ripe(std::uint32_t number, const Segment& segment) const;

  std::shared_ptr<Folder> folder_;
  FileJournalSettings settings_;
  Runners runners_;
  JournalOwner& owner_;
  // What comes back finds out by these whether it is still wanted: at all, and since this open().
  std::shared_ptr<char> life_ = std::make_shared<char>();
  std::shared_ptr<char> session_;

  State state_ = State::closed;
  std::uint64_t store_ = 0;
  Position appended_;
  Position durable_;
  std::shared_ptr<SegmentWriter> writer_;
  std::deque<std::unique_ptr<Batch>> gathered_;
  std::uint64_t gathered_bytes_ = 0;
  bool flying_ = false;
  bool commit_wanted_ = false;
  std::vector<std::unique_ptr<Batch>> free_batches_;
  std::uint32_t active_ = 0;  // the segment that records go to; 0: the next record starts one
  std::uint32_t newest_ = 0;  // the highest number there is
  std::uint32_t offset_ = 0;
  std::uint32_t batch_number_ = 0;

  std::map<std::uint32_t, Segment> segments_;
  std::map<std::uint32_t, std::uint64_t> ghosts_;  // held shares in segments that are not there
  std::set<std::uint32_t> ripe_;
  std::optional<RelocationUnderWay> relocation_;
  Spares spares_;
  bool active_is_written_ = false;  // zeros were in it before records
  std::uint64_t active_bytes_ = 0;  // how long the active segment is to become

  std::optional<CheckpointUnderWay> checkpoint_;
  std::uint64_t checkpoint_number_ = 0;
  Position covers_;

  std::map<std::uint32_t, std::shared_ptr<File>> read_files_;
  std::vector<std::uint32_t> reads_under_way_;  // the segment of each, also from before this open()
  // What an open() cut off that failed later: told by the one that succeeds.
  Position cut_from_;
  std::uint64_t cut_bytes_ = 0;
  std::map<Position, std::uint32_t> bad_places_;  // how often each could not be read
  bool mark_written_ = false;
  std::move_only_function<void()> closed_;
  Stats counted_;
};

}  // namespace omnibus::journal
