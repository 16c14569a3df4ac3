// Judges a history: did the broker keep its promises, as far as its clients could see?
//
// Knows nothing of the broker. What clients cannot know (an outcome that never came) excuses either way; what
// they do know binds. Every check is sound for one clock; `slack` forgives that much where clocks and the
// moments of writing differ. The letters of the checks: docs/formats/history.md.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sim/history.hpp"

namespace omnibus::sim {

enum class Check : char {
  lost = 'L',
  doubled = 'D',      // delivered twice within a lock, or a session locked twice
  order = 'O',        // of first deliveries in a session
  duplicate = 'U',    // where duplicates are looked for
  transaction = 'T',  // or a batch: all or nothing
  counts = 'C',
  scheduled = 'S',  // served early
  expired = 'X',    // served late
  ghost = 'G',      // never sent, refused, or already completed
  multiplied = 'M'  // one send, two messages
};

struct Violation {
  Check check{};
  Moment t = 0;
  std::string text;
};
// "L at 1234567: ..."
[[nodiscard]] std::string to_string(const Violation& violation);

struct CheckerOptions {
  Moment slack = 0;
  // How late a delivery may reach its client after it left the broker in time: for X, beside `slack`.
  Moment late = 0;
  std::set<std::string> dedup{};  // entities that look for duplicates over the whole run
  // Entities, with their subscriptions, that are known to be damaged: whatever came of their messages, and of
  // the transactions that they are part of, is no one's fault. That a message was sent is asked for all the
  // same.
  std::set<std::string> excused{};
  bool retries = false;  // clients may send again what they have sent, without a line
};

struct Judgement {
  std::vector<Violation> violations;
  // What was looked at, so that nobody takes an empty history for a good one.
  std::size_t sends = 0;
  std::size_t deliveries = 0;
  std::size_t transactions = 0;
  std::size_t unchecked = 0;  // accepted, but nobody looked into their entity at the end
};

// `history` is in the order in which things happened.
[[nodiscard]] Judgement judge(const History& history, const CheckerOptions& options = {});

}  // namespace omnibus::sim
