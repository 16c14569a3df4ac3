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

// TransactionSeconds at a running broker. One transaction at a time is allowed here: a second can be declared
// as soon as the first is over, and nothing but its time ends the first.
TEST_F(ServerTransactions, ATransactionThatLastsTooLongIsRolledBack) {
  auto options = options_with(1, R"("Queues": [{"Name": "q"}])");
  options.config.transaction_time = std::chrono::seconds{1};
  options.config.transactions_per_connection_max = 1;
  const auto server = start(std::move(options));
  ASSERT_TRUE(server);
  AmqpClient client{server->addresses()[0]};
  auto& control = client.attach(amqp::Role::sender, AmqpClient::coordinator);
  auto& sender = client.attach(amqp::Role::sender, "q");
  const auto declare = [&] {
    return client.send_one(control, AmqpClient::control(amqp::encode_composite(amqp::Declare{})));
  };
  const auto commit = [&](const std::string& id) {
    return client.send_one(
        control,
        AmqpClient::control(amqp::encode_composite(amqp::Discharge{.txn_id = as_bytes(id), .fail = false})));
  };
  ASSERT_EQ(declare(), amqp::descriptor::declared);
  const std::string late = client.of(control).transaction;
  EXPECT_EQ(client.send_one(sender, AmqpClient::message("late"), late),
            amqp::descriptor::transactional_state);
  EXPECT_EQ(declare(), amqp::descriptor::rejected) << "there is one already";
  wait_until([&] { return declare() == amqp::descriptor::declared; });
  const std::string second = client.of(control).transaction;
  EXPECT_EQ(client.send_one(sender, AmqpClient::message("late too"), late), amqp::descriptor::rejected);
  EXPECT_EQ(client.of(sender).rejected, "amqp:transaction:timeout");
  EXPECT_EQ(commit(late), amqp::descriptor::rejected);
  EXPECT_EQ(client.of(control).rejected, "amqp:transaction:timeout");

  EXPECT_EQ(client.send_one(sender, AmqpClient::message("in time"), second),
            amqp::descriptor::transactional_state);
  EXPECT_EQ(commit(second), amqp::descriptor::accepted);
  ASSERT_TRUE(client.send(sender, {AmqpClient::message("last")}));
  EXPECT_EQ(take(client, "q", 2), (std::vector<std::string>{"in time", "last"}));
}

}  // namespace
}  // namespace omnibus::node
