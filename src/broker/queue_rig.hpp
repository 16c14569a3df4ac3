// A queue with a clock and a journal that the test owns.
//
// Every apply() is followed by a sync unless the test holds it back. crash() loses what was not synced and
// makes the queue anew from the records, or from a checkpoint and the records behind its beginning.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <set>

#include "amqp/codec/message.hpp"
#include "broker/delivered_message.hpp"
#include "broker/queue.hpp"

namespace omnibus::broker {

using namespace std::chrono_literals;

class FakeJournal : public RecordSink {
 public:
  struct Entry {
    std::string bytes{};
    std::size_t head = 0;
    std::size_t held = 0;  // messages that were not released
  };
  Location append(Bytes head, std::span<const Payload* const> messages) override {
    Entry entry{std::string{as_text(head)}, head.size()};
    for (const Payload* message : messages) entry.bytes += message->to_string();
    entry.held = messages.size();
    records.push_back(std::move(entry));
    return {records.size()};
  }
  void release(const StoredMessage& message) override { releasing.emplace_back(records.size(), message); }
  // A release counts once what was appended before it is durable.
  void synced(std::size_t durable) {
    for (const auto& [after, message] : releasing) {
      if (after > durable) continue;
      const std::uint64_t place = message.record.value;
      EXPECT_TRUE(messages_released.insert({place, message.offset}).second) << "released twice: " << place;
      if (--records.at(place - 1).held == 0) released.insert(place);
    }
    std::erase_if(releasing, [&](const auto& one) { return one.first <= durable; });
  }

  std::vector<Entry> records{};      // place i + 1
  std::set<std::uint64_t> released;  // records of which nothing is held any more
  std::set<std::pair<std::uint64_t, std::uint32_t>> messages_released;
  std::vector<std::pair<std::size_t, StoredMessage>> releasing;  // after this many records
};

struct SliceStore : CheckpointSink {
  void write(Bytes slice) override { slices.emplace_back(as_text(slice)); }
  std::vector<std::string> slices{};
};

// What a test cares about of a delivery.
struct Got {
  std::string body{};
  LockToken lock{};
  SequenceNumber sequence = 0;
  std::uint32_t attempts = 0;  // as SDKs show it: 1 on the first delivery
  std::optional<Instant> locked_until{};
  MessageStatus status{};
};

struct SendOptions {
  std::optional<std::string> id{};
  std::optional<std::string> session{};
  std::optional<std::uint32_t> ttl_ms{};
  std::optional<Instant> scheduled{};
};

class QueueRig {
 public:
  explicit QueueRig(QueueSettings with = {}, std::uint64_t seed = 1)
      : settings(std::move(with)), random(seed), queue(std::make_unique<Queue>(settings, random, now)) {}

  static constexpr ReceiverId plain{1};

  void advance(std::chrono::milliseconds by) {
    const Instant until = now + by;
    for (int turns = 0; queue->next_deadline() <= until; ++turns) {
      now = std::max(now, queue->next_deadline());
      apply(Wake{});
      if (turns == 100000) {
        ADD_FAILURE() << "a deadline that never passes";
        break;
      }
    }
    now = until;
    apply(Wake{});
  }

  void apply(const Command& command) {
    run(command);
    if (auto_sync) sync();
  }
  void sync() {
    while (durable < journal.records.size()) {
      durable = journal.records.size();
      run(Persisted{{durable}});
    }
    journal.synced(durable);
  }

  static IncomingMessage message(const std::string& body, const SendOptions& with = {}) {
    IncomingMessage incoming{};
    incoming.bytes = Payload::copy_of(body);
    if (with.id) {
      amqp::Encoder id;
      id.put_string(*with.id);
      incoming.facts.message_id = MessageIdHash::of(id.bytes());
    }
    incoming.facts.session_id = with.session;
    incoming.facts.ttl_ms = with.ttl_ms;
    incoming.facts.scheduled = with.scheduled;
    return incoming;
  }
  RequestId ask() { return static_cast<RequestId>(++last_request); }

  // The answer to a request: nothing yet, success, or the refusal's code.
  template <class Answer>
  Answer* answer(RequestId request) {
    for (auto& effect : answers)
      if (auto* one = std::get_if<Answer>(&effect); one && one->request == request) return one;
    return nullptr;
  }
  std::optional<Errc> refusal(RequestId request) {
    if (const auto* no = answer<Refused>(request)) return no->error.code;
    return std::nullopt;
  }

