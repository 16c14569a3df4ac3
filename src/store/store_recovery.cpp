#include "base/check.hpp"
#include "store/store_parts.hpp"

namespace omnibus::store {
namespace {

constexpr std::uint64_t records_per_progress = 100'000;

}  // namespace

void Store::Parts::set_state(StoreState to, const std::string& reason) {
  state = to;
  // Held down by administration it stays failed to everybody outside.
  if (!offline || to == StoreState::closed || to == StoreState::closing) owner.on_state(to, reason);
}

void Store::Parts::open() {
  check(state == StoreState::closed || state == StoreState::failed, "a store is opened when it is closed");
  set_state(StoreState::opening);
  checkpoint_reader.emplace();
  recovery_error.reset();
  unknown.clear();
  early.clear();
  progress = {};
  transactions.clear();
  for (Partition* partition : partitions.by_ascending_id()) partition->known = false;
  journal->open();
}

void Store::Parts::cannot_recover(Error error) {
  if (!recovery_error) recovery_error = std::move(error);
}

void Store::Parts::on_checkpoint(Bytes piece) {
  if (recovery_error) return;
  auto fed = checkpoint_reader->feed(piece, [this](const Piece& one) { return take_piece(one); });
  if (!fed) cannot_recover(std::move(fed.error()));
}

Result<void> Store::Parts::take_piece(const Piece& piece) {
  switch (piece.kind) {
    case PieceKind::head: {
      const auto head = decode_head(piece.bytes);
      if (!head) return omnibus::fail(head.error());
      next_partition = std::max(next_partition, head->next_partition);
      return {};
    }
    case PieceKind::partition: {
      auto info = decode_partition(piece.partition, piece.bytes);
      if (!info) return omnibus::fail(std::move(info.error()));
      know(std::move(*info));
      return {};
    }
    case PieceKind::slice: {
      Partition* partition = partitions.find(piece.partition);
      if (!partition || !partition->known)
        return omnibus::fail(Errc::decode_error, "the checkpoint tells of partition {} before it names it",
                             static_cast<std::uint32_t>(piece.partition));
      return partition->topic ? partition->topic->read_checkpoint(piece.bytes)
                              : partition->queue->read_checkpoint(piece.bytes);
    }
    case PieceKind::prepared:
      return replay_transaction(RecordKind::prepared, piece.bytes);
    case PieceKind::committed:
      return replay_transaction(RecordKind::committed, piece.bytes);
  }
  return {};
}

void Store::Parts::know(PartitionInfo info) {
  const PartitionId id = info.id;
  next_partition = std::max(next_partition, static_cast<std::uint32_t>(id) + 1);
  Partition* partition = partitions.find(id);
  if (partition && partition->known) {  // a record that the checkpoint knew already, or an update
    if (partition->info.kind != info.kind || partition->info.topic != info.topic)
      return cannot_recover({Errc::decode_error, fmt::format("partition {} became another kind of thing",
                                                             static_cast<std::uint32_t>(id))});
    if (partition->topic)
      partition->topic->replay_settings(info.topic_settings);
    else
      partition->queue->replay_settings(info.settings);
    partition->info = std::move(info);
    return;
  }
  if (!partition) partition = &partitions.add(info);
  partition->info = std::move(info);
  partition->known = true;
  make_machine(*partition);
  join(*partition);
}

// A checkpoint tells of partitions in no order: whoever comes second brings the two together.
void Store::Parts::join(Partition& partition) {
  if (partition.topic) {
    const auto [first, last] = early.equal_range(partition.info.id);
    for (auto one = first; one != last; ++one)
      if (Partition* subscription = partitions.find(one->second);
          subscription && subscription->known && subscription->queue)
        partition.topic->join(static_cast<broker::SubscriptionId>(one->second), *subscription->queue);
    early.erase(first, last);
  } else if (partition.info.kind == PartitionKind::subscription) {
    if (Partition* topic = topic_of(partition))
      topic->topic->join(static_cast<broker::SubscriptionId>(partition.info.id), *partition.queue);
    else
      early.emplace(partition.info.topic, partition.info.id);
  }
}

void Store::Parts::forget(PartitionId id) {
  unknown.erase(id);
  Partition* partition = partitions.find(id);
  if (!partition) return;
  leave_topic(*partition);
  // Its receivers were detached when it was deleted; who attached since believes in a deletion that failed.
  std::vector<broker::Effect> answers;
  partition->receivers.detach_all(not_found(partition->info.name), answers);
  for (auto& answer : answers) post(id, std::move(answer));
  partitions.remove(*partition);
}

void Store::Parts::damaged_record(const journal::RecordView& record, const Error& error) {
  report({record.position, record.body.size(), record.partition, error.detail});
}

void Store::Parts::on_replay(const journal::RecordView& record) {
  progress.bytes += record.body.size();
  if (++progress.records % records_per_progress == 0) owner.on_progress(progress);
  if (recovery_error) return;
  const auto id = static_cast<PartitionId>(record.partition);
  switch (static_cast<RecordKind>(record.kind)) {
    case RecordKind::queue:
    case RecordKind::topic: {
      Partition* partition = partitions.find(id);
      if (!partition || !partition->known) {
        unknown.insert(id);  // deleted further on, or its creation is damaged
        return;
      }
      const bool of_topic = static_cast<RecordKind>(record.kind) == RecordKind::topic;
      if (of_topic != (partition->topic != nullptr))
        return damaged_record(record, {Errc::decode_error, "the record of another kind of partition"});
      const broker::Location at{record.position.value()};
      const auto done =
          of_topic ? partition->topic->replay(record.body, at) : partition->queue->replay(record.body, at);
      if (!done) damaged_record(record, done.error());
      return;
    }
    case RecordKind::created:
    case RecordKind::updated: {
      auto info = decode_partition(id, record.body);
      if (!info) return cannot_recover(std::move(info.error()));
      return know(std::move(*info));
    }
    case RecordKind::deleted:
      return forget(id);
    case RecordKind::prepared:
    case RecordKind::committed:
    case RecordKind::decided:
    case RecordKind::forgotten: {
      // What cannot be read here may be half of what another store believes in.
      auto done = replay_transaction(static_cast<RecordKind>(record.kind), record.body);
      if (!done) cannot_recover(std::move(done.error()));
      return;
    }
  }
  cannot_recover({Errc::decode_error, fmt::format("a record of the unknown kind {} at {}", record.kind,
                                                  to_string(record.position))});
}

void Store::Parts::on_opened(const journal::Opened& opened) {
  now = owner.now();
  if (opened.torn_from) {
    cut_bytes += opened.torn_bytes;
    owner.on_cut(opened.torn_from, opened.torn_bytes);
  }
  if (!checkpoint_reader->at_boundary())
    cannot_recover({Errc::decode_error, "the checkpoint ends within a piece"});
  checkpoint_reader.reset();
  if (recovery_error) {
    // Nothing was taken up, so nothing may be dropped: the journal is closed as it is.
    go_down(recovery_error->detail, true);
    return tell_deadline();
  }
  std::vector<Partition*> gone;
  for (Partition* partition : partitions.by_ascending_id()) {
    if (!partition->known) {
      gone.push_back(partition);
      continue;
    }
    partition->appended = {opened.last.value()};
    if (partition->queue) partition->queue->recovered(now);
  }
  hold_messages(opened);
  recover_transactions();
  for (const PartitionId id : unknown)
    report({opened.last, 0, static_cast<std::uint32_t>(id),
            fmt::format("there are records of partition {}, but none that creates it",
                        static_cast<std::uint32_t>(id))});
  bytes_since_checkpoint = opened.bytes_replayed;
  patience = settings.reopen_first;
  reopen_at = broker::never;
  why.clear();
  ++recoveries;
  reader.resume();
  outbox.forget_visits();
  set_state(StoreState::open);
  for (Partition* partition : gone) {
    const PartitionId id = partition->info.id;
    const std::string name = partition->info.name;
    forget(id);
    owner.on_partition_gone(id, name);
  }
  if (!offline) attach_receivers();
  settle(true);
}

// After recovery: what the machines need is counted anew. Copies of one message hold it once.
void Store::Parts::hold_messages(const journal::Opened& opened) {
  const auto hold = [this](const broker::StoredMessage& message) {
    journal->hold(journal::Position{message.record.value}, message.size);
  };
  for (Partition* partition : partitions.by_ascending_id()) {
    if (!partition->known) continue;
    if (partition->topic) {
      partition->topic->recovered(now);
      partition->topic->visit_messages(hold);
    } else if (!topic_of(*partition)) {
      partition->queue->visit_messages(hold);
      if (partition->info.kind == PartitionKind::subscription)
        report({opened.last, 0, static_cast<std::uint32_t>(partition->info.id),
                fmt::format("the topic of '{}' is lost: it gets no more messages", partition->info.name)});
    }
    partitions.reschedule(*partition);
  }
}

void Store::Parts::on_failed(const journal::Failure& failure) {
  now = owner.now();
  journal_busy = false;
  const bool lost =
      failure.kind == journal::FailureKind::fenced || failure.kind == journal::FailureKind::in_use;
  go_down(fmt::format("{}: {}", name_of(failure.kind), failure.error.detail), !lost);
  tell_deadline();
}

void Store::Parts::go_down(std::string reason, bool may_reopen) {
  const bool closes = state == StoreState::closing;
  if (std::exchange(comes_back, false)) offline.reset();
  why = std::move(reason);
  reopens = may_reopen && !closes;
  state = StoreState::failed;
  // Whatever waited is refused; answers that wait for bytes still get them.
  for (Partition* partition : partitions.by_ascending_id()) {
    if ((partition->queue || partition->topic) && partition->known) run(*partition, broker::StoreFailed{});
    partitions.unschedule(*partition);
    partition->dirty = false;
    partition->appended = {};
  }
  // A topic knows its subscriptions' queues, so that all of them end together.
  for (Partition* partition : partitions.by_ascending_id()) {
    partition->topic.reset();
    partition->queue.reset();
  }
  for (const std::uint32_t slot : graves) {
    run(partitions[slot], broker::StoreFailed{});
    partitions.remove(partitions[slot]);
  }
  graves.clear();
  lose_receivers();
  lose_transactions();
  dirty.clear();
  turns.clear();
  turn_bytes = backlog_bytes = 0;
  releases.clear();
  reader.pause();
  // Places that were not durable may come to hold something else.
  cache.clear();
  moving.clear();
  checkpointer.ended();
  errands.clear();
  unreadable.clear();
  idle.clear();
  joining = full = false;
  broken.reset();
  probe_at = checkpoint_at = broker::never;
  reopen_at = now + patience;
  patience = std::min(patience * 2, settings.reopen_longest);
  std::deque<Completion> waited = std::move(completions);
  completions.clear();
  for (Completion& one : waited)
    one.done(
        omnibus::fail(Errc::internal_error, "the store failed, the change may or may not be there: {}", why));
  set_state(StoreState::failed, why);
  if (closes && !journal_busy) return close_journal();
  if (!journal->is_open()) return;
  journal_busy = true;
  journal->close([this] {
    now = owner.now();
    journal_busy = false;
    tell_deadline();
  });
}

void Store::Parts::lose_receivers() {
  for (Partition* partition : partitions.by_ascending_id()) {
    if (partition->receivers.empty()) continue;
    const std::string& name = partition->info.name;
    std::vector<broker::Effect> answers;
    partition->receivers.lost(
        busy(name), {Errc::session_lock_lost, fmt::format("the store of '{}' is not available", name)},
        answers);
    for (auto& answer : answers) post(partition->info.id, std::move(answer));
  }
}

void Store::Parts::attach_receivers() {
  for (Partition* partition : partitions.by_ascending_id()) {
    if (partition->receivers.empty()) continue;
    for (const broker::Command& command : partition->receivers.attach_again()) run(*partition, command);
  }
  groups.touched_all();
}

void Store::Parts::close(std::move_only_function<void()> done) {
  closed = std::move(done);
  if (state == StoreState::open) {
    std::uint64_t items = partitions.size();
    for (Partition* partition : partitions.by_ascending_id()) {
      if (partition->topic)
        items += partition->topic->counts().scheduled;
      else
        items += messages_in(*partition->queue) + partition->queue->counts().sessions;
    }
    if (bytes_since_checkpoint > 0 && items <= settings.closing_checkpoint_items_max) start_checkpoint();
  }
  const bool was_open = state == StoreState::open;
  if (was_open) give_up_preparing({Errc::server_busy, "the store closes"});
  reopens = false;
  set_state(StoreState::closing);
  if (!was_open || !checkpointer.under_way()) close_journal();
  settle(true);
}

void Store::Parts::close_journal() {
  journal_busy = true;
  journal->close([this] {
    now = owner.now();
    journal_busy = false;
    reader.pause();  // its folder may be somebody else's now
    // What was decided is told to the other stores when this one is opened again; who asked hears it now.
    lose_transactions();
    set_state(StoreState::closed);
    if (closed) std::exchange(closed, nullptr)();
  });
}

}  // namespace omnibus::store
