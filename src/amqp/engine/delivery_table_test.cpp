#include "amqp/engine/delivery_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.hpp"

namespace omnibus::amqp {
namespace {

struct Entry {
  const void* link = nullptr;
  std::uint32_t value = 0;
};
const int owner = 0;

// The table against a plain map that is keyed by the distance from the start, so that it never wraps.
void run(std::uint64_t seed, std::uint32_t start) {
  Random random{seed};
  DeliveryTable<Entry> table;
  std::map<std::uint64_t, std::uint32_t> model;
  std::uint64_t next = 0;
  const auto id_of = [&](std::uint64_t key) { return start + static_cast<std::uint32_t>(key); };
  const auto add = [&] {
    next += random.below(8) == 0 ? random.below(random.below(20) == 0 ? 5000 : 20) : 0;
    table.add(id_of(next), {&owner, static_cast<std::uint32_t>(next * 7)});
    model[next] = static_cast<std::uint32_t>(next * 7);
    ++next;
  };
  const auto some_key = [&]() -> std::uint64_t {
    if (model.empty() || random.below(4) == 0) return next == 0 ? 0 : random.below(next);
    auto it = model.lower_bound(random.below(next));
    return it == model.end() ? model.begin()->first : it->first;
  };
  for (int step = 0; step < 4000; ++step) {
    const auto choice = random.below(100);
    if (choice < 45) {
      add();
    } else if (choice < 75) {
      const auto key = some_key();
      table.erase(id_of(key));
      model.erase(key);
    } else if (choice < 80 && next > 0) {
      // A range, with a visitor that keeps some, erases others, and adds new ones.
      const auto first = some_key();
      const auto last = first + random.below(random.below(3) == 0 ? 0x7fff'0000 : 50);
      std::vector<std::uint64_t> expected;
      for (auto it = model.lower_bound(first); it != model.end() && it->first <= last; ++it)
        expected.push_back(it->first);
      std::vector<std::uint64_t> visited;
      const auto flavour = random.below(4);
      table.for_range(id_of(first), id_of(last), [&](std::uint32_t id, const Entry& entry) {
        const std::uint64_t key = entry.value / 7;
        EXPECT_EQ(id, id_of(key));
        visited.push_back(key);
        if (flavour == 1 && random.below(3) == 0 && next < 500'000'000) add();
        if (flavour == 2) {
          table.erase(id);  // the visitor settles it itself
          model.erase(key);
        }
        const bool erase = random.below(4) != 0;
        if (erase) model.erase(key);
        return erase;
      });
      std::ranges::sort(visited);
      EXPECT_EQ(visited, expected);
    } else if (choice < 82) {
      const auto rest = random.below(5);
      table.erase_if([&](const Entry& entry) { return entry.value / 7 % 5 == rest; });
      std::erase_if(model, [&](const auto& row) { return row.first % 5 == rest; });
    } else {
      const auto key = some_key();
      const Entry* found = table.find(id_of(key));
      ASSERT_EQ(found != nullptr, model.contains(key));
      if (found) {
        EXPECT_EQ(found->value, model[key]);
      }
    }
    ASSERT_EQ(table.size(), model.size());
  }
  for (const auto& [key, value] : model) ASSERT_NE(table.find(id_of(key)), nullptr);
}

TEST(DeliveryTable, BehavesLikeAMap) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    run(seed, 0);
  }
}

TEST(DeliveryTable, AlsoAcrossTheWrapAround) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    run(seed, UINT32_MAX - 1000);
  }
}

}  // namespace
}  // namespace omnibus::amqp
