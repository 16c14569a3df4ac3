// What a seed decides before anything runs: stores, entities, clients, and which faults there will be.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "broker/queue_settings.hpp"
#include "sim/wire.hpp"

namespace omnibus::sim {

struct SimEntity {
  std::string name{};
  bool is_topic = false;
  std::vector<std::string> subscriptions{};  // whole names
  broker::QueueSettings settings{};          // of the queue, or of each subscription
  std::uint16_t partitions = 0;              // 0: plain
  std::uint16_t first_store = 0;
  bool lossy = false;  // somebody receives and deletes

  [[nodiscard]] std::vector<std::string> homes() const {
    return is_topic ? subscriptions : std::vector<std::string>{name};
  }
  // Where its partitions are, of so many stores.
  [[nodiscard]] std::set<std::uint16_t> stores(std::uint16_t count) const {
    std::set<std::uint16_t> all;
    for (std::uint16_t i = 0; i == 0 || i < partitions; ++i)
      all.insert(static_cast<std::uint16_t>((first_store + i) % count));
    return all;
  }
};

// How often each fault comes, as weights; 0: never.
struct FaultPlan {
  Nanos shortest = std::chrono::milliseconds{100};
  Nanos longest = std::chrono::seconds{10};
  std::uint32_t cut = 0;
  std::uint32_t stall = 0;
  std::uint32_t crash = 0;      // the machine loses power
  std::uint32_t kill = 0;       // the process dies
  std::uint32_t stop = 0;       // power goes in the middle of the disk's work
  std::uint32_t sync = 0;       // a sync fails
  std::uint32_t write = 0;      // writes fail for a while
  std::uint32_t full = 0;       // no space for a while
  std::uint32_t slow = 0;       // the disk is slow for a while
  std::uint32_t jump = 0;       // the wall clock goes ahead
  std::uint32_t jump_back = 0;  // or back, a little
  std::uint32_t down = 0;       // a store is taken down for a while
  std::uint32_t flip = 0;       // bits on the disk change; what is lost then has to be told

  [[nodiscard]] std::uint32_t sum() const {
    return cut + stall + crash + kill + stop + sync + write + full + slow + jump + jump_back + down + flip;
  }
};

struct DiskSettings {
  Nanos fastest = std::chrono::microseconds{20};
  Nanos slowest = std::chrono::milliseconds{3};
};

struct Scenario {
  std::uint64_t seed = 0;
  std::uint16_t stores = 1;
  std::vector<SimEntity> entities{};
  std::uint32_t senders = 0;
  std::uint32_t receivers = 0;
  std::uint32_t session_receivers = 0;
  std::uint32_t transactors = 0;
  Nanos duration = std::chrono::seconds{30};
  Nanos think = std::chrono::milliseconds{200};  // between two things that a client does
  std::uint32_t message_bytes_max = 200;
  WireSettings wire{};
  DiskSettings disk{};
  FaultPlan faults{};
  std::size_t mailbox = 4096;
  std::uint64_t segment_bytes = 64u << 10;
  std::uint64_t checkpoint_bytes = 64u << 10;
  std::uint64_t cache_bytes = 1u << 20;
  std::chrono::milliseconds lazy_commit{10};
  bool acknowledges_early = false;  // broken on purpose: a journal that says "durable" before it is
  bool hides_damage = false;        // broken on purpose: what is found damaged is told to nobody
  bool gives_up_early = false;      // broken on purpose: when one store is away, nobody asks the others

  [[nodiscard]] std::string describe() const;
};

[[nodiscard]] Scenario choose_scenario(std::uint64_t seed);

}  // namespace omnibus::sim
