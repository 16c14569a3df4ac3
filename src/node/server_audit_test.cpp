// Who changed what, at a running broker: every way to change something ends in the audit log, with its
// namespace, and so does every attempt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "node/config_json.hpp"
#include "node/http_client_rig.hpp"
#include "node/server_rig.hpp"

namespace omnibus::node {
namespace {

using amqp::Role;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ServerAudit : public ServerRig {
 protected:
  void begin(std::string_view entities) {
    server_.reset();
    auto options = options_with(2, entities);
    options.config.audit_log = file_.string();
    options.config.audit_log_mb = megabytes_;
    options.config.audit_log_files = 2;
    server_ = start(std::move(options));
    ASSERT_TRUE(server_);
  }
  // Ends the broker, so that all is written. Lines in short, and the file begins anew.
  std::vector<std::string> end() {
    server_.reset();
    std::vector<std::string> lines;
    std::ifstream in(file_);
    for (std::string line; std::getline(in, line);) {
      const auto read = parse_located_json(line);
      EXPECT_TRUE(read) << line;
      if (!read) continue;
      const auto text = [&](const char* key) {
        const auto* member = read->find(key);
        return member && member->if_text() ? *member->if_text() : std::string("?");
      };
      if (text("who") != "configuration") {
        EXPECT_THAT(text("peer"), HasSubstr("127.0.0.1:")) << line;
      }
      const auto detail = read->find("detail") ? " (" + text("detail") + ")" : "";
      lines.push_back(fmt::format("{}: {} {} {}:{} {}{}", text("who"), text("action"), text("kind"),
                                  text("namespace"), text("entity"),
                                  std::get<std::int64_t>(read->find("status")->value), detail));
    }
    std::filesystem::remove(file_);
    return lines;
  }
  // Without what the configuration made.
  std::vector<std::string> end_of_others() {
    auto lines = end();
    std::erase_if(lines, [](const std::string& line) { return line.starts_with("configuration: create "); });
    return lines;
  }
  [[nodiscard]] const std::string& address() const { return server_->addresses()[0]; }

  // One request to the rules of a subscription; its status.
  static std::int64_t change_rule(AmqpClient& client, std::string_view subscription,
                                  std::string_view operation, std::string_view rule) {
    const std::string node = fmt::format("{}/$management", subscription);
    auto& requests = client.attach(Role::sender, node);
    auto& answers = client.attach(Role::receiver, node);
    answers.grant(1);
    amqp::MessageBuilder builder;
    const auto id = amqp::encode(amqp::Value{std::uint64_t{1}});
    const auto reply_to = amqp::encode(amqp::Value{"me"});
    builder.properties().message_id = {id};
    builder.properties().reply_to = {reply_to};
    builder.application_property("operation", amqp::Value{operation});
    builder.body(amqp::Value::map(
        {{"rule-name", rule},
         {"rule-description", amqp::Value::map({{"sql-filter", amqp::Value::map({{"expression", "1=1"}})},
                                                {"sql-rule-action", amqp::Value{}}})}}));
    EXPECT_NE(client.send_one(requests, builder.build()), 0u);
    EXPECT_TRUE(client.until([&] { return !client.of(answers).deliveries.empty(); }));
    if (client.of(answers).deliveries.empty()) return 0;
    const std::string answer = client.of(answers).deliveries[0].message;
    // The next answer is to find the next link.
    requests.detach();
    answers.detach();
    const auto view = amqp::MessageView::parse(as_bytes(answer));
    return amqp::decode_value(*view->application_property("statusCode"))->as_integer().value_or(0);
  }

  static constexpr std::string_view root = "RootManageSharedAccessKey";
  const std::filesystem::path file_ = folder_->path() / "audit.jsonl";
  std::uint32_t megabytes_ = 0;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerAudit, NamespacesComeChangeAndGo) {
  begin("");
  HttpClient http(address());
  const std::string target = "/$omnibus/namespaces/test1";
  EXPECT_EQ(http.ask("PUT", target, "{}").status, 201);
  EXPECT_EQ(http.ask("PUT", target, R"({"HostNames": ["one.test"]})", "If-Match: *\r\n").status, 200);
  EXPECT_EQ(http.ask("PUT", target, "no JSON").status, 400);
  EXPECT_EQ(http.ask_without_token("PUT", "/$omnibus/namespaces/other").status, 401);
  EXPECT_EQ(http.ask("GET", target).status, 200);
  EXPECT_EQ(http.ask("DELETE", target).status, 200);
  EXPECT_EQ(http.ask("DELETE", target).status, 404);
  EXPECT_THAT(end(), ElementsAre(fmt::format("{}: create namespace test1:test1 201", root),
                                 fmt::format("{}: update namespace test1:test1 200", root),
                                 fmt::format("{}: create namespace test1:test1 400", root),
                                 ": create namespace other:other 401",
                                 fmt::format("{}: delete namespace test1:test1 200", root),
                                 fmt::format("{}: delete namespace test1:test1 404", root)));
}

TEST_F(ServerAudit, EntitiesAreToldWithTheirNamespaceAndSoAreRefusals) {
  begin(
      R"("Name": "first", "AuthorizationRules": [{"KeyName": "sends", "PrimaryKey": "k", "Rights": ["Send"]}]
      }, {"Name": "second", "HostNames": ["second.test"],
      "AuthorizationRules": [{"KeyName": "b", "PrimaryKey": "only-b", "Rights": ["Send", "Listen", "Manage"]}])");
  HttpClient http(address());
  EXPECT_EQ(http.put("/orders", "<QueueDescription/>").status, 201);
  EXPECT_EQ(http.ask_without_token("DELETE", "/orders?api-version=2021-05").status, 401);
  EXPECT_EQ(http.ask_without_token("PUT", "/orders?api-version=2021-05", "If-Match: *\r\n").status, 401);
  EXPECT_EQ(http.ask_without_token("POST", "/$omnibus/purge/orders").status, 401);
  EXPECT_EQ(http.ask_without_token("GET", "/orders?api-version=2021-05").status, 401) << "changes nothing";
  http.as("localhost", "sends", "k");
  EXPECT_EQ(http.ask("DELETE", "/orders").status, 401);
  http.as("second.test", "b", "only-b");
  EXPECT_EQ(http.put("/orders", "<TopicDescription/>").status, 201);
  EXPECT_EQ(http.put("/orders/Subscriptions/s/Rules/r", "<nothing/>").status, 400);
  EXPECT_THAT(
      end_of_others(),
      ElementsAre(fmt::format("{}: create queue first:orders 201", root), ": delete entity first:orders 401",
                  ": update entity first:orders 401", ": purge messages first:orders 401",
                  "sends: delete entity first:orders 401", "b: create topic second:orders 201",
                  "b: create rule second:orders/Subscriptions/s/Rules/r 400"));
}

TEST_F(ServerAudit, AResetSaysWhatItDeleted) {
  begin(R"("Queues": [{"Name": "stays"}])");
  HttpClient http(address());
  EXPECT_EQ(http.put("/t", "<TopicDescription/>").status, 201);
  EXPECT_EQ(http.put("/t/Subscriptions/s", "<SubscriptionDescription/>").status, 201);
  EXPECT_EQ(http.put("/q", "<QueueDescription/>").status, 201);
  EXPECT_EQ(http.ask("POST", "/$omnibus/reset?entities=delete").body, R"({"purged":0,"deleted":3})");
  auto lines = end_of_others();
  ASSERT_EQ(lines.size(), 7u);
  lines.erase(lines.begin(), lines.begin() + 3);
  EXPECT_THAT(lines,
              ElementsAre(fmt::format("{}: delete subscription sbemulatorns:t/Subscriptions/s 200", root),
                          fmt::format("{}: delete entity sbemulatorns:t 200", root),
                          fmt::format("{}: delete entity sbemulatorns:q 200", root),
                          fmt::format("{}: reset messages sbemulatorns:sbemulatorns 200", root)));
}

// A file that is full up to its last byte: the next line is the first of a new one.
TEST_F(ServerAudit, TheSettingsBoundTheFile) {
  const std::string full(1024 * 1024, '.');
  std::ofstream(file_) << full;
  std::ofstream(file_.string() + ".1") << "older";
  std::ofstream(file_.string() + ".2") << "oldest";
  megabytes_ = 1;
  begin("");
  HttpClient http(address());
  EXPECT_EQ(http.put("/q", "<QueueDescription/>").status, 201);
  EXPECT_THAT(end(), ElementsAre(fmt::format("{}: create queue sbemulatorns:q 201", root)));
  EXPECT_EQ(std::filesystem::file_size(file_.string() + ".1"), full.size());
  EXPECT_EQ(std::filesystem::file_size(file_.string() + ".2"), std::string_view("older").size());
  EXPECT_FALSE(std::filesystem::exists(file_.string() + ".3"));
}

TEST_F(ServerAudit, RulesThatComeOverAmqpAreChangesToo) {
  begin(R"("AuthorizationRules": [{"KeyName": "sends", "PrimaryKey": "k", "Rights": ["Send"]}],
      "Topics": [{"Name": "t", "Subscriptions": [{"Name": "s"}]},
                 {"Name": "p", "Properties": {"EnablePartitioning": true}, "Subscriptions": [{"Name": "s"}]}])");
  const std::string one = "t/Subscriptions/s";
  const std::string parts = "p/Subscriptions/s";
  AmqpClient client(address());
  EXPECT_EQ(change_rule(client, one, "com.microsoft:add-rule", "red"), 200);
  EXPECT_EQ(change_rule(client, one, "com.microsoft:add-rule", "red"), 409);
  EXPECT_EQ(change_rule(client, one, "com.microsoft:remove-rule", "$Default"), 200);
  EXPECT_EQ(change_rule(client, one, "com.microsoft:remove-rule", "no"), 404);
  EXPECT_EQ(change_rule(client, parts, "com.microsoft:add-rule", "blue"), 200);
  AmqpClient::Who who;
  who.rule = "sends";
  who.key = "k";
  AmqpClient other(address(), who);
  EXPECT_EQ(change_rule(other, one, "com.microsoft:add-rule", "green"), 401);
  client.cut();
  other.cut();
  const std::string here = "sbemulatorns:t/Subscriptions/s/Rules/";
  EXPECT_THAT(end_of_others(),
              ElementsAre(fmt::format("{}: create rule {}red 200", root, here),
                          fmt::format("{}: create rule {}red 409", root, here),
                          fmt::format("{}: delete rule {}$Default 200", root, here),
                          fmt::format("{}: delete rule {}no 404", root, here),
                          fmt::format("{}: create rule sbemulatorns:p/Subscriptions/s/Rules/blue 200", root),
                          fmt::format("sends: create rule {}green 401", here)));
}

TEST_F(ServerAudit, WhatTheConfigurationChangesIsToldAndWhatItCannot) {
  const std::string_view first = R"("Queues": [{"Name": "q"}, {"Name": "fixed"}],
      "Topics": [{"Name": "t", "Subscriptions": [{"Name": "s"}]}])";
  begin(first);
  EXPECT_THAT(end(), ElementsAre("configuration: create queue sbemulatorns:fixed 201",
                                 "configuration: create queue sbemulatorns:q 201",
                                 "configuration: create topic sbemulatorns:t 201",
                                 "configuration: create subscription sbemulatorns:t/Subscriptions/s 201"));
  begin(first);
  EXPECT_THAT(end(), IsEmpty()) << "nothing is different";
  begin(R"("Queues": [{"Name": "q", "Properties": {"MaxDeliveryCount": 7}},
                      {"Name": "fixed", "Properties": {"RequiresSession": true}}],
      "Topics": [{"Name": "t", "Subscriptions": [{"Name": "s", "Rules": [{"Name": "red", "Properties":
        {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "n > 1"}}}]}]}])");
  const auto lines = end();
  EXPECT_THAT(lines,
              testing::UnorderedElementsAre(
                  "configuration: update queue sbemulatorns:q 200 (properties: MaxDeliveryCount)",
                  AllOf(HasSubstr("configuration: update queue sbemulatorns:fixed 409 ("),
                        HasSubstr("RequiresSession")),
                  "configuration: update subscription sbemulatorns:t/Subscriptions/s 200 (rules: red)"));
}

