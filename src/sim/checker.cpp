#include "sim/checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/evidence.hpp"

namespace omnibus::sim {
namespace {

bool removes(const Settlement& settlement) { return settlement.event->how == How::complete; }

class Judge {
 public:
  Judge(const History& history, const CheckerOptions& options)
      : history_(history), options_(options), evidence_(history) {
    for (const Event& event : history)
      if (undoes_locks(event)) faults_.push_back(&event);
    for (const auto& name : options.dedup) evidence_.entities[name].dedup = Moment{1} << 60;
    if (options.excused.empty()) return;
    for (const Event& event : history)
      if (!event.tx.empty() && !event.entity.empty() && is_excused(event.entity))
        excused_transactions_.insert(event.tx);
  }

  Judgement judge() {
    result_.sends = evidence_.messages.size();
    result_.deliveries = evidence_.deliveries;
    result_.transactions = evidence_.transactions.size();
    for (const auto& [place, event] : evidence_.strange)
      say(Check::ghost, event->t, "{} has '{}', which nobody sent", event->entity,
          event->what == Do::left ? "something" : event->id);
    gather_by_mid();
    for (const auto& [id, message] : evidence_.messages)
      if (message.send) check_message(id, message);
    check_locks();
    check_session_locks();
    check_order();
    check_duplicates();
    check_groups();
    check_counts();
    std::ranges::sort(result_.violations, {}, [](const Violation& one) { return std::tie(one.t, one.text); });
    return std::move(result_);
  }

 private:
  template <class... Args>
  void say(Check check, Moment t, fmt::format_string<Args...> text, Args&&... args) {
    result_.violations.push_back({check, t, fmt::format(text, std::forward<Args>(args)...)});
  }

  [[nodiscard]] bool is_excused(const std::string& entity) const {
    return !options_.excused.empty() && options_.excused.contains(home_of(entity));
  }
  [[nodiscard]] bool is_excused_transaction(const std::string& tx) const {
    return !tx.empty() && excused_transactions_.contains(tx);
  }

  // The last moment at which the message can have begun to live. Nothing: nobody can say.
  [[nodiscard]] std::optional<Moment> begins_at_latest(const Message& message) const {
    if (message.outcome != Outcome::accepted || !message.outcome_at) return std::nullopt;
    return std::max(*message.outcome_at, message.send->at.value_or(*message.outcome_at));
  }
  // Whether its time may have been over at `t`.
  [[nodiscard]] bool may_be_expired(const Message& message, Moment t) const {
    if (!message.send->ttl) return false;
    const Moment begins = std::max(message.send->t, message.send->at.value_or(message.send->t));
    return begins + *message.send->ttl <= t + options_.slack;
  }

  void check_message(const std::string& id, const Message& message) {
    const EntityView& entity = evidence_.entity(message.send->entity);
    if (is_excused(message.send->entity) || is_excused_transaction(message.send->tx)) return;
    for (const auto& [home, instance] : message.instances)
      if (!is_excused(home)) check_instance(id, message, home, instance, entity);
    if (message.outcome != Outcome::accepted) return;
    for (const std::string& home : entity.homes) check_kept(id, message, home, entity);
  }

  void check_instance(const std::string& id, const Message& message, const std::string& home,
                      const Instance& instance, const EntityView& entity) {
    if (!instance.is_seen()) return;
    const Moment t = instance.deliveries.empty() ? 0 : instance.deliveries.front().event->t;
    if (message.outcome == Outcome::refused)
      say(message.send->tx.empty() ? Check::ghost : Check::transaction, t,
          "'{}' is in '{}', although its {} was {}", id, home,
          message.send->tx.empty() ? "send" : "transaction",
          message.send->tx.empty() ? "refused" : "not committed");
    if (std::ranges::find(entity.homes, home) == entity.homes.end())
      say(Check::ghost, t, "'{}' is in '{}' and was sent to '{}'", id, home, message.send->entity);
    check_times(id, message, instance);
    check_removed(id, home, instance);
    if (!options_.retries) check_one(id, instance);
  }

