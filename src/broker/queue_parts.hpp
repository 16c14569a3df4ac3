// The inside of a Queue. Split by question over queue_*.cpp:
//   queue.cpp             the door: which command goes where, what waits for the journal
//   queue_states.cpp      an entry changes its state; every index and count follows
//   queue_enqueue.cpp     what comes in
//   queue_serve.cpp       who gets the next message
//   queue_settle.cpp      how a lock ends
//   queue_sessions.cpp    who holds a message session
//   queue_look.cpp        peek, deferred messages, deleting
//   queue_time.cpp        what happens because time passes
//   queue_replay.cpp      repeating decisions from records
//   queue_copies.cpp      what a topic hands to its subscription
//   queue_transactions.cpp  steps of transactions: judged, held, carried out
//   queue_transfers.cpp   what is sent via this queue to another entity
//   queue_checkpoint.cpp  the same in slices, for a fast start
#pragma once

#include <array>
#include <boost/container/deque.hpp>
#include <deque>
#include <unordered_map>

#include "broker/deadline_queue.hpp"
#include "broker/duplicate_history.hpp"
#include "broker/entry_table.hpp"
#include "broker/lane.hpp"
#include "broker/lock_table.hpp"
#include "broker/machine_tools.hpp"
#include "broker/queue.hpp"
#include "broker/receivers.hpp"
#include "broker/records.hpp"
#include "broker/sessions.hpp"

namespace omnibus::broker {

struct Queue::Parts {
  Parts(QueueSettings with, Random& from, Instant created);
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  // --- queue.cpp
  struct Waiting {
    Location at;
    std::optional<Effect> effect;
    StoredMessage release;  // bytes that nobody needs after the effect; no place: none
  };
  void run(const Command& command);
  void on(const Enqueue& command);
  void on(const EnqueueEach& command);
  void on(const Schedule& command);
  void on(const CancelScheduled& command);
  void on(const AttachReceiver& command);
  void on(const SetCredit& command);
  void on(const CloseReceiver& command);
  void on(const Settle& command);
  void on(const RenewLocks& command);
  void on(const ReceiveDeferred& command);
  void on(const Peek& command);
  void on(const RenewSessionLock& command);
  void on(const SetSessionState& command);
  void on(const GetSessionState& command);
  void on(const ListSessions& command);
  void on(const BatchDelete& command);
  void on(const Purge& command);
  void on(const UpdateSettings& command);
  void on(const Forwarded& command);
  void on(const EnqueueTransferDeadLetter& command);
  void on(const AddRule& command);
  void on(const RemoveRule& command);
  void on(const ListRules& command);
  void on(const SetBinding& command);
  void on(const UpdateTopic& command);
  void on(const Remember&) {}  // only exchanges are asked to
  void on(const ReserveNumbers& command);
  void on(const EnqueueTransfer& command);
  void on(const Transact& command);
  void on(const Persisted& command);
  void on(const StoreFailed& command);
  void on(const Wake& command);
  void emit(Effect effect) { effects->list.push_back(std::move(effect)); }
  void refuse(RequestId request, Error error);
  // Says so once everything appended so far is durable.
  void emit_when_durable(Effect effect);
  void wait_for_journal(Waiting what);
  void done_when_durable(RequestId request);
  Location append(const Record& record);
  void release(const StoredMessage& message);
  [[nodiscard]] std::optional<Error> receive_refused() const;

  // --- queue_states.cpp: shared by commands and replay, no records and no effects in here
  [[nodiscard]] std::uint32_t find(SequenceNumber sequence) const;
  void place(std::uint32_t slot);  // into its lanes, by its sub-queue and session
  void displace(std::uint32_t slot);
  void set_state(std::uint32_t slot, EntryState to);
  void lock(std::uint32_t slot, const LockToken& token, Instant until, ReceiverId receiver, bool of_session);
  void set_changes(std::uint32_t slot, SharedChanges to);
  [[nodiscard]] SharedChanges changes_of(std::uint32_t slot) const;
  [[nodiscard]] SharedChanges intern(MessageChanges changes);
  [[nodiscard]] StoredMessage stored(std::uint32_t slot) const {
    return {Location{entries[slot].record}, entries[slot].offset, entries[slot].size};
  }
  // By the number it was stored under, also when activation gave it another.
  [[nodiscard]] std::uint32_t find_stored(SequenceNumber sequence) const;
  // Forgets a message; where its bytes lie is the answer.
  StoredMessage erase(std::uint32_t slot);
  void move_to_dead_letter(std::uint32_t slot, std::uint16_t delivery_count, bool stays,
                           SharedChanges changes);
  void activate(std::uint32_t slot, SequenceNumber sequence, Instant enqueued, Instant expires);
  void grow(std::int64_t own);  // what is not message bytes
  [[nodiscard]] bool knows(SequenceNumber stored) const { return find_stored(stored) != no_slot; }
  void add_stored(const StoredRecord& record, Location at, EntryState (*state_of)(const StoredRecord::Item&));
  [[nodiscard]] MessageStatus status_of(std::uint32_t slot) const;
  void touch(std::uint32_t session);  // look at it again before the command ends
  void settle_touched();

