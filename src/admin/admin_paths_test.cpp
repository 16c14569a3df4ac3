#include "admin/admin_paths.hpp"

#include <gtest/gtest.h>

namespace omnibus::admin {
namespace {

using Kind = AdminPath::Kind;

AdminPath parsed(std::string_view target) {
  const auto path = parse_admin_path(target);
  EXPECT_TRUE(path) << target << ": " << path.error().detail;
  return path.value_or(AdminPath{});
}

TEST(AdminPaths, NamesAreFoundFromTheRight) {
  EXPECT_EQ(parsed("/").kind, Kind::root);
  EXPECT_EQ(parsed("/orders").entity, "orders");
  EXPECT_EQ(parsed("/orders/eu").entity, "orders/eu");
  const auto subscription = parsed("/orders/eu/Subscriptions/audit");
  EXPECT_EQ(subscription.kind, Kind::subscription);
  EXPECT_EQ(subscription.entity, "orders/eu");
  EXPECT_EQ(subscription.subscription, "audit");
  const auto rule = parsed("/orders/Subscriptions/audit/Rules/large");
  EXPECT_EQ(rule.kind, Kind::rule);
  EXPECT_EQ(rule.whole_name(), "orders/Subscriptions/audit");
  EXPECT_EQ(rule.rule, "large");
  EXPECT_EQ(parsed("/orders/Subscriptions").kind, Kind::subscriptions);
  EXPECT_EQ(parsed("/orders/Subscriptions/audit/Rules").kind, Kind::rules);
}

// Words mean something only in their place: a subscription may be called Rules.
TEST(AdminPaths, WordsMayBeNames) {
  EXPECT_EQ(parsed("/t/Subscriptions/rules").subscription, "rules");
  EXPECT_EQ(parsed("/t/Subscriptions/s/Rules/rules").rule, "rules");
  EXPECT_EQ(parsed("/t/Subscriptions/subscriptions").subscription, "subscriptions");
  EXPECT_EQ(parsed("/rules").entity, "rules");
  EXPECT_EQ(parsed("/subscriptions").entity, "subscriptions");
}

// What each client writes for the same thing.
TEST(AdminPaths, EveryClientsSpellingIsUnderstood) {
  for (const auto* target : {"/a%2Fb/Subscriptions/s/Rules/%24Default?api-version=2021-05",
                             "/a%2fb/subscriptions/s/rules/$Default",
                             "/a/b/SUBSCRIPTIONS/s/RULES/$Default?enrich=true&api-version=2021-05",
                             "/a/b/Subscriptions/s/Rules/$Default/??api-version=2021-05"}) {
    const auto path = parsed(target);
    EXPECT_EQ(path.kind, Kind::rule) << target;
    EXPECT_EQ(path.entity, "a/b") << target;
    EXPECT_EQ(path.rule, "$Default") << target;
  }
  EXPECT_EQ(parsed("/$resources/queues?$skip=100&$top=50").kind, Kind::queues);
  EXPECT_EQ(parsed("/%24Resources/Topics").kind, Kind::topics);
  EXPECT_EQ(parsed("/$namespaceinfo?api-version=2017-04").kind, Kind::namespace_info);
  EXPECT_EQ(parsed("/t/Subscriptions/s/Rules/").kind, Kind::rules);
  EXPECT_EQ(parsed("/$Resources/EventHubs").kind, Kind::unknown);
  EXPECT_EQ(parsed("/$other").kind, Kind::unknown);
}

TEST(AdminPaths, PagesAreBounded) {
  const auto path = parsed("/$Resources/Queues?%24skip=250&%24top=1000&x=%41");
  EXPECT_EQ(path.skip, 250u);
  EXPECT_EQ(path.top, page_entries_max);
  EXPECT_EQ(parsed("/q/Subscriptions??&$top=7").top, 7u);
  EXPECT_EQ(parsed("/$Resources/Queues").top, page_entries_max);
  EXPECT_FALSE(parse_admin_path("/$Resources/Queues?$skip=-1"));
  EXPECT_FALSE(parse_admin_path("/$Resources/Queues?$top=many"));
  EXPECT_FALSE(parse_admin_path("/$Resources/Queues?$top=0"));
}

TEST(AdminPaths, BrokenAddressesAreRefused) {
  EXPECT_FALSE(parse_admin_path("/a%2"));
  EXPECT_FALSE(parse_admin_path("/a%00b"));
  EXPECT_FALSE(parse_admin_path("/%ff"));
  EXPECT_FALSE(parse_admin_path("/" + std::string(target_bytes_max, 'a')));
}

// Without a name the whole name would be the topic's, and a DELETE would take the topic.
TEST(AdminPaths, ASubscriptionHasAName) {
  EXPECT_FALSE(parse_admin_path("/t/Subscriptions//Rules/r"));
  EXPECT_FALSE(parse_admin_path("/t/Subscriptions//Rules"));
  EXPECT_FALSE(parse_admin_path("/t/Subscriptions//Rules/"));
  EXPECT_EQ(parsed("/t/Subscriptions//").kind, AdminPath::Kind::subscriptions);
}

TEST(AdminPaths, VersionsAreComparedAsTheySort) {
  EXPECT_TRUE(knows("", "2024-05"));
  EXPECT_TRUE(knows("2021-05", "2021-05"));
  EXPECT_FALSE(knows("2017-04", "2021-05"));
}

TEST(AdminPaths, ASubscriptionsNameHasTwoParts) {
  const auto parts = split_subscription("a/b/Subscriptions/s");
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->topic, "a/b");
  EXPECT_EQ(parts->subscription, "s");
  EXPECT_FALSE(split_subscription("a/b/c"));
  EXPECT_FALSE(split_subscription("s"));
}

}  // namespace
}  // namespace omnibus::admin
