// A topic or exchange: takes messages once and hands copies to the queues of its subscriptions.
//
// A machine like Queue: apply() is the only way in, the same commands in the same order have the same
// effects, decisions go to the sink as records, replay() repeats them. A message is written once, with the
// list of its copies; each subscription's Queue adopts its copy, which points at the topic's record.
// Receiving, settling, peeking and the like are asked of that queue. Duplicate detection, scheduling, quota
// and the number that copies show as x-opt-enqueue-sequence-number are the topic's
// [contract 9.4, 9.5, 9.8, 9.9, 9.11]. Rules look at the bytes of a message while it is published; none are
// held. One core, the same as its queues'.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/result.hpp"
#include "broker/commands.hpp"
#include "broker/effects.hpp"
#include "broker/queue.hpp"
#include "broker/topic_settings.hpp"
#include "broker/transaction_tally.hpp"
#include "rules/rule_set.hpp"

namespace omnibus::broker {

using rules::SubscriptionId;

struct TopicCounts {
  std::uint64_t scheduled = 0;
  std::uint64_t subscriptions = 0;
  std::uint64_t size_bytes = 0;  // what the quota is compared with: with all subscriptions, shared bytes once
  Instant accessed{};            // last send
  std::uint64_t sql_filters = 0;  // of all subscriptions; true and false filters are among them
  std::uint64_t correlation_filters = 0;

  friend bool operator==(const TopicCounts&, const TopicCounts&) = default;
};

class Topic {
 public:
  // `random` outlives the topic.
  Topic(TopicSettings settings, Random& random, Instant created, rules::RuleLimits limits = {});
  ~Topic();
  Topic(const Topic&) = delete;
  Topic& operator=(const Topic&) = delete;

  // A new subscription comes in two steps, so that what describes it can be journaled in between. prepare()
  // judges rules (none: `$Default`, which is always true) or the binding of an exchange, and takes them under
  // an id that nobody had; on failure nothing is changed. start() journals them; from then on it gets copies.
  // `queue` stays until remove_subscription(), which also undoes a prepare(), is silent about unknown ids and
  // journals nothing: the catalogue does.
  [[nodiscard]] Result<void> prepare(Instant now, SubscriptionId id, std::vector<rules::Rule> rules,
                                     std::optional<rules::Binding> binding);
  void start(Instant now, SubscriptionId id, Queue& queue, Effects& effects);
  void remove_subscription(SubscriptionId id);

  // Enqueue, Schedule, ReserveNumbers, CancelScheduled, Forwarded, Remember, UpdateTopic, Persisted,
  // StoreFailed, Wake; anything else is refused.
  void apply(Instant now, const Command& command, Effects& effects);
  // AddRule, RemoveRule, ListRules, SetBinding of a subscription.
  void apply_for(Instant now, SubscriptionId id, const Command& command, Effects& effects);
  // Why a SetBinding would be refused.
  [[nodiscard]] std::optional<Error> binding_refused(SubscriptionId id, const rules::Binding& binding) const;
  // The bytes that a Distribute effect asked for, or why there are none: then the message is given up. One
  // that nobody matches becomes a Forward to the alternate exchange.
  void distribute(Instant now, SequenceNumber sequence, Result<IncomingMessage> message, Effects& effects);
  // The subscriptions that got copies since the last call, which have to hear of Persisted as the topic does.
  [[nodiscard]] std::vector<SubscriptionId> take_touched();
  [[nodiscard]] Instant next_deadline() const;

  // Steps of transactions, as with Queue; `id` is the subscription whose rules a step changes. A message that
  // an exchange cannot place is kept for its alternate; without one it is refused, or dropped, as the
  // settings want it. Judging looks at the message and changes nothing.
  [[nodiscard]] std::optional<Error> refusal(Instant now, const TransactionWork& work,
                                             TransactionTally& tally);
  [[nodiscard]] std::optional<Error> refusal_for(SubscriptionId id, const TransactionWork& work,
                                                 TransactionTally& tally);
  void carry_out(Instant now, const TransactionWork& work, Effects& effects);
  void carry_out_for(Instant now, SubscriptionId id, const TransactionWork& work, Effects& effects);

  // Recovery, as with Queue, and in the same order of records as its queues. Subscriptions are joined when
  // the catalogue tells of them: before the first record that names them, in any order with checkpoints.
  [[nodiscard]] Result<void> read_checkpoint(Bytes slice);
  void join(SubscriptionId id, Queue& queue);
  [[nodiscard]] Result<void> replay(Bytes record, Location at);
  void replay_settings(TopicSettings settings);
  void recovered(Instant now);

  void begin_checkpoint();
  [[nodiscard]] bool write_checkpoint(CheckpointSink& sink, std::size_t items_max);
  // As Queue::relocate: what copies or the schedule still need is written again, once.
  bool relocate(Bytes record, Location from, RecordSink& sink);

  [[nodiscard]] const TopicSettings& settings() const;
  [[nodiscard]] TopicCounts counts() const;
  // How many message-ids are remembered at most, set before the first; and how many of them were forgotten
  // although the window still reached them.
  void set_duplicate_ids_max(std::size_t ids_max);
  [[nodiscard]] std::uint64_t duplicate_ids_gone_early() const;
  // Of what was sent to it; what became of the copies is told by the queues of its subscriptions.
  [[nodiscard]] const Totals& totals() const;
  // Every message that the topic's subscriptions or its schedule need, each once.
  void visit_messages(const std::function<void(const StoredMessage&)>& visit) const;
  // Releases what the schedule holds, at most `count`, without a record: the topic is being deleted. Answers
  // how many.
  std::size_t drop_scheduled(std::size_t count, RecordSink& sink);
  [[nodiscard]] std::string describe() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace omnibus::broker