  std::optional<Errc> send(const std::string& body, const SendOptions& with = {}) {
    const RequestId request = ask();
    apply(Enqueue{request, {message(body, with)}, std::nullopt});
    if (auto_sync) {
      EXPECT_TRUE(answer<Accepted>(request) || refusal(request));
    }
    return refusal(request);
  }
  SequenceNumber schedule(const std::string& body, Instant at, SendOptions with = {}) {
    with.scheduled = at;
    const RequestId request = ask();
    apply(Schedule{request, {message(body, with)}});
    const auto* done = answer<Scheduled>(request);
    return done ? done->sequences.at(0) : 0;
  }

  void attach(ReceiverId id, SubQueue sub_queue = SubQueue::active,
              ReceiveMode mode = ReceiveMode::peek_lock) {
    apply(AttachReceiver{id, ConnectionId{1}, sub_queue, mode, {}});
  }
  // `connection` equals the receiver's number unless told.
  void attach_session(ReceiverId id, std::optional<std::string> name, std::chrono::milliseconds wait = 60s,
                      ReceiveMode mode = ReceiveMode::peek_lock) {
    AttachReceiver command{id, static_cast<ConnectionId>(id), SubQueue::active, mode, {}};
    if (name)
      command.session = AttachReceiver::NamedSession{*name};
    else
      command.session = AttachReceiver::NextSession{now + wait};
    apply(command);
  }
  void credit(ReceiverId id, std::uint64_t more, bool drain = false) {
    limits[id] += more;
    apply(SetCredit{id, limits[id], drain});
  }
  std::optional<Got> next(ReceiverId id) {
    auto& got = deliveries[id];
    if (got.empty()) return std::nullopt;
    Got first = got.front();
    got.pop_front();
    return first;
  }
  // One message by a receiver of its own that leaves again; fails the test when there is none.
  Got receive(SubQueue sub_queue = SubQueue::active, ReceiveMode mode = ReceiveMode::peek_lock) {
    auto got = try_receive(sub_queue, mode);
    EXPECT_TRUE(got) << "nothing to receive";
    return got.value_or(Got{});
  }
  std::optional<Got> try_receive(SubQueue sub_queue = SubQueue::active,
                                 ReceiveMode mode = ReceiveMode::peek_lock) {
    const auto id = static_cast<ReceiverId>(++last_receiver);
    attach(id, sub_queue, mode);
    credit(id, 1, true);
    auto got = next(id);
    apply(CloseReceiver{id});
    return got;
  }

  std::optional<Errc> settle(const LockToken& token, Outcome outcome,
                             ReceiverId receiver = ReceiverId::none) {
    const RequestId request = ask();
    apply(Settle{request, {token}, std::move(outcome), std::nullopt, receiver});
    if (auto_sync) {
      EXPECT_TRUE(answer<Done>(request) || refusal(request));
    }
    return refusal(request);
  }
  std::optional<Errc> complete(const LockToken& token) { return settle(token, Complete{}); }
  std::optional<Errc> abandon(const LockToken& token) { return settle(token, Abandon{}); }
  std::optional<Errc> renew(const LockToken& token) {
    const RequestId request = ask();
    apply(RenewLocks{request, {token}});
    EXPECT_TRUE(answer<LocksRenewed>(request) || refusal(request));
    return refusal(request);
  }
  std::vector<Got> peek(SubQueue sub_queue = SubQueue::active, SequenceNumber from = 0,
                        std::uint32_t count = 100) {
    const RequestId request = ask();
    apply(Peek{request, sub_queue, from, count, 256 * 1024, std::nullopt});
    return messages_of(request);
  }
  std::vector<Got> messages_of(RequestId request) {
    std::vector<Got> all{};
    if (const auto* messages = answer<Messages>(request))
      for (const auto& one : messages->messages)
        all.push_back({body_of(one.status.stored), one.lock.value_or(LockToken{}), one.status.sequence,
                       one.status.delivery_count + 1, one.locked_until, one.status});
    return all;
  }
  std::optional<Errc> receive_deferred(SequenceNumber sequence, Got* got = nullptr,
                                       ReceiveMode mode = ReceiveMode::peek_lock,
                                       std::optional<std::string> session = std::nullopt,
                                       ConnectionId connection = ConnectionId{1}) {
    const RequestId request = ask();
    apply(ReceiveDeferred{request, SubQueue::active, mode, connection, {sequence}, std::move(session)});
    const auto all = messages_of(request);
    if (got && !all.empty()) *got = all.front();
    return refusal(request);
  }

