// What the broker knows of storage: one ordered, durable log per store, and how far it is safe.
//
// A store has one owner at a time. open() acquires it (a higher epoch fences whoever had it before) and
// hands the owner everything that survived: the bytes of the newest checkpoint, then every record after
// it, in order. From then on append() gathers records and commit(), called once at the end of a loop
// turn, starts a write unless one is under way: records that arrive during a sync share the next one.
//
// A record is *durable* once on_durable() named a position at or past it, never before. A failure leaves
// the records after the last such position *unknown*: the journal is closed then, reads go on, and open()
// called again recovers from what is really there (the owner starts from nothing, as at the first open).
//
// Two lives of a record: a *lasting* one (messages) is kept until each of its shares was released, wherever
// the log went meanwhile; a *log* one (a settlement, a lock) is needed only until a checkpoint covers it.
// A share is what the owner lets go of on its own, one message of a transfer: it has a size and no number, so
// that nobody has to count what is left in a record.
//
// Everything here is called, and calls back, on the owner's core; no call waits for a disk. Callbacks
// come from the event loop, never from inside a call to the journal. The file journal is FileJournal,
// MemoryJournal keeps nothing; a cluster's engine can stand behind the same calls (ADR 3).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/spread.hpp"

namespace omnibus::journal {

// The place of a record in its store: strictly increasing in the order of append. Zero is "none".
class Position {
 public:
  constexpr Position() = default;
  constexpr explicit Position(std::uint64_t value) : value_(value) {}
  constexpr Position(std::uint32_t segment, std::uint32_t offset)
      : value_(std::uint64_t{segment} << 32 | offset) {}
  [[nodiscard]] constexpr std::uint64_t value() const { return value_; }
  [[nodiscard]] constexpr std::uint32_t segment() const { return static_cast<std::uint32_t>(value_ >> 32); }
  [[nodiscard]] constexpr std::uint32_t offset() const { return static_cast<std::uint32_t>(value_); }
  constexpr explicit operator bool() const { return value_ != 0; }
  constexpr auto operator<=>(const Position&) const = default;

 private:
  std::uint64_t value_ = 0;
};

[[nodiscard]] std::string to_string(Position position);

// Strictly increasing with each acquire of a store.
using Epoch = std::uint64_t;

enum class Life : std::uint8_t { log, lasting };

// What to append. `head` is copied; the blocks of `payload` are shared and written from where they lie.
// The body that comes back is one run: head, then payload.
struct Record {
  std::uint16_t kind = 0;
  std::uint32_t partition = 0;
  Life life = Life::log;
  Bytes head;
  const Payload* payload = nullptr;
  // Of a lasting record: how often release() will be called for it, and with how many bytes in all.
  std::uint32_t shares = 1;
  std::uint64_t held_bytes = 0;
  // Goes into the batch of the record appended before it (no commit() in between): a crash leaves both or
  // none. A segment may become a little longer than its bound by it.
  bool with_previous = false;
};

// A record as it comes back. `body` is only good during the call it is handed to.
struct RecordView {
  Position position;
  std::uint16_t kind = 0;
  std::uint32_t partition = 0;
  Life life = Life::log;
  Bytes body;
};

struct StoredRecord {
  std::uint16_t kind = 0;
  std::uint32_t partition = 0;
  Life life = Life::log;
  Payload body;
};

enum class FailureKind : std::uint8_t {
  in_use,    // another process or journal has the store open; this one never had it
  fenced,    // somebody acquired the store with a higher epoch; do not open again
  no_space,  // nothing was written; open() again when there is space
  io,        // write or sync failed; what is on the disk is unknown until open()
  damaged,   // what is needed to recover cannot be read; a person has to look
};

[[nodiscard]] std::string_view name_of(FailureKind kind);

struct Failure {
  FailureKind kind = FailureKind::io;
  Error error;
};

// Bytes that should hold records and do not. They are never served and never skipped silently.
struct Damage {
  Position from;
  std::uint64_t bytes = 0;
  // What the damaged header claims, when its size leads to the next good record.
  std::optional<std::uint32_t> partition;
  std::string what;
};

// What open() found.
struct Opened {
  Epoch epoch = 0;
  Position last;               // of the last record that survived
  Position checkpoint_covers;  // none: there was no checkpoint
  std::uint64_t records_replayed = 0;
  std::uint64_t bytes_replayed = 0;
  std::uint64_t segments_read = 0;
  std::uint64_t damages = 0;
  // The batch that was being written when the process died, cut off as a whole. It was never reported
  // durable, unless the disk damaged it afterwards: that cannot be told apart, so it is told here, also when
  // it was cut off by an open() that failed later.
  Position torn_from;
  std::uint64_t torn_bytes = 0;
};

// What the journal tells its owner.
class JournalOwner {
 public:
  virtual ~JournalOwner() = default;

