// Partitioned entities of the running broker: several stores, real sockets, real threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "broker/partition_key.hpp"
#include "node/server_rig.hpp"
#include "node/store_folders.hpp"
#include "node/store_register.hpp"

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;
using amqp::Role;
using testing::ElementsAre;

constexpr std::uint16_t stores = 4;
constexpr std::uint16_t partitions = 16;
constexpr auto partitioned_queue =
    R"("Queues": [{"Name": "orders", "Properties": {"EnablePartitioning": true}}])";

class ServerPartitions : public ServerRig {
 protected:
  ServeOptions options(std::string_view entities = partitioned_queue) {
    auto options = options_with(2, entities);
    options.storage.stores = stores;
    return options;
  }
  // Which store has this partition.
  static std::uint16_t store_of(std::string_view name, std::uint16_t partition) {
    return static_cast<std::uint16_t>((choose_store(name, stores) + partition) % stores);
  }
  static std::string key_in(std::string_view name, std::uint16_t store) {
    for (int i = 0;; ++i)
      if (std::string key = fmt::format("k{}", i);
          store_of(name, broker::partition_of_key(key, partitions)) == store)
        return key;
  }
  // Each message for itself: those that come together go to one partition together.
  static bool send_apart(AmqpClient& client, amqp::Link& sender, const std::vector<Payload>& messages) {
    return std::ranges::all_of(messages, [&](const Payload& one) { return client.send(sender, {one}); });
  }
  static std::int64_t sequence_of(const std::string& message) {
    const auto view = amqp::MessageView::parse(as_bytes(message));
    return amqp::decode_value(*view->message_annotation("x-opt-sequence-number"))->as_integer().value_or(0);
  }
  static std::set<std::int64_t> partitions_of(const AmqpClient::Heard& heard) {
    std::set<std::int64_t> all;
    for (const auto& got : heard.deliveries) all.insert(sequence_of(got.message) >> 48);
    return all;
  }
};

// P1, P8, P10, P18
TEST_F(ServerPartitions, MessagesAreSpreadOverAllStoresAndComeBack) {
  const auto server = start(options());
  ASSERT_TRUE(server);
  EXPECT_EQ(list_stores(server->data())->size(), stores);
  AmqpClient client(server->addresses()[0]);
  ASSERT_TRUE(send_apart(client, client.attach(Role::sender, "orders"), numbered(160)));
  auto& receiver = client.attach(Role::receiver, "orders");
  receiver.grant(160);
  const auto bodies = client.receive(receiver, 160);
  EXPECT_EQ(std::set<std::string>(bodies.begin(), bodies.end()).size(), 160u);
  EXPECT_EQ(partitions_of(client.of(receiver)).size(), partitions);
  ASSERT_TRUE(client.complete_all(receiver));
}

// P24, P27, P41
TEST_F(ServerPartitions, MessagesOfAKeyComeInTheirOrderAlsoAfterARestart) {
  constexpr int keys = 20;
  constexpr int rounds = 10;
  const auto send = [&](Server& server, int from) {
    AmqpClient client(server.addresses()[0]);
    std::vector<Payload> messages;
    for (int i = from; i < from + rounds; ++i)
      for (int key = 0; key < keys; ++key)
        messages.push_back(AmqpClient::message(fmt::format("{} {}", key, i), fmt::format("key {}", key)));
    ASSERT_TRUE(client.send(client.attach(Role::sender, "orders"), messages));
  };
  {
    const auto server = start(options());
    ASSERT_TRUE(server);
    send(*server, 0);
  }
  const auto server = start(options(R"("Queues": [])"));
  ASSERT_TRUE(server);
  send(*server, rounds);
  AmqpClient client(server->addresses()[0]);
  auto& receiver = client.attach(Role::receiver, "orders");
  receiver.grant(1000);
  std::map<std::string, int> next;
  for (const auto& body : client.receive(receiver, 2 * keys * rounds)) {
    const auto space = body.find(' ');
    EXPECT_EQ(std::stoi(body.substr(space)), next[body.substr(0, space)]++) << body;
  }
  EXPECT_EQ(next.size(), std::size_t{keys});
}

