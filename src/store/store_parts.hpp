// The inside of a Store. Split by question over store_*.cpp:
//   store.cpp            the door: commands, turns, time, what is refused and why
//   store_effects.cpp    where effects go: answers, forwards, damage, idle partitions
//   store_journal.cpp    what goes to the journal and what it says while open: records, releases, relocation
//   store_recovery.cpp   opening, failing, opening again, closing
//   store_catalogue.cpp  partitions come, change and go
//   store_topics.cpp     what topics and subscriptions have beyond queues
//   store_transactions.cpp  all steps or none, here and with other stores
#pragma once

#include <deque>
#include <map>
#include <set>

#include "broker/receiver_groups.hpp"
#include "store/catalogue_records.hpp"
#include "store/checkpointer.hpp"
#include "store/outbox.hpp"
#include "store/store.hpp"
#include "store/transactions.hpp"

namespace omnibus::store {

struct Store::Parts final : journal::JournalOwner {
  Parts(StoreSettings with, StoreOwner& whose, const MakeJournal& make_journal);

  // --- store.cpp
  void apply(Instant at, PartitionId id, broker::Command&& command);
  void to_partition(PartitionId id, broker::Command&& command);
  void wake(Instant at);
  [[nodiscard]] Instant next_deadline() const;
  // At the end of every call from outside: carries out what it led to; `commits` when it ends a turn.
  void settle(bool commits);
  // What goes on over many turns.
  void commit();  // now when somebody waits for it, else soon
  void go_on();
  void start_checkpoint();
  void tell_of_forgotten_ids();
  void tell_deadline();
  [[nodiscard]] bool is_open() const { return state == StoreState::open && !offline; }
  [[nodiscard]] std::optional<Error> send_refused(const Partition& partition, std::uint64_t bytes) const;
  [[nodiscard]] Error busy(std::string_view entity) const;
  [[nodiscard]] static Error not_found(std::string_view entity);
  // Answers a command that reaches no machine.
  // A send that another store may take goes back with its messages.
  void refuse(PartitionId id, broker::Command& command, const Error& error);
  void apply_closed(PartitionId id, broker::Command& command);

  // --- store_effects.cpp
  void run(Partition& partition, const broker::Command& command);
  // Calls its machine by `machine`, and carries out what it says.
  template <class Machine>
  void ask(Partition& partition, const Machine& machine) {
    sink.partition = &partition;
    machine();
    sink.partition = nullptr;
    asked(partition);
  }
  void asked(Partition& partition);
  void carry(Partition& partition, std::vector<broker::Effect>& effects);
  void post(PartitionId from, broker::Effect&& effect);
  void send(Letter&& letter);
  // While the disk cannot be read, no lock runs out whose message has not left.
  void hold_unsent();
  // It leaves: its locks begin.
  void begin_locks(Letter& letter);
  // Forwards, due messages, idle partitions, damage: what effects ask of the store itself.
  void work_off();
  void forward(Letter&& letter);
  [[nodiscard]] bool forward_here(Partition& source, ForwardRequest& request, PartitionId to);
  void end_forward(Partition& source, const ForwardRequest& request, ForwardEnd end);
  void put_aside(Letter&& letter);

  // Its partitions, as groups of receivers see them.
  class Places final : public broker::ReceiverGroups::Partitions {
   public:
    explicit Places(Parts& parts) : parts_(parts) {}
    std::uint32_t available(std::uint32_t partition, broker::SubQueue sub_queue) const override;
    void ask(std::uint32_t partition, broker::Command&& command) override;
    void tell(std::uint32_t partition, broker::Effect&& effect) override;

   private:
    Parts& parts_;
  };

  // --- store_journal.cpp
  class Sink final : public broker::RecordSink {
   public:
    explicit Sink(Parts& parts) : parts_(parts) {}
    broker::Location append(Bytes head, std::span<const Payload* const> messages) override;
    void release(const broker::StoredMessage& message) override;
    Partition* partition = nullptr;
    bool relocates = false;  // old messages that nobody asked for in long

