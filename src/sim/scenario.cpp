#include "sim/scenario.hpp"

#include <fmt/format.h>

namespace omnibus::sim {
namespace {

using namespace std::chrono_literals;

class Chooser {
 public:
  explicit Chooser(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15 + 0x51ed270b) {}

  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + random_.below(high - low + 1); }
  bool one_in(std::uint64_t n) { return random_.below(n) == 0; }
  template <class T, std::size_t n>
  T any(const T (&values)[n]) {
    return values[random_.below(n)];
  }

  Scenario choose(std::uint64_t seed) {
    Scenario scenario;
    scenario.seed = seed;
    scenario.stores = static_cast<std::uint16_t>(between(1, 4));
    choose_entities(scenario);
    scenario.senders = static_cast<std::uint32_t>(between(1, 4));
    scenario.receivers = static_cast<std::uint32_t>(between(1, 5));
    scenario.session_receivers = static_cast<std::uint32_t>(between(0, 3));
    scenario.transactors = static_cast<std::uint32_t>(between(0, 3));
    scenario.duration = std::chrono::seconds{between(5, 40)};
    scenario.think = any({200ms, 500ms, 1000ms, 2000ms});
    scenario.message_bytes_max = any({30u, 200u, 3000u, 20000u});
    scenario.wire.fastest = any<Nanos>({10us, 100us, 1ms});
    scenario.wire.slowest = any<Nanos>({1ms, 5ms, 50ms});
    scenario.wire.splits = any({2u, 8u, 50u});
    scenario.disk.fastest = any<Nanos>({5us, 100us});
    scenario.disk.slowest = any<Nanos>({200us, 3ms, 30ms});
    scenario.mailbox = any({3u, 16u, 4096u});
    scenario.segment_bytes = any({16u << 10, 64u << 10, 1u << 20});
    scenario.checkpoint_bytes = any({4u << 10, 32u << 10, 1u << 20});
    scenario.cache_bytes = any({1u << 10, 64u << 10, 16u << 20});
    scenario.lazy_commit = any({0ms, 10ms, 10ms});
    choose_faults(scenario.faults);
    return scenario;
  }

 private:
  broker::QueueSettings settings() {
    broker::QueueSettings chosen;
    chosen.lock_duration = std::chrono::seconds{between(5, 30)};
    chosen.delivery_count_max = static_cast<std::uint32_t>(between(2, 10));
    chosen.dead_letter_on_expiration = one_in(3);
    return chosen;
  }
  SimEntity& add(Scenario& scenario, std::string name, bool may_be_partitioned = true) {
    SimEntity& entity = scenario.entities.emplace_back();
    entity.name = std::move(name);
    entity.settings = settings();
    entity.first_store = static_cast<std::uint16_t>(between(0, scenario.stores - 1u));
    if (may_be_partitioned && one_in(3)) entity.partitions = static_cast<std::uint16_t>(between(2, 4));
    return entity;
  }
  void choose_entities(Scenario& scenario) {
    for (std::uint64_t i = between(1, 3); i > 0; --i) add(scenario, fmt::format("queue{}", i));
    if (one_in(2)) {
      auto& sessions = add(scenario, "sessions");
      sessions.settings.requires_session = true;
    }
    if (one_in(2)) {
      auto& dedup = add(scenario, "dedup");
      dedup.settings.requires_duplicate_detection = true;
      dedup.settings.duplicate_window = std::chrono::seconds{between(20, 60)};
    }
    if (one_in(2)) {
      auto& topic = add(scenario, "topic");
      topic.is_topic = true;
      for (std::uint64_t i = between(1, 3); i > 0; --i)
        topic.subscriptions.push_back(fmt::format("topic/Subscriptions/s{}", i));
    }
    if (one_in(4)) add(scenario, "deletes").lossy = true;
  }
  void choose_faults(FaultPlan& faults) {
    faults.longest = any<Nanos>({1s, 5s, 20s});
    if (one_in(6)) return;  // a quiet run
    const auto weight = [&] { return one_in(2) ? static_cast<std::uint32_t>(between(1, 4)) : 0u; };
    faults.cut = weight();
    faults.stall = weight();
    faults.crash = weight();
    faults.kill = weight();
    faults.stop = weight();
    faults.sync = weight();
    faults.write = weight();
    faults.full = weight();
    faults.slow = weight();
    faults.jump = weight();
    faults.down = weight();
    if (one_in(8)) faults.jump_back = 1;
    if (one_in(12)) faults.flip = 2;
  }

  Random random_;
};

}  // namespace

std::string Scenario::describe() const {
  std::string text =
      fmt::format("{} stores, {} senders, {} receivers, {} session receivers, {} transactors, {} s:", stores,
                  senders, receivers, session_receivers, transactors,
                  std::chrono::duration_cast<std::chrono::seconds>(duration).count());
  for (const SimEntity& one : entities)
    text += fmt::format(" {}{}{}", one.name, one.partitions ? fmt::format("x{}", one.partitions) : "",
                        one.is_topic ? fmt::format(">{}", one.subscriptions.size()) : "");
  return text;
}

Scenario choose_scenario(std::uint64_t seed) { return Chooser(seed).choose(seed); }

}  // namespace omnibus::sim
