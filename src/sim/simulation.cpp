#include "sim/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "sim/faults.hpp"
#include "sim/sim_auditor.hpp"
#include "sim/sim_broker.hpp"
#include "sim/sim_receiver.hpp"
#include "sim/sim_sender.hpp"
#include "sim/sim_transactor.hpp"

namespace omnibus::sim {
namespace {

using namespace std::chrono_literals;

// After the last fault: locks run out, schedules come, stores ask each other about old transactions.
constexpr auto calm = 90s;
constexpr auto audit_longest = 120s;
// A delivery waits for a stalled wire, and for a slow disk to give its bytes.
constexpr Moment under_way_longest = std::chrono::microseconds{20s}.count();

class Simulation {
 public:
  Simulation(const Scenario& scenario, Report& report)
      : scenario_(scenario),
        report_(report),
        world_(scenario.seed),
        broker_(world_, scenario_, report.history),
        faults_(world_, scenario_, broker_, report.history) {}

  void run() {
    broker_.set_up();
    for (const SimEntity& entity : scenario_.entities) declare(entity);
    make_clients();
    for (auto& client : clients_) client->start();
    faults_.start();
    world_.run_until(world_.tick() + scenario_.duration);
    faults_.end();
    // Some go on for a while after the last fault.
    world_.run_until(world_.tick() + 5s);
    for (auto& client : clients_) client->finish();
    world_.run_until(world_.tick() + calm);
    for (std::uint16_t i = 0; i < scenario_.stores; ++i)
      if (!is_open(i) && !faults_.flipped().contains(i))
        report_.violations.push_back(
            fmt::format("store {} is not open again after all faults have ended", i));
    if (broker_.is_running()) audit();
    for (const auto& [store, what] : broker_.damages())
      if (!faults_.flipped().contains(store))
        report_.violations.push_back(fmt::format("store {}: {}", store, what));
    for (const std::string& one : broker_.complaints()) report_.violations.push_back(one);
  }
  [[nodiscard]] bool has_flipped() const { return !faults_.flipped().empty(); }
  // What changed bits may have cost: entities with a partition in a store that was flipped, and only when
  // that store has told that something is wrong, or does not open any more.
  [[nodiscard]] std::set<std::string> excused() const {
    std::set<std::string> all;
    for (const SimEntity& entity : scenario_.entities) {
      if (!is_excused(entity)) continue;
      all.insert(entity.name);
      all.insert(entity.subscriptions.begin(), entity.subscriptions.end());
    }
    return all;
  }
  [[nodiscard]] Moment went_ahead() const { return world_.went_ahead(); }
  [[nodiscard]] Moment went_back() const { return world_.went_back(); }
  [[nodiscard]] std::uint64_t events() const { return world_.events(); }
  [[nodiscard]] std::uint64_t hash() {
    for (const Event& event : report_.history) world_.trace(to_line(event));
    for (auto& store : broker_.stores()) {
      world_.trace(fmt::format("{}", store->disk().operations()));
      store->trace_disk();
    }
    return world_.hash();
  }

 private:
  [[nodiscard]] bool is_open(std::uint16_t store) const { return broker_.stores().at(store)->is_available(); }
  [[nodiscard]] bool is_excused(const SimEntity& entity) const {
    return std::ranges::any_of(entity.stores(scenario_.stores), [&](std::uint16_t store) {
      return faults_.flipped().contains(store) && (broker_.has_told_of_loss(store) || !is_open(store));
    });
  }
  [[nodiscard]] bool is_flipped(const SimEntity& entity) const {
    return std::ranges::any_of(entity.stores(scenario_.stores),
                               [&](std::uint16_t store) { return faults_.flipped().contains(store); });
  }
  [[nodiscard]] const SimEntity& entity_of(const std::string& address) const {
    return *std::ranges::find_if(scenario_.entities, [&](const SimEntity& one) {
      return address == one.name || address.starts_with(one.name + "/");
    });
  }

  void declare(const SimEntity& entity) {
    Event& event = report_.history.emplace_back();
    event.t = world_.moment();
    event.what = Do::entity;
    event.entity = entity.name;
    event.subscriptions = entity.subscriptions;
    event.lossy = entity.lossy;
    event.lock = std::chrono::microseconds{entity.settings.lock_duration}.count();
    if (entity.settings.requires_duplicate_detection)
      event.dedup = std::chrono::microseconds{entity.settings.duplicate_window}.count();
  }

