// Several namespaces in the running broker, over real sockets: chosen by host name, apart from each other,
// made and dropped in one call, and there again after a restart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "node/http_client_rig.hpp"
#include "node/namespace_register.hpp"
#include "node/server_rig.hpp"

namespace omnibus::node {
namespace {

using amqp::Role;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ServerNamespaces : public ServerRig {
 protected:
  static constexpr std::string_view queue = "<QueueDescription/>";

  static void send_one(AmqpClient& client, std::string_view entity, std::string_view body) {
    auto& sender = client.attach(Role::sender, entity);
    ASSERT_TRUE(client.of(sender).attached.value_or(false)) << entity;
    ASSERT_TRUE(client.send(sender, {AmqpClient::message(body)}));
  }
  static AmqpClient::Who at(std::string host) {
    AmqpClient::Who who;
    who.host = std::move(host);
    return who;
  }
  [[nodiscard]] std::string register_text() const {
    std::ifstream in(folder_->path() / "data" / "namespaces.json");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write_register_text(const std::string& text) const {
    std::ofstream out(folder_->path() / "data" / "namespaces.json", std::ios::trunc);
    out << text;
  }

  // Two namespaces that have entities of the same names.
  static constexpr std::string_view two = R"(
      "Queues": [{"Name": "out"}, {"Name": "in", "Properties": {"ForwardTo": "out"}}]}, {
      "Name": "billing", "HostNames": ["billing.test"],
      "AuthorizationRules": [{"KeyName": "b", "PrimaryKey": "only-b", "Rights": ["Send", "Listen", "Manage"]}],
      "Queues": [{"Name": "out"}, {"Name": "in", "Properties": {"ForwardTo": "out"}}])";
};

TEST_F(ServerNamespaces, EntitiesOfOneNameAreApartAndForwardsStayInside) {
  const auto server = start(options_with(2, two));
  ASSERT_TRUE(server);
  const auto& address = server->addresses()[0];
  AmqpClient first(address);
  AmqpClient second(address, at("BILLING.test:5672"));
  send_one(second, "in", "of billing");
  send_one(second, "out", "last");
  send_one(first, "in", "of the default one");
  send_one(first, "out", "last");
  EXPECT_THAT(take(first, "out", 2), testing::UnorderedElementsAre("of the default one", "last"));
  EXPECT_THAT(take(second, "out", 2), testing::UnorderedElementsAre("of billing", "last"));

  AmqpClient third(address, at("billing.localhost"));
  send_one(third, "out", "by its name");
  EXPECT_THAT(take(second, "out", 1), ElementsAre("by its name"));
}

TEST_F(ServerNamespaces, AKeyOfOneIsRefusedInTheOther) {
  const auto server = start(options_with(1, two));
  ASSERT_TRUE(server);
  const auto& address = server->addresses()[0];
  const AmqpClient inside(address, {.host = "billing.test", .rule = "b", .key = "only-b"});
  EXPECT_TRUE(inside.is_open());
  const AmqpClient outside(address, {.host = "localhost", .rule = "b", .key = "only-b", .is_refused = true});
  EXPECT_FALSE(outside.is_open());
  // No host in SASL or `open`: the default namespace, which does not know the rule.
  const AmqpClient nowhere(address, {.host = "", .rule = "b", .key = "only-b", .is_refused = true});
  ASSERT_TRUE(nowhere.closed());
  EXPECT_EQ(nowhere.closed()->name, "amqp:unauthorized-access");

  HttpClient http(address);
  http.as("billing.test", "b", "only-b");
  EXPECT_EQ(http.ask("GET", "/out").status, 200);
  EXPECT_THAT(http.ask("GET", "/$namespaceinfo").body, HasSubstr("<Name>billing<"));
  http.as("localhost", "b", "only-b");
  EXPECT_EQ(http.ask("GET", "/out").status, 401);
  // Both have a default rule of the same key, but a token names its host.
  http.as("localhost", "RootManageSharedAccessKey", "SAS_KEY_VALUE", "billing.test");
  EXPECT_EQ(http.ask("GET", "/out").status, 401);
  http.as("localhost", "RootManageSharedAccessKey", "SAS_KEY_VALUE", "elsewhere.test");
  EXPECT_EQ(http.ask("GET", "/out").status, 200) << "nobody has this name, so it is the default one's";
}

TEST_F(ServerNamespaces, HostNamesAndRulesChangeWhileConnectionsGoOn) {
  auto server = start(options_with(2, R"("Queues": [{"Name": "q"}])"));
  ASSERT_TRUE(server);
  std::string address = server->addresses()[0];
  HttpClient http(address);
  const auto change = [&](std::string_view name, std::string_view body) {
    return http.ask("PUT", fmt::format("/$omnibus/namespaces/{}", name), body, "If-Match: *\r\n");
  };
  ASSERT_EQ(http.ask("PUT", "/$omnibus/namespaces/shop", R"({"HostNames":["old.test"]})").status, 201);
  http.as("old.test", "RootManageSharedAccessKey", "SAS_KEY_VALUE");
  ASSERT_EQ(http.put("/box", queue).status, 201);
  AmqpClient before(address, at("old.test"));
  send_one(before, "box", "one");

  http.as("localhost", "RootManageSharedAccessKey", "SAS_KEY_VALUE");
  EXPECT_EQ(change("nobody", "{}").status, 404);
  EXPECT_EQ(change("sbemulatorns", "{}").status, 400);
  EXPECT_EQ(change("shop", R"({"HostNames":["sbemulatorns.localhost"]})").status, 409);
  const auto changed = change("SHOP", R"({"HostNames":["new.test"]})");
  EXPECT_EQ(changed.status, 200) << changed.body;
  EXPECT_THAT(changed.body, AllOf(HasSubstr("new.test"), Not(HasSubstr("old.test"))));
  const auto with_rule = change("shop", R"({"AuthorizationRules":[
      {"KeyName": "RootManageSharedAccessKey", "PrimaryKey": "SAS_KEY_VALUE", "Rights": ["Manage", "Send", "Listen"]},
      {"KeyName": "app", "PrimaryKey": "only-app", "Rights": ["Send", "Listen"]}]})");
  EXPECT_EQ(with_rule.status, 200) << with_rule.body;
  EXPECT_THAT(register_text(), Not(HasSubstr("SAS_KEY_VALUE"))) << "the default rule keeps its own key";

