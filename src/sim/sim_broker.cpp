#include "sim/sim_broker.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/text.hpp"
#include "sim/broker_end.hpp"

namespace omnibus::sim {
namespace {

using namespace std::chrono_literals;
using store::StoreState;

}  // namespace

SimBroker::SimBroker(World& world, const Scenario& scenario, History& history)
    : world_(world), scenario_(scenario), history_(history), random_(world.random().next()) {
  check(rules_.put("", *auth::make_default_rule(sim_key, world.wall())).has_value());
  sasl_ = std::make_unique<auth::SaslPolicy>(auth::SaslSettings{}, rules_);
  validator_ = std::make_unique<auth::TokenValidator>(auth::ValidatorSettings{}, rules_, issuers_);
  StoreNeighbours& self = *this;
  for (std::uint16_t i = 0; i < scenario.stores; ++i)
    stores_.push_back(std::make_unique<SimStore>(world, scenario, i, self));
}

SimBroker::~SimBroker() {
  for (auto& [number, end] : ends_) end->die();
  for (auto& end : dead_ends_) end->die();
}

// Entities

void SimBroker::set_up() {
  start();
  check(world_.run_until(world_.tick() + 60s, [this] { return is_open(); }), "new stores open");
  for (const SimEntity& entity : scenario_.entities) make_entity(entity);
}

store::PartitionId SimBroker::wait_for(SimStore& store,
                                       const std::function<void(store::Store::Created)>& ask) {
  std::optional<Result<store::PartitionId>> made;
  ask([&](Result<store::PartitionId> id) { made = std::move(id); });
  store.end_turn();
  check(world_.run_until(world_.tick() + 60s, [&] { return made.has_value(); }), "an entity is made");
  check(made->has_value(), "a new entity is good");
  return **made;
}

namespace {

template <class Settings>
Settings in_partition(Settings settings, std::uint16_t index, std::uint16_t count) {
  if (count == 0) return settings;
  settings.partition = index;
  settings.is_partitioned = true;
  settings.partition_count = count;
  return settings;
}

}  // namespace

void SimBroker::make_entity(const SimEntity& entity) {
  links::EntityFacts facts;
  facts.name = entity.name;
  facts.kind = entity.is_topic ? links::EntityKind::topic : links::EntityKind::queue;
  facts.requires_session = !entity.is_topic && entity.settings.requires_session;
  facts.requires_duplicate_detection = !entity.is_topic && entity.settings.requires_duplicate_detection;
  std::vector<links::EntityFacts> subscriptions;
  for (const std::string& name : entity.subscriptions) {
    auto& one = subscriptions.emplace_back();
    one.name = name;
    one.kind = links::EntityKind::subscription;
    one.requires_session = entity.settings.requires_session;
  }
  const auto place = [&](links::EntityFacts& of, const links::Route& route) {
    if (entity.partitions == 0)
      of.route = route;
    else
      of.partitions.push_back(route);
  };
  for (std::uint16_t i = 0; i < std::max<std::uint16_t>(entity.partitions, 1); ++i) {
    const auto number = static_cast<std::uint16_t>((entity.first_store + i) % stores_.size());
    SimStore& store = *stores_[number];
    auto settings = in_partition(entity.settings, i, entity.partitions);
    settings.name = entity.name;
    if (!entity.is_topic) {
      const auto id = wait_for(store, [&](store::Store::Created done) {
        store.store().create_partition(world_.wall(), store::PartitionId::none, entity.name, settings,
                                       std::move(done));
      });
      place(facts, {number, static_cast<std::uint32_t>(id)});
      continue;
    }
    store::Store::NewTopic topic;
    topic.name = entity.name;
    topic.settings = in_partition(broker::TopicSettings{.name = entity.name}, i, entity.partitions);
    const auto parent = wait_for(store, [&](store::Store::Created done) {
      store.store().create_topic(world_.wall(), topic, std::move(done));
    });
    place(facts, {number, static_cast<std::uint32_t>(parent)});
    for (auto& subscription : subscriptions) {
      settings.name = subscription.name;
      store::Store::NewSubscription one;
      one.topic = parent;
      one.name = subscription.name;
      one.settings = settings;
      const auto id = wait_for(store, [&](store::Store::Created done) {
        store.store().create_subscription(world_.wall(), one, std::move(done));
      });
      place(subscription, {number, static_cast<std::uint32_t>(id)});
    }
  }
  for (auto& one : subscriptions) {
    std::string key = ascii_lower(one.name);
    entities_[std::move(key)] = std::make_shared<links::EntityFacts>(std::move(one));
  }
  entities_[ascii_lower(entity.name)] = std::make_shared<links::EntityFacts>(std::move(facts));
}

broker::QueueCounts SimBroker::counts(const std::string& entity) {
  const auto& facts = *entities_.at(ascii_lower(entity));
  broker::QueueCounts sum;
  const auto add = [&](const links::Route& route) {
    const auto one = stores_.at(route.store)->store().counts(store::PartitionId{route.partition});
    if (!one) return on_damage(route.store, fmt::format("'{}' is gone", entity));
    sum.active += one->active;
    sum.deferred += one->deferred;
    sum.scheduled += one->scheduled;
    sum.dead_letter += one->dead_letter;
    sum.locked += one->locked;
  };
  if (facts.is_partitioned())
    for (const auto& route : facts.partitions) add(route);
  else
    add(facts.route);
  return sum;
}

// Life and death

bool SimBroker::is_open() const {
  return is_running_ && std::ranges::all_of(stores_, [](const auto& one) { return one->is_available(); });
}

void SimBroker::start() {
  check(!is_running_, "the process is started once");
  is_running_ = true;
  life_ = begin_life();
  for (auto& store : stores_) store->start();
}

Moment SimBroker::settled() {
  Moment least = world_.moment();
  for (auto& store : stores_)
    if (store->is_running()) least = std::min(least, store->settled());
  return least;
}

void SimBroker::note_fault(std::string what, std::string note, Moment since) {
  Event event;
  event.t = world_.moment();
  event.what = Do::fault;
  event.fault = std::move(what);
  event.note = std::move(note);
  event.since = since;
  history_.push_back(std::move(event));
}

void SimBroker::stop(bool power) {
  if (!std::exchange(is_running_, false)) return;
  note_fault(power ? "crash" : "kill", "", settled());
  life_.reset();
  for (auto& [number, end] : ends_) {
    end->die();
    // Who is left on the other side hears of it soon, or when the machine is back.
    end->wire()->vanish(Wire::Side::broker, world_.between(Nanos{0}, power ? Nanos{2s} : Nanos{10ms}));
    dead_ends_.push_back(std::move(end));
  }
  ends_.clear();
  jams_.clear();
  for (auto& store : stores_) store->stop(power);
  // Not from inside one of its own calls.
  if (on_stopped) on_stopped();
}

void SimBroker::on_store_state(std::uint16_t store, StoreState state, const std::string& why) {
  if (state == StoreState::failed)
    note_fault("fail", fmt::format("store {}: {}", store, why), stores_.at(store)->settled());
}

void SimBroker::on_damage(std::uint16_t store, const std::string& what) {
  damages_.push_back({store, what});
  told_.insert(store);
}

// Connections

std::shared_ptr<Wire> SimBroker::connect(WireEnd& client) {
  dead_ends_.clear();
  if (!is_running_) return nullptr;
  auto wire = std::make_shared<Wire>(world_, scenario_.wire);
  const std::uint32_t number = ++last_connection_;
  auto end = std::make_unique<BrokerEnd>(*this, wire, number);
  wire->join(Wire::Side::client, client);
  wire->join(Wire::Side::broker, *end);
  BrokerEnd& made = *end;
  ends_.emplace(number, std::move(end));
  made.start();
  return wire;
}

std::vector<std::shared_ptr<Wire>> SimBroker::wires() {
  std::vector<std::shared_ptr<Wire>> all;
  for (const auto& [number, end] : ends_) all.push_back(end->wire());
  return all;
}

void SimBroker::forget(std::uint32_t connection) {
  // It is still in a call of its own.
  world_.post(life_, [this, connection] { ends_.erase(connection); });
}

bool SimBroker::send(std::uint32_t connection, const links::Route& route, broker::Command& command) {
  const auto found = jams_.find(route.store);
  // Nobody overtakes a close that waits: the same session may be asked for again.
  if (found == jams_.end() || found->second.closes.empty())
    if (stores_.at(route.store)->try_push(store::PartitionId{route.partition}, command)) return true;
  Jam& jam = jams_[route.store];
  if (std::ranges::find(jam.connections, connection) == jam.connections.end())
    jam.connections.push_back(connection);
  return false;
}

void SimBroker::close_receiver(const links::Route& route, broker::ReceiverId receiver) {
  jams_[route.store].closes.push_back({store::PartitionId{route.partition}, broker::CloseReceiver{receiver}});
  on_room(route.store);
}

void SimBroker::on_room(std::uint16_t store) {
  if (!is_running_) return;
  const auto found = jams_.find(store);
  if (found == jams_.end()) return;
  Jam& jam = found->second;
  while (!jam.closes.empty() &&
         stores_.at(store)->try_push(jam.closes.front().partition, jam.closes.front().command))
    jam.closes.pop_front();
  if (!jam.closes.empty()) return;
  const auto waiting = std::exchange(jam.connections, {});
  jams_.erase(found);
  for (const std::uint32_t number : waiting)
    if (const auto end = ends_.find(number); end != ends_.end()) end->second->on_room();
}

void SimBroker::on_answers(std::deque<store::ConnectionAnswer>& answers) {
  std::vector<std::uint32_t> answered;
  for (auto& one : answers) {
    const auto end = ends_.find(one.connection);
    if (end == ends_.end()) continue;
    end->second->deliver(one.answer);
    if (std::ranges::find(answered, one.connection) == answered.end()) answered.push_back(one.connection);
  }
  for (const std::uint32_t number : answered)
    if (const auto end = ends_.find(number); end != ends_.end()) end->second->follow_up();
}

void SimBroker::on_letter(std::uint16_t from, std::uint16_t to, store::StoreMessage&& message) {
  // In order between two stores: every letter takes as long.
  world_.after(20us, life_, [this, from, to, message = std::move(message)]() mutable {
    stores_.at(to)->take_letter(from, std::move(message));
  });
}

}  // namespace omnibus::sim
