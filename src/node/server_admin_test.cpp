// The management API of the running broker, over real sockets: from a request to entities that are used,
// changed, removed, and there again after a restart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <thread>

#include "node/http_client_rig.hpp"
#include "node/server_rig.hpp"

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;
using amqp::Role;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ServerAdmin : public ServerRig {
 protected:
  static std::vector<std::string> titles(const std::string& feed) {
    std::vector<std::string> all;
    static const std::regex title{"<entry[^>]*><id>[^<]*</id><title type=\"text\">([^<]*)</title>"};
    for (std::sregex_iterator one{feed.begin(), feed.end(), title}, end; one != end; ++one)
      all.push_back((*one)[1]);
    return all;
  }
};

TEST_F(ServerAdmin, AQueueIsMadeUsedAndRemoved) {
  const auto server = start(options_with(2, R"("Queues": [])"));
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  const auto made =
      http.put("/Orders", "<QueueDescription><MaxDeliveryCount>7</MaxDeliveryCount></QueueDescription>");
  EXPECT_EQ(made.status, 201) << made.body;
  EXPECT_THAT(made.body, HasSubstr("<MaxDeliveryCount>7<"));
  EXPECT_EQ(http.put("/orders", "<TopicDescription/>").status, 409) << "one name, one entity";

  AmqpClient client(server->addresses()[0]);
  auto& sender = client.attach(Role::sender, "orders");
  ASSERT_TRUE(client.send(sender, numbered(3)));
  auto& receiver = client.attach(Role::receiver, "orders");
  EXPECT_THAT(http.ask("GET", "/orders").body,
              AllOf(HasSubstr("<MessageCount>3<"), HasSubstr("ActiveMessageCount>3<"),
                    HasSubstr("<title type=\"text\">Orders<")));

  EXPECT_EQ(http.ask("DELETE", "/ORDERS").status, 200);
  EXPECT_TRUE(client.until([&] { return client.of(sender).detached && client.of(receiver).detached; }));
  EXPECT_EQ(client.of(sender).detached->name, "amqp:not-found");
  EXPECT_EQ(client.of(receiver).detached->name, "amqp:not-found");
  EXPECT_EQ(client.of(client.attach(Role::sender, "orders")).detached.value_or(amqp::Condition{}).name,
            "amqp:not-found");
  EXPECT_THAT(http.ask("GET", "/orders").body, HasSubstr("Publicly Listed Services"));
}

TEST_F(ServerAdmin, ASenderToADisabledQueueIsDetached) {
  const auto server = start(options_with(2, R"("Queues": [{"Name": "q"}])"));
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  AmqpClient client(server->addresses()[0]);
  auto& sender = client.attach(Role::sender, "q");
  auto& receiver = client.attach(Role::receiver, "q");
  EXPECT_EQ(http.update("/q", "<QueueDescription><Status>SendDisabled</Status></QueueDescription>").status,
            200);
  EXPECT_TRUE(client.until([&] { return client.of(sender).detached.has_value(); }));
  EXPECT_EQ(client.of(sender).detached->name, "com.microsoft:entity-disabled");
  EXPECT_FALSE(client.of(receiver).detached) << "receiving goes on";
  EXPECT_EQ(http.update("/q", "<QueueDescription/>").status, 200);
  ASSERT_TRUE(client.send(client.attach(Role::sender, "q"), numbered(1)));
}

