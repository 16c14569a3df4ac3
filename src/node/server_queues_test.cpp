// Queues of the running broker: real sockets, real stores, real threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <thread>

#include "node/server_rig.hpp"
#include "node/store_folders.hpp"

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;
using amqp::Role;
using testing::ElementsAre;
using testing::HasSubstr;

class ServerQueues : public ServerRig {
 protected:
  ServeOptions options(std::uint32_t shards, std::string_view queues) {
    return options_with(shards, fmt::format(R"("Queues": [{}])", queues));
  }
};

constexpr auto one_queue = R"({"Name": "orders"})";

TEST_F(ServerQueues, AMessageGoesThroughAndIsGoneWhenCompleted) {
  const auto server = start(options(1, one_queue));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  auto& sender = client.attach(Role::sender, "ORDERS");
  ASSERT_TRUE(client.send(sender, numbered(3)));
  auto& receiver = client.attach(Role::receiver, "orders");
  receiver.grant(10);
  EXPECT_THAT(client.receive(receiver, 3), ElementsAre("m0", "m1", "m2"));
  ASSERT_TRUE(client.complete_all(receiver));
  // What comes next is the next message, not one of those.
  ASSERT_TRUE(client.send(sender, numbered(1, "next")));
  EXPECT_EQ(client.receive(receiver, 4).back(), "next0");
}

TEST_F(ServerQueues, WhatIsNotThereIsSaidSo) {
  const auto server = start(options(1, one_queue));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  auto& sender = client.attach(Role::sender, "invoices");
  ASSERT_TRUE(client.until([&] { return client.of(sender).detached.has_value(); }));
  EXPECT_EQ(client.of(sender).detached->name, "amqp:not-found");
}

TEST_F(ServerQueues, MessagesSurviveARestartAndTheFileIsNotNeededAgain) {
  {
    const auto server = start(options(2, one_queue));
    ASSERT_TRUE(server);
    AmqpClient client(server->addresses()[0]);
    ASSERT_TRUE(client.send(client.attach(Role::sender, "orders"), numbered(50)));
    auto& receiver = client.attach(Role::receiver, "orders");
    receiver.grant(10);
    (void)client.receive(receiver, 10);
    ASSERT_TRUE(client.complete_all(receiver));
  }
  const auto server = start(options(2, ""));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  auto& receiver = client.attach(Role::receiver, "orders");
  receiver.grant(100);
  const auto bodies = client.receive(receiver, 40);
  ASSERT_EQ(bodies.size(), 40u);
  EXPECT_EQ(bodies.front(), "m10");
  EXPECT_EQ(bodies.back(), "m49");
}

