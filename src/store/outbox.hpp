// Answers on their way out: each gets the bytes of its messages, and no connection sees them out of order.
//
// An answer whose bytes are in memory goes out at once, unless one for the same connection waits before it.
// Only who waits for the disk has a line here. Connection 0 is the store itself: what its partitions forward,
// and what of their topics became due, stands in a line for each partition, so that a message that cannot be
// read for a while holds up nothing of others. Lives on one core.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include "broker/answer.hpp"
#include "store/partition.hpp"
#include "store/payload_cache.hpp"
#include "store/record_reader.hpp"

namespace omnibus::store {

struct Letter {
  broker::Answer answer;
  PartitionId from = PartitionId::none;
  std::uint64_t era = 0;    // which life of the store it is from
  bool unreadable = false;  // some of its bytes could not be read
  bool held = false;        // its locks wait with it
};

class Outbox {
 public:
  using Send = std::function<void(Letter&&)>;
  // All outlive the outbox.
  Outbox(PayloadCache& moving, PayloadCache& cache, RecordReader& reader, Send send)
      : moving_(moving), cache_(cache), reader_(reader), send_(std::move(send)) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void post(PartitionId from, std::uint64_t era, broker::Effect&& effect);
  [[nodiscard]] std::size_t waiting() const { return waiting_; }
  [[nodiscard]] std::size_t lines() const { return lines_.size(); }
  // Visits each letter that waits, once.
  template <class Visit>
  void visit_waiting(const Visit& visit) {
    if (unvisited_ == 0) return;
    for (auto& [id, line] : lines_)
      for (const auto& waiting : line)
        if (!std::exchange(waiting->visited, true)) visit(waiting->letter);
    unvisited_ = 0;
  }
  // And once more.
  void forget_visits();

 private:
  using LineId = std::uint64_t;
  struct Waiting {
    Letter letter;
    LineId line = 0;
    std::uint32_t missing = 0;
    bool visited = false;
  };
  // Stable addresses: what is read back is put straight into the letter.
  using Line = std::deque<std::unique_ptr<Waiting>>;
  // How many parts of the letter must be read; those in memory are filled in.
  [[nodiscard]] std::uint32_t fill(Letter& letter);
  void ask(Waiting& waiting);
  void got(Waiting& waiting, Payload& into, const Result<Payload>& bytes);
  void flush(LineId id);

  PayloadCache& moving_;  // what was relocated and is not durable there yet
  PayloadCache& cache_;
  RecordReader& reader_;
  Send send_;
  std::unordered_map<LineId, Line> lines_;
  std::size_t waiting_ = 0;
  std::size_t unvisited_ = 0;  // of those
};

// The connection that an effect is for.
[[nodiscard]] std::uint32_t connection_of(const broker::Effect& effect);

}  // namespace omnibus::store