  send_one(before, "box", "two");
  AmqpClient after(address, {.host = "new.test", .rule = "app", .key = "only-app"});
  EXPECT_THAT(take(after, "box", 2), ElementsAre("one", "two"));
  http.as("old.test", "RootManageSharedAccessKey", "SAS_KEY_VALUE");
  EXPECT_EQ(http.ask("GET", "/q").status, 200) << "a name that nobody has is the default one's";

  server.reset();
  server = start(options_with(2, R"("Queues": [{"Name": "q"}])"));
  ASSERT_TRUE(server);
  const AmqpClient again(server->addresses()[0], {.host = "new.test", .rule = "app", .key = "only-app"});
  EXPECT_TRUE(again.is_open());
}

TEST_F(ServerNamespaces, ATestGetsItsOwnInOneCall) {
  const auto server = start(options_with(2, R"("Queues": [{"Name": "q"}])"));
  ASSERT_TRUE(server);
  const auto& address = server->addresses()[0];
  HttpClient http(address);
  const auto made = http.ask("PUT", "/$omnibus/namespaces/t1");
  EXPECT_EQ(made.status, 201) << made.body;
  EXPECT_THAT(made.body, AllOf(HasSubstr(R"("Name":"t1")"), HasSubstr("Endpoint=sb://t1.localhost:"),
                               HasSubstr("SharedAccessKey=SAS_KEY_VALUE")));
  EXPECT_EQ(http.ask("PUT", "/$omnibus/namespaces/T1").status, 200) << "it is there as it is wanted";
  EXPECT_EQ(http.ask("PUT", "/$omnibus/namespaces/t1", R"({"HostNames":["x.test"]})").status, 409);
  EXPECT_EQ(http.ask("PUT", "/$omnibus/namespaces/t2", R"({"HostNames":["t1.localhost"]})").status, 409);
  EXPECT_EQ(http.ask("PUT", "/$omnibus/namespaces/sbemulatorns").status, 409);
  EXPECT_EQ(http.ask("PUT", "/$omnibus/namespaces/a.b").status, 400);
  EXPECT_EQ(http.ask("PUT", "/$omnibus/namespaces/t2", "{").status, 400);
  EXPECT_EQ(http.ask("POST", "/$omnibus/namespaces").status, 405);
  EXPECT_THAT(http.ask("GET", "/$omnibus/namespaces").body,
              AllOf(HasSubstr(R"({"value":[{"Name":"sbemulatorns","IsDefault":true)"),
                    HasSubstr(R"({"Name":"t1","IsDefault":false,"HostNames":["t1.localhost")"),
                    Not(HasSubstr("Key"))));
  EXPECT_THAT(http.ask("GET", "/$omnibus/namespaces/t1").body, HasSubstr("SAS_KEY_VALUE"));
  EXPECT_EQ(http.ask("GET", "/$omnibus/namespaces/t2").status, 404);

  // Its own entities, under names that others have too; and no way to other namespaces.
  HttpClient inside(address);
  inside.as("t1.localhost", "RootManageSharedAccessKey", "SAS_KEY_VALUE");
  EXPECT_EQ(inside.put("/q", queue).status, 201);
  EXPECT_EQ(inside.put("/mine", queue).status, 201);
  EXPECT_EQ(inside.ask("GET", "/$omnibus/namespaces").status, 404);
  EXPECT_EQ(inside.ask("DELETE", "/$omnibus/namespaces/t1").status, 404);
  EXPECT_THAT(http.ask("GET", "/$Resources/Queues").body, AllOf(HasSubstr(">q<"), Not(HasSubstr(">mine<"))));

  AmqpClient client(address, at("t1.localhost"));
  send_one(client, "q", "of t1");
  auto& receiver = client.attach(Role::receiver, "q");
  EXPECT_TRUE(client.of(receiver).attached.value_or(false));
  AmqpClient other(address);
  EXPECT_EQ(http.ask("DELETE", "/$omnibus/namespaces/T1").status, 200);
  EXPECT_TRUE(client.until([&] { return client.closed().has_value(); }));
  EXPECT_EQ(client.closed()->name, "amqp:not-found");
  EXPECT_EQ(http.ask("DELETE", "/$omnibus/namespaces/t1").status, 404);
  EXPECT_EQ(http.ask("DELETE", "/$omnibus/namespaces/sbemulatorns").status, 400);

  // One that has the name of a dropped one has nothing of it.
  EXPECT_EQ(http.ask("PUT", "/$omnibus/namespaces/t1").status, 201);
  EXPECT_THAT(inside.ask("GET", "/q").body, HasSubstr("Publicly Listed Services"));
  send_one(other, "q", "of the default one");
  EXPECT_THAT(take(other, "q", 1), ElementsAre("of the default one"));
}

