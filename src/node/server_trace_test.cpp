// The context of a distributed trace is an application property like any other: it is there wherever a
// message comes out again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/server_rig.hpp"

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;
using amqp::Role;
using amqp::Value;

constexpr std::string_view parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

class ServerTrace : public ServerRig {
 protected:
  static Payload traced(bool later = false) {
    amqp::Encoder out;
    if (later) {
      out.put_descriptor(amqp::descriptor::message_annotations);
      auto map = out.begin_map();
      out.put_symbol("x-opt-scheduled-enqueue-time");
      out.put_timestamp((wall_now() + 200ms).time_since_epoch().count());
      map.end();
    }
    amqp::MessageBuilder builder;
    builder.application_property("traceparent", Value{parent});
    builder.application_property("Diagnostic-Id", Value{parent});
    builder.application_property("tracestate", Value{"vendor=1"});
    builder.body(Value{"body"});
    Payload rest = builder.build();
    std::string whole{as_text(out.bytes())};
    whole += rest.to_string();
    return Payload::copy_of(whole);
  }
  static void expect_traced(const std::string& message, std::string_view where) {
    const auto view = amqp::MessageView::parse(as_bytes(message));
    ASSERT_TRUE(view.has_value()) << where;
    for (const auto& [name, value] :
         {std::pair{"traceparent", parent}, {"Diagnostic-Id", parent}, {"tracestate", "vendor=1"}}) {
      const auto raw = view->application_property(name);
      ASSERT_TRUE(raw) << where << ": " << name;
      const auto decoded = amqp::decode_value(*raw);
      ASSERT_TRUE(decoded) << where << ": " << name;
      EXPECT_EQ(decoded->as_text().value_or("?"), value) << where << ": " << name;
    }
  }
  static std::string receive_one(AmqpClient& client, const std::string& address) {
    auto& receiver = client.attach(Role::receiver, address);
    receiver.grant(1);
    EXPECT_EQ(client.receive(receiver, 1).size(), 1u) << address;
    const std::string message = client.of(receiver).deliveries.at(0).message;
    EXPECT_TRUE(client.complete_all(receiver)) << address;
    return message;
  }
};

TEST_F(ServerTrace, ItComesOutOfEveryPath) {
  const auto server = start(options_with(2, R"("Queues": [
      {"Name": "plain"}, {"Name": "failing", "Properties": {"MaxDeliveryCount": 1}}, {"Name": "target"},
      {"Name": "source", "Properties": {"ForwardTo": "target"}}, {"Name": "later"}],
    "Topics": [{"Name": "news", "Subscriptions": [{"Name": "all"}, {"Name": "on",
      "Properties": {"ForwardTo": "target"}}]}])"));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  const auto send = [&](const char* to, bool later = false) {
    return client.send(client.attach(Role::sender, to), {traced(later)});
  };
  ASSERT_TRUE(send("plain"));
  expect_traced(receive_one(client, "plain"), "sent and received");

  ASSERT_TRUE(send("failing"));
  auto& failing = client.attach(Role::receiver, "failing");
  failing.grant(1);
  ASSERT_EQ(client.receive(failing, 1).size(), 1u);
  amqp::Modified abandoned;
  abandoned.delivery_failed = true;
  failing.disposition(client.of(failing).deliveries.at(0).id, amqp::State::modified(abandoned), false);
  expect_traced(receive_one(client, "failing/$DeadLetterQueue"), "dead-lettered");

  ASSERT_TRUE(send("source"));
  expect_traced(receive_one(client, "target"), "forwarded");

  ASSERT_TRUE(send("news"));
  expect_traced(receive_one(client, "news/Subscriptions/all"), "a topic's copy");
  expect_traced(receive_one(client, "target"), "a topic's copy, forwarded");

  ASSERT_TRUE(send("later", true));
  expect_traced(receive_one(client, "later"), "scheduled");
}

}  // namespace
}  // namespace omnibus::node
