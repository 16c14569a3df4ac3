// Several stores, each on a simulated disk of its own, and the messages between them. The test chooses what
// happens next: a step of a store's disk, a message, time, a crash of one store or of all.
#pragma once

#include <memory>

#include "store/store_topic_rig.hpp"

namespace omnibus::store {

class StoresRig {
 public:
  explicit StoresRig(std::size_t count, std::uint64_t seed = 1, StoreSettings with = {}) {
    for (std::size_t i = 0; i < count; ++i) {
      RigSettings settings;
      settings.store = with;
      settings.store.number = static_cast<std::uint16_t>(i);
      settings.seed = seed * 100 + i;
      settings.store.seed = seed * 1'000'000 + i * 1000;
      settings.journal.store = 0x1000 + i;
      stores.push_back(std::make_unique<TopicStoreRig>(settings));
    }
  }

  TopicStoreRig& operator[](std::size_t index) { return *stores.at(index); }
  [[nodiscard]] std::size_t size() const { return stores.size(); }

  static broker::TransactionStep step(std::size_t store, PartitionId id, broker::TransactionWork work) {
    return {static_cast<std::uint16_t>(store), static_cast<std::uint32_t>(id), std::move(work)};
  }
  static broker::TransactionStep sends(std::size_t store, PartitionId id, const std::string& body,
                                       std::size_t bytes = 0) {
    broker::Enqueue work;
    work.messages.push_back(StoreRig::message(body, bytes));
    return step(store, id, std::move(work));
  }
  static broker::TransactionStep settles(std::size_t store, PartitionId id, const broker::LockToken& lock) {
    broker::Settle work;
    work.tokens.push_back(lock);
    return step(store, id, std::move(work));
  }
  broker::RequestId start(std::size_t coordinator, std::vector<broker::TransactionStep> steps) {
    auto& rig = *stores.at(coordinator);
    const auto request = rig.ask();
    rig.apply(PartitionId::none, broker::Transact{request, std::move(steps)});
    rig.store->end_turn(rig.owner->clock);
    return request;
  }

  // What can happen next: one step of each store's disk that has work, one message of each store that said
  // something. Answers whether there was a `choice`-th of these.
  [[nodiscard]] std::size_t choices() const {
    std::size_t count = 0;
    for (const auto& rig : stores) count += (rig->io.waiting() > 0) + !rig->owner->messages.empty();
    return count;
  }
  void take(std::size_t choice) {
    for (std::size_t i = 0; i < stores.size(); ++i) {
      auto& rig = *stores[i];
      if (rig.io.waiting() > 0 && choice-- == 0) {
        rig.io.step();
        return;
      }
      if (!rig.owner->messages.empty() && choice-- == 0) return deliver(i);
    }
  }
  void deliver(std::size_t from) {
    auto [to, message] = std::move(stores[from]->owner->messages.front());
    stores[from]->owner->messages.pop_front();
    auto& rig = *stores.at(to);
    rig.store->store_message(rig.owner->clock, static_cast<std::uint16_t>(from), std::move(message));
    rig.store->end_turn(rig.owner->clock);
  }
  void run() {
    while (choices() > 0) take(0);
  }
  // A new process for this store; what it had said and nobody has heard is gone.
  void crash(std::size_t index) { stores.at(index)->crash(); }
  void crash_all() {
    for (std::size_t i = 0; i < stores.size(); ++i) crash(i);
  }
  // Until nothing happens any more but the passing of time.
  void advance(std::chrono::milliseconds by) {
    const Instant until = stores[0]->owner->clock + by;
    for (int wakes = 0;; ++wakes) {
      run();
      Instant first = broker::never;
      for (const auto& rig : stores) first = std::min(first, rig->store->next_deadline());
      if (first > until) break;
      ASSERT_LT(wakes, 20000) << "a deadline that never passes";
      for (const auto& rig : stores) {
        rig->owner->clock = std::max(rig->owner->clock, first);
        if (rig->store->next_deadline() <= rig->owner->clock) {
          rig->store->wake(rig->owner->clock);
          rig->store->end_turn(rig->owner->clock);
        }
      }
    }
    for (const auto& rig : stores) rig->owner->clock = until;
  }
  // Nothing: not answered.
  std::optional<std::string> answer(std::size_t coordinator, broker::RequestId request) {
    const auto& answers = stores.at(coordinator)->owner->answers;
    const auto found = answers.find(request);
    if (found == answers.end()) return std::nullopt;
    if (const auto* no = std::get_if<broker::Refused>(&found->second.effect)) return no->error.detail;
    return "done";
  }

  std::vector<std::unique_ptr<TopicStoreRig>> stores{};
};

}  // namespace omnibus::store