TEST_F(ServerNamespaces, TheyNeedManageOnTheDefaultOneAndHaveALimit) {
  auto options = options_with(1, R"("AuthorizationRules": [
      {"KeyName": "sender", "PrimaryKey": "s", "Rights": ["Send"]}])");
  options.config.namespaces_max = 1;
  const auto server = start(std::move(options));
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  http.as("localhost", "sender", "s");
  EXPECT_EQ(http.ask("PUT", "/$omnibus/namespaces/t1").status, 401);
  EXPECT_EQ(http.ask("GET", "/$omnibus/namespaces").status, 401);
  http.as("localhost", "RootManageSharedAccessKey", "SAS_KEY_VALUE");
  EXPECT_EQ(http.ask("PUT", "/$omnibus/namespaces/t1").status, 201);
  EXPECT_EQ(http.ask("PUT", "/$omnibus/namespaces/t1").status, 200);
  EXPECT_EQ(http.ask("PUT", "/$omnibus/namespaces/t2").status, 403);
  EXPECT_EQ(http.ask("DELETE", "/$omnibus/namespaces/t1").status, 200);
  EXPECT_EQ(http.ask("PUT", "/$omnibus/namespaces/t2").status, 201);
}

TEST_F(ServerNamespaces, TheySurviveARestartWithTheirMessagesAndRules) {
  {
    const auto server = start(options_with(2, R"("Queues": [{"Name": "q"}])"));
    ASSERT_TRUE(server);
    HttpClient http(server->addresses()[0]);
    const auto made = http.ask("PUT", "/$omnibus/namespaces/t1",
                               R"({"HostNames":["t1.test"],"AuthorizationRules":[
                                  {"KeyName":"a","PrimaryKey":"k","Rights":["Send","Listen","Manage"]}]})");
    ASSERT_EQ(made.status, 201) << made.body;
    http.as("t1.test", "a", "k");
    ASSERT_EQ(http.put("/q", queue).status, 201);
    AmqpClient client(server->addresses()[0], {.host = "t1.test", .rule = "a", .key = "k"});
    send_one(client, "q", "kept");
  }
  const auto server = start(options_with(2, R"("Queues": [{"Name": "q"}])"));
  ASSERT_TRUE(server);
  AmqpClient client(server->addresses()[0], {.host = "t1.test", .rule = "a", .key = "k"});
  EXPECT_THAT(take(client, "q", 1), ElementsAre("kept"));
  HttpClient http(server->addresses()[0]);
  EXPECT_THAT(http.ask("GET", "/q").body, HasSubstr("<MessageCount>0<"));
  EXPECT_EQ(http.ask("PUT", "/$omnibus/namespaces/t1", R"({"HostNames":["t1.test"]})").status, 200);
}

