// Queues of the real binary under load, beside what the machine gives without a broker, in one run.
//
//   queue_load [--seconds S] [--rounds N] [--data FOLDER] [--only raw|one|many|latency]
//
// Disks and neighbours of a machine have moods that last for seconds, so everything is measured in rounds of
// S seconds each, one after another; a ratio is that of one round, and what is told is the median of the
// rounds and how far they lie apart. One round:
// 1. raw: append + fdatasync of the same bytes in batches; and AMQP over loopback TCP to a peer that only
//    accepts. The slower one bounds any durable broker that appends. The same over space that was written
//    before is told beside it: what a journal could reach that uses its files again.
// 2. one sender, one receiver, one queue, with up to 1,000 messages under way, as many as the broker's credit
//    allows; 100 queues with as many pairs, a tenth of that for each.
// 3. the latency of one fdatasync, one per millisecond, and the end-to-end latency at 1,000 messages per
//    second in the long run (after 6 s), in slices of half a second by turns, so that both meet the same
//    disk. Beside it what that loop would give its messages, each counted from the moment it was due: while
//    one sync stalls for 20 ms, 20 messages wait.
// The environment's OMNIBUS_BINARY names another broker to load.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "../load/load_client.hpp"
#include "../load/options.hpp"
#include "../load/pairs.hpp"
#include "../load/rounds.hpp"

namespace omnibus::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t segment_bytes = 64u << 20;  // as the journal's
constexpr double slice_seconds = 0.5;

double seconds_since(Tick start) { return std::chrono::duration<double>(tick_now() - start).count(); }

Flow flow(double seconds, int queues) {
  std::vector<std::string> names;
  std::vector<std::string> entities;
  for (int i = 0; i < queues; ++i) {
    names.push_back(fmt::format("bench{}", i));
    entities.push_back(queue_of(names.back()));
  }
  return measure_flow(config_of(entities), names, queues == 1 ? 1000 : 100, seconds);
}

enum class RawWrite : std::uint8_t { appends, overwrites };

// A file as long as a segment, its space reserved; what was there is gone.
int fresh_segment(const std::string& file) {
  std::filesystem::remove(file);
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || ::posix_fallocate(fd, 0, segment_bytes) != 0 || ::fdatasync(fd) != 0) std::abort();
  return fd;
}

struct RawLatency {
  Histogram sync;
  Histogram since_due;  // only with a rate
};

// One thread that writes and syncs in batches.
class RawDisk {
 public:
  RawDisk(const std::filesystem::path& folder, std::uint32_t batch, RawWrite how)
      : file_(folder / "omnibus-raw"),
        how_(how),
        fd_(fresh_segment(file_)),
        batch_(batch),
        bytes_(std::size_t{batch} * body_bytes, 'x') {}
  RawDisk(const RawDisk&) = delete;
  RawDisk& operator=(const RawDisk&) = delete;
  ~RawDisk() {
    ::close(fd_);
    std::filesystem::remove(file_);
  }

  // Messages per second; `rate`: no more batches per second.
  double run(double seconds, double rate, RawLatency& seen) {
    std::uint64_t batches = 0;
    const Tick start = tick_now();
    while (seconds_since(start) < seconds) {
      if (rate > 0 && static_cast<double>(batches) > seconds_since(start) * rate) {
        std::this_thread::sleep_for(100us);
        continue;
      }
      if (::write(fd_, bytes_.data(), bytes_.size()) != static_cast<ssize_t>(bytes_.size())) std::abort();
      const Tick before = tick_now();
      if (::fdatasync(fd_) != 0) std::abort();
      const Tick after = tick_now();
      seen.sync.add(after - before);
      if (rate > 0)
        seen.since_due.add(
            after - start -
            std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(batches) / rate * 1e9)));
      ++batches;
      written_ += bytes_.size();
      if (written_ + bytes_.size() > segment_bytes) roll();
    }
    return static_cast<double>(batches) * batch_ / seconds_since(start);
  }

 private:
  void roll() {
    written_ = 0;
    if (how_ == RawWrite::overwrites) {
      if (::lseek(fd_, 0, SEEK_SET) != 0) std::abort();
      return;
    }
    ::close(fd_);
    fd_ = fresh_segment(file_);
  }

  const std::string file_;
  const RawWrite how_;
  int fd_;
  const std::uint32_t batch_;
  const std::vector<char> bytes_;
  std::uint64_t written_ = 0;
};

double raw_disk(const std::filesystem::path& folder, double seconds, RawWrite how) {
  RawLatency unused;
  return RawDisk(folder, 100, how).run(seconds, 0, unused);
}

double raw_loopback(double seconds) {
  net::ShardPool pool(1);
  ReceiverCounts sink;
  const SinkServer server(pool, sink);
  const std::uint16_t port = server.port();
  pool.start();
  net::Reactor reactor("sender");
  SenderCounts counts;
  start_sender(reactor, {port, "x"}, {.body_bytes = body_bytes}, counts);
  reactor.start();
  std::this_thread::sleep_for(300ms);
  const std::uint64_t before = counts.accepted;
  const Tick start = tick_now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double rate = static_cast<double>(counts.accepted - before) / seconds_since(start);
  end_load(reactor);
  // The sink's side of the connection has gone with it.
  std::this_thread::sleep_for(50ms);
  pool.stop();
  return rate;
}

