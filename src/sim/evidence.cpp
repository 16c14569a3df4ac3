#include "sim/evidence.hpp"

#include <algorithm>

namespace omnibus::sim {
namespace {

constexpr std::string_view subscriptions_part = "/Subscriptions/";

}  // namespace

bool is_dead_letters(std::string_view entity) { return entity.ends_with(dead_letters); }

std::string home_of(std::string_view entity) {
  if (is_dead_letters(entity)) entity.remove_suffix(dead_letters.size());
  return std::string{entity};
}

Evidence::Evidence(const History& history) {
  declare(history);
  read_transactions(history);
  read_sends(history);
  read_deliveries(history);
  read_settlements(history);
  read_left(history);
}

const EntityView& Evidence::entity(const std::string& name) const {
  static const EntityView nothing{};
  const auto found = entities.find(name);
  return found == entities.end() ? nothing : found->second;
}

// What nobody declared is what its names say: a topic has the subscriptions that anybody speaks of.
void Evidence::declare(const History& history) {
  for (const Event& event : history) {
    if (event.what != Do::entity) continue;
    EntityView& view = entities[event.entity];
    view.lock = event.lock;
    view.homes = event.subscriptions;
    if (view.homes.empty()) view.homes.push_back(event.entity);
    view.dedup = event.dedup;
    view.lossy = event.lossy;
    view.is_declared = true;
    // What a lock is goes for dead letters and subscriptions too.
    for (const std::string& home : std::vector{view.homes}) {
      entities[home].lock = event.lock;
      entities[home + std::string{dead_letters}].lock = event.lock;
    }
  }
  for (const Event& event : history) {
    if (event.what != Do::send && event.what != Do::got && event.what != Do::left) continue;
    const std::string home = home_of(event.entity);
    const auto at = home.find(subscriptions_part);
    const std::string name = at == std::string::npos ? home : home.substr(0, at);
    EntityView& view = entities[name];
    if (view.is_declared || at == std::string::npos) continue;
    if (std::ranges::find(view.homes, home) == view.homes.end()) view.homes.push_back(home);
  }
  for (auto& [name, view] : entities)
    if (view.homes.empty()) view.homes.push_back(name);
}

void Evidence::read_transactions(const History& history) {
  for (Place place = 0; place < history.size(); ++place) {
    const Event& event = history[place];
    if (event.what == Do::begin) transactions[event.tx];
    if (event.what != Do::end) continue;
    Transaction& tx = transactions[event.tx];
    tx.how = event.how;
    tx.ended = place;
    tx.ended_at = event.t;
    // Who rolls back, or does not get as far, has nothing done; only of a commit can one be in doubt.
    tx.outcome = event.how == How::rollback ? Outcome::refused : event.result.value_or(Outcome::unknown);
  }
}

void Evidence::read_sends(const History& history) {
  std::map<std::string, std::pair<Outcome, Moment>> outcomes;
  for (const Event& event : history)
    if (event.what == Do::sent) outcomes.insert_or_assign(event.id, std::pair{*event.result, event.t});
  for (Place place = 0; place < history.size(); ++place) {
    const Event& event = history[place];
    if (event.what != Do::send) continue;
    Message& message = messages[event.id];
    if (message.send) continue;  // the same id again: a retry that its client wrote down
    message.begun = place;
    message.send = &event;
    const auto outcome = outcomes.find(event.id);
    if (outcome != outcomes.end()) {
      message.outcome = outcome->second.first;
      message.outcome_at = outcome->second.second;
    }
    message.is_acknowledged = message.outcome == Outcome::accepted;
    if (event.tx.empty() || message.outcome == Outcome::refused) continue;
    const Transaction& tx = transactions[event.tx];
    // What was not acknowledged inside a transaction may not be part of it, whatever became of the rest.
    message.outcome =
        tx.outcome == Outcome::accepted && !message.is_acknowledged ? Outcome::unknown : tx.outcome;
    message.outcome_at = tx.ended_at;
  }
}

void Evidence::read_deliveries(const History& history) {
  for (Place place = 0; place < history.size(); ++place) {
    const Event& event = history[place];
    if (event.what != Do::got) continue;
    ++deliveries;
    const auto message = messages.find(event.id);
    if (message == messages.end())
      strange.emplace_back(place, &event);
    else
      message->second.instances[home_of(event.entity)].deliveries.push_back({place, &event});
  }
}

void Evidence::read_settlements(const History& history) {
  for (Place place = 0; place < history.size(); ++place) {
    const Event& event = history[place];
    if (event.what != Do::settle && event.what != Do::settled) continue;
    const auto message = messages.find(event.id);
    if (message == messages.end()) continue;  // said of its delivery
    auto& settlements = message->second.instances[home_of(event.entity)].settlements;
    if (event.what == Do::settle) {
      settlements.push_back({place, &event});
      continue;
    }
    // Several may try, and one that came again may be settled before the answer to the first is there: the
    // oldest of that kind which waits.
    const auto begun = std::ranges::find_if(settlements, [&](const Settlement& one) {
      return one.ended == 0 && one.event->who == event.who && one.event->entity == event.entity &&
             one.event->seq == event.seq && one.event->how == event.how;
    });
    if (begun == settlements.end()) continue;
    begun->outcome = *event.result;
    begun->ended = place;
    begun->ended_at = event.t;
  }
  for (auto& [id, message] : messages)
    for (auto& [home, instance] : message.instances)
      for (Settlement& one : instance.settlements) {
        one.is_acknowledged = one.outcome == Outcome::accepted;
        if (one.event->tx.empty() || one.outcome == Outcome::refused) continue;
        const Transaction& tx = transactions[one.event->tx];
        one.outcome = tx.outcome == Outcome::accepted && !one.is_acknowledged ? Outcome::unknown : tx.outcome;
        one.ended = tx.ended;
        one.ended_at = tx.ended_at.value_or(0);
      }
}

void Evidence::read_left(const History& history) {
  for (const Event& event : history) {
    if (event.what == Do::counts) counts.insert_or_assign(event.entity, &event);
    if (event.what == Do::left) left.insert_or_assign(event.entity, &event);
  }
  for (const auto& [entity, event] : left)
    for (const std::string& id : event->ids) {
      const auto message = messages.find(id);
      if (message == messages.end()) {
        strange.emplace_back(0, event);
        continue;
      }
      Instance& instance = message->second.instances[home_of(entity)];
      (is_dead_letters(entity) ? instance.left_dead : instance.left) = event;
    }
}

}  // namespace omnibus::sim