// What is in a store that is down goes when it is back; the namespace is gone at once.
TEST_F(ServerNamespaces, ADropDoesNotWaitForAStoreThatIsDown) {
  const auto begin = [&] {
    auto options = options_with(2, R"("Queues": [])");
    options.storage.stores = 2;
    return start(std::move(options));
  };
  {
    const auto server = begin();
    ASSERT_TRUE(server);
    HttpClient http(server->addresses()[0]);
    ASSERT_EQ(http.ask("PUT", "/$omnibus/namespaces/t1").status, 201);
    HttpClient inside(server->addresses()[0]);
    inside.as("t1.localhost", "RootManageSharedAccessKey", "SAS_KEY_VALUE");
    for (int i = 0; i < 8; ++i) ASSERT_EQ(inside.put(fmt::format("/q{}", i), queue).status, 201);
    ASSERT_TRUE(server->take_down(1));
    while (server->serves(1)) std::this_thread::yield();
    EXPECT_EQ(http.ask("DELETE", "/$omnibus/namespaces/t1").status, 200);
    EXPECT_EQ(http.ask("GET", "/$omnibus/namespaces/t1").status, 404);
    ASSERT_TRUE(server->bring_back(1));
    while (!server->serves(1)) std::this_thread::yield();
    EXPECT_EQ(http.ask("PUT", "/$omnibus/namespaces/t1").status, 201);
    EXPECT_THAT(inside.ask("GET", "/$Resources/Queues").body, Not(HasSubstr("<entry")));
  }
  auto all = read_register(register_text());
  ASSERT_TRUE(all);
  EXPECT_THAT(all->dropped, ElementsAre(1)) << "nobody knew that all of it was gone";
  ASSERT_TRUE(begin()) << "the next start looks again";
  // With its number one would find what is left of it.
  all->dropped.clear();
  all->entries.at(0).number = 1;
  write_register_text(write_register(*all));
  const auto server = begin();
  ASSERT_TRUE(server);
  HttpClient inside(server->addresses()[0]);
  inside.as("t1.localhost", "RootManageSharedAccessKey", "SAS_KEY_VALUE");
  EXPECT_THAT(inside.ask("GET", "/$Resources/Queues").body, Not(HasSubstr("<entry")));
}

