// /metrics of the running broker, over real sockets: what is counted, who may ask, and what happens when
// something does not answer as usual.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "node/http_client_rig.hpp"
#include "node/metrics_desk.hpp"
#include "node/server_rig.hpp"

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;
using amqp::Role;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ServerMetrics : public ServerRig {
 protected:
  // The value of one series, or nothing.
  static std::optional<double> value(const std::string& text, const std::string& series) {
    const auto at = text.find("\n" + series + " ");
    if (at == std::string::npos) return std::nullopt;
    return std::stod(text.substr(at + series.size() + 2));
  }
  static std::string scrape(HttpClient& http) {
    const auto answer = http.ask("GET", "/metrics");
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.body;
  }
};

TEST_F(ServerMetrics, MessagesAreCountedOnTheirWay) {
  const auto server = start(options_with(2, R"("Queues": [{"Name": "orders"}],
      "Topics": [{"Name": "news", "Subscriptions": [{"Name": "all"}]}])"));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  ASSERT_TRUE(client.send(client.attach(Role::sender, "orders"), numbered(5)));
  ASSERT_TRUE(client.send(client.attach(Role::sender, "news"), numbered(2)));
  EXPECT_EQ(take(client, "orders", 3).size(), 3u);
  auto& receiver = client.attach(Role::receiver, "news/Subscriptions/all");
  receiver.grant(1);
  EXPECT_EQ(client.receive(receiver, 1).size(), 1u);

  HttpClient http(server->addresses()[0]);
  const auto text = scrape(http);
  const std::string queue = R"({entity="orders",kind="queue"})";
  const std::string copy = R"({entity="news/Subscriptions/all",kind="subscription"})";
  EXPECT_EQ(value(text, "omnibus_messages_received_total" + queue), 5);
  EXPECT_EQ(value(text, "omnibus_messages_delivered_total" + queue), 3);
  EXPECT_EQ(value(text, "omnibus_messages_completed_total" + queue), 3);
  EXPECT_EQ(value(text, "omnibus_messages_active" + queue), 2);
  EXPECT_EQ(value(text, R"(omnibus_messages_received_total{entity="news",kind="topic"})"), 2);
  EXPECT_EQ(value(text, "omnibus_messages_received_total" + copy), 2);
  EXPECT_EQ(value(text, "omnibus_messages_locked" + copy), 1);
  EXPECT_EQ(value(text, "omnibus_entity_receivers" + copy), 1);
  EXPECT_EQ(value(text, "omnibus_entities"), 3);
  EXPECT_EQ(value(text, "omnibus_amqp_connections"), 1);
  EXPECT_EQ(value(text, "omnibus_amqp_sessions"), 1);
  EXPECT_EQ(value(text, "omnibus_amqp_links"), 4);
  EXPECT_EQ(value(text, "omnibus_amqp_connections_opened_total"), 1);
  EXPECT_GT(value(text, "omnibus_amqp_received_bytes_total"), 500);
  EXPECT_EQ(value(text, "omnibus_http_requests_under_way"), 1) << "this one";
  EXPECT_EQ(value(text, "omnibus_scrape_complete"), 1);
  EXPECT_EQ(value(text, R"(omnibus_store_up{store="0"})"), 1);
  EXPECT_GT(*value(text, R"(omnibus_journal_sync_seconds_count{store="0"})") +
                *value(text, R"(omnibus_journal_sync_seconds_count{store="1"})"),
            0);
  EXPECT_GT(value(text, "process_resident_memory_bytes"), 1e6);
  EXPECT_EQ(value(scrape(http), R"(omnibus_http_responses_total{code="2xx"})"), 1);
}

// Stores share what the configuration gives; what does not fit is read back.
TEST_F(ServerMetrics, WaitingMessagesTakeNoMoreMemoryThanTheyMay) {
  auto options = options_with(2, R"("Queues": [{"Name": "orders"}])");
  options.config.payload_cache_mb = 1;
  const auto server = start(std::move(options));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  const std::string large(64u << 10, 'x');
  auto& sender = client.attach(Role::sender, "orders");
  for (int i = 0; i < 32; ++i) ASSERT_TRUE(client.send(sender, numbered(1, fmt::format("{}{}-", large, i))));

  HttpClient http(server->addresses()[0]);
  const auto text = scrape(http);
  const double cached = *value(text, R"(omnibus_store_cache_bytes{store="0"})") +
                        *value(text, R"(omnibus_store_cache_bytes{store="1"})");
  EXPECT_GT(cached, 256 << 10);
  EXPECT_LE(cached, 512 << 10) << "one queue is in one store, and has half of it";
  const auto bodies = take(client, "orders", 32);
  ASSERT_EQ(bodies.size(), 32u);
  for (std::size_t i = 0; i < bodies.size(); ++i) EXPECT_EQ(bodies[i], fmt::format("{}{}-0", large, i));
}

TEST_F(ServerMetrics, WhatBecomesOfMessagesIsCounted) {
  auto options = options_with(2, R"("Queues": [
      {"Name": "dead"}, {"Name": "locks", "Properties": {"LockDuration": "PT1M", "DefaultMessageTimeToLive": "P1D"}},
      {"Name": "ttl", "Properties": {"DefaultMessageTimeToLive": "PT5S"}},
      {"Name": "ttl-dead", "Properties": {"DefaultMessageTimeToLive": "PT5S",
        "DeadLetteringOnMessageExpiration": true}},
      {"Name": "same", "Properties": {"RequiresDuplicateDetection": true,
        "DuplicateDetectionHistoryTimeWindow": "PT10M"}}])");
  options.test_clock = true;
  const auto server = start(std::move(options));
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  AmqpClient client(server->addresses()[0]);
  ASSERT_TRUE(client.send(client.attach(Role::sender, "dead"), numbered(3)));
  auto& rejects = client.attach(Role::receiver, "dead");
  rejects.grant(2);
  EXPECT_EQ(client.receive(rejects, 2).size(), 2u);
  rejects.disposition(client.of(rejects).deliveries[0].id, amqp::State::rejected_without_error(), false);
  EXPECT_TRUE(client.until([&] { return !client.of(rejects).outcomes.empty(); }));

  ASSERT_TRUE(client.send(client.attach(Role::sender, "locks"), numbered(3)));
  auto& holds = client.attach(Role::receiver, "locks");
  holds.grant(2);
  EXPECT_EQ(client.receive(holds, 2).size(), 2u);
  ASSERT_TRUE(client.send(client.attach(Role::sender, "ttl"), numbered(2)));
  ASSERT_TRUE(client.send(client.attach(Role::sender, "ttl-dead"), numbered(4)));
  auto& sender = client.attach(Role::sender, "same");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(client.send(sender, numbered(2)));
  const auto of = [](const char* family, const char* queue) {
    return fmt::format(R"({}{{entity="{}",kind="queue"}})", family, queue);
  };
  auto text = scrape(http);
  EXPECT_EQ(value(text, of("omnibus_message_locks_expired_total", "locks")), 0);
  EXPECT_EQ(value(text, of("omnibus_messages_expired_total", "ttl")), 0);

  EXPECT_EQ(http.ask("POST", "/$omnibus/clock", R"({"advance": "PT2M"})").status, 200);
  text = scrape(http);
  EXPECT_EQ(value(text, of("omnibus_messages_dead_lettered_total", "dead")), 1);
  EXPECT_EQ(value(text, of("omnibus_messages_dead_letter", "dead")), 1);
  EXPECT_EQ(value(text, of("omnibus_message_locks_expired_total", "locks")), 2);
  EXPECT_EQ(value(text, of("omnibus_messages_locked", "locks")), 0);
  EXPECT_EQ(value(text, of("omnibus_messages_active", "locks")), 3);
  EXPECT_EQ(value(text, of("omnibus_messages_expired_total", "locks")), 0);
  EXPECT_EQ(value(text, of("omnibus_messages_expired_total", "ttl")), 2);
  EXPECT_EQ(value(text, of("omnibus_messages_dead_lettered_total", "ttl")), 0);
  EXPECT_EQ(value(text, of("omnibus_messages_active", "ttl")), 0);
  EXPECT_EQ(value(text, of("omnibus_messages_expired_total", "ttl-dead")), 4);
  EXPECT_EQ(value(text, of("omnibus_messages_dead_lettered_total", "ttl-dead")), 4);
  EXPECT_EQ(value(text, of("omnibus_messages_dead_letter", "ttl-dead")), 4);
  EXPECT_EQ(value(text, of("omnibus_messages_duplicate_total", "same")), 4);
  EXPECT_EQ(value(text, of("omnibus_messages_active", "same")), 2);
  for (const char* store : {"0", "1"})
    EXPECT_EQ(
        value(text, fmt::format(R"(omnibus_journal_sync_seconds_bucket{{store="{}",le="+Inf"}})", store)),
        value(text, fmt::format(R"(omnibus_journal_sync_seconds_count{{store="{}"}})", store)));
}