  void check_times(const std::string& id, const Message& message, const Instance& instance) {
    const auto begins = begins_at_latest(message);
    const auto is_late = [&](Moment t) {
      if (!begins || !message.send->ttl || t <= *begins + *message.send->ttl + options_.slack) return false;
      return !message.send->at || !is_disturbed(*begins, t);
    };
    for (const auto& [place, event] : instance.deliveries) {
      if (is_dead_letters(event->entity)) continue;
      if (message.send->at && event->t + options_.slack < *message.send->at)
        say(Check::scheduled, event->t, "'{}' was served {} us before its time", id,
            *message.send->at - event->t);
      if (is_late(taken_at(*event).value_or(event->t - options_.late)))
        say(Check::expired, event->t, "'{}' was served after its time to live", id);
    }
    // A deferred message waits for whoever knows its number, expired or not.
    const bool is_deferred = std::ranges::any_of(instance.settlements, [](const Settlement& one) {
      return one.event->how == How::defer && one.outcome != Outcome::refused;
    });
    if (instance.left && !is_deferred && is_late(instance.left->t - options_.late))
      say(Check::expired, instance.left->t, "'{}' is still there after its time to live", id);
  }

  // A scheduled message lives from when it was due and somebody was there to see it: a broker that is down,
  // or whose clock was moved, sees it later.
  [[nodiscard]] bool is_disturbed(Moment from, Moment to) const {
    return std::ranges::any_of(history_, [&](const Event& event) {
      return event.what == Do::fault && event.fault != "cut" && event.fault != "stall" && event.t <= to &&
             event.t >= from - disturbance_lasts;
    });
  }
  static constexpr Moment disturbance_lasts = 60'000'000;

  // After an accepted complete it is gone; after an accepted dead-letter it is in no other place.
  void check_removed(const std::string& id, const std::string& home, const Instance& instance) {
    for (const Settlement& one : instance.settlements) {
      if (one.outcome != Outcome::accepted || one.ended == 0) continue;
      if (is_excused_transaction(one.event->tx)) continue;
      const bool completed = removes(one);
      if (!completed && one.event->how != How::dead_letter) continue;
      const std::string_view done = completed ? "completed" : "dead-lettered";
      for (const auto& [place, event] : instance.deliveries)
        if (place > one.ended && event->entity == one.event->entity && event->seq == one.event->seq &&
            taken_at(*event).value_or(event->t - options_.late) > one.ended_at + options_.slack)
          say(Check::ghost, event->t, "'{}' (seq {}) was delivered from '{}' after it was {}", id, event->seq,
              event->entity, done);
      if (options_.retries) continue;
      const bool was_dead = is_dead_letters(one.event->entity);
      if (instance.left)
        say(Check::ghost, instance.left->t, "'{}' is in '{}' after it was {}", id, home, done);
      else if (instance.left_dead && completed)
        say(Check::ghost, instance.left_dead->t,
            "'{}' is among the dead letters of '{}' after it was completed{}", id, home,
            was_dead ? " there" : "");
    }
  }

  void check_one(const std::string& id, const Instance& instance) {
    std::map<std::string, std::int64_t> seqs;
    for (const auto& [place, event] : instance.deliveries) {
      const auto [known, is_new] = seqs.emplace(event->entity, event->seq);
      if (is_new || known->second == event->seq) continue;
      say(Check::multiplied, event->t, "'{}' is in '{}' twice: seq {} and {}", id, event->entity,
          known->second, event->seq);
      return;
    }
  }

  // What was accepted is there, or somebody took it.
  void check_kept(const std::string& id, const Message& message, const std::string& home,
                  const EntityView& entity) {
    const auto looked = evidence_.left.find(home);
    if (looked == evidence_.left.end()) {
      ++result_.unchecked;
      return;
    }
    if (is_gone_rightly(message, home, looked->second->t, nullptr) || entity.lossy ||
        evidence_.entity(home).lossy || is_duplicate_of_another(id, message, home))
      return;
    say(message.send->tx.empty() ? Check::lost : Check::transaction, *message.outcome_at,
        "'{}' was accepted{} and is not in '{}'", id,
        message.send->tx.empty() ? "" : fmt::format(" with transaction '{}'", message.send->tx), home);
  }

  // Present, or taken away by somebody else than the transaction `tx`.
  [[nodiscard]] bool is_gone_rightly(const Message& message, const std::string& home, Moment looked,
                                     const std::string* tx) const {
    if (may_be_expired(message, looked)) return true;
    const auto found = message.instances.find(home);
    if (found == message.instances.end()) return false;
    const Instance& instance = found->second;
    if (instance.left || instance.left_dead) return true;
    for (const Settlement& one : instance.settlements)
      if (removes(one) && (one.outcome != Outcome::refused || is_excused_transaction(one.event->tx)) &&
          !(tx && one.event->tx == *tx))
        return true;
    return std::ranges::any_of(instance.deliveries, [](const Delivery& one) { return !one.event->until; });
  }