  std::string body_of(const StoredMessage& stored) const {
    EXPECT_FALSE(journal.released.contains(stored.record.value)) << "bytes of a released record are wanted";
    return journal.records.at(stored.record.value - 1).bytes.substr(stored.offset, stored.size);
  }

  // The process dies: what was not synced never happened, all links are gone.
  void crash() {
    journal.records.resize(durable);
    journal.releasing.clear();
    queue = rebuilt(nullptr, 0);
    answers.clear();
    deliveries.clear();
    attached.clear();
    limits.clear();
  }
  std::unique_ptr<Queue> rebuilt(const SliceStore* checkpoint, std::size_t from) {
    auto anew = std::make_unique<Queue>(settings, random, now);
    if (checkpoint)
      for (const auto& slice : checkpoint->slices) {
        const auto read = anew->read_checkpoint(as_bytes(slice));
        EXPECT_TRUE(read) << read.error().detail;
      }
    for (std::size_t i = from; i < durable; ++i) {
      const auto& record = journal.records[i];
      const auto done =
          anew->replay(as_bytes(std::string_view{record.bytes}.substr(0, record.head)), {i + 1});
      EXPECT_TRUE(done) << done.error().detail;
    }
    anew->recovered(now);
    return anew;
  }

  QueueSettings settings;
  Instant now{std::chrono::milliseconds{1'700'000'000'000}};
  Random random;
  FakeJournal journal;
  std::unique_ptr<Queue> queue;
  bool auto_sync = true;
  std::size_t durable = 0;
  std::vector<Effect> answers{};  // to requests
  std::vector<Effect> others{};   // everything that is neither an answer nor a delivery
  std::map<ReceiverId, std::deque<Got>> deliveries;
  std::set<ReceiverId> attached;
  std::map<ReceiverId, std::string> accepted;  // session by receiver
  std::map<ReceiverId, Errc> refused;
  std::map<ReceiverId, Errc> detached;
  std::map<ReceiverId, std::uint64_t> drained;
  std::vector<Forward> forwards{};
  std::map<ReceiverId, std::uint64_t> limits;

 private:
  void run(const Command& command) {
    Effects effects{journal};
    queue->apply(now, command, effects);
    for (auto& effect : effects.list) take(effect);
  }
  void take(Effect& effect) {
    if (auto* one = std::get_if<Deliver>(&effect)) {
      deliveries[one->receiver].push_back({journal_body(one->status.stored), one->lock, one->status.sequence,
                                           one->status.delivery_count + 1, one->locked_until, one->status});
    } else if (auto* one_attached = std::get_if<ReceiverAttached>(&effect)) {
      attached.insert(one_attached->receiver);
    } else if (auto* session = std::get_if<SessionAccepted>(&effect)) {
      accepted[session->receiver] = session->session_id;
    } else if (auto* no = std::get_if<ReceiverRefused>(&effect)) {
      refused[no->receiver] = no->error.code;
    } else if (auto* gone = std::get_if<DetachReceiver>(&effect)) {
      detached[gone->receiver] = gone->error.code;
    } else if (auto* dry = std::get_if<LinkDrained>(&effect)) {
      drained[dry->receiver] = dry->delivered;
      limits[dry->receiver] = dry->delivered;
    } else if (auto* forward = std::get_if<Forward>(&effect)) {
      forwards.push_back(*forward);
    } else {
      (std::holds_alternative<DeleteIdle>(effect) ? others : answers).push_back(std::move(effect));
    }
  }
  // A record released by the same apply() may still be read by its effects.
  std::string journal_body(const StoredMessage& stored) const {
    return journal.records.at(stored.record.value - 1).bytes.substr(stored.offset, stored.size);
  }

  std::uint64_t last_request = 0;
  std::uint64_t last_receiver = 1'000'000;
};

}  // namespace omnibus::broker