TEST_F(ServerAdmin, AllOfItIsThereAfterARestart) {
  std::string before;
  {
    const auto server = start(options_with(2, R"("Queues": [])"));
    ASSERT_TRUE(server);
    HttpClient http(server->addresses()[0]);
    EXPECT_EQ(http.put("/target", "<QueueDescription/>").status, 201);
    EXPECT_EQ(
        http.put("/q",
                 "<QueueDescription><UserMetadata>note &amp; all</UserMetadata><ForwardTo>sb://Host/target"
                 "</ForwardTo><EnableBatchedOperations>false</EnableBatchedOperations><AuthorizationRules>"
                 "<AuthorizationRule><Rights><AccessRights>Send</AccessRights></Rights><KeyName>w</KeyName>"
                 "<PrimaryKey>k1</PrimaryKey><SecondaryKey>k2</SecondaryKey></AuthorizationRule>"
                 "</AuthorizationRules></QueueDescription>")
            .status,
        201);
    EXPECT_EQ(
        http.put("/p", "<TopicDescription><EnablePartitioning>true</EnablePartitioning></TopicDescription>")
            .status,
        201);
    EXPECT_EQ(http.put("/p/Subscriptions/s", "<SubscriptionDescription/>").status, 201);
    EXPECT_EQ(http.put("/p/Subscriptions/s/Rules/r",
                       "<RuleDescription xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\"><Filter "
                       "i:type=\"SqlFilter\"><SqlExpression>a = 1</SqlExpression></Filter></RuleDescription>")
                  .status,
              201);
    EXPECT_EQ(
        http.update("/p/Subscriptions/s/Rules/r",
                    "<RuleDescription xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\"><Filter "
                    "i:type=\"SqlFilter\"><SqlExpression>a = 2</SqlExpression></Filter></RuleDescription>")
            .status,
        200);
    EXPECT_EQ(http.ask("DELETE", "/p/Subscriptions/s/Rules/$Default").status, 200);
    EXPECT_EQ(http.put("/gone", "<QueueDescription/>").status, 201);
    EXPECT_EQ(http.ask("DELETE", "/gone").status, 200);
    EXPECT_EQ(
        http.update("/target", "<QueueDescription><MaxDeliveryCount>4</MaxDeliveryCount></QueueDescription>")
            .status,
        200);
    before = http.ask("GET", "/q").body + http.ask("GET", "/p").body +
             http.ask("GET", "/p/Subscriptions/s").body + http.ask("GET", "/target").body;
  }
  const auto server = start(options_with(2, R"("Queues": [])"));
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  const auto after = http.ask("GET", "/q").body + http.ask("GET", "/p").body +
                     http.ask("GET", "/p/Subscriptions/s").body + http.ask("GET", "/target").body;
  // A start counts as an access: when somebody used it last is not journaled.
  static const std::regex accessed{"<AccessedAt>[^<]*"};
  EXPECT_EQ(std::regex_replace(after, accessed, ""), std::regex_replace(before, accessed, ""));
  EXPECT_THAT(after,
              AllOf(HasSubstr("<UserMetadata>note &amp; all<"), HasSubstr("<ForwardTo>sb://host/target<"),
                    HasSubstr("<PrimaryKey>k1<"), HasSubstr("<MaxDeliveryCount>4<")));
  const auto rules = http.ask("GET", "/p/Subscriptions/s/Rules").body;
  EXPECT_THAT(titles(rules), ElementsAre("r"));
  EXPECT_THAT(rules, HasSubstr("<SqlExpression>a = 2<"));
  EXPECT_THAT(titles(http.ask("GET", "/$Resources/Queues").body), ElementsAre("q", "target"));
}

TEST_F(ServerAdmin, FeedsAreInTheOrderOfNamesAndFilled) {
  const auto server = start(options_with(2, R"("Queues": [])"));
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  for (const auto* name : {"/b", "/A", "/c/d", "/B2", "/c"})
    EXPECT_EQ(http.put(name, "<QueueDescription/>").status, 201);
  EXPECT_EQ(http.put("/t", "<TopicDescription/>").status, 201);
  for (const auto* name : {"/t/Subscriptions/z", "/t/Subscriptions/Y"})
    EXPECT_EQ(http.put(name, "<SubscriptionDescription/>").status, 201);
  EXPECT_THAT(titles(http.ask("GET", "/$Resources/Queues").body), ElementsAre("A", "b", "B2", "c", "c/d"));
  EXPECT_THAT(titles(http.ask("GET", "/$Resources/Queues?$skip=3&$top=1").body), ElementsAre("c"));
  EXPECT_THAT(titles(http.ask("GET", "/$Resources/Queues?$skip=5").body), ElementsAre());
  EXPECT_THAT(titles(http.ask("GET", "/$Resources/Topics").body), ElementsAre("t"));
  EXPECT_THAT(titles(http.ask("GET", "/t/Subscriptions").body), ElementsAre("Y", "z"));
  EXPECT_EQ(http.ask("GET", "/none/Subscriptions").status, 404);
  EXPECT_THAT(http.ask("GET", "/t").body, HasSubstr("<SubscriptionCount>2<"));
  EXPECT_EQ(http.ask("DELETE", "/t").status, 200);
  EXPECT_EQ(http.ask("GET", "/t/Subscriptions/z").status, 404) << "a topic takes its subscriptions along";
}

