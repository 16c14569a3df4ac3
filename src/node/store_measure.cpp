// A StoreHost's numbers, for /metrics.
#include <algorithm>

#include "base/check.hpp"
#include "node/store_host.hpp"

namespace omnibus::node {
namespace {

// Partitions that one turn looks at: well below what a batch of commands takes.
constexpr std::size_t slots_per_turn = 500;

admin::StoreMetrics numbers_of(const store::StoreStats& stats) {
  admin::StoreMetrics store;
  store.full = stats.full;
  store.partitions = stats.partitions;
  store.disk_bytes = stats.journal.disk_bytes;
  store.live_bytes = stats.journal.live_bytes;
  store.segments = stats.journal.segments;
  store.syncs = stats.journal.syncs;
  store.records_written = stats.journal.records_written;
  store.bytes_written = stats.journal.bytes_written;
  store.bytes_since_checkpoint = stats.journal.bytes_since_checkpoint;
  store.gathered_bytes = stats.journal.gathered_bytes;
  store.sync_us = stats.journal.sync_us;
  store.batch_records = stats.journal.batch_records;
  store.batch_bytes = stats.journal.batch_bytes;
  store.cache_bytes = stats.cache_bytes;
  store.cache_hits = stats.cache_hits;
  store.cache_misses = stats.cache_misses;
  store.checkpoints = stats.checkpoints;
  store.recoveries = stats.recoveries;
  store.damaged_records = stats.damaged_records;
  store.reads_failing = stats.reads_failing;
  store.cut_bytes = stats.cut_bytes;
  return store;
}

}  // namespace

struct StoreHost::Measuring {
  std::vector<store::PartitionId> named;
  MeasureDone done;
  Measured result{};
  std::size_t from = 0;
};

void StoreHost::measure(std::vector<store::PartitionId> named, MeasureDone done) {
  auto measuring = std::make_shared<Measuring>(std::move(named), std::move(done));
  post([this, measuring = std::move(measuring)]() mutable { measure_on(std::move(measuring)); });
}

void StoreHost::measure_on(std::shared_ptr<Measuring> measuring) {
  Measured& result = measuring->result;
  measuring->from =
      store_->visit_numbers(measuring->from, slots_per_turn, [&](const PartitionNumbers& numbers) {
        if (std::ranges::binary_search(measuring->named, numbers.id)) return result.named.push_back(numbers);
        result.others.add(numbers.queue);
        result.others.counts.scheduled += numbers.topic.scheduled;
        result.others.counts.size_bytes += numbers.topic.size_bytes;
        result.others.totals += numbers.totals;
      });
  if (measuring->from != 0)
    return post([this, measuring = std::move(measuring)]() mutable { measure_on(std::move(measuring)); });
  result.store = numbers_of(store_->stats());
  result.store.number = settings_.number;
  result.store.state = taken_down_ ? "taken_down"
                       : stalled_  ? "stalled"
                                   : std::string{store::name_of(state_)};
  result.store.up = is_available();
  result.store.commands_waiting = commands_.waiting();
  for (std::size_t i = 0; i < refused_.size(); ++i)
    if (refused_.at(i) > 0) result.store.refused[std::string{name_of(static_cast<Errc>(i))}] = refused_.at(i);
  measuring->done(std::move(result));
}

void StoreHost::count_refusal(const broker::Effect& effect) {
  static_assert(static_cast<std::size_t>(Errc::internal_error) < std::tuple_size_v<decltype(refused_)>);
  if (const auto* refused = std::get_if<broker::Refused>(&effect))
    ++refused_.at(static_cast<std::size_t>(refused->error.code));
  else if (const auto* receiver = std::get_if<broker::ReceiverRefused>(&effect))
    ++refused_.at(static_cast<std::size_t>(receiver->error.code));
}

}  // namespace omnibus::node