TEST_F(ServerMetrics, WhatIsRefusedIsCountedByItsCondition) {
  auto options = options_with(1, R"("Queues": [{"Name": "q", "Properties": {"RequiresSession": true}}])");
  const auto server = start(std::move(options));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  client.attach(Role::sender, "nothing");
  auto& receiver = client.attach(Role::receiver, "q");
  EXPECT_TRUE(client.until([&] { return client.of(receiver).detached.has_value(); }));
  HttpClient http(server->addresses()[0]);
  const auto text = scrape(http);
  EXPECT_EQ(value(text, R"(omnibus_links_refused_total{condition="amqp:not-found"})"), 1);
  EXPECT_EQ(value(text, R"(omnibus_links_refused_total{condition="amqp:not-allowed"})"), 1);
  EXPECT_EQ(value(text, R"(omnibus_requests_refused_total{store="0",condition="not_allowed"})"), 1);
}

TEST_F(ServerMetrics, EntitiesPastTheLimitAreOneSeries) {
  auto options = options_with(2, R"("Queues": [{"Name": "a"}, {"Name": "b"}, {"Name": "c"}])");
  options.config.metrics_entities_max = 2;
  const auto server = start(std::move(options));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  ASSERT_TRUE(client.send(client.attach(Role::sender, "b"), numbered(1)));
  ASSERT_TRUE(client.send(client.attach(Role::sender, "c"), numbered(4)));
  HttpClient http(server->addresses()[0]);
  auto text = scrape(http);
  EXPECT_EQ(value(text, R"(omnibus_messages_active{entity="b",kind="queue"})"), 1);
  EXPECT_EQ(value(text, R"(omnibus_messages_active{entity="_other",kind=""})"), 4);
  EXPECT_THAT(text, Not(HasSubstr(R"(entity="c")")));
  EXPECT_EQ(value(text, "omnibus_entities"), 3);
  EXPECT_EQ(value(text, "omnibus_entities_without_series"), 1);
  EXPECT_EQ(http.ask("DELETE", "/a").status, 200);
  text = scrape(http);
  EXPECT_EQ(value(text, R"(omnibus_messages_active{entity="c",kind="queue"})"), 4);
  EXPECT_EQ(value(text, "omnibus_entities_without_series"), 0);
}