  // While opening, in this order. By the end of on_opened() the owner has called hold() for every share of a
  // lasting record that it takes up, and release() for those that a later record dropped. An owner that
  // cannot take up what it got calls close() in there: then nothing is removed.
  virtual void on_checkpoint(Bytes piece) = 0;
  virtual void on_replay(const RecordView& record) = 0;
  virtual void on_opened(const Opened& opened) = 0;

  // Every record up to and including `through` survives a crash now.
  virtual void on_durable(Position through) = 0;
  // The journal is closed; called once per open().
  virtual void on_failed(const Failure& failure) = 0;
  // Found while opening, reading or relocating; the journal goes on.
  virtual void on_damage(const Damage& damage) = 0;
  // false: the disk has no room for the next segment. Appends work until the current one is full; take
  // no new messages, settle and release instead. true: there is room again.
  virtual void on_space(bool enough) = 0;
  // A checkpoint is installed (it is what the next open() starts from) or failed: then the previous one
  // stays, the journal goes on, and begin_checkpoint() may be called again.
  virtual void on_checkpoint_end(const Result<Position>& covers) = 0;
  // For the log: a file could not be removed, used again or written ahead. It costs space or time, no more.
  virtual void on_warning(const std::string& what) = 0;
  // A lasting record in a segment that is nearly dead. Append again what is still needed of it and release
  // those shares at the old position (both at once; the old bytes stay until the new are durable). When
  // nothing is, or it is about to be released, do nothing.
  virtual void relocate(const RecordView& record) = 0;
};

struct Stats {
  std::uint64_t segments = 0;
  std::uint64_t disk_bytes = 0;  // of all segments
  std::uint64_t live_bytes = 0;  // of the shares that are held
  std::uint64_t live_shares = 0;
  std::uint64_t syncs = 0;
  std::uint64_t records_written = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t bytes_since_checkpoint = 0;  // what the next open() would have to replay
  std::uint64_t gathered_bytes = 0;          // appended, not yet handed to the disk
  // By batch: how long its write with its sync took (when Runners has a clock), and how much it was.
  Spread sync_us;
  Spread batch_records;
  Spread batch_bytes;
};

class Journal {
 public:
  using ReadDone = std::move_only_function<void(Result<StoredRecord>)>;

  virtual ~Journal() = default;

  // Acquires the store and recovers; ends with on_opened() or on_failed(). Only when closed.
  virtual void open() = 0;
  // Ends cleanly: what was appended is committed first, then the store is free for others. `done` comes
  // even when the journal has failed.
  virtual void close(std::move_only_function<void()> done) = 0;

  // Adds to the batch that is being gathered. Fails, and nothing happened, with `message_size_exceeded`,
  // `server_busy` (too much gathered; wait for on_durable), `resource_limit_exceeded` (disk full) or `io`
  // (closed).
  [[nodiscard]] virtual Result<Position> append(const Record& record) = 0;
  // At the end of a loop turn: what was gathered goes to the disk as soon as the disk is free.
  virtual void commit() = 0;

  // One share of the record at `position`: `bytes` of its held_bytes, the same in hold() and release().
  virtual void hold(Position position, std::uint32_t bytes) = 0;
  virtual void release(Position position, std::uint32_t bytes) = 0;

  // Reads one durable record back, checksum verified. Fails with `io` (it cannot be read for now: ask again
  // after a pause, nothing is lost yet) or for good: `decode_error` (damaged, or asked for again and again
  // while the rest of its segment could be read), `not_found` (no such segment) or `argument_error` (not
  // durable, or no place of a record).
  virtual void read(Position position, ReadDone done) = 0;

  // A checkpoint is the owner's own bytes, written piece by piece over many turns while appends go on.
  // It must reflect every record up to `covers`, and may reflect later ones: replay starts after `covers`
  // and the owner takes records it already knows in its stride. Hand over pieces while
  // checkpoint_ready(); when not, go on in a later turn.
  virtual void begin_checkpoint() = 0;
  [[nodiscard]] virtual bool checkpoint_ready() const = 0;
  virtual void checkpoint_append(Bytes piece) = 0;
  virtual void end_checkpoint(Position covers) = 0;

  // Looks again for room after on_space(false); also done by itself whenever a segment is deleted.
  virtual void probe_space() = 0;

  [[nodiscard]] virtual bool is_open() const = 0;
  // The last record that was appended, and the last that is durable.
  [[nodiscard]] virtual Position appended() const = 0;
  [[nodiscard]] virtual Position durable() const = 0;
  [[nodiscard]] virtual Stats stats() const = 0;
};

// Where work is done. A Task runs once; a runner keeps their order. Which thread that is, is up to
// whoever makes the journal: three IoThreads and the shard's loop in the product, a queue that a seed
// steps through in the simulator.
using Task = std::move_only_function<void()>;
using Runner = std::function<void(Task)>;
struct Runners {
  Runner post;                    // back to the owner's core
  Runner write;                   // batches
  Runner read;                    // single records
  Runner background;              // recovery, checkpoints, relocation, deletion
  std::function<Tick()> clock{};  // any thread; none: syncs are not timed
};

}  // namespace omnibus::journal
