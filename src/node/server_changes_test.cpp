// What a change over HTTP does to links that are open, at once and over the wire: entities that go, that are
// disabled and allowed again, and that come back under their old name [SB 1.6, 9.11].
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/http_client_rig.hpp"
#include "node/server_rig.hpp"

namespace omnibus::node {
namespace {

using amqp::Role;
using testing::ElementsAre;

constexpr std::string_view gone = "amqp:not-found";
constexpr std::string_view disabled = "com.microsoft:entity-disabled";

class ServerChanges : public ServerRig {
 protected:
  void begin(std::string_view entities) {
    server_ = start(options_with(2, entities));
    ASSERT_TRUE(server_);
    http_ = std::make_unique<HttpClient>(server_->addresses()[0]);
    // On two shards.
    client_ = std::make_unique<AmqpClient>(server_->addresses()[0]);
    other_ = std::make_unique<AmqpClient>(server_->addresses()[0]);
  }
  static amqp::Link& open(AmqpClient& client, Role role, std::string_view address) {
    amqp::Link& link = client.attach(role, address);
    EXPECT_TRUE(client.of(link).attached.value_or(false)) << address;
    EXPECT_FALSE(client.of(link).detached) << address;
    return link;
  }
  // The condition with which the broker detaches it.
  static std::string end_of(AmqpClient& client, amqp::Link& link) {
    EXPECT_TRUE(client.until([&] { return client.of(link).detached.has_value(); }));
    return client.of(link).detached.value_or(amqp::Condition{}).name;
  }
  // The same of one that is to be attached now; "" when it may.
  static std::string refusal(AmqpClient& client, Role role, std::string_view address) {
    amqp::Link& link = client.attach(role, address);
    if (client.of(link).attached.value_or(false) && !client.of(link).detached) return "";
    return end_of(client, link);
  }
  static std::string with_status(std::string_view kind, std::string_view status) {
    return fmt::format("<{0}Description><Status>{1}</Status></{0}Description>", kind, status);
  }

  std::unique_ptr<Server> server_;
  std::unique_ptr<HttpClient> http_;
  std::unique_ptr<AmqpClient> client_;
  std::unique_ptr<AmqpClient> other_;
};

TEST_F(ServerChanges, ATopicThatGoesTakesAllItsLinksAlong) {
  for (const char* properties : {"", R"("Properties": {"EnablePartitioning": true}, )"}) {
    begin(fmt::format(R"("Topics": [{{"Name": "t", {}"Subscriptions": [{{"Name": "a"}}, {{"Name": "b"}}]}},
        {{"Name": "stays", "Subscriptions": [{{"Name": "a"}}]}}])",
                      properties));
    auto& sender = open(*client_, Role::sender, "t");
    auto& far_sender = open(*other_, Role::sender, "T");
    auto& a = open(*client_, Role::receiver, "t/Subscriptions/a");
    auto& b = open(*other_, Role::receiver, "t/subscriptions/B");
    auto& dead = open(*client_, Role::receiver, "t/Subscriptions/a/$DeadLetterQueue");
    auto& stays = open(*client_, Role::sender, "stays");
    ASSERT_TRUE(client_->send(sender, numbered(2)));
    a.grant(10);
    EXPECT_EQ(client_->receive(a, 2).size(), 2u);
    EXPECT_EQ(http_->ask("DELETE", "/t").status, 200);
    EXPECT_EQ(end_of(*client_, sender), gone);
    EXPECT_EQ(end_of(*other_, far_sender), gone);
    EXPECT_EQ(end_of(*client_, a), gone);
    EXPECT_EQ(end_of(*other_, b), gone);
    EXPECT_EQ(end_of(*client_, dead), gone);
    for (const char* address : {"t/Subscriptions/a", "t/Subscriptions/b"})
      EXPECT_EQ(refusal(*client_, Role::receiver, address), gone) << address;
    EXPECT_EQ(refusal(*client_, Role::sender, "t"), gone);
    EXPECT_TRUE(client_->send(stays, numbered(1))) << "the connection goes on";
    server_.reset();
    std::filesystem::remove_all(folder_->path() / "data");
  }
}

