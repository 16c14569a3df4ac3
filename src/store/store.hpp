// One store: a journal and the partitions that live in it.
//
// Carries effects between the machines of `broker` and the `journal`: commands come in, answers with their
// bytes go out, and nothing is told that is not as durable as the contract wants it [4.6]. Lives on one core;
// holds no mutex, no clock and no thread. Time comes with each call, and from StoreOwner::now() when it is
// the journal that calls; where the journal's work runs is decided by whoever makes the journal. So the same
// code runs in the product and, stepped by a seed, in a simulator.
//
// One turn of the owner's loop: apply() as often as there are commands, then end_turn() once; wake() when
// next_deadline() has come. Callbacks to the owner come from inside these calls and from the journal's posted
// work; none of them may call the store again, on_forward() included.
//
// A store that fails (a write, a sync, no space) refuses what waited, keeps its plain receivers, and opens
// itself again from what is really on the disk; wake() drives that. Records: docs/formats/store-records.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "broker/answer.hpp"
#include "broker/commands.hpp"
#include "broker/duplicate_history.hpp"
#include "broker/queue.hpp"
#include "broker/topic.hpp"
#include "journal/journal.hpp"
#include "store/partition.hpp"
#include "store/store_message.hpp"

namespace omnibus::store {

struct StoreSettings {
  // By which other stores, and the steps of transactions, name it.
  std::uint16_t number = 0;
  // Lock tokens are drawn from it: another one in every process, random in the product.
  std::uint64_t seed = 1;
  // Message bytes kept in memory, with what keeping them costs.
  std::uint64_t cache_bytes_max = std::uint64_t{256} << 20;
  // Records that are read back at the same time; further ones wait.
  std::uint32_t reads_max = 32;
  // A send that would leave more than this waiting for the disk is refused with `server_busy`. The journal's
  // own bound (gathered_bytes_max) is larger, so that settlements still pass.
  std::uint64_t backlog_bytes_max = std::uint64_t{256} << 20;
  // The largest transfer that is taken, all its messages together; below the journal's record_bytes_max.
  std::uint64_t transfer_bytes_max = std::uint64_t{128} << 20;
  // A checkpoint is started when this much was appended since the last.
  std::uint64_t checkpoint_bytes = std::uint64_t{256} << 20;
  // Messages, sessions or partitions that one turn writes into a checkpoint at most.
  std::uint32_t checkpoint_items_per_turn = 2000;
  // close() writes a checkpoint when there are no more messages and partitions than this.
  std::uint64_t closing_checkpoint_items_max = 200'000;
  // What nobody waits for (locks, settlements without an answer) goes to the disk with what somebody does, or
  // after this: an idle consumer costs no sync of its own. 0: with every turn.
  std::chrono::milliseconds lazy_commit = std::chrono::milliseconds{10};
  // Forwards and due messages of topics wait for start_errands(): for an owner that learns only after the
  // start where their targets are.
  bool errands_wait = false;
  // Receivers of one partition at a time; 0: no limit. One more is refused with `resource_limit_exceeded`.
  std::uint32_t receivers_max = 0;
  // Of each topic. What is there already stays when a limit is lowered.
  rules::RuleLimits rule_limits{};
  // Message-ids that a queue or topic with duplicate detection remembers at most; beyond it the oldest are
  // forgotten early, which is told once.
  std::size_t duplicate_ids_max = broker::DuplicateHistory::ids_max_default;
  std::chrono::milliseconds checkpoint_retry = std::chrono::seconds{30};
  std::chrono::milliseconds reopen_first = std::chrono::milliseconds{200};
  std::chrono::milliseconds reopen_longest = std::chrono::seconds{30};
  std::chrono::milliseconds space_probe = std::chrono::seconds{1};
  // A record that cannot be read for now is tried again after the first, then ever later.
  std::chrono::milliseconds read_retry_first = std::chrono::milliseconds{200};
  std::chrono::milliseconds read_retry_longest = std::chrono::seconds{10};
  // A transaction of several stores is rolled back when one of them does not answer for so long; a store that
  // hears no decision for so long asks for it.
  std::chrono::milliseconds prepare_patience = std::chrono::seconds{15};
  // Who committed is told so after this, also when a store has not done its part yet.
  std::chrono::milliseconds decide_patience = std::chrono::seconds{5};
  // Decisions that nobody answers are told again, and those that nobody tells are asked for again, after
  // this.
  std::chrono::milliseconds decide_retry = std::chrono::seconds{1};
};

enum class StoreState : std::uint8_t {
  closed,   // not opened yet, or closed for good
  opening,  // recovering; commands are refused with `server_busy`
  open,
  failed,  // refuses as when opening; opens itself again unless another process has it
  closing,
};
[[nodiscard]] std::string_view name_of(StoreState state);

// What recovery has read so far.
struct Progress {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
};

// A message that its queue sends on [contract 9.7], or an exchange to its alternate [EX 2.4].
struct ForwardRequest {
  PartitionId from = PartitionId::none;
  broker::SequenceNumber sequence = 0;  // at `from`; names the forward in forwarded()
  std::string target;
  std::uint32_t name_space = 0;  // of `from`, and thereby of the target
  Payload message;               // as it is stored
  broker::ForwardedFrom facts;
  // Once an exchange did not match it: `target` is an alternate, and has to be an exchange.
  std::optional<rules::AlternateWalk> walk{};
  bool from_exchange = false;  // who sends it is an exchange that has promised it to somebody
  bool transfer = false;       // sent via `from`: at the target a message like any other [contract 7]
};
// The command that takes it in at the target. Fails when the bytes are no message any more.
[[nodiscard]] Result<broker::Enqueue> forward_command(const ForwardRequest& request, broker::RequestId answer,
                                                      Random& random);
// What it means for a forward that the exchange at `target` does not match the message. Nothing: `target` is
// now the next one to ask. Otherwise the forward has ended, with an error or, when nobody wants the message
// and that is all right, without.
struct ForwardEnd {
  std::optional<Error> error{};
};
[[nodiscard]] std::optional<ForwardEnd> walk_on(ForwardRequest& request, const broker::Unrouted& unrouted);

class StoreOwner {
 public:
  virtual ~StoreOwner() = default;