TEST_F(ServerAdmin, QuotasHold) {
  auto options = options_with(2, R"("Queues": [{"Name": "one"}])");
  options.config.entities_max = 3;
  options.config.partitioned_entities_max = 1;
  options.config.subscriptions_per_topic_max = 1;
  const auto server = start(std::move(options));
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  const std::string partitioned =
      "<TopicDescription><EnablePartitioning>true</EnablePartitioning></TopicDescription>";
  EXPECT_EQ(http.put("/t", partitioned).status, 201);
  const auto over = http.put("/t2", partitioned);
  EXPECT_EQ(over.status, 403);
  EXPECT_THAT(over.body, HasSubstr("SubCode=40300."));
  EXPECT_EQ(http.put("/t/Subscriptions/a", "<SubscriptionDescription/>").status, 201);
  EXPECT_EQ(http.put("/t/Subscriptions/b", "<SubscriptionDescription/>").status, 403);
  EXPECT_EQ(http.put("/two", "<QueueDescription/>").status, 201);
  EXPECT_EQ(http.put("/three", "<QueueDescription/>").status, 403);
  EXPECT_EQ(http.ask("DELETE", "/t").status, 200);
  EXPECT_EQ(http.put("/three", "<QueueDescription/>").status, 201) << "what is removed counts no more";
  EXPECT_EQ(http.ask("DELETE", "/two").status, 200);
  EXPECT_EQ(http.put("/t3", partitioned).status, 201);
}

// A partitioned entity with a store that is down is Limited, and nothing of it changes by half.
TEST_F(ServerAdmin, NothingChangesWhileAPartitionIsDown) {
  auto options = options_with(2, R"("Queues": [{"Name": "p", "Properties": {"EnablePartitioning": true}}],
    "Topics": [{"Name": "t", "Subscriptions": [{"Name": "s"}]}])");
  const auto server = start(std::move(options));
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  EXPECT_THAT(http.ask("GET", "/p").body, HasSubstr("<EntityAvailabilityStatus>Available<"));
  ASSERT_TRUE(server->take_down(1));
  while (server->serves(1)) std::this_thread::sleep_for(1ms);
  EXPECT_THAT(http.ask("GET", "/p").body, HasSubstr("<EntityAvailabilityStatus>Limited<"));
  const auto update = http.update("/p", "<QueueDescription/>");
  EXPECT_EQ(update.status, 503);
  EXPECT_THAT(update.body, HasSubstr("SubCode=50004."));
  EXPECT_EQ(http.ask("DELETE", "/p").status, 503);
  EXPECT_EQ(
      http.put("/p2", "<QueueDescription><EnablePartitioning>true</EnablePartitioning></QueueDescription>")
          .status,
      503);
  ASSERT_TRUE(server->bring_back(1));
  while (!server->serves(1)) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(
      http.update("/p", "<QueueDescription><MaxDeliveryCount>2</MaxDeliveryCount></QueueDescription>").status,
      200);
  EXPECT_EQ(http.ask("DELETE", "/p").status, 200);
}

