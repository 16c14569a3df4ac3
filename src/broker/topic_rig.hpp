// A topic, its subscriptions' queues, a clock and a journal that the test owns.
//
// Records are kept in one line as in a store: each knows whose it is. crash() loses what was not synced and
// makes topic and queues anew, from all records or from a checkpoint and what came behind its beginning.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "broker/delivered_message.hpp"
#include "broker/message_rig.hpp"
#include "broker/topic.hpp"

namespace omnibus::broker {

using namespace std::chrono_literals;

class TopicJournal : public RecordSink {
 public:
  static constexpr SubscriptionId of_topic = 0;
  struct Entry {
    SubscriptionId owner = of_topic;
    std::string bytes{};
    std::size_t head = 0;
    std::size_t held = 0;
  };
  Location append(Bytes head, std::span<const Payload* const> messages) override {
    Entry entry{owner, std::string{as_text(head)}, head.size(), messages.size()};
    for (const Payload* message : messages) entry.bytes += message->to_string();
    records.push_back(std::move(entry));
    return {records.size()};
  }
  void release(const StoredMessage& message) override { releasing.emplace_back(records.size(), message); }
  void synced(std::size_t durable) {
    for (const auto& [after, message] : releasing) {
      if (after > durable) continue;
      const auto place = std::pair{message.record.value, message.offset};
      EXPECT_TRUE(released.insert(place).second) << "released twice: " << place.first;
      auto& record = records.at(place.first - 1);
      EXPECT_GT(record.held, 0u);
      --record.held;
    }
    std::erase_if(releasing, [&](const auto& one) { return one.first <= durable; });
  }

  SubscriptionId owner = of_topic;  // of what is appended next
  std::vector<Entry> records{};
  std::set<std::pair<std::uint64_t, std::uint32_t>> released;
  std::vector<std::pair<std::size_t, StoredMessage>> releasing;
};

// What a receiver of a subscription sees.
struct Received {
  std::string body{};
  SequenceNumber sequence = 0;
  LockToken lock{};
  MessageStatus status{};
  Payload bytes{};  // as they go out
};

class TopicRig {
 public:
  explicit TopicRig(TopicSettings with = {}, std::uint64_t seed = 1)
      : settings(std::move(with)), random(seed), topic(std::make_unique<Topic>(settings, random, now)) {}

  struct Slices {
    std::vector<std::pair<SubscriptionId, std::string>> all{};
  };

  Result<void> subscribe(SubscriptionId id, std::vector<rules::Rule> rules = {}, QueueSettings with = {},
                         std::optional<rules::Binding> binding = std::nullopt) {
    auto prepared = topic->prepare(now, id, std::move(rules), std::move(binding));
    if (!prepared) return prepared;
    queue_settings[id] = with;
    queues[id] = std::make_unique<Queue>(with, random, now);
    Effects effects{journal};
    journal.owner = TopicJournal::of_topic;
    topic->start(now, id, *queues[id], effects);
    if (auto_sync) sync();
    return {};
  }
  void unsubscribe(SubscriptionId id) {
    topic->remove_subscription(id);
    // As a store does: purge without records, then forget.
    Effects effects{journal};
    const std::size_t before = journal.records.size();
    for (const auto sub_queue : {SubQueue::active, SubQueue::dead_letter, SubQueue::transfer_dead_letter})
      queues.at(id)->apply(now, Purge{RequestId::none, sub_queue, 100000}, effects);
    journal.records.resize(before);
    for (auto& [after, message] : journal.releasing) after = std::min(after, before);
    queues.erase(id);
    queue_settings.erase(id);
    if (auto_sync) sync();
  }
  static rules::Rule rule(std::string name, std::string filter, std::string action = {}) {
    rules::Rule one;
    one.name = std::move(name);
    one.filter = rules::SqlFilter{std::move(filter), {}, rules::compatibility_level_default};
    if (!action.empty())
      one.action = rules::SqlAction{std::move(action), {}, rules::compatibility_level_default};
    return one;
  }

  RequestId ask() { return static_cast<RequestId>(++last_request); }
  void apply(const Command& command) {
    run(command);
    if (auto_sync) sync();
  }
  void apply_for(SubscriptionId id, const Command& command) {
    Effects effects{journal};
    journal.owner = TopicJournal::of_topic;
    topic->apply_for(now, id, command, effects);
    take(TopicJournal::of_topic, effects);
    if (auto_sync) sync();
  }
  void to_queue(SubscriptionId id, const Command& command) {
    run_queue(id, command);
    if (auto_sync) sync();
  }
  void sync() {
    while (durable < journal.records.size()) {
      durable = journal.records.size();
      run(Persisted{{durable}});
      for (auto& [id, queue] : queues) run_queue(id, Persisted{{durable}});
    }
    journal.synced(durable);
  }
  // Time goes on; what is due and can be read is distributed at once.
  void advance(std::chrono::milliseconds by) {
    now += by;
    run(Wake{});
    for (auto& [id, queue] : queues) run_queue(id, Wake{});
    if (auto_sync) sync();
  }

