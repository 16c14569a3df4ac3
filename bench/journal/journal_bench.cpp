// What the journal costs over the bare disk, and how fast it comes back.
//
//   journal_bench FOLDER [SECONDS]
//
// Appends: `senders` records are under way at any time; each that becomes durable is replaced at once, so
// batches form as they would under load. The raw loop then writes the same number of bytes in batches of
// the same mean size with write + fdatasync, into one file: what the disk gives without a journal.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "journal/file_journal.hpp"
#include "journal/io_thread.hpp"
#include "journal/posix_disk.hpp"

namespace {

using namespace omnibus;
using namespace omnibus::journal;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The owner's loop: what IO threads post is run here, in order.
class Loop {
 public:
  Runner runner() {
    return [this](Task task) {
      auto* node = new Node{std::move(task), newest_.load(std::memory_order_relaxed)};
      while (!newest_.compare_exchange_weak(node->next, node)) {
      }
      if (!node->next) newest_.notify_one();
    };
  }
  void turn() {
    newest_.wait(nullptr);
    Node* taken = newest_.exchange(nullptr);
    std::vector<Node*> order;
    for (; taken; taken = taken->next) order.push_back(taken);
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
      (*node)->task();
      delete *node;
    }
  }

 private:
  struct Node {
    Task task;
    Node* next;
  };
  std::atomic<Node*> newest_{nullptr};
};

class Owner final : public JournalOwner {
 public:
  void on_checkpoint(Bytes piece) override { checkpoint_bytes += piece.size(); }
  void on_replay(const RecordView&) override { ++replayed; }
  void on_opened(const Opened&) override { opened = true; }
  void on_durable(Position through) override { durable = through; }
  void on_failed(const Failure& failure) override {
    fmt::print(stderr, "failed: {}\n", failure.error.detail);
    std::exit(1);
  }
  void on_damage(const Damage& damage) override {
    fmt::print(stderr, "damage: {}\n", damage.what);
    std::exit(1);
  }
  void on_space(bool) override {}
  void on_checkpoint_end(const Result<Position>& covers) override {
    check(covers.has_value());
    checkpointed = true;
  }
  void on_warning(const std::string& what) override { fmt::print(stderr, "warning: {}\n", what); }
  void relocate(const RecordView&) override {}

  bool opened = false;
  bool checkpointed = false;
  std::uint64_t replayed = 0;
  std::uint64_t checkpoint_bytes = 0;
  Position durable;
};

struct Bench {
  explicit Bench(const std::string& folder, bool preallocate) {
    auto opened = open_posix_folder(folder);
    check(opened.has_value());
    FileJournalSettings settings;
    settings.store = 1;
    settings.preallocate = preallocate;
    journal = std::make_unique<FileJournal>(
        *opened, settings, Runners{loop.runner(), write.runner(), read.runner(), background.runner()}, owner);
    journal->open();
    while (!owner.opened) loop.turn();
  }
  void close() {
    bool closed = false;
    journal->close([&] { closed = true; });
    while (!closed) loop.turn();
  }
  Loop loop;
  Owner owner;
  IoThread write;
  IoThread read;
  IoThread background;
  std::unique_ptr<FileJournal> journal;
};

struct Figures {
  double per_second = 0;
  double per_sync = 0;
  std::uint64_t records = 0;
};

Figures append(const std::string& folder, std::size_t bytes, std::size_t senders, double seconds,
               bool preallocate) {
  std::filesystem::remove_all(folder);
  Bench bench{folder, preallocate};
  const Payload payload = Payload::copy_of(std::string(bytes, 'm'));
  Record record;
  record.kind = 1;
  record.life = Life::lasting;
  record.payload = &payload;
  record.held_bytes = bytes;
  std::vector<Position> under_way(senders);
  std::size_t oldest = 0;
  for (auto& position : under_way) position = *bench.journal->append(record);
  bench.journal->commit();
  std::uint64_t done = 0;
  const auto start = Clock::now();
  while (seconds_since(start) < seconds) {
    bench.loop.turn();
    std::size_t freed = 0;
    while (freed < senders && under_way[oldest] <= bench.owner.durable) {
      under_way[oldest] = *bench.journal->append(record);
      oldest = (oldest + 1) % senders;
      ++freed;
    }
    done += freed;
    bench.journal->commit();
  }
  const double took = seconds_since(start);
  const Stats stats = bench.journal->stats();
  bench.close();
  return {static_cast<double>(done) / took,
          static_cast<double>(stats.records_written) / static_cast<double>(stats.syncs), done};
}