TEST_F(ServerMetrics, AStoreThatIsDownIsToldAndTheRestToo) {
  const auto [first, second] = apart();
  const auto server =
      start(options_with(2, fmt::format(R"("Queues": [{{"Name": "{}"}}, {{"Name": "{}"}}])", first, second)));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0]);
  ASSERT_TRUE(client.send(client.attach(Role::sender, second), numbered(2)));
  ASSERT_TRUE(server->take_down(0));
  while (server->serves(0)) std::this_thread::sleep_for(1ms);
  HttpClient http(server->addresses()[0]);
  auto text = scrape(http);
  EXPECT_EQ(value(text, R"(omnibus_store_up{store="0"})"), 0);
  EXPECT_EQ(value(text, R"(omnibus_store_state{store="0",state="taken_down"})"), 1);
  EXPECT_EQ(value(text, R"(omnibus_store_up{store="1"})"), 1);
  EXPECT_EQ(value(text, fmt::format(R"(omnibus_messages_active{{entity="{}",kind="queue"}})", second)), 2);
  ASSERT_TRUE(server->bring_back(0));
  while (!server->serves(0)) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(value(scrape(http), R"(omnibus_store_up{store="0"})"), 1);
}

TEST_F(ServerMetrics, ManyScrapesAtOnceAndOneDuringTheEnd) {
  auto server = start(options_with(2, R"("Queues": [{"Name": "q"}])"));
  ASSERT_TRUE(server);
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(std::make_unique<HttpClient>(server->addresses()[0]));
  for (auto& one : clients) one->send("GET", "/metrics");
  for (auto& one : clients) EXPECT_THAT(one->receive().body, HasSubstr("omnibus_info{version="));
  server->begin_shutdown();
  clients[0]->send("GET", "/metrics");
  EXPECT_EQ(clients[0]->receive().status, 200);
  server->close_stores();
  while (!server->stores_closed()) std::this_thread::sleep_for(1ms);
  clients[0]->send("GET", "/metrics");
  const auto text = clients[0]->receive().body;
  EXPECT_EQ(value(text, R"(omnibus_store_up{store="0"})"), 0);
  // These may be anywhere on their way.
  for (auto& one : clients) one->send("GET", "/metrics");
  server.reset();
}

