// A transaction over stores on two shards, with real disks and threads between them.
#include <algorithm>
#include <thread>

#include "broker/ids.hpp"
#include "node/server_rig.hpp"

namespace omnibus::node {
namespace {

class ServerTransactions : public ServerRig {
 protected:
  static broker::TransactionStep sends(std::uint16_t store, std::string_view body) {
    Random random{1};
    broker::Enqueue work;
    work.messages.push_back(*broker::read_message(AmqpClient::message(std::string{body}), random));
    return {store, 1, std::move(work)};  // the only partition of its store
  }
};

// The store that is asked is not the one that has a step alone; both get theirs, also after a restart.
TEST_F(ServerTransactions, StoresOnTwoShardsAgree) {
  const auto [first, second] = apart();
  const auto options = [&] {
    return options_with(2, fmt::format(R"("Queues": [{{"Name": "{}"}}, {{"Name": "{}"}}])", first, second));
  };
  auto server = start(options());
  ASSERT_TRUE(server);
  constexpr std::uint32_t count = 200;
  for (std::uint32_t i = 0; i < count; ++i) {
    broker::Transact command;
    for (const std::uint16_t store : {0, 1}) command.steps.push_back(sends(store, fmt::format("t{}", i)));
    // One that fails in the other store leaves nothing in this one.
    broker::Transact fails;
    fails.steps.push_back(sends(static_cast<std::uint16_t>(i % 2), "never"));
    fails.steps.push_back({static_cast<std::uint16_t>((i + 1) % 2), 1,
                           broker::Settle{{}, {broker::LockToken{}}, broker::Complete{}, {}, {}}});
    for (auto* one : {&command, &fails}) {
      StoreCommand asked{store::PartitionId::none, std::move(*one)};
      while (!server->ask_store(static_cast<std::uint16_t>(i % 2), asked)) std::this_thread::yield();
    }
  }
  AmqpClient client{server->addresses()[0]};
  auto from_first = take(client, first, count);
  auto from_second = take(client, second, count / 2);
  std::ranges::sort(from_first);
  EXPECT_EQ(std::ranges::unique(from_first).begin(), from_first.end());
  EXPECT_EQ(std::ranges::count(from_first, "never"), 0);
  server.reset();
  server = start(options());
  ASSERT_TRUE(server);
  AmqpClient again{server->addresses()[0]};
  const auto rest = take(again, second, count - count / 2);
  from_second.insert(from_second.end(), rest.begin(), rest.end());
  std::ranges::sort(from_second);
  EXPECT_EQ(from_first, from_second);
}

}  // namespace
}  // namespace omnibus::node