  void make_clients() {
    std::vector<const SimEntity*> all;
    std::vector<ReceivesFrom> plain;
    std::vector<ReceivesFrom> sessions;
    for (const SimEntity& entity : scenario_.entities) {
      all.push_back(&entity);
      for (const std::string& home : entity.homes()) {
        if (entity.settings.requires_session)
          sessions.push_back({home, true, false});
        else
          plain.push_back({home, false, entity.lossy});
        plain.push_back({home + "/$DeadLetterQueue", false, false});
      }
    }
    // Dead letters now and then: their queue is one of the sources, the entity itself is three of them.
    std::vector<ReceivesFrom> sources;
    for (const ReceivesFrom& one : plain) {
      const bool is_dead = one.address.ends_with("/$DeadLetterQueue");
      for (int i = 0; i < (is_dead ? 1 : 3); ++i) sources.push_back(one);
    }
    const auto add = [&]<class Client>(std::type_identity<Client>, const char* kind, auto... more) {
      clients_.push_back(std::make_unique<Client>(world_, broker_, scenario_, report_.history,
                                                  fmt::format("{}{}", kind, clients_.size()), more...));
    };
    for (std::uint32_t i = 0; i < scenario_.senders; ++i) add(std::type_identity<SimSender>{}, "s", all);
    for (std::uint32_t i = 0; i < scenario_.receivers; ++i)
      add(std::type_identity<SimReceiver>{}, "r", sources, &deferred_);
    if (!sessions.empty())
      for (std::uint32_t i = 0; i < scenario_.session_receivers; ++i)
        add(std::type_identity<SimReceiver>{}, "q", sessions, &deferred_);
    for (std::uint32_t i = 0; i < scenario_.transactors; ++i) {
      const auto& source = plain.at(world_.random().below(plain.size()));
      add(std::type_identity<SimTransactor>{}, "t", all, source.deletes ? std::string{} : source.address);
    }
  }

  void audit() {
    std::vector<std::string> addresses;
    std::set<std::string> drains;
    // Those that may be damaged come last, so that the others are looked at in any case.
    std::vector<const SimEntity*> entities;
    for (const bool flipped : {false, true})
      for (const SimEntity& entity : scenario_.entities)
        if (is_flipped(entity) == flipped &&
            std::ranges::all_of(entity.stores(scenario_.stores), [&](auto store) { return is_open(store); }))
          entities.push_back(&entity);
    std::vector<std::pair<const SimEntity*, std::string>> held;
    for (const SimEntity* entity : entities)
      for (const std::string& home : entity->homes()) {
        const auto counts = broker_.counts(home);
        Event& event = report_.history.emplace_back();
        event.t = world_.moment();
        event.what = Do::counts;
        event.entity = home;
        event.active = static_cast<std::int64_t>(counts.active + counts.deferred);
        event.scheduled = static_cast<std::int64_t>(counts.scheduled);
        event.dead_count = static_cast<std::int64_t>(counts.dead_letter);
        if (counts.locked != 0)
          held.emplace_back(entity,
                            fmt::format("{} messages of '{}' are locked long after their locks have ended",
                                        counts.locked, home));
        addresses.push_back(home);
        addresses.push_back(home + "/$DeadLetterQueue");
        drains.insert(addresses.back());
        if (!entity->settings.requires_session) drains.insert(home);
      }
    SimAuditor auditor(world_, broker_, scenario_, report_.history, addresses, drains);
    auditor.start();
    if (!world_.run_until(world_.tick() + audit_longest, [&] { return auditor.is_done(); }))
      held.emplace_back(&entity_of(auditor.where()),
                        fmt::format("nobody could look into the entities: {}", auditor.trouble()));
    for (const auto& [address, id] : auditor.stuck())
      held.emplace_back(&entity_of(address),
                        fmt::format("'{}' is in '{}' and nobody can receive it", id, address));
    auditor.finish();
    // Only now: damage is found when it is read.
    for (auto& [entity, what] : held)
      if (!is_excused(*entity)) report_.violations.push_back(std::move(what));
  }

  const Scenario& scenario_;
  Report& report_;
  World world_;
  SimBroker broker_;
  Faults faults_;
  DeferredBoard deferred_;
  std::vector<std::unique_ptr<SimClient>> clients_;
};

}  // namespace

Report simulate(std::uint64_t seed, const Adjust& adjust) {
  Scenario scenario = choose_scenario(seed);
  if (adjust) adjust(scenario);
  Report report;
  report.seed = seed;
  report.scenario = scenario.describe();
  CheckerOptions options;
  {
    Simulation simulation(scenario, report);
    simulation.run();
    report.hash = simulation.hash();
    report.events = simulation.events();
    report.has_flipped = simulation.has_flipped();
    options.slack = simulation.went_back();
    options.late = under_way_longest + simulation.went_ahead();
    options.excused = report.excused = simulation.excused();
  }
  report.judgement = judge(report.history, options);
  for (const Violation& one : report.judgement.violations) report.violations.push_back(to_string(one));
  return report;
}

}  // namespace omnibus::sim