// Entities that are being made while their namespace is dropped are made and removed, or never made.
TEST_F(ServerNamespaces, NothingIsLeftOfWhatWasMadeDuringADrop) {
  {
    const auto server = start(options_with(2, R"("Queues": [])"));
    ASSERT_TRUE(server);
    HttpClient http(server->addresses()[0]);
    for (int round = 0; round < 5; ++round) {
      ASSERT_EQ(http.ask("PUT", "/$omnibus/namespaces/t1").status, 201);
      std::vector<std::unique_ptr<HttpClient>> makers;
      for (int i = 0; i < 8; ++i) {
        auto& maker = *makers.emplace_back(std::make_unique<HttpClient>(server->addresses()[0]));
        maker.as("t1.localhost", "RootManageSharedAccessKey", "SAS_KEY_VALUE");
        maker.send("PUT", fmt::format("/q{}", i), HttpClient::entry(queue));
      }
      ASSERT_EQ(http.ask("DELETE", "/$omnibus/namespaces/t1").status, 200);
      // One that came after the drop was for the default namespace, as every unknown name is.
      for (int i = 0; i < 8; ++i) {
        const auto status = makers[static_cast<std::size_t>(i)]->receive().status;
        EXPECT_TRUE(status == 201 || status == 404) << status;
        http.ask("DELETE", fmt::format("/q{}", i));
      }
    }
  }
  const auto all = read_register(register_text());
  ASSERT_TRUE(all);
  // Whatever their numbers were: a namespace that had one of them finds nothing.
  NamespaceRegister again;
  again.next = all->next;
  for (std::uint32_t number = 1; number < all->next; ++number) {
    NamespaceEntry entry;
    entry.number = number;
    entry.name = fmt::format("old-{}", number);
    entry.default_rule = *auth::make_default_rule("k", wall_now());
    again.entries.push_back(entry);
  }
  write_register_text(write_register(again));
  const auto server = start(options_with(2, R"("Queues": [])"));
  ASSERT_TRUE(server);
  for (const auto& entry : again.entries) {
    HttpClient http(server->addresses()[0]);
    http.as(entry.name + ".localhost", "RootManageSharedAccessKey", "SAS_KEY_VALUE");
    EXPECT_THAT(http.ask("GET", "/$Resources/Queues").body, Not(HasSubstr("<entry"))) << entry.name;
  }
}