TEST_F(ServerChanges, ASubscriptionThatGoesLeavesTheOthers) {
  for (const char* properties : {"", R"("Properties": {"EnablePartitioning": true}, )"}) {
    begin(fmt::format(R"("Topics": [{{"Name": "t", {}"Subscriptions": [{{"Name": "a"}}, {{"Name": "b"}}]}}])",
                      properties));
    auto& sender = open(*client_, Role::sender, "t");
    auto& a = open(*client_, Role::receiver, "t/Subscriptions/a");
    auto& far_a = open(*other_, Role::receiver, "t/Subscriptions/a");
    auto& b = open(*client_, Role::receiver, "t/Subscriptions/b");
    EXPECT_EQ(http_->ask("DELETE", "/t/Subscriptions/a").status, 200);
    EXPECT_EQ(end_of(*client_, a), gone);
    EXPECT_EQ(end_of(*other_, far_a), gone);
    EXPECT_EQ(refusal(*other_, Role::receiver, "t/Subscriptions/a"), gone);
    ASSERT_TRUE(client_->send(sender, numbered(1)));
    b.grant(1);
    EXPECT_THAT(client_->receive(b, 1), ElementsAre("m0"));
    server_.reset();
    std::filesystem::remove_all(folder_->path() / "data");
  }
}

TEST_F(ServerChanges, APartitionedQueueThatGoesTakesItsLinksAlong) {
  begin(R"("Queues": [{"Name": "p", "Properties": {"EnablePartitioning": true}},
                      {"Name": "s", "Properties": {"EnablePartitioning": true, "RequiresSession": true}}])");
  auto& sender = open(*client_, Role::sender, "p");
  auto& receiver = open(*client_, Role::receiver, "p");
  auto& far = open(*other_, Role::receiver, "p");
  ASSERT_TRUE(client_->send(sender, numbered(20)));
  receiver.grant(5);
  EXPECT_EQ(client_->receive(receiver, 5).size(), 5u);
  EXPECT_EQ(http_->ask("DELETE", "/p").status, 200);
  EXPECT_EQ(end_of(*client_, sender), gone);
  EXPECT_EQ(end_of(*client_, receiver), gone);
  EXPECT_EQ(end_of(*other_, far), gone);

  auto& keyed = open(*client_, Role::sender, "s");
  ASSERT_TRUE(client_->send(keyed, {AmqpClient::message("one", "key")}));
  EXPECT_EQ(http_->ask("DELETE", "/s").status, 200);
  EXPECT_EQ(end_of(*client_, keyed), gone);
}

// What each status closes, and what it leaves open.
TEST_F(ServerChanges, AStatusClosesWhatItSaysAndCanBeTakenBack) {
  begin(R"("Queues": [{"Name": "q"}, {"Name": "p", "Properties": {"EnablePartitioning": true}}],
           "Topics": [{"Name": "t", "Subscriptions": [{"Name": "s"}]},
                      {"Name": "pt", "Properties": {"EnablePartitioning": true},
                       "Subscriptions": [{"Name": "s"}]}])");
  struct Row {
    std::string target;  // of the change
    std::string_view kind;
    std::string to, from;  // addresses of the links
    std::string_view status;
    bool sends, receives;  // are still allowed
  };
  std::vector<Row> rows;
  for (const std::string name : {"q", "p"})
    for (const auto& [status, sends, receives] : {std::tuple{"Disabled", false, false},
                                                  {"SendDisabled", false, true},
                                                  {"ReceiveDisabled", true, false}})
      rows.push_back({"/" + name, "Queue", name, name, status, sends, receives});
  for (const std::string name : {"t", "pt"}) {
    const std::string subscription = name + "/Subscriptions/s";
    for (const char* status : {"Disabled", "SendDisabled"})
      rows.push_back({"/" + name, "Topic", name, subscription, status, false, true});
    for (const char* status : {"Disabled", "ReceiveDisabled"})
      rows.push_back({"/" + subscription, "Subscription", name, subscription, status, true, false});
  }
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("{} {}", row.target, row.status));
    auto& sender = open(*client_, Role::sender, row.to);
    auto& receiver = open(*other_, Role::receiver, row.from);
    EXPECT_EQ(http_->update(row.target, with_status(row.kind, row.status)).status, 200);
    if (!row.sends) {
      EXPECT_EQ(end_of(*client_, sender), disabled);
      EXPECT_EQ(refusal(*other_, Role::sender, row.to), disabled);
    } else {
      EXPECT_TRUE(client_->send(sender, numbered(1, "while"))) << "sending goes on";
    }
    if (!row.receives) {
      EXPECT_EQ(end_of(*other_, receiver), disabled);
      EXPECT_EQ(refusal(*client_, Role::receiver, row.from), disabled);
    }
    EXPECT_EQ(http_->update(row.target, with_status(row.kind, "Active")).status, 200);
    // Links that were left are still good, others can be opened again.
    auto& sends = row.sends ? sender : open(*client_, Role::sender, row.to);
    auto& receives = row.receives ? receiver : open(*other_, Role::receiver, row.from);
    EXPECT_TRUE(client_->send(sends, numbered(1, "after")));
    const std::size_t count = row.sends ? 2 : 1;
    receives.grant(static_cast<std::uint32_t>(count));
    EXPECT_EQ(other_->receive(receives, count).size(), count) << "what was sent meanwhile is there";
    EXPECT_TRUE(other_->complete_all(receives));
    sends.detach();
    receives.detach();
  }
}