   private:
    Parts& parts_;
  };
  // With the one before when `joining`.
  [[nodiscard]] broker::Location append(journal::Record record);
  void mark_dirty(Partition& partition);
  void let_go();  // of what was released and is durable
  void release_now(const broker::StoredMessage& message);
  void seen(broker::Location record, const Result<journal::StoredRecord>& stored);
  void report(const journal::Damage& damage);
  void on_durable(journal::Position through) override;
  void on_damage(const journal::Damage& damage) override;
  void on_space(bool enough) override;
  void on_checkpoint_end(const Result<journal::Position>& covers) override;
  void on_warning(const std::string& what) override;
  void relocate(const journal::RecordView& record) override;

  // --- store_recovery.cpp
  void open();
  void on_checkpoint(Bytes piece) override;
  void on_replay(const journal::RecordView& record) override;
  void on_opened(const journal::Opened& opened) override;
  void on_failed(const journal::Failure& failure) override;
  [[nodiscard]] Result<void> take_piece(const Piece& piece);
  void know(PartitionInfo info);
  void join(Partition& partition);
  void hold_messages(const journal::Opened& opened);
  void forget(PartitionId id);
  void cannot_recover(Error error);
  void damaged_record(const journal::RecordView& record, const Error& error);
  // The machines are gone; commands are refused until the journal is open again.
  void go_down(std::string reason, bool may_reopen);
  void lose_receivers();
  void attach_receivers();
  void set_state(StoreState to, const std::string& reason = {});
  void close(std::move_only_function<void()> done);
  void close_journal();
  // The end of `offline`.
  void come_back();

  // --- store_catalogue.cpp
  // Of a queue; with no id it gets the next.
  void create(PartitionInfo info, Created done);
  [[nodiscard]] std::optional<Error> create_refused(std::string_view name) const;
  // Journals it and makes its machine. Null: the store is broken.
  [[nodiscard]] Partition* add(PartitionInfo info);
  void make_machine(Partition& partition);
  // Finds it, or says why it cannot be changed now.
  [[nodiscard]] Result<Partition*> find_to_change(PartitionId id);
  static void take(Beside&& beside, PartitionInfo& info);
  // Journals what it shall be from now on. False: the store is broken.
  [[nodiscard]] bool rewrite(Partition& partition, PartitionInfo info);
  void update(PartitionId id, const broker::QueueSettings& settings, Beside beside, Changed done);
  void remove(Partition& partition, Changed done);
  void bury(Partition& partition);
  // Gives back what deleted partitions hold, a bounded part per turn.
  void reclaim(std::uint32_t messages_max);
  [[nodiscard]] std::optional<Error> change_refused(std::string_view entity) const;
  void when_durable(Changed done);
  void when_created(PartitionId id, Created done);

  // --- store_topics.cpp
  void create(NewTopic topic, Created done);
  void create(NewSubscription subscription, Created done);
  void update(PartitionId id, const broker::TopicSettings& settings, Beside beside, Changed done);
  // Commands that this kind of partition never takes; the answer is `not_allowed`.
  [[nodiscard]] static std::optional<Error> wrong_kind(const Partition& partition, bool sends);
  [[nodiscard]] static bool is_send(const broker::Command& command);
  [[nodiscard]] static Error takes_no_messages(const Partition& subscription);
  [[nodiscard]] static bool is_about_rules(const broker::Command& command);
  void run_rules(Partition& subscription, broker::Command& command);
  // Subscriptions that got copies wait for the topic's record as it does.
  void hear_of_copies(Partition& topic);
  void distribute(Letter&& letter);
  // Null when it is none, or its topic is not there.
  [[nodiscard]] Partition* topic_of(const Partition& subscription) const;
  void leave_topic(Partition& partition);
  // Itself last.
  [[nodiscard]] std::vector<Partition*> with_subscriptions(Partition& partition) const;

