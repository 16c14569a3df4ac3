// The inside of a Topic. Split by question over topic_*.cpp:
//   topic.cpp             the door: which command goes where, what waits for the journal, what time brings
//   topic_publish.cpp     what comes in, and which copies it becomes
//   topic_alternate.cpp   what matches nothing and goes to the alternate exchange
//   topic_rules.cpp       subscriptions with their rules and bindings
//   topic_transactions.cpp  steps of transactions: judged, carried out
//   topic_replay.cpp      repeating decisions from records; moving bytes
//   topic_checkpoint.cpp  the same in slices, for a fast start
#pragma once

#include <deque>
#include <map>
#include <set>

#include "broker/duplicate_history.hpp"
#include "broker/machine_tools.hpp"
#include "broker/topic.hpp"
#include "broker/topic_records.hpp"
#include "rules/exchange_index.hpp"
#include "rules/message_fields.hpp"

namespace omnibus::broker {

struct Topic::Parts {
  Parts(TopicSettings with, Random& from, Instant created, rules::RuleLimits most);
  // What was taken once is taken again, also when a limit was lowered since.
  void judge_rules(bool judged) { rule_set.set_limits(judged ? limits : rules::RuleLimits{0, 0}); }

  struct Subscription {
    Queue* queue = nullptr;  // none yet while recovering, or before start()
    std::optional<rules::Binding> binding{};
  };
  // A message that is kept until it is due.
  struct Scheduled {
    Instant due{};
    Instant enqueued{};
    StoredMessage stored{};
    std::uint32_t properties_bytes = 0;
    std::uint8_t hops = 0;
    SharedChanges changes{};
    SequenceNumber origin = 0;
    std::optional<std::string> routing_key{};
    std::uint8_t steps = 0;  // alternate exchanges on its way here
    // Leaving: on its way to the alternate exchange, which has not answered.
    enum class State : std::uint8_t { pending, waiting, distributing, leaving } state = State::pending;
    std::uint8_t refusals = 0;  // of the alternate exchange, in a row
    Instant looked_at{};        // when it waits: in `due`
  };
  using Schedules = std::map<SequenceNumber, Scheduled>;

  // --- topic.cpp
  template <class One>
  void on(const One& command);  // what a topic does not do
  void on(const Enqueue& command);
  void on(const EnqueueEach& command);
  void on(const Schedule& command);
  void on(const ReserveNumbers& command);
  void on(const EnqueueTransfer& command);
  void on(const CancelScheduled& command);
  void on(const Forwarded& command);
  void on(const Remember& command);
  void on(const Purge& command);
  void on(const UpdateTopic& command);
  void on(const Persisted& command);
  void on(const StoreFailed& command);
  void on(const Wake&) {}
  void pass_time();
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] Instant idle_deadline() const;
  void emit(Effect effect) { effects->list.push_back(std::move(effect)); }
  void refuse(RequestId request, Error error);
  void emit_when_durable(Effect effect);
  void append(const TopicRecord& record);
  [[nodiscard]] Error recovering() const;
  // One transfer, with its answer.
  void take(RequestId request, std::span<const IncomingMessage> messages,
            const std::optional<ForwardedFrom>& forwarded, std::uint8_t steps);
  [[nodiscard]] std::uint64_t size_bytes() const { return shared->bytes() + scheduled_bytes; }
  void wait_until(Instant when, SequenceNumber number, Scheduled& message);
  // Forgets a scheduled message; where its bytes lie is the answer.
  StoredMessage unschedule(Schedules::iterator at);

  // --- topic_publish.cpp
  // `promised` bytes are to come besides.
  [[nodiscard]] std::optional<Error> refuse_messages(std::span<const IncomingMessage> messages,
                                                     std::uint64_t promised = 0) const;
  [[nodiscard]] std::optional<Error> schedule_refusal(const Schedule& command) const;
  // All or nothing. False: none of them matches and they are wanted elsewhere; nothing was kept. `numbers`,
  // when given, gets one per message; then the answer is never false.
  [[nodiscard]] Result<bool> publish(std::span<const IncomingMessage> messages,
                                     const std::optional<ForwardedFrom>& forwarded, std::uint8_t steps,
                                     std::vector<SequenceNumber>* numbers, SequenceNumber reserved = 0);
  // Which copies it becomes; their numbers are given later.
  [[nodiscard]] Result<void> plan_copies(const IncomingMessage& message, SequenceNumber number,
                                         const std::optional<std::string>& routing_key,
                                         PublishedRecord::Item& item);
  void plan_copy(SubscriptionId id, const IncomingMessage& message, const rules::MessageEdits* edits,
                 const rules::Failure* failure, PublishedRecord::Item& item);
  void write(PublishedRecord& record, std::span<const Payload* const> payloads);
  [[nodiscard]] AdoptedCopy copy_of(const PublishedRecord& record, std::size_t item,
                                    const PublishedRecord::Copy& copy, const StoredMessage& stored) const;
  [[nodiscard]] static Scheduled scheduled_of(const PublishedRecord& record, std::size_t item,
                                              const StoredMessage& stored);

