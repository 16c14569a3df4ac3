#include "admin/http_admin.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace omnibus::admin {
namespace {

using namespace std::chrono_literals;

net::HttpRequest get(std::string target, bool tls = false) {
  net::HttpRequest request;
  request.method = "GET";
  request.target = std::move(target);
  request.tls = tls;
  return request;
}

net::HttpResponse ask(const HttpAdmin& admin, const net::HttpRequest& request, Tick now = {}) {
  static Random random{1};
  return admin.answer(request, {now, Instant{1'767'323'045'000ms}}, random);
}

// Healthy means that every plane serves, and that those which must show life did so lately.
TEST(HttpAdmin, HealthIsTrueOnlyWhileEveryPlaneServes) {
  Health health;
  const HttpAdmin admin{health, "", false};
  const Tick start{1h};
  EXPECT_EQ(ask(admin, get("/health"), start).status, 503) << "no plane at all is no health";

  auto& listeners = health.add("listeners");
  auto& shard = health.add("shard 0", 5s);
  EXPECT_EQ(ask(admin, get("/health"), start).status, 503);
  listeners.serves(true);
  shard.serves(true);
  shard.pulse(start);
  EXPECT_EQ(ask(admin, get("/health"), start + 5s).status, 200);
  EXPECT_EQ(ask(admin, get("/health?x=1"), start + 5s).body,
            R"({"status":"healthy","message":"Service is healthy."})");
  EXPECT_EQ(ask(admin, get("/health"), start + 5001ms).status, 503) << "the shard is stuck";
  EXPECT_EQ(health.trouble(start + 6s), "shard 0");
  shard.pulse(start + 6s);
  listeners.serves(false);
  EXPECT_EQ(ask(admin, get("/health"), start + 6s).status, 503);
}

TEST(HttpAdmin, HandsOutTheLocalCaAndNothingElse) {
  Health health;
  const HttpAdmin admin{health, "PEM", false};
  EXPECT_EQ(ask(admin, get("/cert")).body, "PEM");
  EXPECT_EQ(ask(admin, get("/queue1")).status, 404);
  EXPECT_EQ(ask(HttpAdmin(health, "", false), get("/cert")).status, 404);
  auto post = get("/health");
  post.method = "POST";
  EXPECT_EQ(ask(admin, post).status, 405);
}

TEST(HttpAdmin, RequireTlsRefusesPlainRequestsButHealth) {
  Health health;
  const HttpAdmin admin{health, "PEM", true};
  EXPECT_EQ(ask(admin, get("/cert")).status, 401);
  EXPECT_EQ(ask(admin, get("/cert", true)).status, 200);
  EXPECT_EQ(ask(admin, get("/health")).status, 503);
}

// As every other error: a program finds the code and the sub-code [admin-http contract 7.2].
TEST(HttpAdmin, ErrorsLookAsThoseOfTheManagementApi) {
  Health health;
  const HttpAdmin admin{health, "PEM", true};
  const auto looks = [](const net::HttpResponse& response, int status, int sub_code) {
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(response.headers.at(0).value, "application/xml; charset=utf-8");
    EXPECT_THAT(response.body, testing::StartsWith(fmt::format("<Error><Code>{}</Code><Detail>SubCode={}. ",
                                                               status, sub_code)));
    EXPECT_THAT(response.body, testing::HasSubstr(" TrackingId:"));
  };
  looks(ask(admin, get("/cert")), 401, 40101);
  looks(ask(admin, get("/queue1", true)), 404, 40400);
  auto post = get("/health");
  post.method = "POST";
  looks(ask(admin, post), 405, 40000);
  post = get("/cert", true);
  post.method = "DELETE";
  looks(ask(admin, post), 405, 40000);
}

}  // namespace
}  // namespace omnibus::admin