// Many ask at once, over several connections and shards: each is answered, and one of a kind succeeds.
TEST_F(ServerAdmin, ConcurrentChangesOfOneEntityAreKeptApart) {
  const auto server = start(options_with(4, R"("Queues": [])"));
  ASSERT_TRUE(server);
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(std::make_unique<HttpClient>(server->addresses()[0]));
  for (int round = 0; round < 5; ++round) {
    const auto target = fmt::format("/q{}", round);
    for (auto& client : clients)
      client->send("PUT", target,
                   HttpClient::entry("<QueueDescription><EnablePartitioning>true</EnablePartitioning>"
                                     "</QueueDescription>"));
    int made = 0;
    for (auto& client : clients) {
      const auto answer = client->receive();
      made += answer.status == 201 ? 1 : 0;
      if (answer.status != 201) {
        EXPECT_EQ(answer.status, 409) << answer.body;
      }
    }
    EXPECT_EQ(made, 1);
    for (auto& client : clients) client->send("DELETE", target);
    int removed = 0;
    for (auto& client : clients) {
      const auto answer = client->receive();
      removed += answer.status == 200 ? 1 : 0;
      if (answer.status != 200) {
        EXPECT_THAT(answer.status, testing::AnyOf(404, 409)) << answer.body;
      }
    }
    EXPECT_EQ(removed, 1);
  }
}

// Each of several updates at once is done as a whole or told that another is under way; what is there in the
// end is what one of them said. Without the condition it would be a creation.
TEST_F(ServerAdmin, ConcurrentUpdatesAreWholeOrRefused) {
  const auto server = start(options_with(4, R"("Queues": [{"Name": "q"},
      {"Name": "p", "Properties": {"EnablePartitioning": true}}])"));
  ASSERT_TRUE(server);
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(std::make_unique<HttpClient>(server->addresses()[0]));
  int refused = 0;
  for (int round = 0; round < 20; ++round) {
    const std::string target = round % 2 == 0 ? "/q" : "/p";
    std::vector<std::string> done;
    const auto says = [&](std::size_t i) {
      return fmt::format("<MaxDeliveryCount>{0}</MaxDeliveryCount>", 50 * (round + 1) + static_cast<int>(i));
    };
    for (std::size_t i = 0; i < clients.size(); ++i)
      clients[i]->send("PUT", target,
                       HttpClient::entry(fmt::format("<QueueDescription>{0}<UserMetadata>{1}</UserMetadata>"
                                                     "</QueueDescription>",
                                                     says(i), i)),
                       i == 0       ? ""
                       : i % 2 == 0 ? "If-Match: *\r\n"
                                    : "If-Match: \"tag\"\r\n");
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const auto answer = clients[i]->receive();
      if (i == 0) {
        EXPECT_EQ(answer.status, 409) << answer.body;
        EXPECT_THAT(answer.body, HasSubstr("SubCode=40900.")) << "no condition: it exists";
      } else if (answer.status == 200) {
        done.push_back(fmt::format("{}-{}", says(i), i));
      } else {
        ++refused;
        EXPECT_EQ(answer.status, 409) << answer.body;
        EXPECT_THAT(answer.body, HasSubstr("SubCode=40901."));
      }
    }
    ASSERT_FALSE(done.empty()) << "one of them was the first";
    const auto now = clients[0]->ask("GET", target).body;
    EXPECT_TRUE(std::ranges::any_of(done, [&](const std::string& one) {
      const auto dash = one.rfind('-');
      return now.contains(one.substr(0, dash)) &&
             now.contains(fmt::format("<UserMetadata>{}<", one.substr(dash + 1)));
    })) << now;
  }
  EXPECT_GT(refused, 0) << "they did meet";
}