// What is there may have been changed by an administrator since: the file makes queues, it does not change
// them. [HTTP 16.1]
TEST_F(ServerQueues, AQueueThatIsThereStaysAsItIs) {
  {
    ASSERT_TRUE(start(options(1, one_queue)));
  }
  const auto server = start(options(
      1, R"({"Name": "Orders", "Properties": {"MaxMessageSizeInKilobytes": 2048, "RequiresSession": true}},
            {"Name": "new", "Properties": {"MaxMessageSizeInKilobytes": 2048}})"));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  EXPECT_EQ(client.of(client.attach(Role::sender, "orders")).max_message_size, 1024u * 1024);
  EXPECT_EQ(client.of(client.attach(Role::sender, "new")).max_message_size, 2048u * 1024);
}

// Every store that is there is opened, whatever the number of shards says.
TEST_F(ServerQueues, FewerShardsFindTheQueuesOfMore) {
  const auto [first, second] = apart();
  const auto queues = fmt::format(R"({{"Name": "{}"}}, {{"Name": "{}"}})", first, second);
  {
    const auto server = start(options(2, queues));
    ASSERT_TRUE(server);
    AmqpClient client(server->addresses()[0]);
    for (const auto& name : {first, second})
      ASSERT_TRUE(client.send(client.attach(Role::sender, name), numbered(1, name)));
    ASSERT_EQ(list_stores(server->data())->size(), 2u);
  }
  const auto server = start(options(1, queues));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  for (const auto& name : {first, second}) {
    auto& receiver = client.attach(Role::receiver, name);
    receiver.grant(1);
    EXPECT_THAT(client.receive(receiver, 1), ElementsAre(name + "0"));
  }
}

// Connections are spread over shards, so both queues are reached from both of them.
TEST_F(ServerQueues, EveryShardReachesEveryStore) {
  const auto [first, second] = apart();
  const auto server = start(options(2, fmt::format(R"({{"Name": "{}"}}, {{"Name": "{}"}})", first, second)));
  ASSERT_TRUE(server);
  AmqpClient one(server->addresses()[0]);
  AmqpClient two(server->addresses()[0]);
  for (const auto& name : {first, second}) {
    ASSERT_TRUE(one.send(one.attach(Role::sender, name), numbered(100, "one")));
    ASSERT_TRUE(two.send(two.attach(Role::sender, name), numbered(100, "two")));
    auto& receiver = one.attach(Role::receiver, name);
    receiver.grant(200);
    const auto bodies = one.receive(receiver, 200);
    EXPECT_EQ(std::ranges::count_if(bodies, [](const auto& body) { return body.starts_with("one"); }), 100);
    EXPECT_TRUE(one.complete_all(receiver));
  }
}

TEST_F(ServerQueues, EphemeralServesAndForgets) {
  auto with = options(2, one_queue);
  with.ephemeral = true;
  std::filesystem::path data;
  {
    const auto server = start(with);
    ASSERT_TRUE(server);
    data = server->data();
    AmqpClient client(server->addresses()[0]);
    ASSERT_TRUE(client.send(client.attach(Role::sender, "orders"), numbered(5)));
    auto& receiver = client.attach(Role::receiver, "orders");
    receiver.grant(5);
    EXPECT_EQ(client.receive(receiver, 5).size(), 5u);
    EXPECT_TRUE(client.complete_all(receiver));
    EXPECT_THAT(list_stores(data).value(), testing::IsEmpty());
  }
  EXPECT_FALSE(std::filesystem::exists(data));
}

// Roads that hold next to nothing: everything has to wait, nothing gets lost and nothing changes places.
TEST_F(ServerQueues, FullRoadsHoldBackAndLoseNothing) {
  auto with = options(2, one_queue);
  with.storage.commands_max = 2;
  with.storage.answers_max = 2;
  const auto server = start(with);
  ASSERT_TRUE(server);
  AmqpClient one(server->addresses()[0]);
  AmqpClient two(server->addresses()[0]);
  auto& first = one.attach(Role::sender, "orders");
  auto& second = two.attach(Role::sender, "orders");
  ASSERT_TRUE(one.send(first, numbered(500, "one")));
  ASSERT_TRUE(two.send(second, numbered(500, "two")));
  auto& receiver = two.attach(Role::receiver, "orders");
  receiver.grant(1000);
  const auto bodies = two.receive(receiver, 1000);
  ASSERT_EQ(bodies.size(), 1000u);
  for (std::size_t i = 0; i < 500; ++i) {
    EXPECT_EQ(bodies[i], fmt::format("one{}", i));
    EXPECT_EQ(bodies[500 + i], fmt::format("two{}", i));
  }
  EXPECT_TRUE(two.complete_all(receiver));
  EXPECT_EQ(two.accepted(receiver), 1000u);
}

TEST_F(ServerQueues, ForwardsWithinAStoreAndToAnother) {
  const auto [first, second] = apart();
  // Three hops: here, there and back again.
  const auto server = start(options(2, fmt::format(R"({{"Name": "{0}", "Properties": {{"ForwardTo": "{1}"}}}},
                        {{"Name": "{1}", "Properties": {{"ForwardTo": "end/{0}"}}}},
                        {{"Name": "end/{0}", "Properties": {{}}}})",
                                                   first, second)));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  ASSERT_TRUE(client.send(client.attach(Role::sender, first), numbered(200)));
  auto& receiver = client.attach(Role::receiver, "end/" + first);
  receiver.grant(200);
  const auto bodies = client.receive(receiver, 200);
  ASSERT_EQ(bodies.size(), 200u);
  EXPECT_EQ(bodies.front(), "m0");
  EXPECT_EQ(std::set<std::string>(bodies.begin(), bodies.end()).size(), 200u) << "each comes once";
}

