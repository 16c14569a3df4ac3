// Forwarding that comes back to where it began, made over HTTP while the broker runs. Only an entity that
// forwards to itself is refused [HTTP 7]; a longer ring is taken, and its messages stop at the hop limit
// [SB 9.7].
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/http_client_rig.hpp"
#include "node/server_rig.hpp"

namespace omnibus::node {
namespace {

using amqp::Role;
using testing::AllOf;
using testing::HasSubstr;

class ServerForwarding : public ServerRig {
 protected:
  void begin(std::string_view entities) {
    server_ = start(options_with(2, entities));
    ASSERT_TRUE(server_);
    http_ = std::make_unique<HttpClient>(server_->addresses()[0]);
    client_ = std::make_unique<AmqpClient>(server_->addresses()[0]);
  }
  static std::string queue(std::string_view settings) {
    return fmt::format("<QueueDescription>{}</QueueDescription>", settings);
  }
  void send_one(const std::string& to) {
    EXPECT_TRUE(client_->send(client_->attach(Role::sender, to), numbered(1)));
  }
  // Waits for a dead letter, which is given as it is on the wire.
  std::string dead_letter(const std::string& of) {
    auto& dead = client_->attach(Role::receiver, of + "/$DeadLetterQueue");
    dead.grant(2);
    EXPECT_EQ(client_->receive(dead, 1).size(), 1u) << of;
    return client_->of(dead).deliveries.empty() ? "" : client_->of(dead).deliveries[0].message;
  }
  static auto names_the_limit() {
    return AllOf(HasSubstr("DeadLetterReason"), HasSubstr("MaxTransferHopCountExceeded"),
                 HasSubstr("The maximum number of allowed hops when forwarding between queues has been "
                           "exceeded. This value is set to 4."));
  }

  std::unique_ptr<Server> server_;
  std::unique_ptr<HttpClient> http_;
  std::unique_ptr<AmqpClient> client_;
};

TEST_F(ServerForwarding, AnEntityThatForwardsToItselfIsRefused) {
  begin(R"("Queues": [{"Name": "q"}])");
  for (const std::string_view target : {"q", "Q", "sb://localhost/q", "https://localhost:5300/Q"})
    for (const std::string_view way : {"ForwardTo", "ForwardDeadLetteredMessagesTo"}) {
      const auto refused = http_->update("/q", queue(fmt::format("<{0}>{1}</{0}>", way, target)));
      EXPECT_EQ(refused.status, 400) << target;
      EXPECT_THAT(refused.body, AllOf(HasSubstr("40000"), HasSubstr("cannot forward to itself"))) << target;
    }
  EXPECT_EQ(http_->put("/new", queue("<ForwardTo>new</ForwardTo>")).status, 400);
  EXPECT_EQ(http_->ask("GET", "/new").status, 200);  // the feed of a name that is not there
  EXPECT_EQ(take(*client_, "q", 0).size(), 0u) << "it stayed a queue one can receive from";
}

// a -> b -> a -> b -> a: the fifth would be one too many.
TEST_F(ServerForwarding, ARingOfQueuesEndsInTheDeadLettersOfWhereTheMessageIs) {
  const auto [a, b] = apart();
  begin(fmt::format(R"("Queues": [{{"Name": "{}"}}, {{"Name": "{}"}}])", a, b));
  EXPECT_EQ(http_->update("/" + a, queue(fmt::format("<ForwardTo>{}</ForwardTo>", b))).status, 200);
  EXPECT_EQ(http_->update("/" + b, queue(fmt::format("<ForwardTo>{}</ForwardTo>", a))).status, 200);
  send_one(a);
  EXPECT_THAT(dead_letter(a), names_the_limit());
}

// Dead letters that go round as well: what came too far stays among them, and is there for whoever ends the
// ring.
TEST_F(ServerForwarding, ARingOfDeadLettersEndsToo) {
  const auto [a, b] = apart();
  begin(fmt::format(R"("Queues": [{{"Name": "{}"}}, {{"Name": "{}"}}])", a, b));
  const auto ring = [](const std::string& to) {
    return queue(
        fmt::format("<ForwardTo>{0}</ForwardTo>"
                    "<ForwardDeadLetteredMessagesTo>{0}</ForwardDeadLetteredMessagesTo>",
                    to));
  };
  EXPECT_EQ(http_->update("/" + a, ring(b)).status, 200);
  EXPECT_EQ(http_->update("/" + b, ring(a)).status, 200);
  send_one(a);
  wait_until([&] { return http_->ask("GET", "/" + a).body.contains("DeadLetterMessageCount>1<"); });
  EXPECT_THAT(http_->ask("GET", "/" + b).body, HasSubstr("<MessageCount>0<"));
  EXPECT_EQ(http_->update("/" + a, queue(fmt::format("<ForwardTo>{}</ForwardTo>", b))).status, 200);
  EXPECT_THAT(dead_letter(a), names_the_limit());
}

TEST_F(ServerForwarding, ASubscriptionThatForwardsToItsOwnTopicEndsToo) {
  begin(R"("Topics": [{"Name": "t"}])");
  EXPECT_EQ(http_
                ->put("/t/Subscriptions/s",
                      "<SubscriptionDescription><ForwardTo>t</ForwardTo>"
                      "</SubscriptionDescription>")
                .status,
            201);
  send_one("t");
  EXPECT_THAT(dead_letter("t/Subscriptions/s"), names_the_limit());
}

// x -> x/Subscriptions/s -> back -> x, the second half made by a document.
TEST_F(ServerForwarding, ARingThroughAnExchangeEndsToo) {
  begin(R"("Queues": [{"Name": "back"}])");
  constexpr std::string_view sends_json = "Content-Type: application/json\r\n";
  EXPECT_EQ(http_
                ->ask("PUT", "/x", R"({"Type": "Fanout", "Subscriptions":
                                        [{"Name": "s", "Broker": {"ForwardTo": "back"}}]})",
                      sends_json)
                .status,
            201);
  EXPECT_EQ(http_->update("/back", queue("<ForwardTo>x</ForwardTo>")).status, 200);
  send_one("x");
  EXPECT_THAT(dead_letter("x/Subscriptions/s"), names_the_limit());
}

}  // namespace
}  // namespace omnibus::node
