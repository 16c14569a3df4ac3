#include "store/record_reader.hpp"

#include "amqp/codec/message.hpp"
#include "base/check.hpp"

namespace omnibus::store {

void RecordReader::want(const broker::StoredMessage& message, Got got) {
  const std::uint64_t place = message.record.value;
  const auto [at, is_new] = reads_.try_emplace(place);
  at->second.waiters.push_back({message.offset, message.size, std::move(got)});
  if (!is_new) return;
  check(paused_ || journal::Position{place} <= journal_->durable(), "what is read is durable");
  line_.push_back(place);
  start();
}

bool RecordReader::release_later(const broker::StoredMessage& message) {
  if (reads_.empty()) return false;
  const auto found = reads_.find(message.record.value);
  if (found == reads_.end()) return false;
  found->second.releases.push_back(message);
  return true;
}

void RecordReader::pause() {
  paused_ = true;
  for (auto& [place, read] : reads_) read.releases.clear();
}

void RecordReader::resume() {
  paused_ = false;
  for (const std::uint64_t place : std::exchange(put_off_, {})) line_.push_back(place);
  retry_at_ = broker::never;
  // A message may be gone by now whose last receiver is still to get it: its segment waits for that.
  for (auto& [place, read] : reads_) {
    journal_->hold(journal::Position{place}, 0);
    read.releases.push_back({{place}, 0, 0});
  }
  start();
}

void RecordReader::start() {
  while (!paused_ && in_flight_ < settings_.reads_max && !line_.empty()) {
    const broker::Location record{line_.front()};
    line_.pop_front();
    ++in_flight_;
    ++started_;
    journal_->read(journal::Position{record.value},
                   [this, record, alive = std::weak_ptr<char>(life_)](Result<journal::StoredRecord> stored) {
                     if (alive.lock()) done(record, std::move(stored));
                   });
  }
}

void RecordReader::done(broker::Location record, Result<journal::StoredRecord> stored) {
  --in_flight_;
  if (!stored && stored.error().code == Errc::io) {
    put_off(record, stored.error());
    start();
    return after_();
  }
  seen_(record, stored);
  const auto at = reads_.find(record.value);
  if (at->second.failing) failing_ended();
  Read read = std::move(at->second);
  reads_.erase(at);
  for (Waiter& waiter : read.waiters) {
    if (!stored) {
      waiter.got(fail(stored.error()));
    } else if (waiter.offset + std::uint64_t{waiter.size} > stored->body.size()) {
      waiter.got(
          fail(Errc::decode_error, "a message ends behind its record of {} bytes", stored->body.size()));
    } else {
      waiter.got(amqp::part_of(stored->body, {waiter.offset, waiter.offset + waiter.size}));
    }
  }
  // Meanwhile somebody may have asked for another message of it.
  for (const auto& message : read.releases)
    if (!release_later(message)) release_(message);
  start();
  after_();
}

// Its waiters, and who wants to release it, wait on: the bytes may be needed by somebody who has settled
// them already.
void RecordReader::put_off(broker::Location record, const Error& error) {
  Read& read = reads_.at(record.value);
  if (!std::exchange(read.failing, true) && failing_++ == 0) trouble_(error);
  put_off_.push_back(record.value);
  if (retry_at_ == broker::never) retry_at_ = now_() + pause_;
}

void RecordReader::retry() {
  if (retry_at() > now_()) return;
  retry_at_ = broker::never;
  pause_ = std::min(pause_ * 2, settings_.retry_longest);
  for (const std::uint64_t place : std::exchange(put_off_, {})) line_.push_back(place);
  start();
}

void RecordReader::failing_ended() {
  if (--failing_ > 0) return;
  pause_ = settings_.retry_first;
  trouble_(std::nullopt);
}

}  // namespace omnibus::store