  // --- queue_enqueue.cpp
  // `without_sessions`: they need no session id here. `promised` bytes are to come besides.
  [[nodiscard]] std::optional<Error> refuse_messages(std::span<const IncomingMessage> messages,
                                                     bool without_sessions, std::uint64_t promised = 0) const;
  [[nodiscard]] std::optional<Error> schedule_refusal(const Schedule& command) const;
  [[nodiscard]] Instant expiry(Instant enqueued, std::uint64_t ttl_ms) const;
  void store(std::span<const IncomingMessage> messages, const std::optional<ForwardedFrom>& forwarded,
             std::vector<SequenceNumber>* numbers);
  void store_reserved(const Schedule& command);
  void fill_item(StoredRecord::Item& item, const IncomingMessage& message) const;
  // The record with `bodies` behind it; its messages are pending.
  void append_stored(StoredRecord& record);
  [[nodiscard]] SequenceNumber take_number() { return next_sequence++; }

  // --- queue_transfers.cpp
  [[nodiscard]] std::optional<Error> destination_refusal(const EnqueueTransfer& command) const;
  void serve_transfers();
  void transferred(std::uint32_t slot, const std::optional<Error>& error);
  [[nodiscard]] Instant transfer_deadline() const;

  // --- queue_transactions.cpp
  enum class Sends : std::uint8_t { messages, transfers };
  [[nodiscard]] std::optional<Error> sends_refusal(std::span<const IncomingMessage> messages,
                                                   TransactionTally& tally, Sends what) const;
  [[nodiscard]] std::optional<Error> refusal(Instant at, const Enqueue& work, TransactionTally& tally) const;
  [[nodiscard]] std::optional<Error> refusal(Instant at, const Schedule& work, TransactionTally& tally) const;
  [[nodiscard]] std::optional<Error> refusal(Instant at, const EnqueueTransfer& work,
                                             TransactionTally& tally) const;
  [[nodiscard]] std::optional<Error> refusal(Instant at, const Settle& work, TransactionTally& tally) const;
  [[nodiscard]] std::optional<Error> refusal(Instant at, const AddRule& work, TransactionTally& tally) const;
  [[nodiscard]] std::optional<Error> refusal(Instant at, const RemoveRule& work,
                                             TransactionTally& tally) const;

  // --- queue_copies.cpp
  [[nodiscard]] Error no_rules() const;
  void add_copy(const AdoptedCopy& copy, EntryState state);

  // --- queue_serve.cpp
  void serve();
  void serve_line(SubQueue sub_queue);
  void serve_session(std::uint32_t session);
  void serve_forwards(SubQueue sub_queue, const std::string& target);
  // False when the message turned out to be expired.
  bool deliver(Receiver& receiver, std::uint32_t slot);
  void flush_deliveries();
  [[nodiscard]] LockToken new_token() {
    return settings.is_partitioned ? LockToken::make(random, settings.partition) : LockToken::make(random);
  }
  void drained(Receiver& receiver);

  // --- queue_settle.cpp
  // Into `found`, all or nothing.
  [[nodiscard]] std::optional<Error> find_locks(const std::vector<LockToken>& tokens,
                                                const std::optional<std::string>& session_id,
                                                ReceiverId receiver);
  [[nodiscard]] std::optional<Error> look_for_locks(const std::vector<LockToken>& tokens,
                                                    const std::optional<std::string>& session_id,
                                                    ReceiverId receiver,
                                                    std::vector<std::uint32_t>& into) const;
  // What an outcome would merge into the application properties.
  [[nodiscard]] static Bytes properties_of(const Outcome& outcome);
  [[nodiscard]] std::optional<Error> outcome_refusal(std::uint32_t slot, const Outcome& outcome) const;
  void complete_found();
  [[nodiscard]] Result<SharedChanges> merged(std::uint32_t slot, Bytes properties);
  void give_back(std::uint32_t slot, bool counted, bool journaled);
  void expire(std::uint32_t slot);
  void remove(std::uint32_t slot);
  void dead_letter(std::uint32_t slot, std::optional<std::string> reason,
                   std::optional<std::string> description, SharedChanges base, bool stays = false);

