#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transfer/source_file.hpp"

namespace omnibus::transfer {
namespace {

using testing::HasSubstr;

constexpr std::string_view before =
    "/subscriptions/0/resourceGroups/g/providers/Microsoft.ServiceBus/namespaces/ns";

TEST(AzListing, QueuesAsThePrintedArrayHasThem) {
  const auto source = read_source(fmt::format(R"([ {{
      "accessedAt": "0001-01-01T00:00:00", "autoDeleteOnIdle": "10675199 days, 2:48:05.477581",
      "countDetails": {{"activeMessageCount": 0}}, "defaultMessageTimeToLive": "14 days, 0:00:00",
      "duplicateDetectionHistoryTimeWindow": "PT10M", "enablePartitioning": true, "forwardTo": null,
      "id": "{}/queues/eu~orders", "location": "westeurope", "lockDuration": "0:01:30", "maxDeliveryCount": 7,
      "maxMessageSizeInKilobytes": 256, "maxSizeInMegabytes": 16384, "name": "eu~orders", "resourceGroup": "g",
      "status": "Active", "type": "Microsoft.ServiceBus/Namespaces/Queues" }} ])",
                                              before),
                                  {});
  EXPECT_EQ(source.kind, SourceKind::az_listing);
  for (const Note& note : source.notes.all()) ADD_FAILURE() << note.path << ": " << note.text;
  ASSERT_TRUE(source.config);
  const auto& queue = source.config->namespaces.at(0).queues.at(0).settings;
  EXPECT_EQ(queue.name, "eu/orders");
  EXPECT_EQ(queue.lock_duration, std::chrono::seconds{90});
  EXPECT_EQ(queue.default_time_to_live, std::chrono::hours{24 * 14});
  EXPECT_EQ(queue.auto_delete_on_idle, broker::unlimited);
  EXPECT_TRUE(queue.is_partitioned);
  EXPECT_EQ(queue.size_bytes_max, std::uint64_t{1024} << 20) << "of one partition";
}

TEST(AzListing, SubscriptionsAndRulesKnowTheirParentsByTheirId) {
  const auto source = read_source(fmt::format(R"([
      {{"id": "{0}/topics/t/subscriptions/s", "name": "s", "maxDeliveryCount": 4}},
      {{"id": "{0}/topics/t/subscriptions/s/rules/r", "name": "r", "filterType": "SqlFilter", "action": {{"sqlExpression": null}},
        "sqlFilter": {{"sqlExpression": "a = 1", "compatibilityLevel": 20}}, "correlationFilter": null}},
      {{"id": "{0}/topics/t/authorizationRules/w", "name": "w", "rights": ["Send"]}} ])",
                                              before),
                                  {});
  ASSERT_TRUE(source.config);
  const auto& topic = source.config->namespaces.at(0).topics.at(0);
  EXPECT_EQ(topic.rules.at(0).key_name, "w");
  EXPECT_EQ(topic.subscriptions.at(0).settings.delivery_count_max, 4u);
  EXPECT_EQ(topic.subscriptions[0].rules.at(0).name, "r");
  ASSERT_FALSE(source.notes.all().empty());
  EXPECT_THAT(source.notes.all().front().text, HasSubstr("topic 't' is only named"));
}