  // The clock that apply(), end_turn() and wake() are called with.
  [[nodiscard]] virtual Instant now() = 0;
  // Whose it is, is in the id of the effect's request or receiver: the connection's number is `id >> 32`.
  // Answers of one connection come in the order in which its queues gave them.
  virtual void on_answer(broker::Answer&& answer) = 0;
  // `why` is empty unless it failed. On `open`, partitions() may differ from what it was before a failure.
  virtual void on_state(StoreState state, const std::string& why) = 0;
  // next_deadline() is now `due`, which is earlier than what was last told; told anew after every wake(). One
  // timer set by this is all that a store needs.
  virtual void on_deadline(Instant due) = 0;
  // The message is wanted at `target`. An id: that partition of this store takes it, in the same batch as its
  // removal here. Nothing: the owner takes the request (moves from it) and calls forwarded() later. An error:
  // it is refused. Asked again for the next target when an exchange of this store does not match it.
  [[nodiscard]] virtual Result<std::optional<PartitionId>> on_forward(ForwardRequest& request) = 0;
  // For Store::store_message() of that store. One that cannot be delivered is lost, but for a Prepare: that
  // has to be answered by a PrepareRefused then.
  virtual void on_store_message(std::uint16_t to, StoreMessage&& message) = 0;
  // A partition is gone that nobody asked to delete: idle for too long, or its creation did not survive.
  virtual void on_partition_gone(PartitionId id, const std::string& name) = 0;
  // A partition of a partitioned entity has been idle for as long as the entity may be. What the others say
  // only the owner can find out, who deletes the entity or leaves it; told again while it is so.
  virtual void on_partition_idle(const PartitionInfo& info) = 0;