  // --- queue_sessions.cpp
  void accept_session(Receiver& receiver, std::uint32_t session);
  void grant_sessions();
  // A lock in the session's list, and out of it.
  void join_session(std::uint32_t lock, std::uint32_t session);
  void leave_session(std::uint32_t lock);
  // The link let it go, or its lock ran out.
  void end_session(std::uint32_t session, bool ran_out);
  [[nodiscard]] Result<std::uint32_t> held_session(const std::string& id, ConnectionId connection) const;
  void set_session_state(const SessionStateRecord& record);

  // --- queue_time.cpp
  void pass_time();
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] Instant idle_deadline() const;
  void active_now() { accessed = now; }

  // --- queue_replay.cpp
  [[nodiscard]] Result<void> repeat(const Record& record, Location at);
  [[nodiscard]] Result<void> repeat(const RemovedRecord& record);
  [[nodiscard]] Result<void> repeat(const LockedRecord& record);
  [[nodiscard]] Result<void> repeat(const RenewedRecord& record);
  [[nodiscard]] Result<void> repeat(const ReturnedRecord& record);
  [[nodiscard]] Result<void> repeat(const DeferredRecord& record);
  [[nodiscard]] Result<void> repeat(const DeadLetteredRecord& record);
  [[nodiscard]] Result<void> repeat(const ActivatedRecord& record);
  [[nodiscard]] Result<void> repeat(const SessionStateRecord& record);
  [[nodiscard]] Result<void> repeat(const MovedRecord& record, Location at);
  // no_slot when it is gone; an error when it is one that nobody could have touched.
  [[nodiscard]] Result<std::uint32_t> find_to_repeat(SequenceNumber sequence) const;

  // --- queue_checkpoint.cpp
  struct Checkpoint {
    enum class Phase : std::uint8_t { head, sessions, messages, history, done };
    Phase phase = Phase::done;
    std::optional<std::string> session_id;
    std::size_t sub_queue = 0;  // the place in the order of slices
    SequenceNumber sequence = 0;
    std::uint64_t history = 0;
  };
  [[nodiscard]] bool write_slice(CheckpointSink& sink, std::size_t messages_max);
  void write_message(RecordWriter& out, std::uint32_t slot) const;
  [[nodiscard]] Result<void> read_slice(Bytes slice);
  [[nodiscard]] bool read_message(RecordReader& in, bool copy);

  QueueSettings settings;
  Random& random;

  EntryTable entries;
  std::array<Lane, sub_queue_count> lanes{Lane{entries}, Lane{entries}, Lane{entries}, Lane{entries}};
  DeadlineQueue<EntryTable, &Entry::due, &Entry::link> deadlines{entries};
  LockTable locks;
  Sessions sessions{entries};
  Receivers receivers;
  DuplicateHistory history;

  std::unordered_map<std::uint32_t, SharedChanges> changes;   // by slot
  std::unordered_map<SequenceNumber, std::uint32_t> origins;  // activated messages by their stored number
  SharedChanges last_interned;

  std::array<std::array<std::uint64_t, entry_state_count>, sub_queue_count> state_counts{};
  Totals totals;
  std::uint64_t size_bytes = 0;
  std::uint64_t own_bytes = 0;                  // of it, what is not message bytes
  std::shared_ptr<SharedPayloads> payloads;     // of a subscription
  std::shared_ptr<const std::string> exchange;  // of a subscription of one
  SequenceNumber next_sequence = 1;

  Location durable;
  Location appended;
  // Each of them is large: a plain deque would allocate for every one. A block stays with a queue in use.
  boost::container::deque<Waiting, void, boost::container::deque_options_t<boost::container::block_size<16>>>
      waiting;
  std::deque<std::pair<Location, std::uint32_t>> fresh;  // stored messages nobody may see yet
  bool sync_wanted = false;  // something waits for a record that was appended since this was last asked
  bool failed = false;

  std::vector<std::uint32_t> touched;
  LockedRecord new_locks;               // of this command, one record
  RemovedRecord new_removals;           // receive-and-delete of this command, one record
  std::vector<Waiting> new_deliveries;  // what waits for new_removals
  std::size_t forwards_on_the_way = 0;
  SequenceNumber dead_letter_forward_from = 0;
  std::size_t transfers_on_the_way = 0;
  SequenceNumber transfer_from = 0;    // how far the round of transfers is
  Instant transfers_retry_at = never;  // some destination was full: the next round
  std::chrono::seconds transfer_patience{1};

  Instant accessed{};
  Instant idle_asked{};
  Checkpoint checkpoint;
  RecordWriter writer;
  StoredRecord stored_record;
  // Emptied by whoever uses them next; kept for their room.
  std::vector<const Payload*> bodies;
  std::vector<std::uint8_t> dropped;
  std::vector<std::uint32_t> found;
  RemovedRecord removed_record;

  // Only during apply().
  bool decided = false;  // it was judged before, and cannot be refused any more
  Instant now{};
  Effects* effects = nullptr;
};

}  // namespace omnibus::broker
