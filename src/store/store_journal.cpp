#include "base/check.hpp"
#include "store/store_parts.hpp"

namespace omnibus::store {
namespace {

// A record's frame in the journal, about.
constexpr std::uint64_t frame_bytes = 24;
// Damaged places that are remembered, so that each is reported once.
constexpr std::size_t damaged_max = 100'000;
// A place that is never durable: what waits for it is refused when the store fails.
constexpr broker::Location nowhere{UINT64_MAX};

}  // namespace

broker::Location Store::Parts::append(journal::Record record) {
  if (broken) return nowhere;
  record.with_previous = joining && std::exchange(joined_any, true);
  const auto at = journal->append(record);
  if (!at) {
    broken = at.error();
    return nowhere;
  }
  const std::uint64_t bytes =
      frame_bytes + record.head.size() + (record.payload ? record.payload->size() : 0);
  turn_bytes += bytes;
  bytes_since_checkpoint += bytes;
  return {at->value()};
}

broker::Location Store::Parts::Sink::append(Bytes head, std::span<const Payload* const> messages) {
  // What happens in a partition that is being deleted needs no record: its deletion has one.
  if (partition->deleting) return partition->appended;
  journal::Record record;
  record.kind = static_cast<std::uint16_t>(partition->topic ? RecordKind::topic : RecordKind::queue);
  record.partition = static_cast<std::uint32_t>(partition->info.id);
  record.life = messages.empty() ? journal::Life::log : journal::Life::lasting;
  record.head = head;
  record.shares = static_cast<std::uint32_t>(messages.size());
  for (const Payload* message : messages) record.held_bytes += message->size();
  Payload joined;
  if (messages.size() == 1) {
    record.payload = messages[0];
  } else if (!messages.empty()) {
    for (const Payload* message : messages)
      for (std::size_t i = 0; i < message->slice_count(); ++i) joined.append(message->slice(i));
    record.payload = &joined;
  }
  const broker::Location at = parts_.append(record);
  if (at == nowhere) return at;
  if (!messages.empty())
    (relocates ? parts_.moving : parts_.cache)
        .appended(at, static_cast<std::uint32_t>(head.size()), messages);
  if (relocates) parts_.moved = journal::Position{at.value};
  partition->appended = at;
  parts_.mark_dirty(*partition);
  return at;
}

void Store::Parts::Sink::release(const broker::StoredMessage& message) {
  parts_.releases.push_back({parts_.journal->appended(), message});
}

void Store::Parts::mark_dirty(Partition& partition) {
  if (partition.dirty) return;
  partition.dirty = true;
  dirty.push_back(partition.slot);
}

void Store::Parts::let_go() {
  const journal::Position durable = journal->durable();
  for (; !releases.empty() && releases.front().after <= durable; releases.pop_front()) {
    const broker::StoredMessage& message = releases.front().message;
    if (!reader.release_later(message)) release_now(message);
  }
}

void Store::Parts::release_now(const broker::StoredMessage& message) {
  cache.released(message);
  journal->release(journal::Position{message.record.value}, message.size);
}

// A record was read back. It is kept for its next messages; the one that ends it is the last to be asked for.
void Store::Parts::seen(broker::Location record, const Result<journal::StoredRecord>& stored) {
  if (stored) {
    if (state == StoreState::open) cache.read_back(record, stored->body);
    return;
  }
  report({journal::Position{record.value}, 0, {}, stored.error().detail});
}

void Store::Parts::report(const journal::Damage& damage) {
  if (damaged.size() < damaged_max && !damaged.insert(damage.from.value()).second) return;
  owner.on_damage(damage);
}

void Store::Parts::on_damage(const journal::Damage& damage) { report(damage); }

void Store::Parts::on_durable(journal::Position through) {
  now = owner.now();
  for (; !turns.empty() && turns.front().through <= through; turns.pop_front())
    backlog_bytes -= turns.front().bytes;
  std::vector<std::uint32_t> slots;
  slots.swap(dirty);
  for (const std::uint32_t slot : slots) {
    Partition& partition = partitions[slot];
    partition.dirty = false;
    run(partition, broker::Persisted{{through.value()}});
    if (partition.appended.value > through.value()) mark_dirty(partition);
  }
  while (!completions.empty() && completions.front().at <= through) {
    Changed done = std::move(completions.front().done);
    completions.pop_front();
    done({});
  }
  if (moved <= through) moving.clear();
  let_go();
  if (comes_back && state == StoreState::open) {
    if (dirty.empty())
      come_back();
    else
      urgent = true;
  }
  settle(true);
}

void Store::Parts::on_space(bool enough) {
  now = owner.now();
  full = !enough;
  probe_at = enough ? broker::never : now + settings.space_probe;
  owner.on_space(enough);
  // What is dead already can only go behind a checkpoint.
  if (full && bytes_since_checkpoint > 0) start_checkpoint();
  settle(true);
}

void Store::Parts::on_checkpoint_end(const Result<journal::Position>& covers) {
  now = owner.now();
  checkpointer.ended();
  if (covers) {
    ++checkpoints;
    bytes_since_checkpoint -= bytes_at_checkpoint;
  } else {
    checkpoint_at = now + settings.checkpoint_retry;
  }
  owner.on_checkpoint(covers);
  if (state == StoreState::closing) close_journal();
  settle(true);
}

void Store::Parts::on_warning(const std::string& what) { owner.on_warning(what); }

void Store::Parts::relocate(const journal::RecordView& record) {
  const auto kind = static_cast<RecordKind>(record.kind);
  if (state != StoreState::open || broken || (kind != RecordKind::queue && kind != RecordKind::topic)) return;
  Partition* partition = partitions.find(static_cast<PartitionId>(record.partition));
  if (!partition || (kind == RecordKind::topic) != (partition->topic != nullptr)) return;
  sink.partition = partition;
  sink.relocates = true;
  if (partition->topic)
    partition->topic->relocate(record.body, {record.position.value()}, sink);
  else
    partition->queue->relocate(record.body, {record.position.value()}, sink);
  sink.relocates = false;
  sink.partition = nullptr;
  if (!broken) return;
  now = owner.now();
  settle(true);
}

}  // namespace omnibus::store
