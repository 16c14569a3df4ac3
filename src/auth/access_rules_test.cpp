#include "auth/access_rules.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace omnibus::auth {
namespace {

constexpr Instant noon{std::chrono::seconds{1'800'000'000}};

AccessRule rule(std::string name, std::string key = "k") {
  return *make_rule({.key_name = std::move(name), .primary_key = key, .rights = {Right::send}}, noon);
}

TEST(Rights, ManageImpliesBoth) {
  EXPECT_TRUE(Rights{Right::manage}.has(Right::send));
  EXPECT_TRUE(Rights{Right::manage}.has(Right::listen));
  EXPECT_FALSE(Rights{Right::manage}.states(Right::send));
  EXPECT_FALSE(Rights{Right::send}.has(Right::listen));
  EXPECT_FALSE((Rights{Right::send, Right::listen}.has(Right::manage)));
  EXPECT_EQ(Rights{Right::manage}, Rights::all());
  EXPECT_EQ(right_named("LISTEN"), Right::listen);
  EXPECT_EQ(right_named("Own"), std::nullopt);
  EXPECT_EQ(to_string(Rights{Right::send, Right::listen}), "Send, Listen");
}

TEST(AccessRule, MissingKeysAreGeneratedAndDiffer) {
  const auto made = make_rule({.key_name = "r", .rights = {Right::listen}}, noon);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->primary_key.size(), 44u);
  EXPECT_EQ(base64_decode(made->primary_key)->size(), 32u);
  EXPECT_NE(made->primary_key, made->secondary_key);
  EXPECT_NE(made->primary_key, make_rule({.key_name = "r", .rights = {Right::listen}}, noon)->primary_key);
}

TEST(AccessRule, RightsKeepTheirOrder) {
  const auto made =
      make_rule({.key_name = "r", .rights = {Right::listen, Right::manage, Right::send, Right::send}}, noon);
  EXPECT_EQ(made->stated_rights, (std::vector{Right::listen, Right::manage, Right::send}));
}

TEST(AccessRule, ManageMustStateAllThree) {
  for (const auto& rights : {std::vector{Right::manage}, std::vector{Right::manage, Right::send}}) {
    const auto made = make_rule({.key_name = "r", .rights = rights}, noon);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Errc::argument_error);
  }
  EXPECT_FALSE(make_rule({.key_name = "r", .rights = {}}, noon));
}

TEST(AccessRule, NamesAndKeysAreBounded) {
  EXPECT_TRUE(make_rule({.key_name = std::string(256, 'n'), .rights = {Right::send}}, noon));
  EXPECT_FALSE(make_rule({.key_name = std::string(257, 'n'), .rights = {Right::send}}, noon));
  EXPECT_FALSE(make_rule({.key_name = "", .rights = {Right::send}}, noon));
  EXPECT_FALSE(make_rule({.key_name = "a\nb", .rights = {Right::send}}, noon));
  EXPECT_TRUE(is_good_key(std::string(256, 'k')));
  EXPECT_FALSE(is_good_key(std::string(257, 'k')));
  EXPECT_FALSE(is_good_key("two words"));
  EXPECT_FALSE(is_good_key(""));
}

TEST(AccessRule, ABadKeyIsNotRepeatedInTheError) {
  const auto made = make_rule({.key_name = "r", .primary_key = "hush hush", .rights = {Right::send}}, noon);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().detail.find("hush"), std::string::npos);
}

TEST(AccessRules, NearestRuleOfANameIsFoundFirst) {
  AccessRules rules;
  ASSERT_TRUE(rules.put("", rule("app", "of-namespace")));
  ASSERT_TRUE(rules.put("Topic", rule("App", "of-topic")));
  EXPECT_EQ(rules.find("topic/Subscriptions/x", "app")->primary_key, "of-topic");
  EXPECT_EQ(rules.find("/TOPIC/", "APP")->primary_key, "of-topic");
  EXPECT_EQ(rules.find("topic2", "app")->primary_key, "of-namespace");
  EXPECT_EQ(rules.find("", "app")->primary_key, "of-namespace");
  EXPECT_EQ(rules.find("topic", "other"), nullptr);
  EXPECT_EQ(rules.find_all("topic/subscriptions/x", "app").size(), 2u);
}

TEST(AccessRules, QueueNamesMayHaveSegments) {
  AccessRules rules;
  ASSERT_TRUE(rules.put("eu/orders", rule("app")));
  EXPECT_NE(rules.find("eu/orders/$deadletterqueue", "app"), nullptr);
  EXPECT_EQ(rules.find("eu", "app"), nullptr);
  EXPECT_EQ(rules.find("eu/orders2", "app"), nullptr);
}

TEST(AccessRules, TwelvePerScopeAndNotThirteen) {
  AccessRules rules;
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(rules.put("q", rule(fmt::format("r{}", i))));
  const auto thirteenth = rules.put("q", rule("r12"));
  ASSERT_FALSE(thirteenth);
  EXPECT_EQ(thirteenth.error().code, Errc::resource_limit_exceeded);
  EXPECT_TRUE(rules.put("q", rule("R11", "new")));  // replaces
  EXPECT_EQ(rules.rules_on("q").size(), 12u);
  EXPECT_TRUE(rules.put("other", rule("r12")));
  EXPECT_TRUE(rules.remove("Q", "r0"));
  EXPECT_FALSE(rules.remove("Q", "r0"));
  EXPECT_TRUE(rules.put("q", rule("r12")));
}

TEST(AccessRules, LimitIsASettingAndZeroMeansNone) {
  AccessRules two(2);
  EXPECT_TRUE(two.replace("q", {rule("a"), rule("b")}));
  EXPECT_FALSE(two.replace("q", {rule("a"), rule("b"), rule("c")}));
  EXPECT_EQ(two.rules_on("q").size(), 2u);
  AccessRules any(0);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(any.put("q", rule(fmt::format("r{}", i))));
}

TEST(AccessRules, ADocumentReplacesAllRulesButNotWithTwins) {
  AccessRules rules;
  ASSERT_TRUE(rules.put("q", rule("old")));
  EXPECT_FALSE(rules.replace("q", {rule("a"), rule("A")}));
  EXPECT_NE(rules.find_on("q", "old"), nullptr);
  ASSERT_TRUE(rules.replace("q", {rule("a")}));
  EXPECT_EQ(rules.find_on("q", "old"), nullptr);
  ASSERT_TRUE(rules.replace("q", {}));
  EXPECT_TRUE(rules.rules_on("q").empty());
}

TEST(AccessRules, ReplacingKeepsTheTimeOfCreation) {
  AccessRules rules;
  ASSERT_TRUE(rules.put("", rule("a")));
  auto newer = rule("a", "rolled");
  newer.created = newer.modified = noon + std::chrono::hours{1};
  ASSERT_TRUE(rules.put("", newer));
  EXPECT_EQ(rules.find_on("", "a")->created, noon);
  EXPECT_EQ(rules.find_on("", "a")->modified, noon + std::chrono::hours{1});
}

TEST(AccessRules, RulesGoWithTheirEntity) {
  AccessRules rules;
  ASSERT_TRUE(rules.put("", rule("a")));
  ASSERT_TRUE(rules.put("q", rule("a")));
  ASSERT_TRUE(rules.put("q2", rule("a")));
  rules.remove_all_below("Q");
  EXPECT_EQ(rules.find_on("q", "a"), nullptr);
  EXPECT_NE(rules.find_on("q2", "a"), nullptr);
  EXPECT_NE(rules.find_on("", "a"), nullptr);
}

}  // namespace
}  // namespace omnibus::auth
