// The transactions of several stores that are under way in this one: those it coordinates, and those that it
// has prepared for others and waits for the decision of. Bookkeeping only; store_transactions.cpp acts.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "store/transaction_records.hpp"

namespace omnibus::store {

// By id, with a time at which each wants to be looked at.
template <class T>
class TimedTable {
 public:
  T& add(const TransactionId& id, T one, Instant due) {
    auto& entry = all_[id];
    if (entry.due != broker::never) due_.erase({entry.due, id});
    entry = {std::move(one), due};
    due_.emplace(due, id);
    return entry.what;
  }
  [[nodiscard]] T* find(const TransactionId& id) {
    const auto found = all_.find(id);
    return found == all_.end() ? nullptr : &found->second.what;
  }
  void look_at(const TransactionId& id, Instant due) {
    auto& entry = all_.at(id);
    due_.erase({entry.due, id});
    entry.due = due;
    due_.emplace(due, id);
  }
  void remove(const TransactionId& id) {
    const auto found = all_.find(id);
    if (found == all_.end()) return;
    due_.erase({found->second.due, id});
    all_.erase(found);
  }
  void clear() {
    all_.clear();
    due_.clear();
  }
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] Instant first_due() const { return due_.empty() ? broker::never : due_.begin()->first; }
  [[nodiscard]] TransactionId first() const { return due_.begin()->second; }
  // The first behind `id`, in the order of ids.
  [[nodiscard]] const TransactionId* after(const std::optional<TransactionId>& id) const {
    const auto next = id ? all_.upper_bound(*id) : all_.begin();
    return next == all_.end() ? nullptr : &next->first;
  }

 private:
  struct Entry {
    T what{};
    Instant due = broker::never;
  };
  std::map<TransactionId, Entry> all_;
  std::set<std::pair<Instant, TransactionId>> due_;
};

struct Coordinated {
  enum class State : std::uint8_t {
    preparing,   // not all participants have answered
    committing,  // decided, and not durable
    committed,   // not all participants have done it
  };
  State state = State::preparing;
  broker::RequestId request = broker::RequestId::none;  // none: it was answered
  std::vector<broker::TransactionStep> steps{};         // of this store
  std::set<std::uint16_t> participants{};               // in `committed`: those that have not answered
  std::set<std::uint16_t> prepared{};
  Instant answer_by{};
};

struct Participation {
  enum class State : std::uint8_t {
    preparing,  // its record is not durable
    prepared,
    deciding,  // carried out, and that is not durable
  };
  State state = State::preparing;
  PreparedRecord record{};
  std::uint64_t bytes = 0;  // of its messages
};

struct Transactions {
  TimedTable<Coordinated> coordinated{};
  TimedTable<Participation> prepared{};
  std::uint64_t prepared_bytes = 0;
  std::uint64_t origin = 0;  // of the ids that are given now
  std::uint64_t last = 0;

  [[nodiscard]] Instant next_deadline() const {
    return std::min(coordinated.first_due(), prepared.first_due());
  }
  void clear() {
    coordinated.clear();
    prepared.clear();
    prepared_bytes = 0;
  }
};

}  // namespace omnibus::store