  IncomingMessage message(const Payload& bytes) {
    auto read = read_message(bytes, random);
    EXPECT_TRUE(read) << (read ? "" : read.error().detail);
    return read ? std::move(*read) : IncomingMessage{};
  }
  std::optional<Errc> send(const Payload& bytes) { return send(std::vector{message(bytes)}); }
  std::optional<Errc> send(std::vector<IncomingMessage> messages) {
    const RequestId request = ask();
    apply(Enqueue{request, std::move(messages), std::nullopt});
    EXPECT_TRUE(!auto_sync || answer<Accepted>(request) || refusal(request));
    return refusal(request);
  }
  std::optional<Errc> add_rule(SubscriptionId id, rules::Rule one) {
    const RequestId request = ask();
    apply_for(id, AddRule{request, std::move(one)});
    EXPECT_TRUE(!auto_sync || answer<Done>(request) || refusal(request));
    return refusal(request);
  }
  std::optional<Errc> remove_rule(SubscriptionId id, std::string name) {
    const RequestId request = ask();
    apply_for(id, RemoveRule{request, std::move(name)});
    return refusal(request);
  }
  std::vector<std::string> rules_of(SubscriptionId id) {
    const RequestId request = ask();
    apply_for(id, ListRules{request});
    std::vector<std::string> names;
    if (const auto* list = answer<RuleList>(request))
      for (const auto& one : list->rules) names.push_back(one.name);
    return names;
  }

  std::vector<Received> peek(SubscriptionId id, SubQueue sub_queue = SubQueue::active) {
    const RequestId request = ask();
    to_queue(id, Peek{request, sub_queue, 0, 1000, 1 << 30, std::nullopt});
    std::vector<Received> all;
    if (const auto* messages = answer<Messages>(request))
      for (const auto& one : messages->messages) all.push_back(received(one.status, {}));
    return all;
  }
  std::vector<std::string> bodies(SubscriptionId id, SubQueue sub_queue = SubQueue::active) {
    std::vector<std::string> all;
    for (const auto& one : peek(id, sub_queue)) all.push_back(one.body);
    return all;
  }
  std::optional<Received> receive(SubscriptionId id, ReceiveMode mode = ReceiveMode::peek_lock) {
    const auto receiver = static_cast<ReceiverId>(++last_receiver);
    to_queue(id, AttachReceiver{receiver, ConnectionId{1}, SubQueue::active, mode, {}});
    to_queue(id, SetCredit{receiver, 1, true});
    to_queue(id, CloseReceiver{receiver});
    const auto found = deliveries.find(receiver);
    if (found == deliveries.end()) return std::nullopt;
    return received(found->second.status, found->second.lock);
  }
  void complete(SubscriptionId id, const LockToken& lock) {
    to_queue(id, Settle{ask(), {lock}, Complete{}, std::nullopt});
  }

  Received received(const MessageStatus& status, const LockToken& lock) {
    const auto& record = journal.records.at(status.stored.record.value - 1);
    const Payload stored = Payload::copy_of(record.bytes.substr(status.stored.offset, status.stored.size));
    auto out = delivered_message(stored, status, {});
    EXPECT_TRUE(out) << (out ? "" : out.error().detail);
    Received got{{}, status.sequence, lock, status, out ? *out : Payload{}};
    const auto view = amqp::MessageView::parse(got.bytes);
    EXPECT_TRUE(view);
    if (auto section = view->body_sections().next()) got.body = view->payload(section->content).to_string();
    return got;
  }

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

  // What the journal must keep, by its own account of holds and releases.
  std::uint64_t held_payloads() const {
    std::uint64_t all = 0;
    for (const auto& record : journal.records) all += record.held;
    return all;
  }
  std::string describe() const {
    std::string all = topic->describe();
    for (const auto& [id, queue] : queues) all += fmt::format("--- {}\n{}", id, queue->describe());
    return all;
  }

