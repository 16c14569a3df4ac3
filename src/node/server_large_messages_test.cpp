// Messages as large as an entity may take, through sockets, the journal and a restart [service-bus contract
// 3.3, 4.2].
#include <gtest/gtest.h>

#include <cstring>

#include "base/random.hpp"
#include "node/server_rig.hpp"

namespace omnibus::node {
namespace {

using amqp::Role;

constexpr std::size_t bytes_max = std::size_t{100} << 20;
constexpr auto large_queue =
    R"("Queues": [{"Name": "films", "Properties": {"MaxMessageSizeInKilobytes": 102400}}])";

// A message of exactly so many bytes, of which no two pieces are the same.
Payload message_of(std::size_t bytes) {
  std::string body(bytes, 'x');
  Random random{bytes};
  for (std::size_t at = 0; at + 8 <= body.size(); at += 8) {
    // ASCII, so that it is a string.
    const std::uint64_t word = random.next() & 0x7f7f7f7f7f7f7f7f;
    std::memcpy(body.data() + at, &word, 8);
  }
  const std::size_t around = AmqpClient::message(body).size() - bytes;
  body.resize(bytes - around);
  auto message = AmqpClient::message(body);
  EXPECT_EQ(message.size(), bytes);
  return message;
}

class ServerLargeMessages : public ServerRig {};

TEST_F(ServerLargeMessages, AHundredMebibytesComeOutAsTheyWentIn) {
  const Payload largest = message_of(bytes_max);
  {
    const auto server = start(options_with(1, large_queue));
    ASSERT_TRUE(server);
    AmqpClient client(server->addresses()[0]);
    auto& sender = client.attach(Role::sender, "films");
    EXPECT_EQ(client.of(sender).max_message_size, bytes_max);
    ASSERT_EQ(client.send_one(sender, largest), amqp::descriptor::accepted);
    EXPECT_EQ(client.send_one(sender, message_of(bytes_max + 1)), amqp::descriptor::rejected);
    EXPECT_EQ(client.of(sender).rejected, "amqp:link:message-size-exceeded");
    EXPECT_EQ(client.send_one(sender, AmqpClient::message("small")), amqp::descriptor::accepted)
        << "the link goes on";
  }
  const auto server = start(options_with(1, large_queue));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  auto& receiver = client.attach(Role::receiver, "films");
  receiver.grant(10);
  auto& got = client.of(receiver).deliveries;
  ASSERT_TRUE(client.until([&] { return got.size() == 2; })) << got.size();
  // The sections before it are partly the broker's [5.1].
  EXPECT_TRUE(AmqpClient::body_of(got[0].message) == AmqpClient::body_of(largest.to_string()));
  EXPECT_EQ(AmqpClient::body_of(got[1].message), "small");
  EXPECT_TRUE(client.complete_all(receiver));
}

}  // namespace
}  // namespace omnibus::node
