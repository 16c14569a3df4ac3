#include "node/namespaces.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "net/reactor.hpp"

namespace omnibus::node {
namespace {

// The loop begins when all of them have come, so the first is on its way to the disk and the others wait.
TEST(Namespaces, AChangeThatComesWhenAThousandWaitIsRefused) {
  const auto folder = DataFolder::temporary();
  ASSERT_TRUE(folder);
  const Roads roads{};  // no shards, no stores: nothing is served
  const Config config{};
  net::Reactor reactor;
  Namespaces namespaces{Namespaces::Setting{.roads = roads,
                                            .reactor = reactor,
                                            .config = config,
                                            .folder = **folder,
                                            .default_rules = auth::AccessRules{}}};
  ASSERT_TRUE(namespaces.prepare([](const Result<void>&) {}));
  std::map<std::size_t, Errc> refused;  // by the order in which they came, from 0
  for (std::size_t i = 0; i < 1 + 1000 + 2; ++i)
    namespaces.create(fmt::format("n{}", i), {}, [&refused, i](const Result<Namespaces::Made>& made) {
      if (!made) refused.emplace(i, made.error().code);
    });
  reactor.stop();
  reactor.run();
  const std::map<std::size_t, Errc> last_two{{1001, Errc::server_busy}, {1002, Errc::server_busy}};
  EXPECT_EQ(refused, last_two);
}

}  // namespace
}  // namespace omnibus::node