  // For the log and for health; the store acts on all of them itself.
  virtual void on_progress(const Progress&) {}
  virtual void on_damage(const journal::Damage&) {}
  // So many bytes at the end of the log were cut off when it was opened: a write that had not ended when the
  // process died, or the last batch that was durable and has been damaged since.
  virtual void on_cut(journal::Position /*from*/, std::uint64_t /*bytes*/) {}
  virtual void on_space(bool /*enough*/) {}
  // Records cannot be read for now, with the first reason; nothing: all of them were. Who waits for them
  // waits on, in order.
  virtual void on_reads(const std::optional<Error>& /*trouble*/) {}
  virtual void on_checkpoint(const Result<journal::Position>& /*covers*/) {}
  virtual void on_warning(const std::string& /*what*/) {}
};

struct StoreStats {
  journal::Stats journal;
  std::uint64_t partitions = 0;
  std::uint64_t cache_hits = 0;
  std::uint64_t cache_misses = 0;
  std::uint64_t cache_bytes = 0;  // charged against cache_bytes_max
  std::uint64_t cache_records = 0;
  std::uint64_t reads = 0;            // of records, since the start
  std::uint64_t reads_under_way = 0;  // and waiting for their turn
  std::uint64_t reads_failing = 0;    // of these, tried before without success
  std::uint64_t answers_waiting = 0;  // for bytes, or behind one that does
  std::uint64_t releases_waiting = 0;
  std::uint64_t damaged_records = 0;
  std::uint64_t cut_bytes = 0;  // at the ends of the log, by all open() since the start
  std::uint64_t checkpoints = 0;
  std::uint64_t recoveries = 0;  // open() that succeeded, the first included
  bool full = false;
};

// What is said beside the settings, in place of what was there; nothing: it stays.
struct Beside {
  std::optional<std::string> notes{};
  std::optional<std::string> document{};
  std::optional<rules::Binding> binding{};  // of a subscription of an exchange
  std::optional<PartitionState> state{};
  std::optional<std::uint64_t> revision{};
};

class Store {
 public:
  using MakeJournal = std::function<std::unique_ptr<journal::Journal>(journal::JournalOwner&)>;
  // Called when the change is durable, or refused. After a failure of the store nobody can say whether it
  // happened: `internal_error`, and partitions() tells once the store is open again.
  using Created = std::move_only_function<void(Result<PartitionId>)>;
  using Changed = std::move_only_function<void(Result<void>)>;

  // `owner` outlives the store. The store may be destroyed at any time, but not from a callback: that is a
  // crash as far as the journal is concerned.
  Store(StoreSettings settings, StoreOwner& owner, const MakeJournal& make_journal);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Before open(), for a store that may not come up: what was there when somebody last saw it. Until it is
  // open these are refused as busy instead of not found, and receivers wait for them.
  void expect(std::vector<PartitionInfo> partitions);
  // Ends with on_state(open) or on_state(failed). Once.
  void open();
  // Takes no more commands, writes a checkpoint when that is cheap, and closes the journal. The loop goes on
  // (wake() and the journal's posted work) until `done`.
  void close(Instant now, std::move_only_function<void()> done);

  // Hands a command to a partition; a Transact is for the store, whatever `partition` says. Whatever happens,
  // a request that wants an answer gets one.
  void apply(Instant now, PartitionId partition, broker::Command&& command);
  // After the last apply() of a turn: what was appended goes to the disk.
  void end_turn(Instant now);
  // `broker::never` when nothing waits for time.
  [[nodiscard]] Instant next_deadline() const;
  void wake(Instant now);