// A socket that goes without a word gives its message session back at once: the lock of an hour would not.
TEST_F(ServerQueues, AConnectionThatIsCutLeavesItsSession) {
  const auto server = start(
      options(2, R"({"Name": "orders", "Properties": {"RequiresSession": true, "LockDuration": "PT5M"}})"));
  ASSERT_TRUE(server);
  const auto filter = amqp::Value::map({{amqp::Value::symbol("com.microsoft:session-filter"), "s"}});
  AmqpClient stays(server->addresses()[0]);
  ASSERT_TRUE(stays.send(stays.attach(Role::sender, "orders"), {AmqpClient::message("m", "s")}));
  {
    AmqpClient goes(server->addresses()[0]);
    auto& receiver = goes.attach(Role::receiver, "orders", filter);
    receiver.grant(1);
    ASSERT_THAT(goes.receive(receiver, 1), ElementsAre("m"));
  }
  // The broker sees the end of the socket a moment later; until then the session is taken.
  for (int i = 0; i < 1000; ++i) {
    auto& receiver = stays.attach(Role::receiver, "orders", filter);
    if (*stays.of(receiver).attached) {
      receiver.grant(1);
      EXPECT_THAT(stays.receive(receiver, 1), ElementsAre("m"));
      return;
    }
    ASSERT_TRUE(stays.until([&] { return stays.of(receiver).detached.has_value(); }));
  }
  FAIL() << "the session was not given back";
}

TEST_F(ServerQueues, ALargeMessageAndManyLinks) {
  const auto server = start(options(2, one_queue));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  const std::string large(900'000, 'x');
  ASSERT_TRUE(client.send(client.attach(Role::sender, "orders"), {AmqpClient::message(large)}));
  auto& receiver = client.attach(Role::receiver, "orders");
  receiver.grant(1);
  EXPECT_THAT(client.receive(receiver, 1), ElementsAre(large));
  for (int i = 0; i < 50; ++i) (void)client.attach(Role::receiver, "orders");
}

TEST_F(ServerQueues, AStoreInUseIsAStartErrorThatNamesIt) {
  {
    ASSERT_TRUE(start(options(1, one_queue)));
  }
  const auto lock = DataFolder::open(folder_->path() / "data" / "store-0");
  ASSERT_TRUE(lock);
  auto with = options(1, one_queue);
  with.storage.start_patience = 300ms;
  const auto refused = Server::start(std::move(with));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, testing::AllOf(HasSubstr("store-0"), HasSubstr("in use")));
}

TEST_F(ServerQueues, SomebodyMayChangeHisMindWhileStoresOpen) {
  auto with = options(1, one_queue);
  with.give_up = [] { return true; };
  const auto refused = Server::start(with);
  // A store may be open before anybody is asked.
  if (!refused) {
    EXPECT_THAT(refused.error().detail, HasSubstr("told to stop"));
  }
}

TEST_F(ServerQueues, StoresCloseAndStayClosed) {
  const auto server = start(options(2, one_queue));
  ASSERT_TRUE(server);
  EXPECT_FALSE(server->stores_closed());
  server->begin_shutdown();
  server->close_stores();
  for (int i = 0; i < 2000 && !server->stores_closed(); ++i) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(server->stores_closed());
}

TEST(Catalogue, TheStoreOfANameIsForLife) {
  // These values are on disks: they cannot change.
  EXPECT_EQ(choose_store("orders", 2), choose_store("ORDERS", 2));
  EXPECT_EQ(choose_store("orders", 1), 0u);
  std::vector<int> spread(8);
  for (int i = 0; i < 8000; ++i) ++spread[choose_store(fmt::format("queue-{}", i), 8)];
  for (const int count : spread) EXPECT_NEAR(count, 1000, 200);
}

TEST(Roads, NumbersLeadHome) {
  EXPECT_EQ(shard_of(connection_number(255, serial_max)), 255u);
  EXPECT_EQ(connection_number(255, serial_max) & store_asks, 0u);
  EXPECT_EQ(shard_of(connection_number(0, 1)), 0u);
  EXPECT_NE(connection_number(0, 1), 0u);
}

}  // namespace
}  // namespace omnibus::node