  // --- topic_transactions.cpp
  [[nodiscard]] std::optional<Error> refusal(const Enqueue& work, TransactionTally& tally);
  [[nodiscard]] std::optional<Error> refusal(const Schedule& work, TransactionTally& tally);
  template <class Work>
  [[nodiscard]] std::optional<Error> refusal(const Work& work, TransactionTally& tally);
  [[nodiscard]] std::optional<Error> sends_refusal(std::span<const IncomingMessage> messages,
                                                   TransactionTally& tally);
  // Whether a subscription wants it, or it may be kept for other reasons.
  [[nodiscard]] Result<bool> is_wanted(const IncomingMessage& message);

  // --- topic_alternate.cpp
  // Whether a message that came over so many alternates and matches nothing goes on to the alternate.
  [[nodiscard]] bool leads_on(std::uint8_t steps) const;
  [[nodiscard]] Unrouted unrouted(RequestId request, std::span<const IncomingMessage> messages,
                                  std::uint8_t steps) const;
  // Of a scheduled message that nobody matched. False: it does not go there, and is given up.
  [[nodiscard]] bool leave(SequenceNumber number, Scheduled& message, const MessageFacts& facts);
  void try_later(SequenceNumber number, Scheduled& message);

  // --- topic_rules.cpp
  void rule_command(SubscriptionId id, const Command& command);
  [[nodiscard]] std::optional<Error> change_refused(SubscriptionId id) const;
  // Also when it is disabled, unless an administrator does it [contract 9.11].
  [[nodiscard]] std::optional<Error> rule_change_refused(SubscriptionId id, bool by_administrator) const;
  [[nodiscard]] std::optional<Error> without_rules() const;
  [[nodiscard]] Error without_bindings() const;
  [[nodiscard]] std::optional<Error> take_rule(SubscriptionId id, const rules::Rule& rule, bool replaces);
  void forget(SubscriptionId id);

  // --- topic_replay.cpp
  [[nodiscard]] Result<void> repeat(const PublishedRecord& record, Location at);
  [[nodiscard]] Result<void> repeat(const TopicMovedRecord& record, Location at);
  [[nodiscard]] Result<void> repeat(const CancelledRecord& record, Location at);
  [[nodiscard]] Result<void> repeat(const RulesAddedRecord& record, Location at);
  [[nodiscard]] Result<void> repeat(const RuleRemovedRecord& record, Location at);
  [[nodiscard]] Result<void> repeat(const BindingSetRecord& record, Location at);

  // --- topic_checkpoint.cpp
  struct Checkpoint {
    enum class Phase : std::uint8_t { head, scheduled, rules, bindings, history, done };
    Phase phase = Phase::done;
    SequenceNumber sequence = 0;
    SubscriptionId subscription = 0;
    std::size_t rule = 0;  // how many of the subscription's are written
    std::uint64_t history = 0;
  };
  [[nodiscard]] bool write_slice(CheckpointSink& sink, std::size_t items_max);
  [[nodiscard]] Result<void> read_slice(Bytes slice);
  [[nodiscard]] bool read_scheduled(RecordReader& in);

  TopicSettings settings;
  Random& random;
  std::map<SubscriptionId, Subscription> subscriptions;
  rules::RuleLimits limits;
  rules::RuleSet rule_set;
  std::optional<rules::ExchangeIndex> exchange;
  std::shared_ptr<const std::string> exchange_name;  // of an exchange
  std::shared_ptr<SharedPayloads> shared = std::make_shared<SharedPayloads>();
  DuplicateHistory history;
  Schedules scheduled;
  std::set<std::pair<Instant, SequenceNumber>> due;  // those that wait
  std::size_t distributing = 0;
  std::size_t leaving = 0;
  std::uint64_t scheduled_bytes = 0;
  Totals totals;
  SequenceNumber next_sequence = 1;

  struct Waiting {
    Location at;
    Effect effect;
  };
  Location durable;
  Location appended;
  std::deque<Waiting> waiting;
  std::deque<std::pair<Location, SequenceNumber>> fresh;  // scheduled messages that are not durable
  std::vector<SubscriptionId> touched;
  bool failed = false;

  Instant accessed{};
  Instant idle_asked{};
  Checkpoint checkpoint;
  RecordWriter writer;
  rules::Matches matches;
  std::vector<SubscriptionId> reached;
  std::vector<bool> duplicates;  // which of the messages published last

  // Only during a command.
  bool decided = false;  // it was judged before, and cannot be refused any more
  Instant now{};
  Effects* effects = nullptr;
};

}  // namespace omnibus::broker