// As after a crash between the two halves of a drop: the register says so, the entities are still there.
TEST_F(ServerNamespaces, ADropThatWasCutShortIsCompletedAtTheStart) {
  {
    const auto server = start(options_with(2, R"("Queues": [])"));
    ASSERT_TRUE(server);
    HttpClient http(server->addresses()[0]);
    ASSERT_EQ(http.ask("PUT", "/$omnibus/namespaces/t1").status, 201);
    http.as("t1.localhost", "RootManageSharedAccessKey", "SAS_KEY_VALUE");
    for (const auto* name : {"/a", "/b", "/c"}) ASSERT_EQ(http.put(name, queue).status, 201);
    ASSERT_EQ(http.put("/t", "<TopicDescription/>").status, 201);
    ASSERT_EQ(http.put("/t/Subscriptions/s", "<SubscriptionDescription/>").status, 201);
  }
  auto all = read_register(register_text());
  ASSERT_TRUE(all);
  all->dropped = {all->entries.at(0).number};
  all->entries.clear();
  write_register_text(write_register(*all));
  {
    const auto server = start(options_with(2, R"("Queues": [])"));
    ASSERT_TRUE(server);
    HttpClient http(server->addresses()[0]);
    ASSERT_EQ(http.ask("PUT", "/$omnibus/namespaces/t1").status, 201);
    http.as("t1.localhost", "RootManageSharedAccessKey", "SAS_KEY_VALUE");
    EXPECT_THAT(http.ask("GET", "/a").body, HasSubstr("Publicly Listed Services"));
  }
  // Nothing is left of the first: its number alone would bring it back.
  auto later = read_register(register_text());
  ASSERT_TRUE(later);
  ASSERT_EQ(later->entries.size(), 1u);
  EXPECT_EQ(later->entries[0].number, all->next);
  later->entries[0].number = 1;
  later->dropped.clear();
  write_register_text(write_register(*later));
  const auto server = start(options_with(2, R"("Queues": [])"));
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  http.as("t1.localhost", "RootManageSharedAccessKey", "SAS_KEY_VALUE");
  EXPECT_THAT(http.ask("GET", "/$Resources/Queues").body, Not(HasSubstr("<entry")));
  EXPECT_THAT(http.ask("GET", "/$Resources/Topics").body, Not(HasSubstr("<entry")));
}

// Without the register nobody knows whose they are: they are kept, served to nobody, and their number stays
// used.
TEST_F(ServerNamespaces, EntitiesOfAnUnknownNamespaceAreKeptAside) {
  {
    const auto server = start(options_with(1, R"("Queues": [])"));
    ASSERT_TRUE(server);
    HttpClient http(server->addresses()[0]);
    ASSERT_EQ(http.ask("PUT", "/$omnibus/namespaces/t1").status, 201);
    http.as("t1.localhost", "RootManageSharedAccessKey", "SAS_KEY_VALUE");
    ASSERT_EQ(http.put("/a", queue).status, 201);
  }
  const std::string before = register_text();
  std::filesystem::remove(folder_->path() / "data" / "namespaces.json");
  {
    const auto server = start(options_with(1, R"("Queues": [])"));
    ASSERT_TRUE(server);
    HttpClient http(server->addresses()[0]);
    EXPECT_THAT(http.ask("GET", "/a").body, HasSubstr("Publicly Listed Services"));
    ASSERT_EQ(http.ask("PUT", "/$omnibus/namespaces/t2").status, 201);
    EXPECT_EQ(read_register(register_text())->entries.at(0).number, 2u);
  }
  write_register_text(before);
  const auto server = start(options_with(1, R"("Queues": [])"));
  ASSERT_TRUE(server);
  HttpClient http(server->addresses()[0]);
  http.as("t1.localhost", "RootManageSharedAccessKey", "SAS_KEY_VALUE");
  EXPECT_THAT(http.ask("GET", "/a").body, HasSubstr("<QueueDescription"));
}

TEST_F(ServerNamespaces, WhatCannotBeServedAsItIsWrittenKeepsTheBrokerFromStarting) {
  {
    const auto server = start(options_with(1, two));
    ASSERT_TRUE(server);
    HttpClient http(server->addresses()[0]);
    ASSERT_EQ(http.ask("PUT", "/$omnibus/namespaces/t1", R"({"HostNames":["x.test"]})").status, 201);
  }
  const auto why = [&](std::string_view entities) {
    const auto server = Server::start(options_with(1, entities));
    return server ? "" : server.error().detail;
  };
  EXPECT_THAT(why(R"("Name": "billing")"), HasSubstr("'billing' is a namespace of its own"));
  EXPECT_THAT(why(R"("HostNames": ["x.test"])"), HasSubstr("'x.test' belongs to"));
  write_register_text("{");
  EXPECT_THAT(why(R"("Queues": [])"), HasSubstr("namespaces.json': the register of namespaces is damaged"));
}

}  // namespace
}  // namespace omnibus::node