  using MidKey = std::pair<std::string, std::string>;
  void gather_by_mid() {
    for (const auto& [id, message] : evidence_.messages) {
      if (!message.send || message.send->mid.empty() || is_excused(message.send->entity)) continue;
      if (!evidence_.entity(message.send->entity).dedup) continue;
      by_mid_[{message.send->entity, message.send->mid}].push_back(&message);
    }
    for (auto& [key, messages] : by_mid_) std::ranges::sort(messages, {}, &Message::begun);
  }

  // Dropped, because another with the same message-id is there or was.
  [[nodiscard]] bool is_duplicate_of_another(const std::string& id, const Message& message,
                                             const std::string& home) const {
    const auto found = by_mid_.find({message.send->entity, message.send->mid});
    if (found == by_mid_.end()) return false;
    return std::ranges::any_of(found->second, [&](const Message* other) {
      if (other->send->id == id || other->outcome == Outcome::refused) return false;
      if (other->outcome == Outcome::unknown) return true;
      const auto instance = other->instances.find(home);
      return (instance != other->instances.end() && instance->second.is_seen()) ||
             may_be_expired(*other, history_.empty() ? 0 : history_.back().t);
    });
  }

  void check_duplicates() {
    for (const auto& [key, messages] : by_mid_) {
      const Moment window = *evidence_.entity(key.first).dedup;
      for (const std::string& home : evidence_.entity(key.first).homes) {
        const Message* kept = nullptr;
        for (const Message* message : messages) {
          const auto instance = message->instances.find(home);
          if (instance == message->instances.end() || !instance->second.is_seen()) continue;
          // However long each of them took to be accepted: no further apart than that.
          if (kept && apart_at_most(*kept, *message, home) < window - options_.slack)
            say(Check::duplicate, message->send->t, "'{}' and '{}' are both in '{}' with message-id '{}'",
                kept->send->id, message->send->id, home, key.second);
          kept = message;
        }
      }
    }
  }
  [[nodiscard]] static Moment apart_at_most(const Message& a, const Message& b, const std::string& home) {
    return std::max(accepted_at_latest(a, a.instances.at(home)) - b.send->t,
                    accepted_at_latest(b, b.instances.at(home)) - a.send->t);
  }
  [[nodiscard]] static Moment accepted_at_latest(const Message& message, const Instance& instance) {
    Moment t = Moment{1} << 61;
    if (message.outcome == Outcome::accepted && message.outcome_at) t = *message.outcome_at;
    for (const auto& [place, event] : instance.deliveries) t = std::min(t, event->t);
    return t;
  }

  // Locks of messages

  struct Held {
    const Event* event = nullptr;
    Moment until = 0;
    std::vector<const Event*> renewals{};
  };
  using LockKey = std::pair<std::string, std::int64_t>;

  // Everything in the order of the history: who holds what at each delivery.
  void check_locks() {
    std::map<LockKey, Held> held;
    for (const Event& event : history_) {
      if (is_excused(event.entity)) continue;
      const LockKey key{event.entity, event.seq};
      if (event.what == Do::got) {
        const auto before = held.find(key);
        if (before != held.end()) {
          const Held& other = before->second;
          const Moment until = ends(other, event.t);
          // It may have been longer under way than the other: then it was taken before.
          const auto mine = taken_at(event);
          if (mine && may_be_undone(event.t, mine, false, event.t)) continue;  // and counts for nothing
          const auto theirs = taken_at(*other.event);
          const bool is_after = !mine || !theirs || event.until.value_or(Moment{1} << 60) > *theirs;
          if (is_after && mine.value_or(event.t) + options_.slack < until)
            say(Check::doubled, event.t, "'{}' (seq {} of '{}') went to {} while {} has it for another {} us",
                event.id, event.seq, event.entity, event.who, other.event->who,
                until - mine.value_or(event.t));
          if (!is_after) continue;
        }
        held.insert_or_assign(key, Held{&event, event.until.value_or(Moment{1} << 60)});
      } else if (event.what == Do::settle) {
        // Whatever comes of it: from here on its client does not count on the lock.
        held.erase(key);
      } else if (event.what == Do::renewed && event.until) {
        renew(event, key, held);
      } else if (event.what == Do::unlocked) {
        std::erase_if(held, [&](const auto& row) {
          return row.first.first == event.entity && row.second.event->session == event.session &&
                 row.second.event->who == event.who;
        });
      }
    }
  }
  static void renew(const Event& event, const LockKey& key, std::map<LockKey, Held>& held) {
    if (event.session.empty()) {
      const auto found = held.find(key);
      if (found != held.end() && found->second.event->who == event.who)
        found->second.renewals.push_back(&event);
      return;
    }
    for (auto& [which, lock] : held)
      if (which.first == event.entity && lock.event->session == event.session && lock.event->who == event.who)
        lock.renewals.push_back(&event);
  }
  // When the broker took it for its receiver, where the length of a lock is known.
  [[nodiscard]] std::optional<Moment> taken_at(const Event& got) const {
    const auto lock = evidence_.entity(got.entity).lock;
    if (!lock || !got.until || !got.session.empty()) return std::nullopt;
    return *got.until - *lock;
  }
  // How long a lock holds, as one can say at `now`.
  [[nodiscard]] Moment ends(const Held& lock, Moment now) const {
    const bool in_session = !lock.event->session.empty();
    if (may_be_undone(lock.event->t, taken_at(*lock.event), in_session, now)) return 0;
    Moment end = lock.until;
    for (const Event* one : lock.renewals)
      if (!may_be_undone(one->t, std::nullopt, in_session, now)) end = std::max(end, *one->until);
    return end;
  }
  // Whether a fault up to `now` may have undone what a client heard of at `heard`: what had not reached the
  // disk did not happen, and a session goes with its link. When it was decided is `taken`; when nobody can
  // say, at most so long before as a delivery may be under way.
  [[nodiscard]] bool may_be_undone(Moment heard, std::optional<Moment> taken, bool in_session,
                                   Moment now) const {
    const Moment earliest = taken.value_or(heard - options_.late - options_.slack);
    return std::ranges::any_of(faults_, [&](const Event* fault) {
      if (fault->t < earliest || fault->t > now) return false;
      return in_session || !fault->since || taken.value_or(heard) > *fault->since;
    });
  }
  static bool undoes_locks(const Event& event) {
    return event.what == Do::fault && (event.fault == "crash" || event.fault == "restart" ||
                                       event.fault == "kill" || event.fault == "fail");
  }