  void begin_checkpoint(Slices& into) {
    into.all.clear();
    topic->begin_checkpoint();
    for (auto& [id, queue] : queues) queue->begin_checkpoint();
  }
  // One slice of everybody; false when there is no more.
  bool write_checkpoint(Slices& into, std::size_t items) {
    struct Sink : CheckpointSink {
      Sink(Slices& to, SubscriptionId whose) : slices(to), id(whose) {}
      void write(Bytes slice) override { slices.all.emplace_back(id, as_text(slice)); }
      Slices& slices;
      SubscriptionId id;
    };
    Sink of_topic{into, TopicJournal::of_topic};
    bool more = topic->write_checkpoint(of_topic, items);
    for (auto& [id, queue] : queues) {
      Sink of_queue{into, id};
      more = queue->write_checkpoint(of_queue, items) || more;
    }
    return more;
  }

  // Topic and queues anew from the durable records.
  void rebuild(const Slices* checkpoint, std::size_t from) {
    topic = std::make_unique<Topic>(settings, random, now, limits);
    for (auto& [id, queue] : queues) {
      queue = std::make_unique<Queue>(queue_settings.at(id), random, now);
      topic->join(id, *queue);
    }
    if (checkpoint)
      for (const auto& [id, slice] : checkpoint->all) {
        if (id != TopicJournal::of_topic && !queues.contains(id)) continue;
        const auto read = id == TopicJournal::of_topic ? topic->read_checkpoint(as_bytes(slice))
                                                       : queues.at(id)->read_checkpoint(as_bytes(slice));
        EXPECT_TRUE(read) << (read ? "" : read.error().detail);
      }
    for (std::size_t i = from; i < durable; ++i) {
      const auto& record = journal.records[i];
      if (record.owner != TopicJournal::of_topic && !queues.contains(record.owner)) continue;
      const Bytes head = as_bytes(std::string_view{record.bytes}.substr(0, record.head));
      const auto done = record.owner == TopicJournal::of_topic
                            ? topic->replay(head, {i + 1})
                            : queues.at(record.owner)->replay(head, {i + 1});
      EXPECT_TRUE(done) << (done ? "" : done.error().detail);
    }
    for (auto& [id, queue] : queues) queue->recovered(now);
    topic->recovered(now);
  }
  void crash() {
    journal.records.resize(durable);
    journal.releasing.clear();
    answers.clear();
    deliveries.clear();
    rebuild(nullptr, 0);
  }

  rules::RuleLimits limits{};  // of the topic that the next crash() makes
  TopicSettings settings;
  Instant now{std::chrono::milliseconds{1'700'000'000'000}};
  Random random;
  TopicJournal journal;
  std::unique_ptr<Topic> topic;
  std::map<SubscriptionId, std::unique_ptr<Queue>> queues;
  std::map<SubscriptionId, QueueSettings> queue_settings;
  bool auto_sync = true;
  bool distributes = true;  // the bytes of due messages come at once
  std::size_t durable = 0;
  std::vector<Effect> answers{};
  std::vector<Distribute> asked_for{};
  std::map<ReceiverId, Deliver> deliveries;
  bool asked_to_delete = false;

  void hand_over(const Distribute& due) {
    const auto& stored = due.status.stored;
    const auto bytes = Payload::copy_of(
        journal.records.at(stored.record.value - 1).bytes.substr(stored.offset, stored.size));
    Effects effects{journal};
    journal.owner = TopicJournal::of_topic;
    topic->distribute(now, due.status.sequence, read_message(bytes, random), effects);
    take(TopicJournal::of_topic, effects);
  }

 private:
  void run(const Command& command) {
    Effects effects{journal};
    journal.owner = TopicJournal::of_topic;
    topic->apply(now, command, effects);
    take(TopicJournal::of_topic, effects);
  }
  void run_queue(SubscriptionId id, const Command& command) {
    Effects effects{journal};
    journal.owner = id;
    queues.at(id)->apply(now, command, effects);
    take(id, effects);
  }
  void take(SubscriptionId, Effects& effects) {
    std::vector<Distribute> due;
    for (auto& effect : effects.list) {
      if (auto* deliver = std::get_if<Deliver>(&effect))
        deliveries.emplace(deliver->receiver, *deliver);
      else if (auto* distribute = std::get_if<Distribute>(&effect))
        due.push_back(*distribute);
      else if (std::holds_alternative<DeleteIdle>(effect))
        asked_to_delete = true;
      else
        answers.push_back(std::move(effect));
    }
    for (const auto& one : due) {
      if (distributes)
        hand_over(one);
      else
        asked_for.push_back(one);
    }
  }

  std::uint64_t last_request = 0;
  std::uint64_t last_receiver = 1000;
};

}  // namespace omnibus::broker
