#include "admin/entity_name.hpp"

#include <gtest/gtest.h>

namespace omnibus::admin {
namespace {

TEST(EntityName, GoodOnes) {
  for (const auto* name : {"q", "queue.1", "a/b/c", "A-b_c~d.e", "messages", "rules/a", "0", "Subscriptions"})
    EXPECT_TRUE(check_entity_name(name)) << name;
  EXPECT_TRUE(check_entity_name(std::string(260, 'q')));
}

TEST(EntityName, BadOnes) {
  for (const auto* name : {"", "-q", "q-", "/q", "q/", "a//b", "$q", "a/$b", "a b", "a\tb", "zażółć",
                           "a/Messages", "a/subscriptions/b", "a/RULES", "q?", "q#1", "a\\b", "a:b"})
    EXPECT_FALSE(check_entity_name(name)) << name;
  EXPECT_FALSE(check_entity_name(std::string(261, 'q')));
  EXPECT_FALSE(check_entity_name(std::string_view("a\0b", 3)));
}

// The spellings of the SDKs for one and the same target. [HTTP 12]
TEST(EntityName, TargetsOfForwarding) {
  for (const auto* text : {"a/Q1", "sb://host/a/Q1", "sb://host:5300/a/Q1/", "https://other.example/a/Q1",
                           "http://h/a%2FQ1", "SB://NS/a/Q1?api-version=2021-05"}) {
    const auto name = forward_target(text);
    ASSERT_TRUE(name) << text;
    EXPECT_EQ(*name, "a/Q1") << text;
  }
  for (const auto* text : {"", "sb://host", "sb://host/", "sb://host/%zz", "sb://host/%24x", "a b", "/q"})
    EXPECT_FALSE(forward_target(text)) << text;
}

TEST(EntityName, SubscriptionsHaveShorterNamesWithoutSlashes) {
  for (const auto* good : {"a", "A-1", "a.b_c~d", "subscriptions"})
    EXPECT_TRUE(check_subscription_name(good)) << good;
  EXPECT_TRUE(check_subscription_name(std::string(50, 'a')));
  EXPECT_FALSE(check_subscription_name(std::string(51, 'a')));
  for (const auto* bad : {"", "a/b", "$a", "-a", "a.", "a b", "\xc3\xa4"})
    EXPECT_FALSE(check_subscription_name(bad)) << bad;
}

}  // namespace
}  // namespace omnibus::admin
