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
  // A message may be gone by now whose last receiver is still to get it: its segment waits for that.
  for (auto& [place, read] : reads_) {
    journal_->hold(journal::Position{place}, 0);
    read.releases.push_back({{place}, 0, 0});
  }
  start();
}

void RecordReader::start() {
  while (!paused_ && in_flight_ < reads_max_ && !line_.empty()) {
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
  seen_(record, stored);
  const auto at = reads_.find(record.value);
  Read read = std::move(at->second);
  reads_.erase(at);
  for (Waiter& waiter : read.waiters) {
    if (!stored) {
      waiter.got(fail(stored.error()));
    } else if (waiter.offset + std::uint64_t{waiter.size} > stored->body.size()) {
      waiter.got(fail(Errc::io, "a message ends behind its record of {} bytes", stored->body.size()));
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

}  // namespace omnibus::store
