#include "node/test_clock.hpp"

#include <spdlog/spdlog.h>

#include <atomic>

#include "node/shard.hpp"
#include "node/store_host.hpp"

namespace omnibus::node {
namespace {

// Calls `then` when `count` have come; on the thread of the last.
std::function<void()> after(std::size_t count, std::function<void()> then) {
  return [left = std::make_shared<std::atomic<std::size_t>>(count), then = std::move(then)] {
    if (left->fetch_sub(1, std::memory_order_acq_rel) == 1) then();
  };
}

}  // namespace

void TestClock::advance(std::chrono::milliseconds by, std::move_only_function<void()> done) {
  clock_.advance(by);
  spdlog::info("the clock of messages was moved by {} ms and is {} ms ahead now", by.count(),
               clock_.ahead().count());
  const std::uint64_t id = ++last_;
  waiting_.emplace(id, std::move(done));
  const auto at_home = [this, id, life = life_] {
    home_.reactor().post(while_alive(life, [this, id] {
      auto found = waiting_.extract(id);
      if (found) found.mapped()();
    }));
  };
  // Entities that were idle for too long are gone by now: the catalogue tells that to every shard.
  const auto tell_shards = [&roads = roads_, at_home] {
    roads.shards.front()->post([&roads, at_home] {
      const auto heard = after(roads.shards.size(), at_home);
      for (Shard* shard : roads.shards) shard->post(heard);
    });
  };
  std::size_t stores = 0;
  for (const StoreHost* store : roads_.stores) stores += store != nullptr;
  const auto caught_up = after(stores, tell_shards);
  for (StoreHost* store : roads_.stores)
    if (store != nullptr) store->catch_up(caught_up);
}

}  // namespace omnibus::node
