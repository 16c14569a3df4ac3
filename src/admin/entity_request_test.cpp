// From a client's XML to settings and back: what each SDK sends is understood, what is written is exactly
// this.
#include "admin/entity_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "admin/descriptions.hpp"

namespace omnibus::admin {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr Instant now{1'767'323'045'000ms};  // 2026-01-02T03:04:05Z

Result<EntityRequest> read(std::string_view description) {
  const auto entry = parse_xml(fmt::format("<entry><content>{}</content></entry>", description));
  if (!entry) return fail(entry.error());
  const auto content = content_of(*entry);
  if (!content) return fail(content.error());
  return read_entity_request(**content, now);
}
Result<Entity> made(std::string_view description, std::string name = "orders") {
  const auto request = read(description);
  if (!request) return fail(request.error());
  return new_entity(*request, std::move(name), {}, now);
}
std::string refusal(std::string_view description) {
  const auto entity = made(description);
  return entity ? std::string{} : entity.error().detail;
}
std::string written(const Entity& entity, std::string version = "2021-05") {
  XmlWriter out;
  write_description(out, entity, {"ns.example", std::move(version)});
  return out.take();
}

TEST(EntityRequest, WhatIsNotSaidHasTheDefault) {
  auto queue = made("<QueueDescription/>");
  ASSERT_TRUE(queue) << queue.error().detail;
  queue->created = now;
  EXPECT_EQ(
      written(*queue),
      "<QueueDescription xmlns=\"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect\" "
      "xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\"><LockDuration>PT1M</LockDuration>"
      "<MaxSizeInMegabytes>1024</MaxSizeInMegabytes><RequiresDuplicateDetection>false"
      "</RequiresDuplicateDetection><RequiresSession>false</RequiresSession><DefaultMessageTimeToLive>"
      "P10675199DT2H48M5.4775807S</DefaultMessageTimeToLive><DeadLetteringOnMessageExpiration>false"
      "</DeadLetteringOnMessageExpiration><DuplicateDetectionHistoryTimeWindow>PT10M"
      "</DuplicateDetectionHistoryTimeWindow><MaxDeliveryCount>10</MaxDeliveryCount>"
      "<EnableBatchedOperations>true</EnableBatchedOperations><SizeInBytes>0</SizeInBytes>"
      "<MessageCount>0</MessageCount><IsAnonymousAccessible>false</IsAnonymousAccessible>"
      "<AuthorizationRules/><Status>Active</Status><CreatedAt>2026-01-02T03:04:05.0000000Z</CreatedAt>"
      "<UpdatedAt>2026-01-02T03:04:05.0000000Z</UpdatedAt><AccessedAt>0001-01-01T00:00:00Z</AccessedAt>"
      "<SupportOrdering>true</SupportOrdering><CountDetails "
      "xmlns:d2p1=\"http://schemas.microsoft.com/netservices/2011/06/servicebus\">"
      "<d2p1:ActiveMessageCount>0</d2p1:ActiveMessageCount><d2p1:DeadLetterMessageCount>0"
      "</d2p1:DeadLetterMessageCount><d2p1:ScheduledMessageCount>0</d2p1:ScheduledMessageCount>"
      "<d2p1:TransferMessageCount>0</d2p1:TransferMessageCount><d2p1:TransferDeadLetterMessageCount>0"
      "</d2p1:TransferDeadLetterMessageCount></CountDetails><AutoDeleteOnIdle>"
      "P10675199DT2H48M5.4775807S</AutoDeleteOnIdle><EnablePartitioning>false</EnablePartitioning>"
      "<EntityAvailabilityStatus>Available</EntityAvailabilityStatus><EnableExpress>false</EnableExpress>"
      "<MaxMessageSizeInKilobytes>1024</MaxMessageSizeInKilobytes></QueueDescription>");
}

TEST(EntityRequest, ATopicIsWrittenInTheOrderOfTheService) {
  auto topic = made("<TopicDescription><UserMetadata>note</UserMetadata></TopicDescription>");
  ASSERT_TRUE(topic) << topic.error().detail;
  topic->created = now;
  topic->counts.sql_filters = 3;
  const std::string text = written(*topic, "2024-05");
  std::size_t at = 0;
  for (const auto* name : {"DefaultMessageTimeToLive",
                           "MaxSizeInMegabytes",
                           "RequiresDuplicateDetection",
                           "DuplicateDetectionHistoryTimeWindow",
                           "EnableBatchedOperations",
                           "SizeInBytes",
                           "FilteringMessagesBeforePublishing",
                           "IsAnonymousAccessible",
                           "AuthorizationRules",
                           "Status",
                           "UserMetadata",
                           "CreatedAt",
                           "UpdatedAt",
                           "AccessedAt",
                           "SupportOrdering",
                           "CountDetails",
                           "SubscriptionCount",
                           "AutoDeleteOnIdle",
                           "EnablePartitioning",
                           "EntityAvailabilityStatus",
                           "EnableSubscriptionPartitioning",
                           "EnableExpress",
                           "MaxMessageSizeInKilobytes",
                           "SqlFilterCount",
                           "CorrelationFilterCount"}) {
    const auto next = text.find(fmt::format("<{}", name), at);
    ASSERT_NE(next, std::string::npos) << name << " is not behind what precedes it";
    at = next;
  }
  EXPECT_THAT(text, HasSubstr("<SqlFilterCount>3</SqlFilterCount>"));
  EXPECT_THAT(written(*topic, "2021-05"), testing::Not(HasSubstr("SqlFilterCount")));
  EXPECT_THAT(written(*topic, "2017-04"), testing::Not(HasSubstr("MaxMessageSize")));
}

TEST(EntityRequest, ASubscriptionIsWrittenInTheOrderOfTheService) {
  auto subscription = made(
      "<SubscriptionDescription><UserMetadata>note</UserMetadata><ForwardTo>a</ForwardTo>"
      "<ForwardDeadLetteredMessagesTo>b</ForwardDeadLetteredMessagesTo></SubscriptionDescription>",
      "orders/Subscriptions/audit");
  ASSERT_TRUE(subscription) << subscription.error().detail;
  subscription->created = now;
  const std::string text = written(*subscription, "2024-05");
  std::vector<std::string> names;
  static const std::regex element{"<([A-Z][A-Za-z]*)[ >]"};
  for (std::sregex_iterator one{text.begin(), text.end(), element}, end; one != end; ++one)
    names.push_back((*one)[1]);
  EXPECT_THAT(names, testing::ElementsAre("SubscriptionDescription", "LockDuration", "RequiresSession",
                                          "DefaultMessageTimeToLive", "DeadLetteringOnMessageExpiration",
                                          "DeadLetteringOnFilterEvaluationExceptions", "MessageCount",
                                          "MaxDeliveryCount", "EnableBatchedOperations", "Status",
                                          "ForwardTo", "CreatedAt", "UpdatedAt", "AccessedAt", "CountDetails",
                                          "UserMetadata", "ForwardDeadLetteredMessagesTo", "AutoDeleteOnIdle",
                                          "EntityAvailabilityStatus"));
}

// Order, prefixes and read-only elements differ from client to client.
TEST(EntityRequest, AnyOrderAndPrefixIsRead) {
  const auto queue = made(
      "<ns1:QueueDescription "
      "xmlns:ns1=\"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect\" "
      "xmlns:p4=\"http://www.w3.org/2001/XMLSchema-instance\"><ns1:MaxDeliveryCount> 7 "
      "</ns1:MaxDeliveryCount>"
      "<ns1:ForwardTo p4:nil=\"true\"/><ns1:SkippedUpdate>true</ns1:SkippedUpdate><ns1:SizeInBytes>17"
      "</ns1:SizeInBytes><ns1:Unknown><ns1:Inner/></ns1:Unknown><ns1:RequiresSession>True</"
      "ns1:RequiresSession>"
      "<ns1:UserMetadata/><ns1:LockDuration>PT30S</ns1:LockDuration></ns1:QueueDescription>");
  ASSERT_TRUE(queue) << queue.error().detail;
  EXPECT_EQ(queue->queue.delivery_count_max, 7u);
  EXPECT_EQ(queue->queue.lock_duration, 30s);
  EXPECT_TRUE(queue->queue.requires_session);
}

TEST(EntityRequest, ValuesOutOfRangeAreRefused) {
  const auto with = [](std::string_view element) {
    return refusal(fmt::format("<QueueDescription>{}</QueueDescription>", element));
  };
  EXPECT_THAT(with("<LockDuration>PT4S</LockDuration>"), HasSubstr("LockDuration"));
  EXPECT_THAT(with("<LockDuration>soon</LockDuration>"), HasSubstr("LockDuration"));
  EXPECT_THAT(with("<MaxSizeInMegabytes>77</MaxSizeInMegabytes>"), HasSubstr("1024, 2048"));
  EXPECT_THAT(with("<MaxDeliveryCount>0</MaxDeliveryCount>"), HasSubstr("MaxDeliveryCount"));
  EXPECT_THAT(with("<MaxDeliveryCount>2001</MaxDeliveryCount>"), HasSubstr("MaxDeliveryCount"));
  EXPECT_THAT(with("<RequiresSession>perhaps</RequiresSession>"), HasSubstr("true or false"));
  EXPECT_THAT(with("<Status>Deleting</Status>"), HasSubstr("Active"));
  EXPECT_THAT(with("<ForwardTo>orders</ForwardTo>"), HasSubstr("itself"));
  EXPECT_THAT(with("<RequiresSession>true</RequiresSession><ForwardTo>x</ForwardTo>"), HasSubstr("sessions"));
  EXPECT_THAT(with("<EnableExpress>true</EnableExpress><RequiresDuplicateDetection>true"
                   "</RequiresDuplicateDetection>"),
              HasSubstr("go together"));
  EXPECT_THAT(with("<MaxMessageSizeInKilobytes>102401</MaxMessageSizeInKilobytes>"), HasSubstr("102400"));
  EXPECT_THAT(with("<UserMetadata>" + std::string(1025, 'x') + "</UserMetadata>"), HasSubstr("1024"));
  EXPECT_THAT(refusal("<EventHubDescription/>"), HasSubstr("no queue, topic or subscription"));
}

TEST(EntityRequest, ForwardingIsShownAsAnAddress) {
  const auto forward = [](std::string_view to) {
    auto queue = made(fmt::format("<QueueDescription><ForwardTo>{}</ForwardTo></QueueDescription>", to));
    EXPECT_TRUE(queue) << to;
    return queue ? queue->queue.forward_to + " " + written(*queue) : std::string{};
  };
  EXPECT_THAT(forward("SB://NS/Q1"), testing::AllOf(HasSubstr("Q1 "), HasSubstr("<ForwardTo>sb://ns/Q1<")));
  EXPECT_THAT(forward("https://other.example:443/a%2Fb"), HasSubstr("a/b "));
  EXPECT_THAT(forward("q"), HasSubstr("<ForwardTo>sb://ns.example/q<"));
}

// Clients compare the times; a clock that was set back does not undo a change.
TEST(EntityRequest, EveryUpdateIsLaterThanTheOneBefore) {
  auto entity = made("<QueueDescription/>");
  ASSERT_TRUE(entity);
  entity->created = now;
  const auto request = read("<QueueDescription><MaxDeliveryCount>3</MaxDeliveryCount></QueueDescription>");
  ASSERT_TRUE(request);
  EXPECT_EQ(entity->notes.changed(entity->created), entity->created) << "never changed";
  for (const auto& [at, told] : {std::pair{now, now + 1ms}, std::pair{now, now + 2ms},
                                 std::pair{now - 1h, now + 3ms}, std::pair{now + 1h, now + 1h}}) {
    entity = changed_entity(*request, *entity, {}, at);
    ASSERT_TRUE(entity);
    EXPECT_EQ(entity->notes.changed(entity->created), told);
  }
}

TEST(EntityRequest, AnUpdateReplacesAllThatCanChange) {
  auto present = made(
      "<QueueDescription><LockDuration>PT30S</LockDuration><RequiresSession>true</RequiresSession>"
      "<UserMetadata>note</UserMetadata></QueueDescription>");
  ASSERT_TRUE(present);
  const auto request = read("<QueueDescription><MaxDeliveryCount>3</MaxDeliveryCount></QueueDescription>");
  ASSERT_TRUE(request);
  const auto changed = changed_entity(*request, *present, {}, now);
  ASSERT_TRUE(changed) << changed.error().detail;
  EXPECT_EQ(changed->queue.delivery_count_max, 3u);
  EXPECT_EQ(changed->queue.lock_duration, 1min) << "what is not said goes back to its default";
  EXPECT_EQ(changed->notes.user_metadata, "");
  EXPECT_TRUE(changed->queue.requires_session) << "what cannot change stays";
  EXPECT_EQ(changed->notes.updated, now);
  for (const auto* element : {"<RequiresSession>false</RequiresSession>",
                              "<RequiresDuplicateDetection>true</RequiresDuplicateDetection>",
                              "<EnablePartitioning>true</EnablePartitioning>"}) {
    const auto wrong = read(fmt::format("<QueueDescription>{}</QueueDescription>", element));
    ASSERT_TRUE(wrong);
    EXPECT_FALSE(changed_entity(*wrong, *present, {}, now)) << element;
  }
  EXPECT_FALSE(changed_entity(*read("<TopicDescription/>"), *present, {}, now));
}

// What is shown of a partitioned entity is the sum, and clients send it back.
TEST(EntityRequest, SizesOfPartitionedEntitiesAreSums) {
  auto present = made(
      "<QueueDescription><EnablePartitioning>true</EnablePartitioning><MaxSizeInMegabytes>5120"
      "</MaxSizeInMegabytes></QueueDescription>");
  ASSERT_TRUE(present);
  EXPECT_THAT(written(*present), HasSubstr("<MaxSizeInMegabytes>81920<"));
  EXPECT_THAT(written(*present), HasSubstr("<SupportOrdering>false<"));
  const auto same =
      read("<QueueDescription><MaxSizeInMegabytes>81920</MaxSizeInMegabytes></QueueDescription>");
  const auto changed = changed_entity(*same, *present, {}, now);
  ASSERT_TRUE(changed) << changed.error().detail;
  EXPECT_EQ(changed->queue.size_bytes_max, present->queue.size_bytes_max);
}

TEST(EntityRequest, AccessRulesKeepTheirKeysAndTimes) {
  const std::string with_rule =
      "<QueueDescription xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\"><AuthorizationRules>"
      "<AuthorizationRule i:type=\"SharedAccessAuthorizationRule\"><ClaimType>SharedAccessKey</ClaimType>"
      "<ClaimValue>None</ClaimValue><Rights><AccessRights>Listen</AccessRights><AccessRights>Send"
      "</AccessRights></Rights><KeyName>both</KeyName><PrimaryKey>{}</PrimaryKey></AuthorizationRule>"
      "</AuthorizationRules></QueueDescription>";
  auto present = made(fmt::format(fmt::runtime(with_rule), "secret"));
  ASSERT_TRUE(present) << present.error().detail;
  ASSERT_EQ(present->notes.access_rules.size(), 1u);
  EXPECT_EQ(present->notes.access_rules[0].secondary_key.size(), 44u) << "a missing key is made";
  EXPECT_THAT(written(*present), HasSubstr("<Rights><AccessRights>Listen</AccessRights><AccessRights>Send<"));
  const auto later = changed_entity(*read(fmt::format(fmt::runtime(with_rule), "")), *present, {}, now + 1h);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->notes.access_rules, present->notes.access_rules);
  EXPECT_THAT(refusal("<QueueDescription><AuthorizationRules><AuthorizationRule><Rights><AccessRights>Manage"
                      "</AccessRights></Rights><KeyName>m</KeyName></AuthorizationRule></AuthorizationRules>"
                      "</QueueDescription>"),
              HasSubstr("Send and Listen"));
}

}  // namespace
}  // namespace omnibus::admin
