// Alternate exchanges of the running broker, over stores and restarts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/server_rig.hpp"

namespace omnibus::node {
namespace {

using amqp::Role;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

class ServerAlternate : public ServerRig {
 protected:
  static Payload keyed(std::string_view body, std::string_view key) {
    amqp::MessageBuilder builder;
    const auto id = amqp::encode(amqp::Value{body});
    builder.properties().message_id = {id};
    builder.properties().subject = key;
    builder.body(amqp::Value{body});
    return builder.build();
  }
  static Payload scheduled(std::string_view body, std::string_view key) {
    amqp::Encoder out;
    out.put_descriptor(amqp::descriptor::message_annotations);
    auto map = out.begin_map();
    out.put_symbol("x-opt-scheduled-enqueue-time");
    out.put_timestamp((wall_now() + std::chrono::milliseconds{300}).time_since_epoch().count());
    map.end();
    return Payload::copy_of(std::string{as_text(out.bytes())} + keyed(body, key).to_string());
  }
  static std::uint64_t outcome(AmqpClient& client, amqp::Link& link, const Payload& message,
                               std::uint32_t format = 0) {
    const auto before = client.of(link).outcomes.size();
    EXPECT_TRUE(client.until([&] { return link.sendable(); }));
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    outgoing.message_format = format;
    link.send(outgoing, message);
    EXPECT_TRUE(client.until([&] { return client.of(link).outcomes.size() > before; }));
    return client.of(link).outcomes.back();
  }
  static Payload batch(const std::vector<Payload>& messages) {
    amqp::Encoder out;
    for (const auto& one : messages) {
      std::vector<std::uint8_t> scratch;
      out.put_descriptor(amqp::descriptor::data);
      out.put_binary(one.contiguous(scratch));
    }
    return Payload::copy_of(out.bytes());
  }
  // Four exchanges in a row, each in the other store than the one before; each has a subscription of its
  // name.
  struct Chain {
    std::vector<std::string> names;
    std::string entities;
  };
  static Chain chain(std::string_view of_last = R"("Unroutable": "Release")") {
    Chain chain;
    for (int i = 0; chain.names.size() < 4; ++i)
      if (auto name = fmt::format("e{}", i); choose_store(name, 2) == chain.names.size() % 2)
        chain.names.push_back(std::move(name));
    for (std::size_t i = 0; i < 4; ++i) {
      const auto more =
          i == 3 ? std::string{of_last} : fmt::format(R"("AlternateExchange": "{}")", chain.names[i + 1]);
      chain.entities += fmt::format(
          R"({}{{"Name": "{}", "Type": "Direct", {}, "Subscriptions": [{{"Name": "s", "RoutingKey": "k{}"}}]}})",
          i == 0 ? R"("Exchanges": [)" : ", ", chain.names[i], more, i);
    }
    chain.entities += "]";
    return chain;
  }
};

TEST_F(ServerAlternate, MessagesFindTheirExchangeInAnyStore) {
  const auto chain = ServerAlternate::chain();
  {
    const auto server = start(options_with(2, chain.entities));
    ASSERT_TRUE(server);
    AmqpClient client(server->addresses()[0]);
    auto& sender = client.attach(Role::sender, chain.names[0]);
    std::vector<Payload> messages;
    for (int i = 0; i < 200; ++i) messages.push_back(keyed(fmt::format("m{}", i), fmt::format("k{}", i % 4)));
    ASSERT_TRUE(client.send(sender, messages));
    EXPECT_EQ(outcome(client, sender, keyed("x", "nobody")), amqp::descriptor::released);
  }
  const auto server = start(options_with(2, chain.entities));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  for (int e = 0; e < 4; ++e) {
    const auto bodies = take(client, chain.names[static_cast<std::size_t>(e)] + "/Subscriptions/s", 50);
    ASSERT_EQ(bodies.size(), 50u);
    for (int i = 0; i < 50; ++i)
      EXPECT_EQ(bodies[static_cast<std::size_t>(i)], fmt::format("m{}", 4 * i + e)) << "in their order";
  }
}

TEST_F(ServerAlternate, RestOfABatchAndScheduledMessagesGoOnByThemselves) {
  const auto chain = ServerAlternate::chain();
  const auto server = start(options_with(2, chain.entities));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  auto& sender = client.attach(Role::sender, chain.names[0]);
  EXPECT_EQ(outcome(client, sender,
                    batch({keyed("a", "k1"), keyed("b", "k0"), keyed("c", "k3"), keyed("d", "nobody")}),
                    amqp::batch_message_format),
            amqp::descriptor::accepted);
  ASSERT_TRUE(client.send(sender, {scheduled("later 2", "k2"), scheduled("later 0", "k0")}));
  EXPECT_THAT(take(client, chain.names[0] + "/Subscriptions/s", 2), ElementsAre("b", "later 0"));
  EXPECT_THAT(take(client, chain.names[1] + "/Subscriptions/s", 1), ElementsAre("a"));
  EXPECT_THAT(take(client, chain.names[2] + "/Subscriptions/s", 1), ElementsAre("later 2"));
  EXPECT_THAT(take(client, chain.names[3] + "/Subscriptions/s", 1), ElementsAre("c"));
}

TEST_F(ServerAlternate, ForwardedMessagesGoOn) {
  const auto chain = ServerAlternate::chain();
  // A queue in each store: the first exchange is near to one and far from the other.
  const auto [near, far] = apart();
  const auto server = start(
      options_with(2, fmt::format(R"({}, "Queues": [{{"Name": "{}", "Properties": {{"ForwardTo": "{}"}}}},
          {{"Name": "{}", "Properties": {{"ForwardTo": "{}"}}}}])",
                                  chain.entities, near, chain.names[0], far, chain.names[0])));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  for (const auto& queue : {near, far})
    ASSERT_TRUE(client.send(client.attach(Role::sender, queue),
                            {keyed(queue + " 1", "k1"), keyed(queue + " 2", "k2"), keyed(queue + " 3", "k3"),
                             keyed(queue + " x", "nobody")}));
  for (std::size_t i = 1; i < 4; ++i)
    EXPECT_THAT(take(client, chain.names[i] + "/Subscriptions/s", 2),
                UnorderedElementsAre(fmt::format("{} {}", near, i), fmt::format("{} {}", far, i)));
  // The last gives back what it does not match; a queue keeps that as a dead letter.
  for (const auto& queue : {near, far})
    EXPECT_THAT(take(client, queue + "/$DeadLetterQueue", 1), ElementsAre(queue + " x"));
}

TEST_F(ServerAlternate, AlternateThatDoesNotTakeItIsHeard) {
  const auto chain = ServerAlternate::chain(R"("Status": "SendDisabled")");
  const auto server = start(options_with(2, chain.entities));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  auto& sender = client.attach(Role::sender, chain.names[0]);
  EXPECT_EQ(outcome(client, sender, keyed("a", "k3")), amqp::descriptor::rejected);
  EXPECT_EQ(outcome(client, sender, keyed("b", "k2")), amqp::descriptor::accepted);
  EXPECT_THAT(take(client, chain.names[2] + "/Subscriptions/s", 1), ElementsAre("b"));
}

}  // namespace
}  // namespace omnibus::node