TEST(AzListing, TopicsAsThePrintedArrayHasThem) {
  const auto source = read_source(fmt::format(R"([ {{
      "accessedAt": "2026-01-02T03:04:05.67Z", "autoDeleteOnIdle": "P10675199DT2H48M5.4775807S",
      "countDetails": {{"activeMessageCount": 0, "scheduledMessageCount": 0}}, "createdAt": "2026-01-02T03:04:05.67Z",
      "defaultMessageTimeToLive": "1 day, 0:00:00", "duplicateDetectionHistoryTimeWindow": "0:05:00",
      "enableBatchedOperations": true, "enableExpress": false, "enablePartitioning": false,
      "id": "{}/topics/news", "location": "westeurope", "maxMessageSizeInKilobytes": 1024, "maxSizeInMegabytes": 2048,
      "name": "news", "requiresDuplicateDetection": true, "resourceGroup": "g", "sizeInBytes": 0, "status": "Active",
      "subscriptionCount": 1, "supportOrdering": true, "type": "Microsoft.ServiceBus/Namespaces/Topics",
      "updatedAt": "2026-01-02T03:04:05.67Z" }} ])",
                                              before),
                                  {});
  EXPECT_EQ(source.kind, SourceKind::az_listing);
  for (const Note& note : source.notes.all()) ADD_FAILURE() << note.path << ": " << note.text;
  ASSERT_TRUE(source.config);
  const auto& topic = source.config->namespaces.at(0).topics.at(0).settings;
  EXPECT_EQ(topic.name, "news");
  EXPECT_EQ(topic.default_time_to_live, std::chrono::hours{24});
  EXPECT_EQ(topic.duplicate_window, std::chrono::minutes{5});
  EXPECT_EQ(topic.auto_delete_on_idle, broker::unlimited);
  EXPECT_TRUE(topic.requires_duplicate_detection);
  EXPECT_EQ(topic.size_bytes_max, std::uint64_t{2048} << 20);
}

TEST(AzListing, CorrelationRulesAndAccessRulesOfQueues) {
  const auto source = read_source(fmt::format(R"([
      {{"id": "{0}/topics/t", "name": "t"}},
      {{"id": "{0}/topics/t/subscriptions/s", "name": "s"}},
      {{"id": "{0}/topics/t/subscriptions/s/rules/red", "name": "red", "filterType": "CorrelationFilter", "action": {{}},
        "correlationFilter": {{"contentType": null, "correlationId": "c-1", "label": "red", "messageId": null,
          "properties": {{"size": "3"}}, "replyTo": null, "replyToSessionId": null, "requiresPreprocessing": null,
          "sessionId": null, "to": null}}, "sqlFilter": null, "type": "Microsoft.ServiceBus/Namespaces/Topics/Subscriptions/Rules"}},
      {{"id": "{0}/queues/q", "name": "q"}},
      {{"id": "{0}/queues/q/authorizationRules/reader", "name": "reader", "rights": ["Listen", "Send"],
        "resourceGroup": "g", "type": "Microsoft.ServiceBus/Namespaces/Queues/AuthorizationRules"}} ])",
                                              before),
                                  {});
  ASSERT_EQ(source.notes.all().size(), 1u);
  EXPECT_THAT(source.notes.all().front().text, HasSubstr("the keys are generated"));
  ASSERT_TRUE(source.config);
  const auto& space = source.config->namespaces.at(0);
  const auto& rule = space.topics.at(0).subscriptions.at(0).rules.at(0);
  EXPECT_EQ(rule.name, "red");
  const auto* filter = std::get_if<rules::CorrelationFilter>(&rule.filter);
  ASSERT_TRUE(filter);
  EXPECT_EQ(filter->correlation_id, "c-1");
  EXPECT_EQ(filter->label, "red");
  EXPECT_FALSE(filter->message_id);
  ASSERT_EQ(filter->properties.size(), 1u);
  EXPECT_EQ(filter->properties[0].first, "size");
  EXPECT_FALSE(rule.action);
  const auto& access = space.queues.at(0).rules.at(0);
  EXPECT_EQ(access.key_name, "reader");
  EXPECT_EQ(access.rights, (std::vector{auth::Right::listen, auth::Right::send}));
  EXPECT_FALSE(access.primary_key) << "az does not print keys: they are made new";
}

TEST(AzListing, OneObjectAndTheRestFormAreGoodToo) {
  EXPECT_TRUE(read_source(fmt::format(R"({{"id": "{}/queues/q", "name": "q"}})", before), {}).config);
  const auto rest = read_source(
      fmt::format(R"({{"value": [{{"id": "{}/queues/q", "properties": {{"maxDeliveryCount": 3}}}}]}})",
                  before),
      {});
  ASSERT_TRUE(rest.config);
  EXPECT_EQ(rest.config->namespaces.at(0).queues.at(0).settings.delivery_count_max, 3u);
  EXPECT_TRUE(read_source(R"([{"id": "/subscriptions/0/x"}])", {}).notes.has_errors());
}

}  // namespace
}  // namespace omnibus::transfer
