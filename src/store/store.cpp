#include "store/store.hpp"

#include "base/check.hpp"
#include "store/store_parts.hpp"

namespace omnibus::store {
namespace {

// Wakes of one call; what is left stays due.
constexpr int wakes_max = 1000;
// How soon to look again whether the journal takes more of a checkpoint.
constexpr std::chrono::milliseconds checkpoint_poll{5};
constexpr std::uint32_t reclaimed_per_turn = 4000;

std::uint64_t bytes_of(const std::vector<broker::IncomingMessage>& messages) {
  std::uint64_t bytes = 0;
  for (const auto& message : messages) bytes += message.bytes.size();
  return bytes;
}

// What a command adds to the store for good; nothing when it only takes away or asks.
std::optional<std::uint64_t> bytes_sent(const broker::Command& command) {
  if (const auto* enqueue = std::get_if<broker::Enqueue>(&command)) return bytes_of(enqueue->messages);
  if (const auto* each = std::get_if<broker::EnqueueEach>(&command)) return bytes_of(each->messages);
  if (const auto* schedule = std::get_if<broker::Schedule>(&command)) return bytes_of(schedule->messages);
  if (const auto* via = std::get_if<broker::EnqueueTransfer>(&command)) return bytes_of(via->messages);
  if (const auto* dead = std::get_if<broker::EnqueueTransferDeadLetter>(&command))
    return dead->message->bytes.size();
  return std::nullopt;
}

}  // namespace

Store::Store(StoreSettings settings, StoreOwner& owner, const MakeJournal& make_journal)
    : parts_(std::make_unique<Parts>(settings, owner, make_journal)) {}
Store::~Store() = default;

void Store::open() { parts_->open(); }
void Store::close(Instant now, std::move_only_function<void()> done) {
  parts_->now = now;
  parts_->close(std::move(done));
}
void Store::apply(Instant now, PartitionId partition, broker::Command&& command) {
  parts_->apply(now, partition, std::move(command));
}
void Store::end_turn(Instant now) {
  parts_->now = now;
  parts_->settle(true);
}
Instant Store::next_deadline() const { return parts_->next_deadline(); }
void Store::wake(Instant now) { parts_->wake(now); }
StoreState Store::state() const { return parts_->offline ? StoreState::failed : parts_->state; }

bool Store::is_settled() const {
  return parts_->state == StoreState::open && parts_->journal->appended() <= parts_->journal->durable();
}

std::optional<journal::Position> Store::waits_behind() const {
  if (parts_->state != StoreState::open || is_settled()) return std::nullopt;
  return parts_->journal->durable();
}

void Store::forwarded(Instant now, PartitionId from, broker::SequenceNumber sequence,
                      std::optional<Error> error) {
  parts_->now = now;
  // A queue that was made anew meanwhile does not know of it, and forwards again.
  if (parts_->state != StoreState::open) return;
  if (Partition* source = parts_->partitions.find(from))
    parts_->run(*source, broker::Forwarded{sequence, std::move(error)});
  parts_->settle(false);
}

void Store::start_errands(Instant now) {
  parts_->now = now;
  parts_->errands_wait = false;
  parts_->settle(true);
}

void Store::fail(Instant now, const std::string& reason) {
  Parts& parts = *parts_;
  parts.now = now;
  parts.comes_back = false;
  if (parts.offline) return;
  parts.offline = reason;
  if (parts.state == StoreState::open) {
    for (Partition* partition : parts.partitions.by_ascending_id())
      for (const broker::ReceiverId id : partition->receivers.ids())
        parts.run(*partition, broker::CloseReceiver{id});
    parts.lose_receivers();
    parts.give_up_preparing(parts.busy("the transaction"));
  }
  parts.owner.on_state(StoreState::failed, reason);
  parts.settle(true);
}

void Store::restore(Instant now) {
  Parts& parts = *parts_;
  parts.now = now;
  if (!parts.offline) return;
  // What is on its way to a receiver uses credit of before, so the receiver attaches again behind it.
  if (parts.state == StoreState::open && !parts.dirty.empty())
    parts.comes_back = parts.urgent = true;
  else
    parts.come_back();
  parts.settle(true);
}

bool Store::comes_back() const { return parts_->comes_back; }

void Store::Parts::come_back() {
  comes_back = false;
  offline.reset();
  owner.on_state(state, why);
  if (state != StoreState::open) return;
  for (Partition* partition : partitions.by_ascending_id()) partitions.reschedule(*partition);
  attach_receivers();
}

void Store::checkpoint_soon(Instant now) {
  parts_->now = now;
  parts_->start_checkpoint();
  parts_->tell_deadline();
}

StoreStats Store::stats() const {
  const Parts& parts = *parts_;
  StoreStats stats;
  stats.journal = parts.journal->stats();
  stats.partitions = parts.partitions.size();
  stats.cache_hits = parts.cache.hits();
  stats.cache_misses = parts.cache.misses();
  stats.cache_bytes = parts.cache.bytes();
  stats.cache_records = parts.cache.records();
  stats.reads = parts.reader.reads();
  stats.reads_under_way = parts.reader.under_way();
  stats.reads_failing = parts.reader.failing();
  stats.answers_waiting = parts.outbox.waiting();
  stats.releases_waiting = parts.releases.size();
  stats.damaged_records = parts.damaged.size();
  stats.cut_bytes = parts.cut_bytes;
  stats.checkpoints = parts.checkpoints;
  stats.recoveries = parts.recoveries;
  stats.full = parts.full;
  return stats;
}

Store::Parts::Parts(StoreSettings with, StoreOwner& whose, const MakeJournal& make_journal)
    : settings(with),
      owner(whose),
      random(with.seed),
      cache(with.cache_bytes_max),
      reader(
          {with.reads_max, with.read_retry_first, with.read_retry_longest},
          [this](broker::Location record, const auto& stored) { seen(record, stored); },
          [this](const broker::StoredMessage& message) { release_now(message); },
          [this] {
            now = owner.now();
            settle(true);
          },
          [this](const std::optional<Error>& trouble) { owner.on_reads(trouble); },
          [this] { return owner.now(); }),
      outbox(moving, cache, reader, [this](Letter&& letter) { send(std::move(letter)); }),
      journal(make_journal(*this)) {
  reader.use(*journal);
  errands_wait = settings.errands_wait;
  patience = settings.reopen_first;
}

Error Store::Parts::not_found(std::string_view entity) {
  return {Errc::not_found, fmt::format("The messaging entity '{}' could not be found", entity)};
}

Error Store::Parts::busy(std::string_view entity) const {
  const std::string reason = offline                        ? *offline
                             : state == StoreState::opening ? "it recovers"
                             : state == StoreState::closing ? "it closes"
                             : state == StoreState::closed  ? "it is closed"
                             : why.empty()                  ? "it failed"
                                                            : why;
  return {Errc::server_busy, fmt::format("the store of '{}' is not available: {}", entity, reason)};
}

std::optional<Error> Store::Parts::send_refused(const Partition& partition, std::uint64_t bytes) const {
  const std::string& name = partition.info.name;
  if (full)
    return Error{Errc::server_busy, fmt::format("the disk is full: '{}' takes no messages for now", name)};
  if (bytes > settings.transfer_bytes_max)
    return Error{Errc::message_size_exceeded,
                 fmt::format("{} bytes in one transfer, the store of '{}' takes {}", bytes, name,
                             settings.transfer_bytes_max)};
  if (backlog_bytes + turn_bytes + bytes > settings.backlog_bytes_max && backlog_bytes + turn_bytes > 0)
    return Error{Errc::server_busy,
                 fmt::format("{} bytes wait for the disk of '{}' already", backlog_bytes + turn_bytes, name)};
  return std::nullopt;
}

void Store::Parts::refuse(PartitionId id, broker::Command& command, const Error& error) {
  const bool elsewhere = error.code == Errc::server_busy;
  std::visit(
      [&](auto& one) {
        using Command = std::remove_cvref_t<decltype(one)>;
        if constexpr (requires { one.request; }) {
          if (one.request == broker::RequestId::none) return;
          broker::Refused refused{one.request, error};
          if constexpr (std::is_same_v<Command, broker::Enqueue>)
            if (elsewhere) refused.messages = std::move(one.messages);
          post(id, std::move(refused));
        } else if constexpr (requires { one.requests; }) {
          for (std::size_t i = 0; i < one.requests.size(); ++i) {
            broker::Refused refused{one.requests[i], error};
            if (elsewhere) refused.messages.push_back(std::move(one.messages.at(i)));
            post(id, std::move(refused));
          }
        } else if constexpr (std::is_same_v<Command, broker::AttachReceiver>) {
          post(id, broker::ReceiverRefused{one.receiver, error});
        }
      },
      command);
}

void Store::Parts::apply_closed(PartitionId id, broker::Command& command) {
  Partition* partition = partitions.find(id);
  const std::string name =
      partition ? partition->info.name : fmt::format("partition {}", static_cast<std::uint32_t>(id));
  std::vector<broker::Effect> answers;
  if (const auto* attach = std::get_if<broker::AttachReceiver>(&command); attach && partition) {
    partition->receivers.attach_to_nobody(*attach, busy(name), answers);
  } else if (const auto* credit = std::get_if<broker::SetCredit>(&command); credit && partition) {
    partition->receivers.credit_from_nobody(*credit, answers);
  } else if (const auto* leaving = std::get_if<broker::CloseReceiver>(&command); leaving && partition) {
    partition->receivers.closing(leaving->receiver);
  } else {
    refuse(id, command, busy(name));
  }
  for (auto& answer : answers) post(id, std::move(answer));
}

void Store::Parts::apply(Instant at, PartitionId id, broker::Command&& command) {
  check(!in_callback, "a callback does not call the store");
  now = at;
  if (auto* several = std::get_if<broker::Transact>(&command)) {
    transact(std::move(*several));
  } else if (!groups.takes(static_cast<std::uint32_t>(id), command)) {
    to_partition(id, std::move(command));
  }
  settle(false);
}

void Store::Parts::to_partition(PartitionId id, broker::Command&& command) {
  Partition* partition = partitions.find(id);
  // Whatever holds messages can be purged.
  if (partition && !std::holds_alternative<broker::Purge>(command))
    if (const auto error = wrong_kind(*partition, is_send(command))) return refuse(id, command, *error);
  if (!is_open()) return apply_closed(id, command);
  if (!partition)
    return refuse(id, command, not_found(fmt::format("partition {}", static_cast<std::uint32_t>(id))));
  if (const auto bytes = bytes_sent(command))
    if (const auto error = send_refused(*partition, *bytes)) return refuse(id, command, *error);
  const auto* attach = std::get_if<broker::AttachReceiver>(&command);
  if (attach && settings.receivers_max != 0 && partition->queue &&
      partition->queue->counts().receivers >= settings.receivers_max)
    return refuse(id, command,
                  {Errc::resource_limit_exceeded, fmt::format("'{}' has {} receivers, no more are allowed",
                                                              partition->info.name, settings.receivers_max)});
  if (attach)
    partition->receivers.attaching(*attach);
  else if (auto* credit = std::get_if<broker::SetCredit>(&command))
    partition->receivers.crediting(*credit);
  else if (const auto* leaving = std::get_if<broker::CloseReceiver>(&command))
    partition->receivers.closing(leaving->receiver);
  if (partition->info.kind == PartitionKind::subscription && is_about_rules(command))
    run_rules(*partition, command);
  else
    run(*partition, command);
}

void Store::Parts::settle(bool commits) {
  work_off();
  if (broken) {
    const std::string reason = broken->detail;
    broken.reset();
    // A journal that is being closed takes nothing more; what it does not take was not promised.
    if (state == StoreState::open || (state == StoreState::closing && !journal_busy)) go_down(reason, true);
  }
  if (commits) {
    go_on();
    if (turn_bytes > 0) {
      if (journal->appended() > journal->durable()) {
        turns.push_back({journal->appended(), turn_bytes});
        backlog_bytes += turn_bytes;
      }
      turn_bytes = 0;
    }
    commit();
  }
  tell_deadline();
}

void Store::Parts::commit() {
  if (!journal->is_open()) return;
  const bool waited_for = urgent || !completions.empty() || state != StoreState::open || commit_at <= now ||
                          settings.lazy_commit == std::chrono::milliseconds::zero();
  if (!waited_for) {
    if (commit_at == broker::never && journal->appended() > journal->durable())
      commit_at = now + settings.lazy_commit;
    return;
  }
  urgent = false;
  commit_at = broker::never;
  journal->commit();
}

void Store::Parts::go_on() {
  if (state != StoreState::open && state != StoreState::closing) return;
  reclaim(reclaimed_per_turn);
  if (state == StoreState::open && bytes_since_checkpoint >= settings.checkpoint_bytes &&
      checkpoint_at == broker::never)
    start_checkpoint();
  checkpointer.step(*journal, settings.checkpoint_items_per_turn);
}

void Store::Parts::start_checkpoint() {
  if (state != StoreState::open || checkpointer.under_way()) return;
  checkpoint_at = broker::never;
  bytes_at_checkpoint = bytes_since_checkpoint;
  checkpointer.begin(*journal, {next_partition});
  tell_of_forgotten_ids();
}

// With each checkpoint: so many ids do not come without one, and nobody looks more often.
void Store::Parts::tell_of_forgotten_ids() {
  for (std::size_t slot = 0; slot < partitions.slots(); ++slot) {
    Partition* partition = partitions.at(slot);
    if (!partition || partition->told_of_ids) continue;
    const std::uint64_t gone = partition->topic   ? partition->topic->duplicate_ids_gone_early()
                               : partition->queue ? partition->queue->duplicate_ids_gone_early()
                                                  : 0;
    if (gone == 0) continue;
    partition->told_of_ids = true;
    owner.on_warning(
        fmt::format("entity='{}' gets more than {} message-ids within its duplicate window: the oldest are "
                    "forgotten early",
                    partition->info.name, settings.duplicate_ids_max));
  }
}

Instant Store::Parts::next_deadline() const {
  Instant first = broker::never;
  if (is_open()) first = std::min(partitions.first_deadline(), transactions.next_deadline());
  if (state == StoreState::failed && reopens && !journal_busy) first = std::min(first, reopen_at);
  if (state == StoreState::open || state == StoreState::closing) {
    if (checkpointer.writing())
      first = std::min(first, journal->checkpoint_ready() ? now : now + checkpoint_poll);
    if (!graves.empty()) first = std::min(first, now + checkpoint_poll);
    first = std::min(first, std::min({checkpoint_at, probe_at, commit_at}));
  }
  return std::min(first, reader.retry_at());
}

void Store::Parts::tell_deadline() {
  const Instant due = next_deadline();
  if (due >= told) return;
  told = due;
  owner.on_deadline(due);
}

void Store::Parts::wake(Instant at) {
  check(!in_callback, "a callback does not call the store");
  now = at;
  told = broker::never;
  if (state == StoreState::failed && reopens && !journal_busy && reopen_at <= now) open();
  if (is_open()) {
    for (int wakes = 0; wakes < wakes_max && partitions.first_deadline() <= now; ++wakes)
      run(partitions.first_due(), broker::Wake{});
    wake_transactions();
  }
  if (state == StoreState::open) {
    if (probe_at <= now) {
      probe_at = now + settings.space_probe;
      journal->probe_space();
    }
    if (checkpoint_at <= now) start_checkpoint();
  }
  reader.retry();
  settle(true);
}

}  // namespace omnibus::store