// One entity more, with partitions and an exchange, in a namespace that comes with it.
TEST_F(ServerAudit, WhatTheConfigurationMakesIsToldOnce) {
  const std::string one = R"("Queues": [{"Name": "q"}])";
  begin(one);
  EXPECT_THAT(end(), ElementsAre("configuration: create queue sbemulatorns:q 201"));
  const std::string more =
      R"("Queues": [{"Name": "q"}, {"Name": "Parts", "Properties": {"EnablePartitioning": true}}],
      "Exchanges": [{"Name": "x", "Type": "Fanout", "Subscriptions": [{"Name": "all"}]}]
      }, {"Name": "second", "Queues": [{"Name": "q"}])";
  begin(more);
  EXPECT_THAT(end(), testing::UnorderedElementsAre(
                         "configuration: create namespace second:second 201",
                         "configuration: create queue sbemulatorns:Parts 201",
                         "configuration: create exchange sbemulatorns:x 201",
                         "configuration: create subscription sbemulatorns:x/Subscriptions/all 201",
                         "configuration: create queue second:q 201"));
  begin(more);
  EXPECT_THAT(end(), IsEmpty());
  begin(one + R"(}, {"Name": "second", "HostNames": ["second.test"])");
  EXPECT_THAT(end(), ElementsAre("configuration: update namespace second:second 200"));
}

}  // namespace
}  // namespace omnibus::node
