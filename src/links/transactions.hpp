// The transactions of one connection that are neither committed nor rolled back [service-bus contract 7].
//
// What a client does in a transaction is written down here as steps and reaches no entity before the commit,
// which sends them all as one command. So to roll back is to forget. An id is good on every session of the
// connection, and nowhere else.
//
// A transaction ends by a discharge, with the link that declared it, or when its time (two minutes, unless it
// is set) is over, counted from its first operation. Of those whose time is over the latest are remembered,
// so that their client hears why. What is held is bounded: transactions, messages and operations in each,
// bytes of all. Lives on the connection's core.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "amqp/engine/delivery_state.hpp"
#include "base/random.hpp"
#include "links/entity_port.hpp"
#include "links/link_end.hpp"

namespace omnibus::links {

struct TransactionLimits {
  std::uint32_t open_max = 100;          // of one connection
  std::uint32_t messages_max = 100;      // sent and scheduled in one
  std::uint32_t operations_max = 1000;   // settlements and changes of rules in one
  std::uint32_t numbers_max = 4000;      // reserved by one request that schedules
  std::uint64_t bytes_max = 100u << 20;  // held by all of a connection
  std::chrono::milliseconds time_out{120'000};
};

using TransactionId = std::array<std::uint8_t, 16>;

// What a client asks for in one transfer, disposition or request: all of it is taken, or none.
struct Enlistment {
  std::vector<broker::TransactionStep> steps{};
  // Of sends: how many messages these are, and what they hold in memory.
  std::uint32_t messages = 0;
  std::uint64_t bytes = 0;
};

class Transaction {
 public:
  [[nodiscard]] const TransactionId& id() const { return id_; }
  [[nodiscard]] const std::vector<broker::TransactionStep>& steps() const { return steps_; }
  [[nodiscard]] std::vector<broker::TransactionStep> take_steps() { return std::move(steps_); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  // Why it can only be rolled back; nothing: it can be committed.
  [[nodiscard]] const std::optional<Error>& doomed() const { return doomed_; }
  // The first reason stays.
  void doom(const Error& why) {
    if (!doomed_) doomed_ = why;
  }

  // All sends of a transaction to one partitioned entity have one key. Fails with `not_allowed`.
  [[nodiscard]] Result<void> keep_to_key(const EntityFacts& entity, const std::string& key);

  // Something has been asked of an entity that has to be known before the commit.
  void begin_asking() { ++asking_; }
  void end_asking() { --asking_; }
  [[nodiscard]] bool is_asking() const { return asking_ > 0; }

 private:
  friend class Transactions;

  TransactionId id_{};
  const void* controller_ = nullptr;
  std::vector<broker::TransactionStep> steps_;
  std::uint32_t messages_ = 0;
  std::uint32_t operations_ = 0;
  std::uint64_t bytes_ = 0;
  std::optional<Tick> ends_;                 // from the first operation on
  std::map<std::string, std::string> keys_;  // by name of a partitioned entity
  std::uint32_t asking_ = 0;
  std::optional<Error> doomed_;
};

class Transactions {
 public:
  // Both outlive this.
  Transactions(const TransactionLimits& limits, Random& random) : limits_(limits), random_(random) {}
  Transactions(const Transactions&) = delete;
  Transactions& operator=(const Transactions&) = delete;

  // `controller` is whoever ends it by going away. Fails with `resource_limit_exceeded`.
  [[nodiscard]] Result<TransactionId> declare(const void* controller);
  // Fails with `transaction_unknown_id` or `transaction_timeout`. Good until the connection hears anything
  // else.
  [[nodiscard]] Result<Transaction*> find(Bytes id);
  // An operation begins, successful or not: the time runs. Fails as find(), and with `transaction_rollback`
  // when the transaction is doomed.
  [[nodiscard]] Result<Transaction*> begin_operation(Bytes id, Now now);
  // Fails with `resource_limit_exceeded`, or with `message_lock_lost` for a lock that was settled already in
  // a transaction of this connection; nothing was enlisted then.
  [[nodiscard]] Result<void> enlist(Transaction& transaction, Enlistment enlistment);
  // Ends it here: to be committed by the caller, or just dropped. Fails as find().
  [[nodiscard]] Result<std::unique_ptr<Transaction>> take(Bytes id);
  // The controller is gone, and what it declared with it.
  void drop_of(const void* controller);

  // Drops what is over and returns when to call again.
  std::optional<Tick> tick(Tick now);
  // Whether something began that tick() does not know of.
  [[nodiscard]] bool wants_tick() const { return wants_tick_; }

  [[nodiscard]] const TransactionLimits& limits() const { return limits_; }
  [[nodiscard]] std::size_t open() const { return open_.size(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  using Open = std::map<TransactionId, std::unique_ptr<Transaction>>;
  [[nodiscard]] Result<Open::iterator> look_up(Bytes id);
  // Gives back what it held.
  std::unique_ptr<Transaction> end(Open::iterator which);

  const TransactionLimits& limits_;
  Random& random_;
  Open open_;
  std::deque<TransactionId> timed_out_;            // the latest
  std::unordered_set<broker::LockToken> settled_;  // locks that an open transaction settles
  std::uint64_t bytes_ = 0;
  bool wants_tick_ = false;
};

// The transaction that a delivery state names, and the outcome in it; views into `state`. Fails with
// `decode_error`.
[[nodiscard]] Result<amqp::TransactionalState> read_transactional_state(const amqp::StateView& state);

}  // namespace omnibus::links
