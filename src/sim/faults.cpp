#include "sim/faults.hpp"

#include <fmt/format.h>

namespace omnibus::sim {
namespace {

using namespace std::chrono_literals;

}  // namespace

Faults::Faults(World& world, const Scenario& scenario, SimBroker& broker, History& history)
    : world_(world), scenario_(scenario), broker_(broker), history_(history) {
  broker_.on_stopped = [this] { on_stopped(); };
}

void Faults::start() {
  if (scenario_.faults.sum() != 0) next();
}

void Faults::next() {
  world_.after(world_.between(scenario_.faults.shortest, scenario_.faults.longest), life_, [this] {
    strike();
    next();
  });
}

void Faults::end() {
  life_ = begin_life();
  for (auto& store : broker_.stores()) {
    auto& disk = store->disk();
    disk.fail_writes(false);
    disk.fail_next_sync(false);
    disk.set_capacity(UINT64_MAX);
    disk.stop_after(UINT64_MAX / 2);
    store->set_slow(1);
    store->set_ailing(false);
    if (store->is_running()) store->bring_back();
  }
  if (!broker_.is_running()) start_broker();
}

void Faults::say(const char* what, std::string note) {
  Event& event = history_.emplace_back();
  event.t = world_.moment();
  event.what = Do::fault;
  event.fault = what;
  event.note = std::move(note);
}

SimStore& Faults::any_store() { return *broker_.stores().at(world_.random().below(broker_.stores().size())); }

void Faults::for_a_while(Nanos longest, Task undo) {
  world_.after(world_.between(Nanos{10ms}, longest), life_, std::move(undo));
}

void Faults::on_stopped() {
  restart_ = begin_life();
  world_.after(world_.between(Nanos{10ms}, 3s), restart_, [this] { start_broker(); });
}

void Faults::start_broker() {
  if (broker_.is_running()) return;
  say("started");
  broker_.start();
}

// While nobody runs: what is found changed is found at the next start.
void Faults::flip() {
  broker_.stop(false);
  const auto number = static_cast<std::uint16_t>(world_.random().below(broker_.stores().size()));
  auto& disk = broker_.stores().at(number)->disk();
  const auto names = disk.names();
  if (names.empty()) return;
  const std::string& name = names[world_.random().below(names.size())];
  auto* bytes = disk.contents(name);
  if (!bytes || bytes->empty()) return;
  // Only the first time: what it cost then may be told but once.
  if (flipped_.insert(number).second) broker_.forget_told(number);
  for (std::uint64_t i = world_.between(1, 3); i > 0; --i)
    (*bytes)[world_.random().below(bytes->size())] ^=
        static_cast<std::uint8_t>(1u << world_.random().below(8));
  say("flip", fmt::format("store {}: {}", number, name));
}

void Faults::strike() {
  const FaultPlan& plan = scenario_.faults;
  std::uint64_t dice = world_.random().below(plan.sum());
  const auto falls = [&](std::uint32_t weight) {
    if (dice < weight) {
      dice = UINT64_MAX;
      return true;
    }
    if (dice != UINT64_MAX) dice -= weight;
    return false;
  };
  SimStore& store = any_store();
  if (const bool cuts = falls(plan.cut); cuts || falls(plan.stall)) {
    const auto wires = broker_.wires();
    if (wires.empty()) return;
    auto& wire = *wires[world_.random().below(wires.size())];
    say(cuts ? "cut" : "stall");
    return cuts ? wire.cut(2s) : wire.stall(world_.between(Nanos{100ms}, 10s));
  }
  if (falls(plan.crash)) return broker_.stop(true);
  if (falls(plan.kill)) return broker_.stop(false);
  if (falls(plan.jump)) {
    const auto by = std::chrono::milliseconds{world_.between(100u, 20'000u)};
    say("jump", fmt::format("{} ms", by.count()));
    return world_.jump(by);
  }
  if (falls(plan.jump_back)) {
    const auto by = std::chrono::milliseconds{world_.between(1u, 3'000u)};
    say("jump-back", fmt::format("{} ms", by.count()));
    return world_.jump(-by);
  }
  if (falls(plan.flip)) return flip();
  if (!broker_.is_running()) return;
  if (falls(plan.stop)) {
    say("stop");
    return store.disk().stop_after(world_.random().below(20));
  }
  if (falls(plan.sync)) {
    say("sync");
    return store.disk().fail_next_sync();
  }
  if (falls(plan.write)) {
    say("write");
    store.disk().fail_writes(true);
    store.set_ailing(true);
    return for_a_while(2s, [&store] {
      store.disk().fail_writes(false);
      store.set_ailing(false);
    });
  }
  if (falls(plan.full)) {
    say("full");
    store.disk().set_capacity(store.disk().bytes_used() + world_.random().below(20'000));
    store.set_ailing(true);
    return for_a_while(5s, [&store] {
      store.disk().set_capacity(UINT64_MAX);
      store.set_ailing(false);
    });
  }
  if (falls(plan.slow)) {
    say("slow");
    store.set_slow(world_.between(10u, 300u));
    return for_a_while(5s, [&store] { store.set_slow(1); });
  }
  if (falls(plan.down) && store.is_available()) {
    say("down");
    store.take_down();
    return for_a_while(5s, [&store] {
      if (store.is_running()) store.bring_back();
    });
  }
}

}  // namespace omnibus::sim