double raw(const std::string& folder, std::size_t bytes, std::size_t batch, double seconds) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const int file = ::open((folder + "/raw").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  check(file >= 0);
  const std::string block(stride_of(bytes) * batch, 'm');
  std::uint64_t done = 0;
  std::uint64_t offset = 0;
  const auto start = Clock::now();
  while (seconds_since(start) < seconds) {
    std::size_t put = 0;
    while (put < block.size()) {
      const ssize_t part =
          ::pwrite(file, block.data() + put, block.size() - put, static_cast<off_t>(offset + put));
      check(part > 0);
      put += static_cast<std::size_t>(part);
    }
    check(::fdatasync(file) == 0);
    offset += block.size();
    done += batch;
  }
  const double took = seconds_since(start);
  ::close(file);
  return static_cast<double>(done) / took;
}

void recovery(const std::string& folder, std::uint64_t records, std::size_t bytes) {
  std::filesystem::remove_all(folder);
  {
    Bench bench{folder, true};
    const Payload payload = Payload::copy_of(std::string(bytes, 'm'));
    Record record;
    record.payload = &payload;
    for (std::uint64_t i = 0; i < records; ++i) {
      check(bench.journal->append(record).has_value());
      if (i % 1000 == 999) bench.journal->commit();
      while (bench.journal->stats().gathered_bytes > 64u << 20) bench.loop.turn();
    }
    bench.journal->commit();
    while (bench.owner.durable != bench.journal->appended()) bench.loop.turn();
    bench.close();
  }
  const auto reopen = [&](const char* what) {
    const auto start = Clock::now();
    Bench bench{folder, true};
    const double took = seconds_since(start);
    fmt::print("{:<28} {:>9} records {:>7.1f} MB of checkpoint {:>7.3f} s {:>11.0f} records/s\n", what,
               bench.owner.replayed, static_cast<double>(bench.owner.checkpoint_bytes) / 1e6, took,
               static_cast<double>(bench.owner.replayed) / took);
    if (bench.owner.checkpoint_bytes == 0) {
      // A checkpoint of 64 bytes per record, as an index would be.
      const std::vector<std::uint8_t> piece(64 * 1000, 1);
      bench.journal->begin_checkpoint();
      for (std::uint64_t i = 0; i < records / 1000; ++i) {
        while (!bench.journal->checkpoint_ready()) bench.loop.turn();
        bench.journal->checkpoint_append(piece);
      }
      bench.journal->end_checkpoint(bench.journal->durable());
      while (!bench.owner.checkpointed) bench.loop.turn();
    }
    bench.close();
  };
  reopen("replay, no checkpoint");
  reopen("with a checkpoint");
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    fmt::print(stderr, "usage: journal_bench FOLDER [SECONDS]\n");
    return 2;
  }
  const std::string folder = std::string(arguments[1]) + "/journal-bench";
  const double seconds = count > 2 ? std::atof(arguments[2]) : 2;
  fmt::print("{:>7} {:>8} {:>12} {:>12} {:>12} {:>12} {:>7}\n", "bytes", "senders", "records/s", "MB/s",
             "per sync", "raw rec/s", "ratio");
  for (const bool preallocate : {true, false}) {
    fmt::print("preallocate {}\n", preallocate);
    for (const std::size_t bytes : {100u, 1024u, 16384u}) {
      for (const std::size_t senders : {1u, 100u, 2000u}) {
        const Figures ours = append(folder, bytes, senders, seconds, preallocate);
        const double bare = raw(
            folder, bytes, std::max<std::size_t>(1, static_cast<std::size_t>(ours.per_sync + 0.5)), seconds);
        fmt::print("{:>7} {:>8} {:>12.0f} {:>12.1f} {:>12.1f} {:>12.0f} {:>7.2f}\n", bytes, senders,
                   ours.per_second, ours.per_second * static_cast<double>(bytes) / 1e6, ours.per_sync, bare,
                   ours.per_second / bare);
      }
    }
  }
  recovery(folder, 2'000'000, 100);
  recovery(folder, 500'000, 1024);
  std::filesystem::remove_all(folder);
  return 0;
}