// P3, P25, P35, P47
TEST_F(ServerPartitions, AStoreThatIsDownTakesOnlyItsPartitionsWithIt) {
  const auto server = start(options());
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  auto& sender = client.attach(Role::sender, "orders");
  ASSERT_TRUE(send_apart(client, sender, numbered(32, "before")));
  auto& receiver = client.attach(Role::receiver, "orders");

  ASSERT_TRUE(server->take_down(1));
  wait_until([&] { return !server->serves(1); });
  ASSERT_TRUE(client.send(sender, numbered(100, "during"))) << "without a key every send succeeds";
  amqp::Outgoing outgoing;
  outgoing.tag = as_bytes("t");
  sender.send(outgoing, AmqpClient::message("keyed", key_in("orders", 1)));
  ASSERT_TRUE(client.until([&] { return client.of(sender).outcomes.size() == 133; }));
  EXPECT_EQ(client.of(sender).outcomes.back(), amqp::descriptor::rejected);
  ASSERT_TRUE(client.send(sender, {AmqpClient::message("keyed", key_in("orders", 2))}));

  receiver.grant(1000);
  const auto reachable = client.receive(receiver, 24 + 100 + 1);
  for (const std::int64_t partition : partitions_of(client.of(receiver)))
    EXPECT_NE(store_of("orders", static_cast<std::uint16_t>(partition)), 1) << partition;

  ASSERT_TRUE(server->bring_back(1));
  EXPECT_EQ(client.receive(receiver, 32 + 100 + 1).size(), 133u) << "what was there is there again";
  EXPECT_TRUE(client.complete_all(receiver));
}

// P3, P35: whichever store goes and whenever, a send without a key succeeds, and what was accepted is
// received.
TEST_F(ServerPartitions, StoresComeAndGoUnderLoad) {
  const auto server = start(options());
  ASSERT_TRUE(server);
  constexpr std::size_t senders = 2;
  constexpr std::size_t each = 1000;
  std::atomic<std::size_t> done = 0;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < senders; ++i)
    threads.emplace_back([&, i] {
      AmqpClient client(server->addresses()[0]);
      auto& link = client.attach(Role::sender, "orders");
      EXPECT_TRUE(client.send(link, numbered(each, fmt::format("s{} ", i))));
      EXPECT_EQ(client.of(link).outcomes.size(), each);
      ++done;
    });
  std::thread administrator([&] {
    for (std::uint16_t round = 0; done < senders; ++round) {
      const auto store = static_cast<std::uint16_t>(round % stores);
      EXPECT_TRUE(server->take_down(store));
      wait_until([&] { return !server->serves(store); });
      EXPECT_TRUE(server->bring_back(store));
      wait_until([&] { return server->serves(store); });
    }
  });
  AmqpClient client(server->addresses()[0]);
  auto& receiver = client.attach(Role::receiver, "orders");
  receiver.grant(senders * each);
  const auto bodies = client.receive(receiver, senders * each);
  administrator.join();
  EXPECT_EQ(std::set<std::string>(bodies.begin(), bodies.end()).size(), senders * each);
}

TEST_F(ServerPartitions, SessionsOfAllPartitionsAreFound) {
  const auto server = start(options(
      R"("Queues": [{"Name": "orders", "Properties": {"EnablePartitioning": true, "RequiresSession": true}}])"));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  std::vector<Payload> messages;
  for (int i = 0; i < 10; ++i)
    messages.push_back(AmqpClient::message(fmt::format("m{}", i), fmt::format("session {}", i)));
  ASSERT_TRUE(client.send(client.attach(Role::sender, "orders"), messages));
  const auto session = [](const amqp::Value& id) {
    return amqp::Value::map({{amqp::Value::symbol("com.microsoft:session-filter"), id}});
  };
  auto& named = client.attach(Role::receiver, "orders", session("session 7"));
  named.grant(5);
  EXPECT_THAT(client.receive(named, 1), ElementsAre("m7"));
  std::set<std::string> others;
  for (int i = 0; i < 9; ++i) {
    auto& next = client.attach(Role::receiver, "orders", session({}));
    next.grant(5);
    for (const auto& body : client.receive(next, 1)) others.insert(body);
  }
  EXPECT_EQ(others.size(), 9u) << "each session once";
}