TEST_F(ServerChanges, ASubscriptionWithoutSendsGetsNoCopiesAndIsReceived) {
  begin(R"("Topics": [{"Name": "t", "Subscriptions": [{"Name": "s"}]}])");
  auto& sender = open(*client_, Role::sender, "t");
  auto& receiver = open(*other_, Role::receiver, "t/Subscriptions/s");
  ASSERT_TRUE(client_->send(sender, numbered(1, "before")));
  EXPECT_EQ(http_->update("/t/Subscriptions/s", with_status("Subscription", "SendDisabled")).status, 200);
  ASSERT_TRUE(client_->send(sender, numbered(1, "while")));
  EXPECT_EQ(http_->update("/t/Subscriptions/s", with_status("Subscription", "Active")).status, 200);
  ASSERT_TRUE(client_->send(sender, numbered(1, "after")));
  receiver.grant(10);
  EXPECT_THAT(other_->receive(receiver, 2), ElementsAre("before0", "after0"));
}

// The old links end with the old entity, also when a new one has its name at once; nothing of the old one
// reaches it.
TEST_F(ServerChanges, AnEntityThatComesBackIsAnotherOne) {
  begin(R"("Queues": [{"Name": "q"}, {"Name": "p", "Properties": {"EnablePartitioning": true}}])");
  for (const std::string name : {"q", "p"}) {
    SCOPED_TRACE(name);
    const std::string_view description =
        name == "p" ? "<QueueDescription><EnablePartitioning>true</EnablePartitioning></QueueDescription>"
                    : "<QueueDescription/>";
    auto& sender = open(*client_, Role::sender, name);
    auto& receiver = open(*other_, Role::receiver, name);
    ASSERT_TRUE(client_->send(sender, numbered(3, "old")));
    receiver.grant(1);
    EXPECT_EQ(other_->receive(receiver, 1).size(), 1u);
    EXPECT_EQ(http_->ask("DELETE", "/" + name).status, 200);
    EXPECT_EQ(http_->put("/" + name, description).status, 201);
    EXPECT_EQ(end_of(*client_, sender), gone);
    EXPECT_EQ(end_of(*other_, receiver), gone);
    auto& sends = open(*client_, Role::sender, name);
    auto& receives = open(*other_, Role::receiver, name);
    ASSERT_TRUE(client_->send(sends, numbered(1, "new")));
    receives.grant(10);
    EXPECT_THAT(other_->receive(receives, 1), ElementsAre("new0"));
    EXPECT_TRUE(other_->complete_all(receives));
  }
  // As another kind.
  auto& sender = open(*client_, Role::sender, "q");
  auto& receiver = open(*other_, Role::receiver, "q");
  EXPECT_EQ(http_->ask("DELETE", "/q").status, 200);
  EXPECT_EQ(http_->put("/q", "<TopicDescription/>").status, 201);
  EXPECT_EQ(end_of(*client_, sender), gone);
  EXPECT_EQ(end_of(*other_, receiver), gone);
  open(*client_, Role::sender, "q");
  EXPECT_NE(refusal(*other_, Role::receiver, "q"), "") << "a topic is not received from";
}

}  // namespace
}  // namespace omnibus::node
