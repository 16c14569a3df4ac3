// Cold messages: which records are read back, and who waits for them.
//
// However many wait for messages of one record, it is read once; no more than a bounded number of reads is
// under way, the others wait their turn. A record that somebody waits for is not released before it was read:
// whoever wants to release it hands that over here. One that cannot be read for now is read again after a
// pause, for as long as it takes: whoever waits for it waits on, and only what is lost for good is told to be
// so. Lives on one core; nothing comes back from inside a call.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "broker/message_status.hpp"
#include "journal/journal.hpp"

namespace omnibus::store {

class RecordReader {
 public:
  // Gets the bytes, or the reason why there are none.
  using Got = std::function<void(const Result<Payload>&)>;
  // What is done with a record that was read, once; before anybody gets his part.
  using Seen = std::function<void(broker::Location, const Result<journal::StoredRecord>&)>;
  using Release = std::function<void(const broker::StoredMessage&)>;
  // Something came back, and everybody who waited for it has heard of it.
  using After = std::function<void()>;
  // The first record that cannot be read for now, with the reason; nothing when all can be read again.
  using Trouble = std::function<void(const std::optional<Error>&)>;
  struct Settings {
    std::uint32_t reads_max = 0;
    std::chrono::milliseconds retry_first{};
    std::chrono::milliseconds retry_longest{};
  };

  RecordReader(Settings settings, Seen seen, Release release, After after, Trouble trouble,
               std::function<Instant()> now)
      : settings_(settings),
        seen_(std::move(seen)),
        release_(std::move(release)),
        after_(std::move(after)),
        trouble_(std::move(trouble)),
        now_(std::move(now)),
        pause_(settings.retry_first) {}
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;

  // The journal outlives the reader.
  void use(journal::Journal& journal) { journal_ = &journal; }

  // The record is durable.
  void want(const broker::StoredMessage& message, Got got);
  // False: nobody waits for the record, release it yourself.
  [[nodiscard]] bool release_later(const broker::StoredMessage& message);
  // The journal failed: nothing is released any more and no read is started; what is under way comes back.
  void pause();
  // It is open again, and holds are made anew: also for what is still to be read here. Within on_opened().
  void resume();

  // When what could not be read is to be tried again, by retry(); `broker::never`: not at all.
  [[nodiscard]] Instant retry_at() const { return paused_ ? broker::never : retry_at_; }
  void retry();

  // Records that could not be read so far.
  [[nodiscard]] std::size_t failing() const { return failing_; }
  [[nodiscard]] std::size_t under_way() const { return reads_.size(); }
  [[nodiscard]] std::uint64_t reads() const { return started_; }

 private:
  struct Waiter {
    std::uint32_t offset = 0;
    std::uint32_t size = 0;
    Got got;
  };
  struct Read {
    std::vector<Waiter> waiters;
    std::vector<broker::StoredMessage> releases;
    bool failing = false;
  };
  void start();
  void done(broker::Location record, Result<journal::StoredRecord> stored);
  void put_off(broker::Location record, const Error& error);
  void failing_ended();

  Settings settings_;
  Seen seen_;
  Release release_;
  After after_;
  Trouble trouble_;
  std::function<Instant()> now_;
  journal::Journal* journal_ = nullptr;
  std::shared_ptr<char> life_ = std::make_shared<char>();
  std::unordered_map<std::uint64_t, Read> reads_;
  std::deque<std::uint64_t> line_;      // to be started
  std::vector<std::uint64_t> put_off_;  // to be tried again at retry_at_
  Instant retry_at_ = broker::never;
  std::chrono::milliseconds pause_;
  std::size_t failing_ = 0;
  std::uint32_t in_flight_ = 0;
  std::uint64_t started_ = 0;
  bool paused_ = false;
};

}  // namespace omnibus::store