TEST_F(ServerPartitions, ATopicIsPartitionedWithItsSubscriptions) {
  const auto server = start(options(
      R"("Topics": [{"Name": "news", "Properties": {"EnablePartitioning": true},
                     "Subscriptions": [{"Name": "all"}, {"Name": "none", "Rules": [
                       {"Name": "no", "Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "1 = 0"}}}]}]}])"));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  ASSERT_TRUE(send_apart(client, client.attach(Role::sender, "news"), numbered(64)));
  auto& receiver = client.attach(Role::receiver, "news/Subscriptions/all");
  receiver.grant(100);
  EXPECT_EQ(client.receive(receiver, 64).size(), 64u);
  EXPECT_EQ(partitions_of(client.of(receiver)).size(), partitions);
  auto& none = client.attach(Role::receiver, "news/Subscriptions/none");
  none.grant(10);
  none.drain();
  ASSERT_TRUE(client.until([&] { return none.credit() == 0; }));
  EXPECT_TRUE(client.of(none).deliveries.empty());
}

// P44, P45, P46
TEST_F(ServerPartitions, ForwardingUsesTheKeyAgain) {
  const auto server = start(options(
      R"("Queues": [{"Name": "plain", "Properties": {"ForwardTo": "first"}},
                    {"Name": "first", "Properties": {"EnablePartitioning": true, "ForwardTo": "second"}},
                    {"Name": "second", "Properties": {"EnablePartitioning": true}}])"));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  std::vector<Payload> messages;
  for (int i = 0; i < 40; ++i)
    messages.push_back(AmqpClient::message(fmt::format("{}", i), fmt::format("key {}", i % 8)));
  ASSERT_TRUE(client.send(client.attach(Role::sender, "plain"), messages));
  ASSERT_TRUE(client.send(client.attach(Role::sender, "first"), numbered(20, "unkeyed")));
  auto& receiver = client.attach(Role::receiver, "second");
  receiver.grant(100);
  (void)client.receive(receiver, 60);
  for (const auto& got : client.of(receiver).deliveries) {
    const std::string body = AmqpClient::body_of(got.message);
    if (body.starts_with("unkeyed")) continue;
    EXPECT_EQ(sequence_of(got.message) >> 48,
              broker::partition_of_key(fmt::format("key {}", std::stoi(body) % 8), partitions))
        << body;
  }
}

// A crash in the middle of its making leaves an entity with some of its partitions; so does a disk that is
// lost for good, whose store is made anew when its entry is taken out of the register.
TEST_F(ServerPartitions, AnEntityThatIsThereInPartIsServedWhenItIsWhole) {
  std::filesystem::path lost;
  {
    const auto server = start(options());
    ASSERT_TRUE(server);
    lost = store_path(server->data(), 2);
  }
  std::filesystem::remove_all(lost);
  auto known = load_store_register(folder_->path() / "data");
  ASSERT_TRUE(known);
  ASSERT_EQ(known->erase(2), 1u);
  std::ofstream(folder_->path() / "data" / store_register_file) << write_store_register(*known);
  {
    const auto server = start(options(R"("Queues": [])"));
    ASSERT_TRUE(server);
    AmqpClient client(server->addresses()[0]);
    auto& sender = client.attach(Role::sender, "orders");
    ASSERT_TRUE(client.until([&] { return client.of(sender).detached.has_value(); }));
    EXPECT_EQ(client.of(sender).detached->name, "amqp:not-found");
  }
  const auto server = start(options());
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  ASSERT_TRUE(send_apart(client, client.attach(Role::sender, "orders"), numbered(32)));
  auto& receiver = client.attach(Role::receiver, "orders");
  receiver.grant(32);
  (void)client.receive(receiver, 32);
  EXPECT_EQ(partitions_of(client.of(receiver)).size(), partitions);
}

}  // namespace
}  // namespace omnibus::node
