#include "links/transactions.hpp"

#include <algorithm>
#include <cstring>

#include "base/text.hpp"

namespace omnibus::links {
namespace {

constexpr std::size_t timed_out_max = 100;

std::optional<TransactionId> id_of(Bytes bytes) {
  TransactionId id;
  if (bytes.size() != id.size()) return std::nullopt;
  std::ranges::copy(bytes, id.begin());
  return id;
}

const broker::Settle* settle_of(const broker::TransactionStep& step) {
  return std::get_if<broker::Settle>(&step.work);
}

}  // namespace

Result<void> Transaction::keep_to_key(const EntityFacts& entity, const std::string& key) {
  const auto [known, is_new] = keys_.try_emplace(entity.name, key);
  if (is_new || known->second == key) return {};
  return fail(Errc::not_allowed,
              "The transaction has sent to '{}' with the key '{}' before, so '{}' is not allowed: it is "
              "partitioned, and all of a transaction goes to one partition.",
              entity.name, known->second, key);
}

Result<TransactionId> Transactions::declare(const void* controller) {
  if (open_.size() >= limits_.open_max)
    return fail(Errc::resource_limit_exceeded, "The connection has {} open transactions, {} are allowed.",
                open_.size(), limits_.open_max);
  auto transaction = std::make_unique<Transaction>();
  do {
    const std::uint64_t words[2] = {random_.next(), random_.next()};
    std::memcpy(transaction->id_.data(), words, sizeof words);
  } while (open_.contains(transaction->id_));
  transaction->controller_ = controller;
  const TransactionId id = transaction->id_;
  open_.emplace(id, std::move(transaction));
  return id;
}

Result<Transactions::Open::iterator> Transactions::look_up(Bytes bytes) {
  if (const auto id = id_of(bytes)) {
    if (const auto found = open_.find(*id); found != open_.end()) return found;
    if (std::ranges::find(timed_out_, *id) != timed_out_.end())
      return fail(Errc::transaction_timeout,
                  "The transaction {} was rolled back: it took longer than {} seconds.", hex(bytes),
                  std::chrono::duration_cast<std::chrono::seconds>(limits_.time_out).count());
  }
  return fail(Errc::transaction_unknown_id, "The transaction {} is not open on this connection.",
              hex(bytes.first(std::min<std::size_t>(bytes.size(), 32))));
}

Result<Transaction*> Transactions::find(Bytes id) {
  const auto found = look_up(id);
  if (!found) return fail(found.error());
  return (*found)->second.get();
}

Result<Transaction*> Transactions::begin_operation(Bytes id, Now now) {
  const auto found = find(id);
  if (!found) return fail(found.error());
  Transaction& transaction = **found;
  if (!transaction.ends_) {
    transaction.ends_ = now.tick + limits_.time_out;
    wants_tick_ = true;
  }
  if (transaction.doomed_)
    return fail(Errc::transaction_rollback, "The transaction can only be rolled back: {}",
                transaction.doomed_->detail);
  return &transaction;
}

Result<void> Transactions::enlist(Transaction& transaction, Enlistment enlistment) {
  if (transaction.messages_ + enlistment.messages > limits_.messages_max)
    return fail(Errc::resource_limit_exceeded, "A transaction has at most {} messages.",
                limits_.messages_max);
  std::size_t operations = 0;
  for (const auto& step : enlistment.steps) {
    const broker::Settle* settle = settle_of(step);
    operations += settle ? settle->tokens.size() : enlistment.messages > 0 ? 0 : 1;
  }
  if (transaction.operations_ + operations > limits_.operations_max)
    return fail(Errc::resource_limit_exceeded, "A transaction has at most {} settlements and rule changes.",
                limits_.operations_max);
  if (bytes_ + enlistment.bytes > limits_.bytes_max)
    return fail(Errc::resource_limit_exceeded,
                "The transactions of this connection hold {} bytes of messages, {} are allowed.", bytes_,
                limits_.bytes_max);
  std::unordered_set<broker::LockToken> settles;
  for (const auto& step : enlistment.steps)
    if (const broker::Settle* settle = settle_of(step))
      for (const broker::LockToken& lock : settle->tokens)
        if (settled_.contains(lock) || !settles.insert(lock).second)
          return fail(Errc::message_lock_lost, "The message is settled in a transaction already.");
  settled_.merge(settles);
  transaction.messages_ += enlistment.messages;
  transaction.operations_ += static_cast<std::uint32_t>(operations);
  transaction.bytes_ += enlistment.bytes;
  bytes_ += enlistment.bytes;
  std::ranges::move(enlistment.steps, std::back_inserter(transaction.steps_));
  return {};
}

std::unique_ptr<Transaction> Transactions::end(Open::iterator which) {
  std::unique_ptr<Transaction> transaction = std::move(which->second);
  open_.erase(which);
  bytes_ -= transaction->bytes_;
  for (const auto& step : transaction->steps_)
    if (const broker::Settle* settle = settle_of(step))
      for (const broker::LockToken& lock : settle->tokens) settled_.erase(lock);
  return transaction;
}

Result<std::unique_ptr<Transaction>> Transactions::take(Bytes id) {
  const auto found = look_up(id);
  if (!found) return fail(found.error());
  return end(*found);
}

void Transactions::drop_of(const void* controller) {
  for (auto one = open_.begin(); one != open_.end();) {
    const auto next = std::next(one);
    if (one->second->controller_ == controller) (void)end(one);
    one = next;
  }
}

std::optional<Tick> Transactions::tick(Tick now) {
  wants_tick_ = false;
  std::optional<Tick> next;
  for (auto one = open_.begin(); one != open_.end();) {
    const auto following = std::next(one);
    if (const auto ends = one->second->ends_) {
      if (*ends > now) {
        next = next ? std::min(*next, *ends) : *ends;
      } else {
        timed_out_.push_back(one->first);
        if (timed_out_.size() > timed_out_max) timed_out_.pop_front();
        (void)end(one);
      }
    }
    one = following;
  }
  return next;
}

Result<amqp::TransactionalState> read_transactional_state(const amqp::StateView& state) {
  return amqp::decode_composite<amqp::TransactionalState>(state.raw);
}

}  // namespace omnibus::links