struct Figures {
  Rounds disk, disk_again, loopback, one, one_of_raw, one_per_cpu, many, many_of_one, many_per_cpu;
  Histogram syncs, end_to_end;  // of all rounds together
  Rounds sync_p50, sync_p99, loop_p99, p99_of_loop, p50, p99, outcome_p99, p99_of_sync, latency_per_cpu;
  // What the disk itself allows: where that loop misses the aim, a miss of ours says little.
  Rounds loop_of_sync, p99_where_loop_holds;
};

void print(const Figures& f) {
  if (!f.disk.empty())
    fmt::print(
        "raw, 1 KiB: append + fdatasync by 100 {}/s; AMQP over loopback {}/s; fdatasync by 100 over written "
        "space {}/s\n",
        f.disk.text(0), f.loopback.text(0), f.disk_again.text(0));
  if (!f.one.empty())
    fmt::print("1 queue, 1+1, durable, 1 KiB: {}/s; {} per broker CPU second\n", f.one.text(0),
               f.one_per_cpu.text(0));
  if (!f.one_of_raw.empty()) fmt::print("  of the raw limit: {}; aim >= 0.60\n", f.one_of_raw.text(2));
  if (!f.many.empty())
    fmt::print("100 queues, 100+100: {}/s; {} per broker CPU second\n", f.many.text(0),
               f.many_per_cpu.text(0));
  if (!f.many_of_one.empty()) fmt::print("  of one queue: {}; aim >= 1\n", f.many_of_one.text(2));
  if (f.p99.empty()) return;
  fmt::print("one fdatasync of 1 KiB, 1000/s: p50 {} ms, p99 {} ms; since each was due, p99 {} ms\n",
             f.sync_p50.text(2), f.sync_p99.text(2), f.loop_p99.text(2));
  fmt::print("end to end at 1000/s: p50 {} ms, p99 {} ms; outcome p99 {} ms; {} per broker CPU second\n",
             f.p50.text(2), f.p99.text(2), f.outcome_p99.text(2), f.latency_per_cpu.text(0));
  fmt::print("  p99 of the p99 of one fdatasync: {}; aim < 3; of a loop without a broker: {}\n",
             f.p99_of_sync.text(2), f.p99_of_loop.text(2));
  fmt::print(
      "  that loop of the p99 of one fdatasync: {}; end to end in the {} of {} rounds where it is below 3: "
      "{}\n",
      f.loop_of_sync.text(2), f.p99_where_loop_holds.size(), f.loop_of_sync.size(),
      f.p99_where_loop_holds.text(2));
  const double sync = f.syncs.percentile(0.99);
  const double seen = f.end_to_end.percentile(0.99);
  fmt::print("  all rounds together: {:.2f} ms of {:.2f} ms, {:.2f}\n", seen, sync, seen / sync);
}

}  // namespace
}  // namespace omnibus::bench

int main(int argc, char** argv) {
  using namespace omnibus::bench;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const LoadOptions options = read_options(argc, argv, {}, {"raw", "one", "many", "latency"});
  const double seconds = options.seconds;
  Figures f;
  for (int round = 0; round < options.rounds; ++round) {
    double bound = 0;
    if (options.wants("raw")) {
      const double disk = raw_disk(options.folder, seconds, RawWrite::appends);
      f.disk_again.add(raw_disk(options.folder, seconds, RawWrite::overwrites));
      const double loopback = raw_loopback(seconds);
      bound = std::min(disk, loopback);
      f.disk.add(disk);
      f.loopback.add(loopback);
    }
    double alone = 0;
    if (options.wants("one")) {
      const Flow one = flow(seconds, 1);
      alone = one.received_per_second;
      f.one.add(alone);
      f.one_per_cpu.add(one.per_cpu_second);
      if (bound > 0) f.one_of_raw.add(alone / bound);
    }
    if (options.wants("many")) {
      const Flow many = flow(seconds, 100);
      f.many.add(many.received_per_second);
      f.many_per_cpu.add(many.per_cpu_second);
      if (alone > 0) f.many_of_one.add(many.received_per_second / alone);
    }
    if (options.wants("latency")) {
      RawLatency raw;
      RawDisk loop(options.folder, 1, RawWrite::appends);
      PacedPair pair(config_of({queue_of("bench0")}), "bench0", 1000);
      for (double done = 0; done < seconds; done += slice_seconds) {
        loop.run(slice_seconds, 1000, raw);
        pair.run(slice_seconds);
      }
      const omnibus::Histogram& sync = raw.sync;
      const Latency seen = pair.seen();
      const double sync_p99 = sync.percentile(0.99);
      const double loop_p99 = raw.since_due.percentile(0.99);
      f.sync_p50.add(sync.percentile(0.5));
      f.sync_p99.add(sync_p99);
      f.p50.add(seen.p50);
      f.p99.add(seen.p99);
      f.outcome_p99.add(seen.outcome_p99);
      f.p99_of_sync.add(seen.p99 / sync_p99);
      f.loop_p99.add(loop_p99);
      f.p99_of_loop.add(seen.p99 / loop_p99);
      f.loop_of_sync.add(loop_p99 / sync_p99);
      if (loop_p99 < 3 * sync_p99) f.p99_where_loop_holds.add(seen.p99 / sync_p99);
      f.latency_per_cpu.add(seen.per_cpu_second);
      f.syncs.add(sync);
      f.end_to_end.add(seen.all);
    }
  }
  print(f);
}
