#include "links/partitioned_management.hpp"

#include <algorithm>
#include <map>

#include "broker/partition_key.hpp"
#include "links/partition_choice.hpp"

namespace omnibus::links {
namespace {

using broker::Answer;
using broker::Command;
using broker::RequestId;

// One request on its way through the partitions. Kept by the questions that are under way.
class Errand : public std::enable_shared_from_this<Errand> {
 public:
  Errand(std::shared_ptr<const EntityFacts> entity, LinkContext& context, EntityClient::OnAnswer on_answer)
      : entity_(std::move(entity)), context_(context), on_answer_(std::move(on_answer)) {}

  void start(broker::RenewLocks& command);
  void start(broker::Settle& command);
  void start(broker::CancelScheduled& command);
  void start(broker::ReceiveDeferred& command);
  void start(broker::Peek& command);
  void start(broker::BatchDelete& command);
  void start(broker::Schedule& command);
  void start(broker::RenewSessionLock& command) { ask_session(command); }
  void start(broker::SetSessionState& command) { ask_session(command); }
  void start(broker::GetSessionState& command) { ask_session(command); }
  void start(broker::ListSessions& command);
  void start(broker::AddRule& command) { change_rules(command); }
  void start(broker::RemoveRule& command) { change_rules(command); }
  void start(broker::ListRules& command);
  template <class Other>
  void start(Other&) {
    refuse({Errc::not_implemented, "this is not available on a partitioned entity"});
  }

 private:
  using Partition = std::uint16_t;
  struct Share {
    Partition partition = 0;
    Command command;
  };
  using OnAll = std::move_only_function<void(std::vector<Answer>& answers)>;  // in the order of shares

  [[nodiscard]] Partition count() const { return static_cast<Partition>(entity_->partitions.size()); }
  [[nodiscard]] Partition partition_of_session(const std::string& id) const {
    return broker::partition_of_key(id, count());
  }
  [[nodiscard]] bool serves(Partition partition) const {
    return context_.entities.available(entity_->partitions[partition]);
  }
  // What all of a partition's answers have in common is that the errand lives until they are there.
  template <class Then>
  void ask(Partition partition, Command command, Then then) {
    const RequestId request = context_.entities.expect(
        [self = shared_from_this(), then = std::move(then)](Answer& answer, Now now) mutable {
          self->now_ = now;
          then(answer);
        });
    std::visit(
        [&](auto& one) {
          if constexpr (requires { one.request; }) one.request = request;
        },
        command);
    context_.entities.send(entity_->partitions[partition], std::move(command));
  }
  void ask_all(std::vector<Share> shares, OnAll on_all);
  template <class AskSession>
  void ask_session(AskSession& command) {
    const Partition partition = partition_of_session(command.session_id);
    ask(partition, std::move(command), [this](Answer& answer) { end(answer); });
  }

  // Splits a list by partition; `parts` gives for each partition the places of its items. Answers whether
  // every item has a partition.
  template <class Item>
  [[nodiscard]] bool split(const std::vector<Item>& items,
                           std::map<Partition, std::vector<std::size_t>>& parts) const {
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Partition partition = partition_of_item(items[i]);
      if (partition >= count()) return false;
      parts[partition].push_back(i);
    }
    if (parts.empty()) parts[0] = {};
    return true;
  }
  static Partition partition_of_item(const broker::LockToken& token) { return token.partition(); }
  static Partition partition_of_item(broker::SequenceNumber number) { return broker::partition_of(number); }
  // One command per partition, with its items in place of all of them.
  template <class Each, class Item>
  [[nodiscard]] std::optional<std::vector<Share>> shares_of(
      const Each& command, std::vector<Item> Each::* items,
      std::map<Partition, std::vector<std::size_t>>& parts) const {
    if (!split(command.*items, parts)) return std::nullopt;
    std::vector<Share> shares;
    for (const auto& [partition, places] : parts) {
      Each one = command;
      (one.*items).clear();
      for (const std::size_t place : places) (one.*items).push_back((command.*items)[place]);
      shares.push_back({partition, std::move(one)});
    }
    return shares;
  }