TEST_F(ServerMetrics, WhoeverIsNotFromHereNeedsAToken) {
  auto options = options_with(1, R"("Queues": [{"Name": "q"}])");
  options.config.metrics_open = false;
  const auto server = start(std::move(options));
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  EXPECT_EQ(http.ask("GET", "/metrics").status, 200) << "with its token";
  EXPECT_EQ(http.ask_without_token("GET", "/metrics").status, 401);
  EXPECT_EQ(http.ask("GET", "/metrics", "", "Authorization: nonsense\r\n").status, 200) << "the first counts";
  EXPECT_EQ(http.ask_without_token("GET", "/metrics", "Authorization: nonsense\r\n").status, 401);
  const auto token = [](std::string_view resource) {
    return fmt::format("Authorization: {}\r\n", auth::make_sas_token(resource, auth::default_rule_name,
                                                                     "SAS_KEY_VALUE", wall_now() + 1h));
  };
  EXPECT_EQ(http.ask_without_token("GET", "/metrics", token("https://localhost/")).status, 200);
  EXPECT_EQ(http.ask_without_token("GET", "/metrics", token("https://localhost/metrics")).status, 401)
      << "a token for a queue of this name is none for the namespace";
}

TEST_F(ServerMetrics, FromThisMachineTheyAreOpen) {
  const auto server = start(options_with(1, R"("Queues": [{"Name": "q"}])"));
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  EXPECT_EQ(http.ask_without_token("GET", "/metrics").status, 200);
  EXPECT_EQ(http.ask_without_token("GET", "/health").status, 200);
}

TEST(Scrapes, AHundredWaitForTheSameNumbersAndOneMoreIsToldToComeAgain) {
  Scrapes scrapes;
  std::map<int, net::HttpResponse> answers;
  const auto scrape = [&](int number) {
    return scrapes.add(net::HttpReply(
        [&answers, number](net::HttpResponse response) { answers[number] = std::move(response); },
        [] { return true; }, [](net::HttpReply::Gone) {}, [] { return false; }));
  };
  EXPECT_TRUE(scrape(0)) << "the first asks for the numbers";
  for (int i = 1; i < 100; ++i) EXPECT_FALSE(scrape(i));
  EXPECT_TRUE(answers.empty());
  EXPECT_FALSE(scrape(100));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[100].status, 503);
  EXPECT_THAT(answers[100].body, HasSubstr("Too many"));
  scrapes.answer_all("numbers");
  ASSERT_EQ(answers.size(), 101u);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(std::pair(answers[i].status, answers[i].body), std::pair(200, std::string("numbers")));
  EXPECT_TRUE(scrape(101)) << "there is room again";
  scrapes.answer_all("later");
  EXPECT_EQ(answers[101].body, "later");
}

// An entity may have this name; who manages it says which version of the API is meant.
TEST(IsMetrics, AnEntityOfThisNameIsManagedAsAnyOther) {
  const auto is = [](std::string method, std::string target) {
    net::HttpRequest request;
    request.method = std::move(method);
    request.target = std::move(target);
    return is_metrics(request);
  };
  EXPECT_TRUE(is("GET", "/metrics"));
  EXPECT_TRUE(is("GET", "/metrics?x=1"));
  EXPECT_TRUE(is("HEAD", "/metrics"));
  EXPECT_FALSE(is("GET", "/metrics?api-version=2021-05"));
  EXPECT_FALSE(is("PUT", "/metrics"));
  EXPECT_FALSE(is("GET", "/metrics/x"));
}

}  // namespace
}  // namespace omnibus::node
