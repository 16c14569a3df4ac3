// A journal on a simulated disk with an owner that remembers everything, stepped by the test.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "journal/file_journal.hpp"
#include "journal/sim_disk.hpp"

namespace omnibus::journal {

// Tasks in one queue, run one by one: time stands still between steps.
class StepRunner {
 public:
  Runner runner() {
    return [this](Task task) { tasks_.push_back(std::move(task)); };
  }
  bool step() {
    if (tasks_.empty()) return false;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    task();
    return true;
  }
  [[nodiscard]] std::size_t waiting() const { return tasks_.size(); }
  void clear() { tasks_.clear(); }

 private:
  std::deque<Task> tasks_;
};

// Four threads as four queues; the seed chooses whose turn it is.
class RandomRunners {
 public:
  explicit RandomRunners(Random& random) : random_(random) {}
  Runners runners() { return {queue(0), queue(1), queue(2), queue(3)}; }
  bool step() {
    std::array<std::size_t, 4> ready{};
    std::size_t count = 0;
    for (std::size_t i = 0; i < queues_.size(); ++i)
      if (!queues_[i].empty()) ready[count++] = i;
    if (count == 0) return false;
    auto& queue = queues_[ready[random_.below(count)]];
    Task task = std::move(queue.front());
    queue.pop_front();
    task();
    return true;
  }
  void clear() {
    for (auto& queue : queues_) queue.clear();
  }

 private:
  Runner queue(std::size_t index) {
    return [this, index](Task task) { queues_[index].push_back(std::move(task)); };
  }
  Random& random_;
  std::array<std::deque<Task>, 4> queues_;
};

struct Seen {
  Position position;
  std::uint16_t kind = 0;
  std::uint32_t partition = 0;
  Life life = Life::log;
  std::string body;
  bool operator==(const Seen&) const = default;
};

class RecordingOwner : public JournalOwner {
 public:
  void on_checkpoint(Bytes piece) override { checkpoint += as_text(piece); }
  void on_replay(const RecordView& record) override {
    replayed.push_back(
        {record.position, record.kind, record.partition, record.life, std::string(as_text(record.body))});
    if (journal && record.life == Life::lasting)
      journal->hold(record.position, static_cast<std::uint32_t>(record.body.size()));
  }
  void on_opened(const Opened& what) override { opened = what; }
  void on_durable(Position through) override {
    EXPECT_GT(through, durable);
    durable = through;
  }
  void on_failed(const Failure& what) override { failures.push_back(what); }
  void on_damage(const Damage& what) override { damages.push_back(what); }
  void on_space(bool enough) override { space.push_back(enough); }
  void on_checkpoint_end(const Result<Position>& covers) override { checkpoints.push_back(covers); }
  void on_warning(const std::string& what) override { warnings.push_back(what); }
  void relocate(const RecordView& record) override {
    relocated.push_back(record.position);
    if (on_relocate) on_relocate(record);
  }

  void forget() {
    checkpoint.clear();
    replayed.clear();
    opened.reset();
    durable = Position{};
  }

  Journal* journal = nullptr;
  std::string checkpoint;
  std::vector<Seen> replayed;
  std::optional<Opened> opened;
  Position durable;
  std::vector<Failure> failures;
  std::vector<Damage> damages;
  std::vector<bool> space;
  std::vector<Result<Position>> checkpoints;
  std::vector<std::string> warnings;
  std::vector<Position> relocated;
  std::function<void(const RecordView&)> on_relocate;
};

class JournalRig {
 public:
  explicit JournalRig(FileJournalSettings wanted = {.segment_bytes = 256u << 10}, std::uint64_t seed = 1)
      : settings(wanted), disk(SimDisk::make(seed)) {
    if (settings.store == 0) settings.store = 0x0123456789abcdef;
    start();
  }

  // A new process: nothing of the old one is left but the disk.
  void start() {
    io.clear();
    journal.reset();
    journal = std::make_unique<FileJournal>(
        disk->folder(), settings, Runners{io.runner(), io.runner(), io.runner(), io.runner()}, owner);
    owner.forget();
    owner.journal = journal.get();
  }
  bool open() {
    journal->open();
    run();
    return journal->is_open();
  }
  void close() {
    bool done = false;
    journal->close([&] { done = true; });
    run();
    EXPECT_TRUE(done);
  }
  void run() {
    while (io.step()) {
    }
  }
  void crash_and_open() {
    disk->crash();
    start();
    EXPECT_TRUE(open()) << (owner.failures.empty() ? "" : owner.failures.back().error.detail);
  }
  void restart() {
    close();
    start();
    EXPECT_TRUE(open());
  }

  Position append(std::string_view body, Life life = Life::log, std::uint32_t partition = 0) {
    Record record;
    record.kind = 7;
    record.partition = partition;
    record.life = life;
    record.head = as_bytes(body);
    record.held_bytes = body.size();
    const auto at = journal->append(record);
    EXPECT_TRUE(at) << at.error().detail;
    return at ? *at : Position{};
  }
  void commit() {
    journal->commit();
    run();
  }
  Result<StoredRecord> read(Position position) {
    std::optional<Result<StoredRecord>> answer;
    journal->read(position, [&](Result<StoredRecord> record) { answer = std::move(record); });
    run();
    EXPECT_TRUE(answer);
    return std::move(*answer);
  }
  void checkpoint(std::string_view bytes) {
    journal->begin_checkpoint();
    journal->checkpoint_append(as_bytes(bytes));
    journal->end_checkpoint(journal->durable());
    run();
  }
  [[nodiscard]] std::vector<std::string> replayed() const {
    std::vector<std::string> bodies;
    for (const Seen& seen : owner.replayed) bodies.push_back(seen.body);
    return bodies;
  }
  [[nodiscard]] std::size_t segments_on_disk() const {
    std::size_t count = 0;
    for (const std::string& name : disk->names()) count += segment_of_name(name).has_value();
    return count;
  }

  FileJournalSettings settings;
  std::shared_ptr<SimDisk> disk;
  StepRunner io;
  RecordingOwner owner;
  std::unique_ptr<FileJournal> journal;
};

}  // namespace omnibus::journal