  // The catalogue. An id is assigned when `id` is none; ids are never used twice. `refused` answers come
  // before the call returns.
  void create_partition(Instant now, PartitionId id, std::string name, const broker::QueueSettings& settings,
                        Created done, std::string notes = {}, std::uint32_t name_space = 0,
                        PartitionState state = PartitionState::there);
  // A topic or exchange, and what it hands its messages to. `rules` empty: `$Default`, which is always true;
  // `binding` for exchanges only. From `done` on, every message the topic accepts reaches it if it matches.
  struct NewTopic {
    std::string name;
    broker::TopicSettings settings;
    std::string document{};
    std::string notes{};
    std::uint32_t name_space = 0;  // its subscriptions are in the same
    PartitionState state = PartitionState::there;
  };
  void create_topic(Instant now, NewTopic topic, Created done);
  struct NewSubscription {
    PartitionId topic = PartitionId::none;
    std::string name;  // whole: `orders/Subscriptions/audit`
    broker::QueueSettings settings;
    std::vector<rules::Rule> rules{};
    std::optional<rules::Binding> binding{};
    std::string document{};
    std::string notes{};
    PartitionState state = PartitionState::there;
  };
  void create_subscription(Instant now, NewSubscription subscription, Created done);
  // How large a message may be goes on to the topic's subscriptions. All of an update is durable or nothing.
  void update_topic(Instant now, PartitionId id, const broker::TopicSettings& settings, Changed done,
                    Beside beside = {});
  void update_partition(Instant now, PartitionId id, const broker::QueueSettings& settings, Changed done,
                        Beside beside = {});
  // Messages are released, receivers detached with `not_found`, later commands refused with it. A topic takes
  // its subscriptions along.
  void delete_partition(Instant now, PartitionId id, Changed done);
  // What is there, by ascending id. While the store is not open: what was there when it last was.
  [[nodiscard]] std::vector<PartitionInfo> partitions() const;
  [[nodiscard]] std::optional<PartitionInfo> find(PartitionId id) const;
  [[nodiscard]] std::optional<broker::QueueCounts> counts(PartitionId id) const;
  [[nodiscard]] std::optional<broker::TopicCounts> topic_counts(PartitionId id) const;
  // What partitions hold and did, a stretch of slots at a time: from slot `from` on at most `slots` of them.
  // Answers where to go on, 0 when that was all. One that comes or goes between two calls may be missed.
  struct PartitionNumbers {
    PartitionId id = PartitionId::none;
    PartitionKind kind = PartitionKind::queue;
    broker::QueueCounts queue{};  // of a queue or subscription
    broker::TopicCounts topic{};  // of a topic
    broker::Totals totals{};
  };
  std::size_t visit_numbers(std::size_t from, std::size_t slots,
                            const std::function<void(const PartitionNumbers&)>& visit) const;
  // One line per message, for support and tests; empty when there is no such partition.
  [[nodiscard]] std::string describe(PartitionId id) const;

  // The result of an on_forward() that the owner took.
  void forwarded(Instant now, PartitionId from, broker::SequenceNumber sequence, std::optional<Error> error);

  // What another store said in its on_store_message().
  void store_message(Instant now, std::uint16_t from, StoreMessage&& message);

  // From now on, also after a failure. Does nothing when StoreSettings::errands_wait is not set.
  void start_errands(Instant now);

  // Administration: the store answers as if it had failed, until restore(). Nothing is lost by it, and what
  // waits for the disk is still answered.
  void fail(Instant now, const std::string& reason);
  // It is back at once, or when what it waits for is durable.
  void restore(Instant now);
  [[nodiscard]] bool comes_back() const;

  [[nodiscard]] StoreState state() const;
  // Whether everything that was decided so far is durable. False while the store is not open.
  [[nodiscard]] bool is_settled() const;
  // The last record that is durable, while one that was appended after it is not. It stands still when the
  // disk does.
  [[nodiscard]] std::optional<journal::Position> waits_behind() const;
  [[nodiscard]] StoreStats stats() const;
  // Starts a checkpoint before it is due, unless one is under way.
  void checkpoint_soon(Instant now);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace omnibus::store
