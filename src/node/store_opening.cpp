// How a StoreHost's store comes up and goes: the start that does not wait for ever, and the list of what the
// store has, which is there when the store is not.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "node/namespaces.hpp"
#include "node/store_host.hpp"

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;
using store::StoreState;

// Looks are counted, not time: a process that was stopped for a while says nothing about its disk.
constexpr std::chrono::milliseconds start_look_every = 1s;
// Changes within this share one write of the list. A long one is written less often: it is put together in
// one turn of the shard.
constexpr auto list_after = 1s;
constexpr std::uint32_t partitions_per_list_after = 10'000;

}  // namespace

void StoreHost::open() {
  post([this] {
    opening_since_ = start_began_ = reactor_.now();
    look_at_start_later();
    store_->open();
    arm(store_->next_deadline());
  });
}

void StoreHost::close(std::move_only_function<void()> done) {
  post([this, done = std::move(done)]() mutable {
    if (state_ == StoreState::closed) return done();
    const bool was_open = state_ == StoreState::open;
    // What was asked for before has been answered when it is closed.
    store_->close(now(), [this, was_open, done = std::move(done)]() mutable {
      post([this, was_open, done = std::move(done)]() mutable {
        // One write comes after the other, this is the last. One that was not open keeps the list it has.
        if (was_open && list_changed_) write_list();
        done();
      });
    });
    arm(store_->next_deadline());
  });
}

void StoreHost::opened() {
  if (state_ != StoreState::open) return;
  auto partitions = store_->partitions();
  std::uint64_t messages = 0;  // each copy of a topic's message is one
  std::uint64_t entities = 0;
  for (const auto& partition : partitions) {
    if (partition.kind != store::PartitionKind::subscription) ++entities;
    if (const auto topic = store_->topic_counts(partition.id)) messages += topic->scheduled;
    if (const auto counts = store_->counts(partition.id))
      messages += counts->active + counts->deferred + counts->scheduled + counts->dead_letter +
                  counts->transfer_dead_letter + counts->transfer;
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(reactor_.now() - opening_since_);
  spdlog::info("store={} {}: {} records read, {} entities, {} subscriptions, {} messages, {} ms",
               settings_.number, was_open_ ? "open again" : "open", records_read(), entities,
               partitions.size() - entities, messages, took.count());
  if (was_open_ || partitions != listed_) list_changed();
  listed_ = {};
  list_length_ = static_cast<std::uint32_t>(partitions.size());
  was_open_ = true;
  if (settings_.door) settings_.door->made();
  roads_.namespaces->store_opened(settings_.number, std::move(partitions));
}

void StoreHost::failed(const std::string& why) {
  if (state_ == StoreState::failed) spdlog::error("store={} failed: {}", settings_.number, why);
  arm(store_->next_deadline());
}

// The start

void StoreHost::look_at_start_later() {
  start_watch_.arm(reactor_.now() + std::min(start_look_every, settings_.start_patience),
                   [this] { look_at_start(); });
}

// A long recovery may still end well, as long as it goes on.
void StoreHost::look_at_start() {
  if (was_open_) return;
  const std::uint64_t steps = steps_.load(std::memory_order_relaxed);
  still_looks_ = steps == steps_seen_ ? still_looks_ + 1 : 0;
  steps_seen_ = steps;
  const bool fails =
      state_ == StoreState::failed && reactor_.now() - start_began_ >= settings_.start_patience;
  const bool hangs =
      state_ == StoreState::opening && settings_.door &&
      still_looks_ * std::min(start_look_every, settings_.start_patience) >= settings_.stall_time;
  if (!fails && !hangs) return look_at_start_later();
  if (hangs) why_ = "its disk does not answer";
  hangs_ = hangs;
  tell_health();
  spdlog::error("store={} '{}' is not available, what it has is not served until it is: {}", settings_.number,
                settings_.shown, why_);
  // Not what the store has now: a recovery that has not ended knows only what was there earlier.
  roads_.namespaces->store_given_up(settings_.number, why_, listed_);
}

// The list

void StoreHost::list_changed() {
  if (!settings_.door) return;
  list_changed_ = true;
  if (list_timer_.armed()) return;
  const auto after = list_after * (1 + list_length_ / partitions_per_list_after);
  list_timer_.arm(reactor_.now() + after, [this] {
    // Comes again when the write under way has ended, and when the store is open: while it recovers, it knows
    // only what was there earlier.
    if (!list_under_way_ && state_ == StoreState::open) write_list();
  });
}

void StoreHost::write_list() {
  auto partitions = store_->partitions();
  list_length_ = static_cast<std::uint32_t>(partitions.size());
  list_changed_ = false;
  list_under_way_ = true;
  auto written = [this](Result<void> kept) {
    post([this, kept = std::move(kept)] {
      list_under_way_ = false;
      // The next change writes it again; what is there is older, and still better than nothing.
      if (!kept)
        spdlog::warn("store={} the list of its entities is not written: {}", settings_.number,
                     kept.error().detail);
      if (list_changed_) list_changed();
    });
  };
  roads_.namespaces->keep_list(settings_.number, identity(), std::move(partitions), std::move(written));
}

}  // namespace omnibus::node