// An update looks first and changes then. What came under the name in between stays as it was made.
TEST_F(ServerAdmin, AnUpdateDoesNotHitWhatCameUnderTheNameSince) {
  const auto server = start(options_with(4, R"("Queues": [{"Name": "q"}])"));
  ASSERT_TRUE(server);
  std::vector<std::jthread> updating;
  for (int i = 0; i < 3; ++i)
    updating.emplace_back([&](const std::stop_token& stop) {
      HttpClient http(server->addresses()[0]);
      while (!stop.stop_requested()) {
        const auto answer =
            http.update("/q", "<QueueDescription><UserMetadata>x</UserMetadata></QueueDescription>");
        EXPECT_THAT(answer.status, testing::AnyOf(200, 404, 409, 400)) << answer.body;
      }
    });
  HttpClient http(server->addresses()[0]);
  constexpr std::string_view kinds[] = {
      "<QueueDescription><RequiresSession>true</RequiresSession></QueueDescription>", "<TopicDescription/>",
      "<QueueDescription><RequiresDuplicateDetection>true</RequiresDuplicateDetection></QueueDescription>",
      "<QueueDescription/>"};
  for (int round = 0; round < 60; ++round) {
    wait_until([&] { return http.ask("DELETE", "/q").status != 409; });
    const auto description = kinds[round % 4];
    const auto made = http.put("/q", description);
    ASSERT_EQ(made.status, 201) << made.body;
    for (int look = 0; look < 3; ++look) {
      const auto now = http.ask("GET", "/q").body;
      EXPECT_THAT(now, HasSubstr(round % 4 == 1 ? "<TopicDescription" : "<QueueDescription"));
      if (round % 4 == 1) continue;
      EXPECT_THAT(now, HasSubstr(round % 4 == 0 ? "<RequiresSession>true<" : "<RequiresSession>false<"));
      EXPECT_THAT(now, HasSubstr(round % 4 == 2 ? "<RequiresDuplicateDetection>true<"
                                                : "<RequiresDuplicateDetection>false<"));
    }
  }
}

// A document is replaced as a whole: what it does not name is no more.
TEST_F(ServerAdmin, AnUpdateOfAnExchangeCanClearItsAlternate) {
  const auto server = start(options_with(2, ""));
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  constexpr std::string_view json = "Content-Type: application/json\r\n";
  constexpr std::string_view both = "Content-Type: application/json\r\nIf-Match: *\r\n";
  EXPECT_EQ(http.ask("PUT", "/rest", R"({"Type": "Fanout"})", json).status, 201);
  EXPECT_EQ(http.ask("PUT", "/x", R"({"Type": "Direct", "AlternateExchange": "rest"})", json).status, 201);
  const auto shown = [&] { return http.ask("GET", "/x", "", "Accept: application/json\r\n").body; };
  EXPECT_THAT(shown(), HasSubstr(R"("AlternateExchange":"rest")"));
  // What it shares with topics is changed without it.
  EXPECT_EQ(http.update("/x", "<TopicDescription><UserMetadata>x</UserMetadata></TopicDescription>").status,
            200);
  EXPECT_THAT(shown(), HasSubstr(R"("AlternateExchange":"rest")"));
  EXPECT_EQ(http.ask("PUT", "/x", R"({"Type": "Direct"})", both).status, 200);
  EXPECT_THAT(shown(), Not(HasSubstr("AlternateExchange")));
}

// A connection that goes before its answer harms nobody.
TEST_F(ServerAdmin, AnAnswerThatNobodyWaitsForIsDropped) {
  const auto server = start(options_with(2, R"("Queues": [])"));
  ASSERT_TRUE(server);
  for (int i = 0; i < 20; ++i) {
    HttpClient gone(server->addresses()[0]);
    gone.send("PUT", fmt::format("/q{}", i), HttpClient::entry("<QueueDescription/>"));
  }
  HttpClient http(server->addresses()[0]);
  EXPECT_EQ(http.put("/last", "<QueueDescription/>").status, 201);
}

TEST_F(ServerAdmin, RulesOfTheFileAreShownAndKeptByAnUpdate) {
  const auto server =
      start(options_with(2, R"("Queues": [{"Name": "q", "Properties": {"UserMetadata": "of the file",
    "AuthorizationRules": [{"KeyName": "w", "PrimaryKey": "k1", "SecondaryKey": "k2", "Rights": ["Send"]}]}}])"));
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  EXPECT_THAT(http.ask("GET", "/q").body,
              AllOf(HasSubstr("<KeyName>w<"), HasSubstr("<UserMetadata>of the file<"),
                    HasSubstr("<MaxDeliveryCount>3<")));
  const auto updated = http.update("/q", "<QueueDescription/>").body;
  EXPECT_THAT(updated, AllOf(HasSubstr("<AuthorizationRules/>"), Not(HasSubstr("UserMetadata"))));
}

}  // namespace
}  // namespace omnibus::node