  void check_session_locks() {
    struct Lock {
      Moment t = 0;
      Moment until = 0;
      std::string who{};
    };
    std::map<std::pair<std::string, std::string>, Lock> held;
    for (const Event& event : history_) {
      if (is_excused(event.entity)) continue;
      const std::pair key{event.entity, event.session};
      const auto before = held.find(key);
      const bool is_known = before != held.end();
      if (event.what == Do::renewed && event.until && is_known && before->second.who == event.who)
        before->second.until = std::max(before->second.until, *event.until);
      if (event.what == Do::unlocked && is_known && before->second.who == event.who) held.erase(before);
      if (event.what != Do::locked) continue;
      if (is_known && event.t + options_.slack < before->second.until &&
          !may_be_undone(before->second.t, std::nullopt, true, event.t))
        say(Check::doubled, event.t, "session '{}' of '{}' is locked by {} while {} has it", event.session,
            event.entity, event.who, before->second.who);
      held.insert_or_assign(key, Lock{event.t, event.until.value_or(event.t), event.who});
    }
  }

  // When the broker had delivered it, at the latest. A connection that stands still brings it later, when its
  // lock has ended and others have got what comes after.
  static Moment left_by(const Event& got) { return got.until ? std::min(got.t, *got.until) : got.t; }

  // First deliveries of what one sender sent into one session come in the order in which it sent.
  void check_order() {
    std::map<std::tuple<std::string, std::string, std::string>, std::vector<const Message*>> by_session;
    for (const auto& [id, message] : evidence_.messages) {
      if (!message.send || message.send->session.empty() || message.outcome != Outcome::accepted) continue;
      if (message.send->at || !message.send->tx.empty() || is_excused(message.send->entity)) continue;
      by_session[{message.send->who, message.send->entity, message.send->session}].push_back(&message);
    }
    for (auto& [key, messages] : by_session) {
      std::ranges::sort(messages, {}, &Message::begun);
      for (const std::string& home : evidence_.entity(std::get<1>(key)).homes) {
        const Delivery* last = nullptr;
        for (const Message* message : messages) {
          const auto instance = message->instances.find(home);
          if (instance == message->instances.end()) continue;
          const auto& deliveries = instance->second.deliveries;
          const auto first = std::ranges::find_if(
              deliveries, [&](const Delivery& one) { return one.event->entity == home; });
          if (first == deliveries.end()) continue;
          if (last && first->place < last->place && first->event->t + options_.slack < left_by(*last->event))
            say(Check::order, first->event->t,
                "'{}' was delivered before '{}', which was sent before it ({}, '{}')", first->event->id,
                last->event->id, home, std::get<2>(key));
          if (!last || first->place > last->place) last = &*first;
        }
      }
    }
  }

