#include "auth/grants.hpp"

#include <gtest/gtest.h>

namespace omnibus::auth {
namespace {

using namespace std::chrono_literals;
constexpr Instant noon{std::chrono::seconds{1'800'000'000}};

TEST(Grants, NothingIsAllowedBeforeAToken) {
  const ConnectionGrants grants;
  EXPECT_FALSE(grants.has_any_valid(noon));
  const auto until = grants.allowed("Orders", Right::send, noon);
  ASSERT_FALSE(until);
  EXPECT_EQ(until.error().code, Errc::unauthorized_access);
  EXPECT_NE(until.error().detail.find("Send"), std::string::npos);
  EXPECT_NE(until.error().detail.find("orders"), std::string::npos);
  EXPECT_EQ(grants.next_expiry(noon), std::nullopt);
}

TEST(Grants, DifferentTokensForDifferentEntities) {
  ConnectionGrants grants;
  ASSERT_TRUE(grants.put({.path = "a", .rights = {Right::send}, .expires = noon + 1h}, noon));
  ASSERT_TRUE(grants.put({.path = "b", .rights = {Right::listen}, .expires = noon + 2h}, noon));
  EXPECT_EQ(*grants.allowed("A", Right::send, noon), noon + 1h);
  EXPECT_EQ(*grants.allowed("b/$DeadLetterQueue", Right::listen, noon), noon + 2h);
  EXPECT_FALSE(grants.allowed("a", Right::listen, noon));
  EXPECT_FALSE(grants.allowed("b", Right::send, noon));
  EXPECT_FALSE(grants.allowed("ab", Right::send, noon));
  EXPECT_FALSE(grants.allowed("", Right::send, noon));
}

TEST(Grants, TheLongestCoveringTokenCounts) {
  ConnectionGrants grants;
  ASSERT_TRUE(grants.put({.path = "", .rights = Rights::all(), .expires = noon + 1h}, noon));
  ASSERT_TRUE(grants.put({.path = "q", .rights = {Right::send}, .expires = noon + 2h}, noon));
  EXPECT_EQ(*grants.allowed("q/$management", Right::send, noon), noon + 2h);
  EXPECT_EQ(*grants.allowed("q", Right::listen, noon), noon + 1h);
}

TEST(Grants, TheHolderIsWhoseTokenGivesTheRight) {
  ConnectionGrants grants;
  EXPECT_EQ(grants.holder("q", Right::listen, noon), std::nullopt);
  const auto put = [&](std::string path, Rights rights, Instant expires, std::string holder) {
    ASSERT_TRUE(grants.put({std::move(path), rights, expires, std::move(holder)}, noon));
  };
  put("", {Right::listen}, noon + 1h, "listens");
  put("q", {Right::send}, noon + 2h, "sends");
  EXPECT_EQ(grants.holder("q/$management", Right::listen, noon), "listens");
  EXPECT_EQ(grants.holder("q/$management", Right::send, noon), "sends");
  EXPECT_EQ(grants.holder("q", Right::manage, noon), "sends") << "nobody has it: who it was that asked";
  EXPECT_EQ(grants.holder("other", Right::send, noon + 1h), std::nullopt) << "ended";
  const ConnectionGrants logged_in{Rights::all()};
  EXPECT_EQ(logged_in.holder("q", Right::listen, noon), std::nullopt);
}

// Two links, two tokens; one is renewed, the other is not. Asking again at the moment the first answer
// named finds exactly the link that has to go.
TEST(Grants, AfterExpiryExactlyTheUnrenewedLinkIsRefused) {
  ConnectionGrants grants;
  ASSERT_TRUE(grants.put({.path = "a", .rights = {Right::send}, .expires = noon + 1h}, noon));
  ASSERT_TRUE(grants.put({.path = "b", .rights = {Right::send}, .expires = noon + 1h}, noon));
  const Instant due = *grants.allowed("a", Right::send, noon);
  EXPECT_EQ(grants.next_expiry(noon), due);
  ASSERT_TRUE(grants.put({.path = "b", .rights = {Right::send}, .expires = noon + 2h}, noon + 45min));

  EXPECT_TRUE(grants.allowed("a", Right::send, due - 1ms));
  const auto gone = grants.allowed("a", Right::send, due);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Errc::unauthorized_access);
  EXPECT_TRUE(gone.error().detail.starts_with("ExpiredToken"));
  EXPECT_EQ(*grants.allowed("b", Right::send, due), noon + 2h);
  EXPECT_EQ(grants.next_expiry(due), noon + 2h);
  EXPECT_TRUE(grants.has_any_valid(due));
  EXPECT_FALSE(grants.has_any_valid(noon + 2h));
  EXPECT_EQ(grants.next_expiry(noon + 2h), std::nullopt);
}

TEST(Grants, ANewTokenReplacesTheOldEvenWithLess) {
  ConnectionGrants grants;
  ASSERT_TRUE(grants.put({.path = "a", .rights = Rights::all(), .expires = noon + 2h}, noon));
  ASSERT_TRUE(grants.put({.path = "A", .rights = {Right::send}, .expires = noon + 1h}, noon));
  EXPECT_EQ(grants.size(), 1u);
  EXPECT_FALSE(grants.allowed("a", Right::listen, noon));
  EXPECT_EQ(*grants.allowed("a", Right::send, noon), noon + 1h);
  EXPECT_EQ(grants.next_expiry(noon), noon + 1h);
}

TEST(Grants, PlainRightsNeverEndAndTokensOnlyAdd) {
  ConnectionGrants grants(Rights{Right::send});
  EXPECT_TRUE(grants.has_any_valid(noon));
  EXPECT_EQ(*grants.allowed("q", Right::send, noon), never);
  EXPECT_FALSE(grants.allowed("q", Right::listen, noon));
  ASSERT_TRUE(grants.put({.path = "q", .rights = {Right::listen}, .expires = noon + 1h}, noon));
  EXPECT_EQ(*grants.allowed("q", Right::listen, noon), noon + 1h);
  EXPECT_EQ(*grants.allowed("q", Right::send, noon + 5h), never);
}

TEST(Grants, ATokenWithoutEndHasNoNextExpiry) {
  ConnectionGrants grants;
  ASSERT_TRUE(grants.put({.path = "", .rights = Rights::all()}, noon));
  EXPECT_EQ(grants.next_expiry(noon), std::nullopt);
  EXPECT_TRUE(grants.has_any_valid(noon));
}

TEST(Grants, CoordinatorAndManagementAskForAnyRight) {
  ConnectionGrants grants;
  ASSERT_TRUE(grants.put({.path = "hub", .rights = {Right::listen}, .expires = noon + 1h}, noon));
  EXPECT_EQ(*grants.allowed_any("hub/$management", noon), noon + 1h);
  EXPECT_FALSE(grants.allowed_any("other", noon));
  EXPECT_EQ(*grants.allowed_somewhere({Right::send, Right::listen}, noon), noon + 1h);
  EXPECT_FALSE(grants.allowed_somewhere({Right::send}, noon));
  EXPECT_TRUE(
      grants.allowed_somewhere({Right::listen}, noon + 1h).error().detail.starts_with("ExpiredToken"));
}

TEST(Grants, AtTheLimitOnlyRenewalsAndPlacesOfExpiredOnesAreLeft) {
  ConnectionGrants grants({}, 3);
  for (const auto* path : {"a", "b", "c"})
    ASSERT_TRUE(grants.put({.path = path, .rights = {Right::send}, .expires = noon + 1h}, noon));
  const auto fourth = grants.put({.path = "d", .rights = {Right::send}, .expires = noon + 2h}, noon);
  ASSERT_FALSE(fourth);
  EXPECT_EQ(fourth.error().code, Errc::resource_limit_exceeded);
  EXPECT_TRUE(grants.put({.path = "a", .rights = {Right::send}, .expires = noon + 2h}, noon));
  EXPECT_TRUE(grants.put({.path = "d", .rights = {Right::send}, .expires = noon + 2h}, noon + 1h));
  EXPECT_EQ(grants.size(), 2u);
  EXPECT_TRUE(grants.allowed("a", Right::send, noon + 1h));
}

}  // namespace
}  // namespace omnibus::auth