  void peek_at(Partition partition, Partition end_at, broker::Peek command);
  void delete_at(Partition partition, Partition end_at, broker::BatchDelete command, std::uint32_t deleted);
  void schedule_at(broker::Schedule command, std::vector<bool> tried);
  void take_deferred(const broker::ReceiveDeferred& command, std::vector<Answer>& answers,
                     const std::map<Partition, std::vector<std::size_t>>& parts);
  template <class Change>
  void change_rules(const Change& command);

  static const Error* refusal(const Answer& answer) {
    const auto* refused = std::get_if<broker::Refused>(&answer.effect);
    return refused ? &refused->error : nullptr;
  }
  static const Error* first_refusal(const std::vector<Answer>& answers) {
    for (const Answer& answer : answers)
      if (const Error* error = refusal(answer)) return error;
    return nullptr;
  }
  static bool is_down(const Error& error) { return error.code == Errc::server_busy; }
  [[nodiscard]] std::optional<Error> someone_is_down() const;

  void end(Answer& answer) { on_answer_(answer, now_); }
  void end_with(broker::Effect effect) {
    Answer answer{std::move(effect)};
    end(answer);
  }
  void refuse(Error error) { end_with(broker::Refused{RequestId::none, std::move(error)}); }

  const std::shared_ptr<const EntityFacts> entity_;
  LinkContext& context_;
  EntityClient::OnAnswer on_answer_;
  Now now_{};
};

void Errand::ask_all(std::vector<Share> shares, OnAll on_all) {
  struct Gathered {
    std::vector<Answer> answers;
    std::size_t missing = 0;
    OnAll on_all;
  };
  auto gathered = std::make_shared<Gathered>();
  gathered->missing = shares.size();
  for (std::size_t i = 0; i < shares.size(); ++i)
    gathered->answers.emplace_back(broker::Done{RequestId::none});
  gathered->on_all = std::move(on_all);
  for (std::size_t i = 0; i < shares.size(); ++i)
    ask(shares[i].partition, std::move(shares[i].command), [gathered, i](Answer& answer) {
      gathered->answers[i] = std::move(answer);
      if (--gathered->missing == 0) gathered->on_all(gathered->answers);
    });
}

std::optional<Error> Errand::someone_is_down() const {
  for (Partition i = 0; i < count(); ++i)
    if (!serves(i))
      return Error{
          Errc::server_busy,
          fmt::format("partition {} of '{}' is not available: changes have to reach all", i, entity_->name)};
  return std::nullopt;
}

// By token

void Errand::start(broker::RenewLocks& command) {
  std::map<Partition, std::vector<std::size_t>> parts;
  auto shares = shares_of(command, &broker::RenewLocks::tokens, parts);
  if (!shares) return refuse({Errc::message_lock_lost, "a lock token is not of this entity"});
  ask_all(*std::move(shares), [this, parts = std::move(parts)](std::vector<Answer>& answers) {
    if (const Error* error = first_refusal(answers)) return refuse(*error);
    broker::LocksRenewed all{RequestId::none, {}};
    std::size_t at = 0;
    for (const auto& [partition, places] : parts) {
      const auto& renewed = std::get<broker::LocksRenewed>(answers[at++].effect).locked_until;
      for (std::size_t i = 0; i < places.size(); ++i) {
        all.locked_until.resize(std::max(all.locked_until.size(), places[i] + 1));
        all.locked_until[places[i]] = renewed.at(i);
      }
    }
    end_with(std::move(all));
  });
}

void Errand::start(broker::Settle& command) {
  std::map<Partition, std::vector<std::size_t>> parts;
  auto shares = shares_of(command, &broker::Settle::tokens, parts);
  if (!shares) return refuse({Errc::message_lock_lost, "a lock token is not of this entity"});
  ask_all(*std::move(shares), [this](std::vector<Answer>& answers) {
    if (const Error* error = first_refusal(answers)) return refuse(*error);
    end(answers.front());
  });
}

// By sequence number

void Errand::start(broker::CancelScheduled& command) {
  std::map<Partition, std::vector<std::size_t>> parts;
  auto shares = shares_of(command, &broker::CancelScheduled::sequences, parts);
  if (!shares) return refuse({Errc::message_not_found, "a sequence number is not of this entity"});
  ask_all(*std::move(shares), [this](std::vector<Answer>& answers) {
    if (const Error* error = first_refusal(answers)) return refuse(*error);
    end(answers.front());
  });
}

void Errand::start(broker::ReceiveDeferred& command) {
  std::map<Partition, std::vector<std::size_t>> parts;
  auto shares = shares_of(command, &broker::ReceiveDeferred::sequences, parts);
  if (!shares) return refuse({Errc::message_not_found, "a sequence number is not of this entity"});
  if (shares->size() == 1)
    return ask(shares->front().partition, std::move(shares->front().command),
               [this](Answer& answer) { end(answer); });
  // What is removed cannot be given back when another partition refuses: first they are locked.
  for (Share& share : *shares)
    std::get<broker::ReceiveDeferred>(share.command).mode = broker::ReceiveMode::peek_lock;
  ask_all(*std::move(shares), [this, command, parts = std::move(parts)](std::vector<Answer>& answers) {
    take_deferred(command, answers, parts);
  });
}

void Errand::take_deferred(const broker::ReceiveDeferred& command, std::vector<Answer>& answers,
                           const std::map<Partition, std::vector<std::size_t>>& parts) {
  const bool removes = command.mode == broker::ReceiveMode::receive_and_delete;
  const Error* error = first_refusal(answers);
  Answer all{broker::Messages{RequestId::none, {}}};
  auto& held = std::get<broker::Messages>(all.effect).messages;
  held.resize(command.sequences.size());
  all.messages.resize(command.sequences.size());
  std::vector<Share> settles;
  std::size_t at = 0;
  for (const auto& [partition, places] : parts) {
    Answer& answer = answers[at++];
    auto* messages = std::get_if<broker::Messages>(&answer.effect);
    if (!messages) continue;
    broker::Settle settle;
    settle.session_id = command.session_id;
    for (std::size_t i = 0; i < messages->messages.size(); ++i) {
      auto& one = messages->messages[i];
      if (one.lock) settle.tokens.push_back(*one.lock);
      if (removes) one.locked_until.reset();
      all.messages[places.at(i)] = std::move(answer.messages[i]);
      held[places.at(i)] = std::move(one);
    }
    if (error)
      settle.outcome = broker::Release{};
    else
      settle.outcome = broker::Complete{};
    settles.push_back({partition, std::move(settle)});
  }
  if (!error && !removes) return end(all);
  std::optional<Error> why = error ? std::optional{*error} : std::nullopt;
  if (settles.empty()) return refuse(*why);
  ask_all(std::move(settles),
          [this, why = std::move(why), all = std::move(all)](std::vector<Answer>& done) mutable {
            if (why) return refuse(*why);
            if (const Error* refused = first_refusal(done)) return refuse(*refused);
            end(all);
          });
}

// From partition to partition. Those that are down are passed over: the answer is about the others.

void Errand::start(broker::Peek& command) {
  Partition from = command.from < 0 ? Partition{0} : broker::partition_of(command.from);
  Partition end_at = count();
  if (command.session_id) {
    const Partition own = partition_of_session(*command.session_id);
    if (from < own) command.from = broker::sequence_base(own);
    from = std::max(from, own);
    end_at = static_cast<Partition>(own + 1);
  }
  peek_at(from, end_at, std::move(command));
}

void Errand::peek_at(Partition partition, Partition end_at, broker::Peek command) {
  if (partition >= end_at) return end_with(broker::Messages{RequestId::none, {}});
  ask(partition, command, [this, partition, end_at, command](Answer& answer) mutable {
    const auto* messages = std::get_if<broker::Messages>(&answer.effect);
    const Error* error = refusal(answer);
    if ((messages && !messages->messages.empty()) || (error && (!is_down(*error) || command.session_id)))
      return end(answer);
    const auto next = static_cast<Partition>(partition + 1);
    command.from = broker::sequence_base(next);
    peek_at(next, end_at, std::move(command));
  });
}

void Errand::start(broker::BatchDelete& command) {
  if (!command.session_id) return delete_at(0, count(), std::move(command), 0);
  const Partition own = partition_of_session(*command.session_id);
  delete_at(own, static_cast<Partition>(own + 1), std::move(command), 0);
}

void Errand::delete_at(Partition partition, Partition end_at, broker::BatchDelete command,
                       std::uint32_t deleted) {
  if (partition == end_at || command.count == 0) return end_with(broker::Deleted{RequestId::none, deleted});
  ask(partition, command, [this, partition, end_at, command, deleted](Answer& answer) mutable {
    if (const Error* error = refusal(answer); error && (!is_down(*error) || command.session_id))
      return end(answer);
    if (const auto* some = std::get_if<broker::Deleted>(&answer.effect)) {
      deleted += some->count;
      command.count -= std::min(command.count, some->count);
    }
    delete_at(static_cast<Partition>(partition + 1), end_at, std::move(command), deleted);
  });
}

void Errand::start(broker::ListSessions& command) {
  if (command.skip > partitioned_skip_max)
    return refuse(
        {Errc::argument_out_of_range, fmt::format("'skip' is {}, on a partitioned entity it is at most {}",
                                                  command.skip, partitioned_skip_max)});
  std::vector<Share> shares;
  for (Partition i = 0; i < count(); ++i) {
    broker::ListSessions one = command;
    one.top = command.skip + command.top;
    one.skip = 0;
    shares.push_back({i, std::move(one)});
  }
  ask_all(std::move(shares), [this, skip = command.skip, top = command.top](std::vector<Answer>& answers) {
    broker::SessionList all{RequestId::none, {}};
    for (Answer& answer : answers) {
      if (const Error* error = refusal(answer); error && !is_down(*error)) return refuse(*error);
      if (auto* some = std::get_if<broker::SessionList>(&answer.effect))
        all.ids.insert(all.ids.end(), some->ids.begin(), some->ids.end());
    }
    std::ranges::sort(all.ids);
    all.ids.erase(all.ids.begin(), all.ids.begin() + std::min<std::ptrdiff_t>(skip, std::ssize(all.ids)));
    if (all.ids.size() > top) all.ids.resize(top);
    end_with(std::move(all));
  });
}

// As a send

void Errand::start(broker::Schedule& command) {
  const auto keyed = keyed_partition(*entity_, command.messages);
  if (!keyed) return refuse(keyed.error());
  if (*keyed) return ask(**keyed, std::move(command), [this](Answer& answer) { end(answer); });
  schedule_at(std::move(command), std::vector<bool>(count()));
}

void Errand::schedule_at(broker::Schedule command, std::vector<bool> tried) {
  PartitionChoice choice{context_.random};
  const auto partition =
      choice.next(*entity_, [&](Partition index) { return !tried[index] && serves(index); });
  if (!partition)
    return refuse({Errc::server_busy, fmt::format("no partition of '{}' is available", entity_->name)});
  tried[*partition] = true;
  broker::Schedule copy = command;
  ask(*partition, std::move(copy),
      [this, command = std::move(command), tried = std::move(tried)](Answer& answer) mutable {
        const Error* error = refusal(answer);
        if (!error || !is_down(*error)) return end(answer);
        schedule_at(std::move(command), std::move(tried));
      });
}

// Rules

void Errand::start(broker::ListRules& command) {
  // All have the same; the first that serves can tell.
  Partition partition = 0;
  while (partition + 1 < count() && !serves(partition)) ++partition;
  ask(partition, command, [this](Answer& answer) { end(answer); });
}

template <class Change>
void Errand::change_rules(const Change& command) {
  if (auto error = someone_is_down()) return refuse(*std::move(error));
  ask(0, change_in_all(entity_->partitions, command), [this](Answer& answer) { end(answer); });
}

template <class Change>
broker::Transact steps_in_all(const std::vector<Route>& partitions, Change change) {
  broker::Transact transact;
  change.request = RequestId::none;
  for (const Route& route : partitions) {
    transact.steps.push_back({route.store, route.partition, change});
    change.follows = true;
  }
  return transact;
}

}  // namespace

void ask_partitions(Command command, std::shared_ptr<const EntityFacts> entity, LinkContext& context,
                    EntityClient::OnAnswer on_answer) {
  const auto errand = std::make_shared<Errand>(std::move(entity), context, std::move(on_answer));
  std::visit([&](auto& one) { errand->start(one); }, command);
}

broker::Transact change_in_all(const std::vector<Route>& partitions, const broker::AddRule& change) {
  return steps_in_all(partitions, change);
}
broker::Transact change_in_all(const std::vector<Route>& partitions, const broker::RemoveRule& change) {
  return steps_in_all(partitions, change);
}

}  // namespace omnibus::links