  // What goes as one, and nobody knows whether: all of it or nothing.
  struct Group {
    std::vector<std::string> done;
    std::vector<std::string> undone;
    Moment t = 0;
  };
  void check_groups() {
    std::map<std::string, Group> groups;
    for (const auto& [id, message] : evidence_.messages) {
      if (!message.send || is_excused(message.send->entity)) continue;
      if (message.outcome == Outcome::unknown && !is_excused_transaction(message.send->tx) &&
          !(message.send->tx.empty() && message.send->batch.empty())) {
        const bool in_transaction = !message.send->tx.empty();
        if (in_transaction ? evidence_.transactions[message.send->tx].outcome == Outcome::unknown
                           : !message.send->batch.empty())
          weigh_send(groups[in_transaction ? "transaction '" + message.send->tx + "'"
                                           : "batch '" + message.send->batch + "'"],
                     message);
      }
      for (const auto& [home, instance] : message.instances)
        for (const Settlement& one : instance.settlements)
          if (!one.event->tx.empty() && !is_excused_transaction(one.event->tx) &&
              one.outcome == Outcome::unknown &&
              evidence_.transactions[one.event->tx].outcome == Outcome::unknown)
            weigh_settlement(groups["transaction '" + one.event->tx + "'"], message, home, one);
    }
    for (const auto& [name, group] : groups)
      if (!group.done.empty() && !group.undone.empty())
        say(Check::transaction, group.t, "{} is half done: {} happened, {} did not", name, group.done.front(),
            group.undone.front());
  }
  void weigh_send(Group& group, const Message& message) {
    group.t = message.send->t;
    const EntityView& entity = evidence_.entity(message.send->entity);
    for (const std::string& home : entity.homes) {
      const auto looked = evidence_.left.find(home);
      if (looked == evidence_.left.end() || entity.lossy) continue;
      const auto instance = message.instances.find(home);
      if (instance != message.instances.end() && instance->second.is_seen()) {
        group.done.push_back(message.send->id);
      } else if (!may_be_expired(message, looked->second->t) &&
                 !(entity.dedup && !message.send->mid.empty()) &&
                 (message.send->tx.empty() || message.is_acknowledged)) {
        group.undone.push_back(message.send->id);
      }
    }
  }
  void weigh_settlement(Group& group, const Message& message, const std::string& home,
                        const Settlement& one) {
    group.t = one.event->t;
    const auto looked = evidence_.left.find(home);
    if (looked == evidence_.left.end() || !removes(one)) return;
    const Instance& instance = message.instances.at(home);
    const std::string name = "the settlement of '" + message.send->id + "'";
    const bool came_back = std::ranges::any_of(instance.deliveries, [&](const Delivery& delivery) {
      return delivery.place > std::max(one.begun, one.ended) && delivery.event->seq == one.event->seq &&
             delivery.event->entity == one.event->entity && one.ended != 0;
    });
    if (instance.left || came_back) {
      if (one.is_acknowledged) group.undone.push_back(name);
    } else if (!is_gone_rightly(message, home, looked->second->t, &one.event->tx) &&
               !evidence_.entity(home).lossy) {
      group.done.push_back(name);
    }
  }

  void check_counts() {
    for (const auto& [entity, counted] : evidence_.counts) {
      if (is_excused(entity)) continue;
      const auto left = evidence_.left.find(entity);
      if (left == evidence_.left.end()) continue;
      const auto there = static_cast<std::int64_t>(left->second->ids.size());
      if (counted->active + counted->scheduled != there)
        say(Check::counts, counted->t, "'{}' says {} active and {} scheduled, and {} are there", entity,
            counted->active, counted->scheduled, there);
      const auto dead = evidence_.left.find(entity + std::string{dead_letters});
      if (dead == evidence_.left.end()) continue;
      const auto dead_there = static_cast<std::int64_t>(dead->second->ids.size());
      if (counted->dead_count != dead_there)
        say(Check::counts, counted->t, "'{}' says {} dead letters, and {} are there", entity,
            counted->dead_count, dead_there);
    }
  }

  const History& history_;
  const CheckerOptions& options_;
  Evidence evidence_;
  std::vector<const Event*> faults_;  // that undo locks
  std::set<std::string> excused_transactions_;
  std::map<MidKey, std::vector<const Message*>> by_mid_;
  Judgement result_;
};

}  // namespace

std::string to_string(const Violation& violation) {
  return fmt::format("{} at {}: {}", static_cast<char>(violation.check), violation.t, violation.text);
}

Judgement judge(const History& history, const CheckerOptions& options) {
  return Judge(history, options).judge();
}

}  // namespace omnibus::sim
