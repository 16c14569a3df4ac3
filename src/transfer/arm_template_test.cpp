#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transfer/source_file.hpp"

namespace omnibus::transfer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> errors(const Source& source) {
  std::vector<std::string> all;
  for (const Note& note : source.notes.all())
    if (note.is_error) all.push_back(note.path + ": " + note.text);
  return all;
}

Source of_resources(std::string_view resources, std::string_view rest = "",
                    const std::map<std::string, std::string>& parameters = {}) {
  return read_source(
      fmt::format(
          R"({{"$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
      "contentVersion": "1.0.0.0"{}, "resources": [{}]}})",
          rest, resources),
      parameters);
}

TEST(ArmTemplate, EntitiesAreFoundAtTheTopAndInside) {
  const auto source = of_resources(
      R"({"type": "Microsoft.ServiceBus/namespaces", "name": "[parameters('ns')]", "resources": [
            {"type": "queues", "name": "[parameters('queue')]", "properties": {"lockDuration": "PT30S",
               "maxDeliveryCount": 5, "requiresSession": true, "createdAt": "2020-01-01T00:00:00Z"}},
            {"type": "AuthorizationRules", "name": "sender", "properties": {"rights": ["Send"]}} ]},
         {"type": "Microsoft.ServiceBus/namespaces/topics", "name": "[format('{0}/{1}', parameters('ns'), 'eu~orders')]",
          "properties": {"maxSizeInMegabytes": 2048, "enablePartitioning": true}, "resources": [
            {"type": "subscriptions", "name": "audit", "properties": {"forwardTo": "q1"}, "resources": [
              {"type": "rules", "name": "cheap", "properties": {"filterType": "SqlFilter",
                 "sqlFilter": {"sqlExpression": "price < 10"}, "action": {"sqlExpression": "SET a = 1"}}} ]} ]},
         {"type": "Microsoft.ServiceBus/namespaces/topics/subscriptions/rules", "name": "[concat(parameters('ns'), '/eu~orders/audit/mail')]",
          "properties": {"filterType": "CorrelationFilter", "correlationFilter": {"label": "mail", "properties": {"n": "1"}}}},
         {"type": "Microsoft.ServiceBus/namespaces/queues/authorizationRules", "name": "ns/q1/listener", "properties": {"rights": ["Listen"]}},
         {"type": "Microsoft.Storage/storageAccounts", "name": "s"})",
      R"(, "parameters": {"ns": {"type": "string"}, "queue": {"defaultValue": "q1"}})");
  EXPECT_THAT(errors(source), IsEmpty());
  EXPECT_EQ(source.kind, SourceKind::arm_template);
  ASSERT_TRUE(source.config);
  const auto& space = source.config->namespaces.at(0);
  ASSERT_EQ(space.queues.size(), 1u);
  EXPECT_EQ(space.queues[0].settings.name, "q1");
  EXPECT_EQ(space.queues[0].settings.lock_duration, std::chrono::seconds{30});
  EXPECT_EQ(space.queues[0].settings.delivery_count_max, 5u);
  EXPECT_TRUE(space.queues[0].settings.requires_session);
  EXPECT_EQ(space.queues[0].settings.default_time_to_live, broker::unlimited) << "the cloud's default";
  EXPECT_EQ(space.queues[0].rules.at(0).key_name, "listener");
  EXPECT_EQ(space.rules.at(0).key_name, "sender");
  ASSERT_EQ(space.topics.size(), 1u);
  EXPECT_EQ(space.topics[0].settings.name, "eu/orders");
  EXPECT_TRUE(space.topics[0].settings.is_partitioned);
  const auto& audit = space.topics[0].subscriptions.at(0);
  EXPECT_EQ(audit.settings.forward_to, "q1");
  ASSERT_EQ(audit.rules.size(), 2u);
  EXPECT_TRUE(audit.rules[0].action);
  EXPECT_TRUE(std::holds_alternative<rules::CorrelationFilter>(audit.rules[1].filter));
  EXPECT_THAT(source.notes.all().front().text, HasSubstr("Microsoft.Storage/storageAccounts"));
}

TEST(ArmTemplate, WhatCannotBeKnownIsNamedWhereItMatters) {
  const std::string queue =
      R"({"type": "Microsoft.ServiceBus/namespaces/queues", "name": "[concat(variables('ns'), '/', parameters('q'))]"})";
  const std::string rest =
      R"(, "parameters": {"q": {"type": "string"}}, "variables": {"ns": "[uniqueString(resourceGroup().id)]"})";
  EXPECT_THAT(errors(of_resources(queue, rest)),
              ElementsAre("resources[0].name: parameters('q') is not known here; give it with --parameter"));
  EXPECT_THAT(errors(of_resources(queue, rest, {{"q", "mine"}})), IsEmpty())
      << "the namespace's name is not needed";
  EXPECT_THAT(
      errors(of_resources(
          R"({"type": "Microsoft.ServiceBus/namespaces/queues", "name": "ns/q", "copy": {"count": 3}})")),
      ElementsAre(HasSubstr("loops are not supported")));
  EXPECT_THAT(errors(of_resources(R"({"type": "Microsoft.ServiceBus/namespaces/queues", "name": "ns/q",
                  "properties": {"maxDeliveryCount": "[reference('x').y]"}})")),
              ElementsAre("resources[0].properties: reference() is not known here"));
  EXPECT_THAT(errors(of_resources(R"({"type": "Microsoft.ServiceBus/namespaces/queues", "name": "q"})")),
              ElementsAre(HasSubstr("the type has 2 parts, the name 1")));
}

TEST(ArmTemplate, ConditionsAndNestedDeploymentsAreFollowed) {
  const auto source =
      read_source(R"({"$schema": "x/deploymentTemplate.json#", "parameters": {"dev": {"defaultValue": false}},
      "resources": { "a": {"condition": "[parameters('dev')]", "type": "Microsoft.ServiceBus/namespaces/queues", "name": "ns/no"},
        "b": {"type": "Microsoft.Resources/deployments", "name": "inner", "properties": {
          "parameters": {"q": {"value": "[if(parameters('dev'), 'd', 'p')]"}},
          "template": {"parameters": {"q": {"type": "string"}}, "resources": [
            {"type": "Microsoft.ServiceBus/namespaces/queues", "name": "[concat('ns/', parameters('q'))]"} ]}}} }})",
                  {});
  EXPECT_THAT(errors(source), IsEmpty());
  ASSERT_TRUE(source.config);
  ASSERT_EQ(source.config->namespaces.at(0).queues.size(), 1u);
  EXPECT_EQ(source.config->namespaces[0].queues[0].settings.name, "p");
}

TEST(ArmTemplate, ValuesAreJudgedByTheReaderOfConfigJson) {
  const auto source = of_resources(R"({"type": "Microsoft.ServiceBus/namespaces/queues", "name": "ns/q",
      "properties": {"lockDuration": "PT1H", "maxDeliveryCount": "x", "colour": 1}})");
  EXPECT_FALSE(source.config);
  EXPECT_THAT(errors(source), ElementsAre("resources[0].properties.maxDeliveryCount: expected an integer"));
  EXPECT_THAT(errors(of_resources(R"({"type": "Microsoft.ServiceBus/namespaces/queues", "name": "ns/q",
                  "properties": {"lockDuration": "PT1H"}})")),
              ElementsAre(HasSubstr("UserConfig.Namespaces[0].Queues[0].Properties.LockDuration")));
}

}  // namespace
}  // namespace omnibus::transfer
