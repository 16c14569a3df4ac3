#include "admin/http_admin.hpp"

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

// Healthy means that every plane serves, and that those which must show life did so lately.
TEST(HttpAdmin, HealthIsTrueOnlyWhileEveryPlaneServes) {
  Health health;
  const HttpAdmin admin{health, "", false};
  const Tick start{1h};
  EXPECT_EQ(admin.answer(get("/health"), start).status, 503) << "no plane at all is no health";

  auto& listeners = health.add("listeners");
  auto& shard = health.add("shard 0", 5s);
  EXPECT_EQ(admin.answer(get("/health"), start).status, 503);
  listeners.serves(true);
  shard.serves(true);
  shard.pulse(start);
  EXPECT_EQ(admin.answer(get("/health"), start + 5s).status, 200);
  EXPECT_EQ(admin.answer(get("/health?x=1"), start + 5s).body,
            R"({"status":"healthy","message":"Service is healthy."})");
  EXPECT_EQ(admin.answer(get("/health"), start + 5001ms).status, 503) << "the shard is stuck";
  EXPECT_EQ(health.trouble(start + 6s), "shard 0");
  shard.pulse(start + 6s);
  listeners.serves(false);
  EXPECT_EQ(admin.answer(get("/health"), start + 6s).status, 503);
}

TEST(HttpAdmin, HandsOutTheLocalCaAndNothingElse) {
  Health health;
  const HttpAdmin admin{health, "PEM", false};
  EXPECT_EQ(admin.answer(get("/cert"), {}).body, "PEM");
  EXPECT_EQ(admin.answer(get("/queue1"), {}).status, 404);
  EXPECT_EQ(HttpAdmin(health, "", false).answer(get("/cert"), {}).status, 404);
  auto post = get("/health");
  post.method = "POST";
  EXPECT_EQ(admin.answer(post, {}).status, 405);
}

TEST(HttpAdmin, RequireTlsRefusesPlainRequestsButHealth) {
  Health health;
  const HttpAdmin admin{health, "PEM", true};
  EXPECT_EQ(admin.answer(get("/cert"), {}).status, 401);
  EXPECT_EQ(admin.answer(get("/cert", true), {}).status, 200);
  EXPECT_EQ(admin.answer(get("/health"), {}).status, 503);
}

}  // namespace
}  // namespace omnibus::admin
