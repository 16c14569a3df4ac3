// What clients saw and did: the history of a run, which the checker judges.
//
// The simulator keeps one in memory; clients of a real broker write theirs as JSON lines, one object per
// line. Both are the same events, so that one checker serves both. Format: docs/formats/history.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace omnibus::sim {

enum class Do : std::uint8_t {
  entity,    // what there is; said before anybody uses it
  send,      // begun
  sent,      // its outcome
  got,       // a delivery reached a client
  settle,    // begun
  settled,   // its outcome
  renewed,   // a lock, or that of a session
  locked,    // a session
  unlocked,  // a session, given back or lost
  begin,     // a transaction
  end,       // its outcome
  fault,
  left,    // at the end: what is in an entity
  counts,  // at the end: what management says is in it
};
[[nodiscard]] std::string_view name_of(Do what);

// `unknown`: it may have happened or not, and may yet. No outcome at all means the same.
enum class Outcome : std::uint8_t { accepted, refused, unknown };
[[nodiscard]] std::string_view name_of(Outcome outcome);

enum class How : std::uint8_t { complete, abandon, defer, dead_letter, release, commit, rollback };
[[nodiscard]] std::string_view name_of(How how);

// Microseconds of the one clock of a run.
using Moment = std::int64_t;

// One flat record; which fields count is said by `what`.
struct Event {
  Moment t = 0;
  std::string who{};
  Do what = Do::fault;

  std::string id{};      // of a message: in its body, unique in the run
  std::string entity{};  // `to` of a send, `from` of the others, `name` of an entity
  std::int64_t seq = 0;
  std::optional<How> how{};
  std::optional<Outcome> result{};
  std::string session{};
  std::string mid{};    // message-id, where duplicates are looked for
  std::string batch{};  // all sends of a batch go as one
  std::string tx{};
  std::string dead{};  // reason
  std::string note{};
  std::string fault{};            // what
  std::optional<Moment> at{};     // scheduled for
  std::optional<Moment> ttl{};    // how long it lives
  std::optional<Moment> until{};  // locked until; none in `got`: it was deleted by being received
  std::optional<Moment> since{};  // of a fault: locks taken after this may be undone; none: all
  std::int64_t count = 0;         // of deliveries, 1 on the first
  std::vector<std::string> ids{};
  std::int64_t active = 0;  // not scheduled, not dead
  std::int64_t dead_count = 0;
  std::int64_t scheduled = 0;
  // Of an entity.
  std::vector<std::string> subscriptions{};  // of a topic: all of them get every message
  std::optional<Moment> dedup{};             // its window
  std::optional<Moment> lock{};              // how long one holds
  bool lossy = false;                        // somebody receives and deletes: what was under way is lost

  friend bool operator==(const Event&, const Event&) = default;
};

using History = std::vector<Event>;

inline constexpr std::size_t history_line_bytes_max = std::size_t{4} << 20;
inline constexpr std::size_t history_text_bytes_max = 1024;
inline constexpr std::size_t history_ids_max = 100'000;
inline constexpr std::size_t history_events_max = 10'000'000;

// Unknown members are ignored; one that is needed and missing, or of a wrong type, is an error, and so is a
// line past the bounds.
[[nodiscard]] Result<Event> read_event(std::string_view line);
// One line, without its end.
[[nodiscard]] std::string to_line(const Event& event);

// Adds the lines of a text to `history`; empty ones are passed over. A last line without its end is dropped
// when it cannot be read: its writer was killed in the middle of it. An error names the line.
[[nodiscard]] Result<void> read_history(std::string_view text, History& history);
// By time; what was read first stays first among equals.
void sort_by_time(History& history);

}  // namespace omnibus::sim
