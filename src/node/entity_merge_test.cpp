#include "node/entity_merge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/entity_notes.hpp"

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Instant now{1'767'323'045'000ms};

store::PartitionInfo queue() {
  store::PartitionInfo info;
  info.name = info.settings.name = "q";
  return info;
}

TEST(EntityMerge, OnlyWhatIsNamedIsTaken) {
  NewQueue wanted{queue().settings};
  wanted.settings.lock_duration = 5s;
  wanted.settings.delivery_count_max = 3;
  wanted.named = {"LockDuration"};
  const auto merge = merge_entity(queue(), wanted, now);
  ASSERT_TRUE(merge);
  EXPECT_THAT(merge->changed, ElementsAre("LockDuration"));
  EXPECT_THAT(merge->fixed, IsEmpty());
  EXPECT_EQ(merge->update.queue.lock_duration, 5s);
  EXPECT_EQ(merge->update.queue.delivery_count_max, 10u) << "the administrator's stays";
  EXPECT_EQ(read_notes(merge->update.notes).notes.updated, now);

  wanted.named.reset();
  EXPECT_THAT(merge_entity(queue(), wanted, now)->changed, ElementsAre("LockDuration", "MaxDeliveryCount"))
      << "without names it is about all";
}

TEST(EntityMerge, WhatIsDecidedAtTheCreationIsToldApart) {
  NewQueue wanted{queue().settings};
  wanted.settings.requires_session = true;
  wanted.settings.lock_duration = 5s;
  const auto merge = merge_entity(queue(), wanted, now);
  EXPECT_THAT(merge->changed, ElementsAre("LockDuration", "RequiresSession"));
  EXPECT_THAT(merge->fixed, ElementsAre("RequiresSession"));
  EXPECT_FALSE(merge->update.queue.requires_session);
}

TEST(EntityMerge, NamesOfTargetsAreComparedAsNames) {
  auto present = queue();
  present.settings.forward_to = "Target";
  EntityNotes notes;
  notes.notes.forward_to_uri = "sb://host/Target";
  present.notes = write_notes(notes);
  NewQueue wanted{present.settings};
  wanted.settings.forward_to = "target";
  EXPECT_THAT(merge_entity(present, wanted, now)->changed, IsEmpty());
  wanted.settings.forward_to = "other";
  const auto merge = merge_entity(present, wanted, now);
  EXPECT_THAT(merge->changed, ElementsAre("ForwardTo"));
  EXPECT_EQ(read_notes(merge->update.notes).notes.forward_to_uri, "") << "it named the old target";
}

TEST(EntityMerge, AccessRulesAreTheWholeSetAndKeepTheirKeys) {
  auto present = queue();
  EntityNotes notes;
  notes.has_access_rules = true;
  notes.notes.access_rules = {
      *auth::make_rule({.key_name = "a", .primary_key = "one", .rights = {auth::Right::send}}, now),
      *auth::make_rule({.key_name = "b", .rights = {auth::Right::listen}}, now)};
  present.notes = write_notes(notes);
  NewQueue wanted{present.settings};
  wanted.access_rules = {{.key_name = "A", .rights = {auth::Right::send, auth::Right::listen}}};
  wanted.named.emplace();
  EXPECT_THAT(merge_entity(present, wanted, now)->changed, IsEmpty()) << "they are not named";
  wanted.named = {"AuthorizationRules"};
  const auto merge = merge_entity(present, wanted, now);
  EXPECT_THAT(merge->changed, ElementsAre("AuthorizationRules"));
  const auto rules = read_notes(merge->update.notes).notes.access_rules;
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(rules[0].primary_key, "one");
  EXPECT_TRUE(rules[0].rights.has(auth::Right::listen));
  present.notes = merge->update.notes;
  EXPECT_THAT(merge_entity(present, wanted, now)->changed, IsEmpty()) << "the second time it is there";
}

TEST(EntityMerge, ADocumentIsAWholeButForItsId) {
  store::PartitionInfo present;
  present.kind = store::PartitionKind::topic;
  present.topic_settings.exchange = rules::ExchangeType::direct;
  present.document = R"({"Id":"1","Caption":"a"})";
  NewTopic wanted{present.topic_settings, R"({"Caption":"a"})"};
  EXPECT_THAT(merge_entity(present, wanted, now)->changed, IsEmpty());
  wanted.document = R"({"Description":"d"})";
  const auto merge = merge_entity(present, wanted, now);
  EXPECT_THAT(merge->changed, ElementsAre("Caption", "Description"));
  EXPECT_EQ(merge->update.document, R"({"Id":"1","Description":"d"})");
  wanted.document = R"({"Id":"2","Caption":"a"})";
  EXPECT_THAT(merge_entity(present, wanted, now)->fixed, ElementsAre("Id"));
  wanted.document = R"({"Caption":"a"})";
  wanted.settings.exchange = rules::ExchangeType::fanout;
  EXPECT_THAT(merge_entity(present, wanted, now)->fixed, ElementsAre("Type"));
}

TEST(EntityMerge, NewRoutingComesWithTheDocument) {
  store::PartitionInfo present;
  present.kind = store::PartitionKind::subscription;
  present.document = R"({"RoutingKey":"a"})";
  NewSubscription wanted{.topic = "t", .exchange = rules::ExchangeType::direct, .settings = present.settings};
  wanted.document = R"({"RoutingKey":"a"})";
  wanted.binding = rules::Binding{.routing_key = "a"};
  EXPECT_FALSE(merge_entity(present, wanted, now)->update.binding);
  wanted.document = R"({"RoutingKey":"b"})";
  wanted.binding->routing_key = "b";
  EXPECT_EQ(merge_entity(present, wanted, now)->update.binding, wanted.binding);
}

}  // namespace
}  // namespace omnibus::node