  // --- store_transactions.cpp
  void transact(broker::Transact&& command);
  // What would refuse them, judged one after the other; nothing changes.
  [[nodiscard]] std::optional<Error> steps_refusal(std::span<const broker::TransactionStep> steps);
  [[nodiscard]] std::optional<Error> rule_in_doubt(std::span<const broker::TransactionStep> steps);
  // Those that steps_refusal() let pass, or that were prepared.
  void carry_out(std::span<const broker::TransactionStep> steps);
  template <class Work>
  void in_one_batch(const Work& work);
  void answer_when_durable(broker::RequestId request);
  void tell(std::uint16_t to, StoreMessage&& message);
  void write(RecordKind kind, Bytes head, const Payload* payload = nullptr);
  void coordinate(broker::RequestId request, std::vector<broker::TransactionStep>&& own,
                  std::map<std::uint16_t, std::vector<broker::TransactionStep>>&& others);
  void commit(const TransactionId& id, Coordinated& one);
  void tell_decision(const TransactionId& id, const Coordinated& one);
  void roll_back(const TransactionId& id, const Error& error);
  void answer(Coordinated& one);
  void heard(std::uint16_t from, Prepare&& message);
  void heard(std::uint16_t from, Prepared&& message);
  void heard(std::uint16_t from, PrepareRefused&& message);
  void heard(std::uint16_t from, Decide&& message);
  void heard(std::uint16_t from, Decided&& message);
  void heard(std::uint16_t from, Inquire&& message);
  void end_participation(const TransactionId& id);
  void let_go(const std::vector<PartitionHold>& holds);
  void wake_transactions();
  void give_up_preparing(const Error& error);
  void lose_transactions();
  [[nodiscard]] Result<void> replay_transaction(RecordKind kind, Bytes body);
  void recover_transactions();

  StoreSettings settings;
  StoreOwner& owner;
  Instant now{};
  StoreState state = StoreState::closed;
  std::string why;                     // it failed
  std::optional<std::string> offline;  // by administration, with the reason
  bool comes_back = false;             // when what was appended before is durable
  Random random;

  PartitionTable partitions;
  std::uint32_t next_partition = 1;
  Sink sink{*this};
  broker::Effects effects{sink};
  // Messages on the move to a place that is not durable: they cannot be read there, and their old place may
  // go. As much as the journal relocates between two syncs.
  PayloadCache moving{UINT64_MAX};
  journal::Position moved;
  PayloadCache cache;
  RecordReader reader;
  Outbox outbox;
  Places places{*this};
  broker::ReceiverGroups groups{places};
  Transactions transactions;
  Checkpointer checkpointer{partitions, transactions};
  std::unique_ptr<journal::Journal> journal;

  // What effects ask of the store itself, done when nothing else is.
  std::deque<Letter> errands;  // forwards, due messages
  bool errands_wait = false;
  std::deque<Letter> unreadable;
  std::vector<PartitionId> idle;
  std::optional<Error> own_refusal;  // of the store's own request
  std::optional<broker::Unrouted> own_unrouted;
  bool working_off = false;
  bool in_callback = false;

  // Towards the journal.
  std::vector<std::uint32_t> dirty;  // slots
  bool joining = false;  // records that stay together: of a forward, a new subscription, a transaction
  bool joined_any = false;
  std::optional<Error> broken;  // an append was refused: the store fails when the call is over
  struct Turn {
    journal::Position through;
    std::uint64_t bytes = 0;
  };
  bool urgent = false;                // somebody waits for what was appended
  Instant commit_at = broker::never;  // of what nobody waits for
  std::deque<Turn> turns;             // what was appended, by commit
  std::uint64_t turn_bytes = 0;
  std::uint64_t backlog_bytes = 0;
  struct Release {
    journal::Position after;
    broker::StoredMessage message;
  };
  std::deque<Release> releases;
  struct Completion {
    journal::Position at;
    Changed done;
  };
  std::deque<Completion> completions;
  std::vector<std::uint32_t> graves;  // slots of partitions that are being deleted
  bool full = false;
  Instant probe_at = broker::never;

  std::uint64_t bytes_since_checkpoint = 0;
  std::uint64_t bytes_at_checkpoint = 0;  // appended when the one under way began
  Instant checkpoint_at = broker::never;  // tried again
  std::uint64_t checkpoints = 0;

  // Recovery.
  std::optional<CheckpointReader> checkpoint_reader;
  std::optional<Error> recovery_error;
  std::set<PartitionId> unknown;                  // records of partitions that were not there, so far
  std::multimap<PartitionId, PartitionId> early;  // subscriptions by their topic, when told of before it
  std::set<std::uint64_t> damaged;
  std::uint64_t cut_bytes = 0;
  Progress progress;
  bool journal_busy = false;  // it is closing: not to be opened yet
  bool reopens = true;
  Instant reopen_at = broker::never;
  std::chrono::milliseconds patience{};
  std::uint64_t recoveries = 0;
  std::move_only_function<void()> closed;
  Instant told = broker::never;
};

}  // namespace omnibus::store
