// A queue: three sub-queues, their locks, sessions and receivers, as one deterministic machine.
//
// apply() is the only way to change it: the same commands in the same order with the same times and the same
// random numbers have the same effects. Every decision that must outlive the process (a sequence number, an
// expiry, a lock) goes to the sink as a record; replay() repeats decisions from records and takes none.
// A queue that is made from its records behaves as if it had never been away, except that its links are
// gone and that what was not durable did not happen. Lives on one core; holds no message bodies.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/result.hpp"
#include "broker/adopted_copy.hpp"
#include "broker/commands.hpp"
#include "broker/effects.hpp"
#include "broker/queue_settings.hpp"
#include "broker/shared_payloads.hpp"
#include "broker/totals.hpp"
#include "broker/transaction_tally.hpp"

namespace omnibus::broker {

// All of it known at any time, without counting.
struct QueueCounts {
  std::uint64_t active = 0;  // available or locked
  std::uint64_t deferred = 0;
  std::uint64_t scheduled = 0;
  std::uint64_t dead_letter = 0;
  std::uint64_t transfer_dead_letter = 0;
  std::uint64_t transfer = 0;  // on their way to another entity [contract 7, send-via]
  std::uint64_t locked = 0;    // of all sub-queues
  std::uint64_t sessions = 0;
  std::uint64_t receivers = 0;
  std::uint64_t size_bytes = 0;  // what the quota is compared with
  Instant accessed{};            // last send or receive

  friend bool operator==(const QueueCounts&, const QueueCounts&) = default;
};

// Takes checkpoint slices: opaque, given back in order by read_checkpoint().
class CheckpointSink {
 public:
  virtual ~CheckpointSink() = default;
  virtual void write(Bytes slice) = 0;
};

class Queue {
 public:
  // `random` outlives the queue. A new queue counts from 1; to recover one, feed read_checkpoint() and
  // replay() and then call recovered().
  Queue(QueueSettings settings, Random& random, Instant created);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  void apply(Instant now, const Command& command, Effects& effects);
  // Whether a peer, or a message, waits for what was appended since this was last asked. When not (locks,
  // settlements that nobody wants an answer to), the records may wait for the next that is in a hurry.
  [[nodiscard]] bool take_sync_wish();
  // When Wake is due; `never` when nothing waits for time.
  [[nodiscard]] Instant next_deadline() const;

  // Transactions [contract 7]. What would refuse this step, besides those that are in `tally`; when nothing
  // does it is added to them. Changes nothing.
  [[nodiscard]] std::optional<Error> refusal(Instant now, const TransactionWork& work,
                                             TransactionTally& tally) const;
  // Carries out a step that refusal() let pass at the same time, or whose locks are held since: it is not
  // judged again. What is told, is told as after apply().
  void carry_out(Instant now, const TransactionWork& work, Effects& effects);
  // Locks that refusal() let pass stay as they are until carry_out() or let_go(): they do not expire, and
  // nobody else can settle, renew or lose them. Journals nothing: hold_again() repeats it after recovery.
  [[nodiscard]] std::vector<HeldLock> hold(const std::vector<LockToken>& tokens);
  void hold_again(const HeldLock& lock);
  // The transaction was rolled back: locks go on, those that have ended meanwhile end now.
  void let_go(Instant now, const std::vector<HeldLock>& held, Effects& effects);

  // A message that was delivered and cannot leave yet. Until its lock is begun anew it does not run out, and
  // nobody can settle it. False: there is none to be held; one of a session ends with the session's.
  [[nodiscard]] bool hold_unsent(const LockToken& token);
  // It leaves now: until when it is locked. Nothing: it is not held.
  [[nodiscard]] std::optional<Instant> begin_lock(Instant now, const LockToken& token, Effects& effects);

  // Recovery: slices of the last complete checkpoint, then every record after it, then recovered(). A record
  // that cannot be read is `decode_error`: the journal is damaged or from a newer version.
  [[nodiscard]] Result<void> read_checkpoint(Bytes slice);
  // `record` begins with the head as it was appended; the messages behind it are not looked at.
  [[nodiscard]] Result<void> replay(Bytes record, Location at);
  // The catalogue says that the settings were changed at this point of the log.
  void replay_settings(QueueSettings settings);
  void recovered(Instant now);

  // A checkpoint is taken in slices, with commands in between. Records appended after begin_checkpoint() are
  // replayed on top of it; a checkpoint counts only once every record appended before its last slice is
  // durable. write_checkpoint() writes about `messages_max` messages and answers whether there is more.
  void begin_checkpoint();
  [[nodiscard]] bool write_checkpoint(CheckpointSink& sink, std::size_t messages_max);

  // The record of messages at `from`, whole, must make room: what is still needed of it is appended to `sink`
  // again and released at its old place. Answers whether anything was.
  bool relocate(Bytes record, Location from, RecordSink& sink);

  // What a subscription's queue does beyond this, for its topic [contract 9.8]. After share() its bytes are
  // let go of through `with`; copies show `exchange` when they come from one.
  void share(std::shared_ptr<SharedPayloads> with, std::shared_ptr<const std::string> exchange = nullptr);
  // A number for a copy; it is lost when none is adopted with it.
  [[nodiscard]] SequenceNumber take_number();
  // Takes a copy that the topic's record at copy.stored.record holds; visible after Persisted.
  void adopt(const AdoptedCopy& copy);
  // The same from a record that is durable; one that is known already is passed over.
  void replay_copy(const AdoptedCopy& copy);
  // Where the bytes of a copy lie, by the number it was adopted under; nothing when it is gone.
  [[nodiscard]] std::optional<StoredMessage> find_copy(SequenceNumber number) const;
  // Its bytes lie at a later place now. Whoever moves them lets go of the old one.
  void move_copy(SequenceNumber number, const StoredMessage& to);
  // Lets go of every message, without a record: the queue is being deleted, and is good for nothing else.
  void abandon_messages(RecordSink& sink);
  // Somebody changed its rules: it is in use.
  void touch(Instant now);
  // Of size_bytes, what is not message bytes.
  [[nodiscard]] std::uint64_t own_bytes() const;

  [[nodiscard]] const QueueSettings& settings() const;
  [[nodiscard]] QueueCounts counts() const;
  // How many messages of a sub-queue somebody with credit would get now.
  [[nodiscard]] std::uint32_t available(SubQueue sub_queue) const;
  // How many message-ids are remembered at most, set before the first; and how many of them were forgotten
  // although the window still reached them.
  void set_duplicate_ids_max(std::size_t ids_max);
  [[nodiscard]] std::uint64_t duplicate_ids_gone_early() const;
  [[nodiscard]] const Totals& totals() const;
  // Calls visit for every message that is there: what the journal must keep after recovery.
  void visit_messages(const std::function<void(const StoredMessage&)>& visit) const;
  // What there is, one line per message and session, for support and tests. Work grows with the queue.
  [[nodiscard]] std::string describe() const;
  // What the message index takes, in bytes, for metrics and tests. Work grows with the queue.
  [[nodiscard]] std::size_t index_bytes() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace omnibus::broker
