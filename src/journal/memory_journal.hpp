// The journal of `--ephemeral` and of tests: the same calls, nothing on a disk. A record is "durable"
// once it was committed; open() always starts from nothing. Lasting records can be read until they are
// released, log records are forgotten at once. Bounded by what the owner holds.
#pragma once

#include <map>
#include <memory>

#include "journal/journal.hpp"

namespace omnibus::journal {

class MemoryJournal final : public Journal {
 public:
  MemoryJournal(Runner post, JournalOwner& owner) : post_(std::move(post)), owner_(owner) {}

  void open() override;
  void close(std::move_only_function<void()> done) override;
  [[nodiscard]] Result<Position> append(const Record& record) override;
  void commit() override;
  void hold(Position position, std::uint32_t bytes) override;
  void release(Position position, std::uint32_t bytes) override;
  void read(Position position, ReadDone done) override;
  void begin_checkpoint() override {}
  [[nodiscard]] bool checkpoint_ready() const override { return true; }
  void checkpoint_append(Bytes) override {}
  void end_checkpoint(Position covers) override;
  void probe_space() override {}
  [[nodiscard]] bool is_open() const override { return open_; }
  [[nodiscard]] Position appended() const override { return Position{last_}; }
  [[nodiscard]] Position durable() const override { return durable_; }
  [[nodiscard]] Stats stats() const override;

 private:
  void post(Task task);

  Runner post_;
  JournalOwner& owner_;
  std::shared_ptr<char> life_ = std::make_shared<char>();
  bool open_ = false;
  bool commit_posted_ = false;
  Epoch epoch_ = 0;
  std::uint64_t last_ = 0;
  Position durable_;
  struct Held {
    StoredRecord record;
    std::uint32_t shares = 0;
  };
  std::map<Position, Held> held_;
  Stats counted_;
};

}  // namespace omnibus::journal
