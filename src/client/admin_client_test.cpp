// Requests as they leave and answers as they are taken, against an HTTP server that the test plays.
#include "client/admin_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "auth/sas_token.hpp"
#include "base/temporary_folder.hpp"
#include "client/fake_http.hpp"
#include "net/certificates.hpp"

namespace omnibus::client {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string entry_of(const std::string& name, std::string_view inside = "<LockDuration>PT1M</LockDuration>") {
  return fmt::format(
      "<entry><title>{}</title><content><QueueDescription "
      "xmlns='urn:x'>{}</QueueDescription></content></entry>",
      name, inside);
}

net::HttpResponse xml(int status, std::string body) {
  return {.status = status, .headers = {{"Content-Type", "application/atom+xml"}}, .body = std::move(body)};
}

TEST(AdminClient, AListIsAllItsPages) {
  FakeHttp server([](const net::HttpRequest& request) {
    std::string feed = "<feed>";
    if (request.target.contains("$skip=0&")) {
      feed += "<link rel='next' href='x'/>";
      for (std::size_t i = 0; i < AdminClient::page_size; ++i) feed += entry_of("q" + std::to_string(i));
    } else {
      feed += entry_of("last");
    }
    return xml(200, feed + "</feed>");
  });
  AdminClient admin(server.where(), {});
  const auto all = admin.list(EntityKind::queue);
  ASSERT_TRUE(all) << all.error().detail;
  EXPECT_EQ(all->size(), AdminClient::page_size + 1);
  EXPECT_EQ(all->back().name(), "last");
  const auto asked = server.asked();
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_THAT(asked[0].target, testing::StartsWith("/$Resources/Queues?api-version="));
  const auto* token = asked[0].header("Authorization");
  ASSERT_TRUE(token);
  EXPECT_TRUE(auth::parse_sas_token(*token));
  EXPECT_THAT(*token, Not(HasSubstr("sesame")));
}

TEST(AdminClient, AnUpdateSendsBackWhatItDoesNotKnow) {
  FakeHttp server([](const net::HttpRequest& request) {
    if (request.method == "GET")
      return xml(200, entry_of("a b/c", "<LockDuration>PT1M</LockDuration><New>1</New>"));
    return xml(200, request.body);
  });
  AdminClient admin(server.where(), {});
  const auto name = EntityName::queue("a b/c");
  auto queue = admin.get(name);
  ASSERT_TRUE(queue) << queue.error().detail;
  queue->set("LockDuration", "PT5S");
  ASSERT_TRUE(admin.update(name, *queue));
  const auto asked = server.asked();
  EXPECT_THAT(asked.at(1).target, testing::StartsWith("/a%20b/c?"));
  ASSERT_TRUE(asked[1].header("If-Match"));
  EXPECT_THAT(asked[1].body, HasSubstr("<LockDuration>PT5S</LockDuration><New>1</New>"));
  ASSERT_TRUE(admin.create(name, *queue));
  EXPECT_FALSE(server.asked().at(2).header("If-Match"));
}

// Whoever does not know the question answers in another form, or not at all.
TEST(AdminClient, WhatOnlyOurBrokerTellsIsNothingElsewhere) {
  net::HttpResponse answer;
  FakeHttp server([&](const net::HttpRequest&) { return answer; });
  AdminClient admin(server.where(), {});
  const auto json = [](std::string body) {
    return net::HttpResponse{
        .status = 200, .headers = {{"Content-Type", "application/json"}}, .body = std::move(body)};
  };
  answer = json(R"({"partitions":4})");
  EXPECT_EQ(admin.partitions_of("a/b").value(), 4u);
  EXPECT_THAT(server.asked().back().target, testing::StartsWith("/$omnibus/partitions/a/b?"));
  answer = {.status = 200, .headers = {{"Content-Type", "text/plain; version=0.0.4"}}, .body = "up 1\n"};
  EXPECT_EQ(admin.metrics().value(), "up 1\n");
  const auto asked = server.asked();
  EXPECT_EQ(asked.back().target, "/metrics?") << "with an api-version it would be an entity";
  const auto* token = asked.back().header("Authorization");
  ASSERT_TRUE(token);
  EXPECT_THAT(*token, HasSubstr("sr=http%3A%2F%2F127.0.0.1%2F&")) << "for the whole namespace";
  for (const auto& other : {xml(200, "<feed/>"), xml(404, ""), xml(401, ""), json("{}"), json("4"),
                            json(R"({"partitions":-1})"), json(R"({"partitions":"4"})")}) {
    answer = other;
    const auto count = admin.partitions_of("q");
    ASSERT_TRUE(count);
    EXPECT_FALSE(*count);
    const auto text = admin.metrics();
    ASSERT_TRUE(text);
    EXPECT_FALSE(*text);
  }
}

// It will say it later: what is remembered of an answer is no accident.
TEST(AdminClient, AServerThatCannotSayItNowIsAnError) {
  int status = 0;
  FakeHttp server([&](const net::HttpRequest&) { return xml(status, ""); });
  AdminClient admin(server.where(), {});
  const std::pair<int, Errc> troubles[] = {{503, Errc::server_busy},
                                           {429, Errc::server_busy},
                                           {500, Errc::internal_error},
                                           {504, Errc::timeout},
                                           {403, Errc::resource_limit_exceeded}};
  for (const auto& [told, code] : troubles) {
    status = told;
    const auto count = admin.partitions_of("q");
    ASSERT_FALSE(count) << told;
    EXPECT_EQ(count.error().code, code) << told;
  }
  for (const int told : {400, 401, 404, 405, 410, 501}) {
    status = told;
    const auto count = admin.partitions_of("q");
    ASSERT_TRUE(count) << told << ": " << count.error().detail;
    EXPECT_FALSE(*count) << told;
  }
}

TEST(AdminClient, ErrorsSayWhatIsWrong) {
  int status = 401;
  std::string body =
      "<Error><Code>401</Code><Detail>SubCode=40103. Invalid signature. TrackingId:x</Detail></Error>";
  FakeHttp server([&](const net::HttpRequest&) { return xml(status, body); });
  AdminClient admin(server.where(), {});
  const auto refused = admin.get(EntityName::queue("orders"));
  EXPECT_EQ(refused.error().code, Errc::auth_failed);
  EXPECT_THAT(refused.error().detail, HasSubstr("'root'"));
  EXPECT_THAT(refused.error().detail, HasSubstr("Invalid signature."));
  EXPECT_THAT(refused.error().detail, Not(HasSubstr("sesame")));
  status = 409;
  body = "<Error><Detail>SubCode=40900. There already.</Detail></Error>";
  EXPECT_EQ(admin.create(EntityName::queue("x"), Description(EntityKind::queue)).error().code,
            Errc::entity_already_exists);
  status = 404;
  EXPECT_EQ(admin.remove(EntityName::queue("x")).error().code, Errc::not_found);
  status = 503;
  EXPECT_EQ(admin.list(EntityKind::topic).error().code, Errc::server_busy);
  status = 200;
  body = "<feed><title>Publicly Listed Services</title></feed>";
  EXPECT_EQ(admin.get(EntityName::queue("x")).error().code, Errc::not_found);
  body = entry_of("x");
  const auto other = admin.get(EntityName::topic("x"));
  EXPECT_EQ(other.error().code, Errc::not_found);
  EXPECT_THAT(other.error().detail, HasSubstr("is a queue"));
  body = "<html>";
  EXPECT_EQ(admin.list(EntityKind::queue).error().code, Errc::decode_error);
}

TEST(AdminClient, NobodyThere) {
  ConnectionString where;
  {
    FakeHttp server([](const net::HttpRequest&) { return xml(200, ""); });
    where = server.where();
  }
  const auto refused = AdminClient(where, {}).list(EntityKind::queue);
  EXPECT_EQ(refused.error().code, Errc::io);
  EXPECT_THAT(refused.error().detail, HasSubstr("omnibus serve"));
}

TEST(AdminClient, JsonGoesThereAndBack) {
  FakeHttp server([](const net::HttpRequest& request) -> net::HttpResponse {
    if (request.target == "/plain?") return xml(200, "<feed/>");
    return {.status = 201, .headers = {{"Content-Type", "application/json"}}, .body = request.body};
  });
  AdminClient admin(server.where(), {});
  const auto put = admin.json({.method = "PUT",
                               .path = "news",
                               .body = "{}",
                               .what = "exchange 'news'",
                               .condition = "If-None-Match: *"});
  ASSERT_TRUE(put) << put.error().detail;
  EXPECT_EQ(*put, "{}");
  const auto asked = server.asked();
  EXPECT_EQ(*asked.at(0).header("Content-Type"), "application/json");
  EXPECT_EQ(*asked[0].header("If-None-Match"), "*");
  EXPECT_EQ(
      admin.json({.method = "GET", .path = "plain", .body = {}, .what = "exchange 'plain'", .condition = {}})
          .error()
          .code,
      Errc::not_found);
}

// The certificate has to be vouched for, by the file that is named, for the host that is asked.
TEST(AdminClient, TlsIsChecked) {
  const TemporaryFolder folder;
  const auto files = net::ensure_local_certificates(folder.path(), {}, wall_now());
  ASSERT_TRUE(files) << files.error().detail;
  auto tls = net::TlsContext::make_server(
      {.certificate_file = files->certificate_file, .key_file = files->key_file});
  ASSERT_TRUE(tls) << tls.error().detail;
  FakeHttp server([](const net::HttpRequest&) { return xml(200, "<feed/>"); }, *tls);
  const auto where = server.where("127.0.0.1", true);
  const auto refused = AdminClient(where, {}).list(EntityKind::queue);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("--ca"));
  EXPECT_TRUE(AdminClient(where, {.trust = {.ca_file = files->ca_file}}).list(EntityKind::queue));
  EXPECT_TRUE(AdminClient(where, {.trust = {.verify = false}}).list(EntityKind::queue));
  EXPECT_EQ(AdminClient(where, {.trust = {.ca_file = "/no/such/file"}}).list(EntityKind::queue).error().code,
            Errc::argument_error);
}

TEST(ClosestName, IsTheOneThatWasMeant) {
  EXPECT_EQ(closest_name("order", {"invoices", "Orders", "audit"}), "Orders");
  EXPECT_EQ(closest_name("zebra", {"invoices", "orders"}), "");
}

}  // namespace
}  // namespace omnibus::client
