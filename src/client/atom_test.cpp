#include "client/atom.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace omnibus::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr std::string_view queue_entry = R"(<?xml version="1.0"?>
<entry xmlns="http://www.w3.org/2005/Atom"><id>https://ns/orders</id><title type="text">orders</title>
<content type="application/xml"><QueueDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
 xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><LockDuration>PT1M</LockDuration><RequiresSession>false</RequiresSession>
<SizeInBytes>77</SizeInBytes><UserMetadata>007</UserMetadata>
<CountDetails xmlns:d2p1="http://schemas.microsoft.com/netservices/2011/06/servicebus">
<d2p1:ActiveMessageCount>3</d2p1:ActiveMessageCount><d2p1:DeadLetterMessageCount>1</d2p1:DeadLetterMessageCount>
</CountDetails><Tomorrow i:type="x"><Inner>kept</Inner></Tomorrow></QueueDescription></content></entry>)";

Description the_queue() {
  auto page = read_answer(queue_entry);
  EXPECT_TRUE(page) << page.error().detail;
  return page->items.at(0);
}

TEST(Atom, AnEntryIsRead) {
  const Description queue = the_queue();
  EXPECT_EQ(queue.kind(), EntityKind::queue);
  EXPECT_EQ(queue.name(), "orders");
  EXPECT_EQ(queue.get("LockDuration"), "PT1M");
  EXPECT_EQ(queue.get("ForwardTo"), std::nullopt);
  EXPECT_EQ(queue.counts().active, 3u);
  EXPECT_EQ(queue.counts().dead_letter, 1u);
  EXPECT_EQ(queue.counts().size_bytes, 77u);
  EXPECT_THAT(queue.elements(), ElementsAre(Pair("LockDuration", "PT1M"), Pair("RequiresSession", "false"),
                                            Pair("SizeInBytes", "77"), Pair("UserMetadata", "007")));
}

// The service skips elements out of order, and what a newer one says must not get lost.
TEST(Atom, WhatIsSetTakesItsPlaceAndTheUnknownStays) {
  Description queue = the_queue();
  queue.set("MaxDeliveryCount", "5");
  queue.set("LockDuration", "PT30S");
  queue.set("UserMetadata", "a < b");
  const std::string xml = queue.xml();
  const auto at = [&](std::string_view text) {
    EXPECT_THAT(xml, HasSubstr(text));
    return xml.find(text);
  };
  EXPECT_LT(at("<LockDuration>PT30S</LockDuration>"), at("<RequiresSession>"));
  EXPECT_LT(at("<RequiresSession>"), at("<MaxDeliveryCount>5</MaxDeliveryCount>"));
  EXPECT_LT(at("<MaxDeliveryCount>"), at("<SizeInBytes>"));
  at("<UserMetadata>a &lt; b</UserMetadata>");
  at("<Tomorrow i:type=\"x\"><Inner>kept</Inner></Tomorrow>");
  at("xmlns:i=");
  queue.unset("LockDuration");
  EXPECT_EQ(queue.get("LockDuration"), std::nullopt);
  EXPECT_EQ(the_queue().get("LockDuration"), "PT1M");
}

TEST(Atom, AnEmptyDescriptionTakesElementsInAnyOrder) {
  Description made(EntityKind::subscription, "audit");
  made.set("AutoDeleteOnIdle", "PT5M");
  made.set("LockDuration", "PT1M");
  made.set("MaxDeliveryCount", "3");
  const std::string entry = made.entry();
  EXPECT_THAT(entry, HasSubstr("<SubscriptionDescription xmlns="));
  EXPECT_THAT(
      entry,
      HasSubstr("<LockDuration>PT1M</LockDuration><MaxDeliveryCount>3</MaxDeliveryCount><AutoDeleteOnIdle>"));
}

TEST(Atom, JsonHasNumbersAndBooleansButMetadataIsText) {
  EXPECT_EQ(
      the_queue().json(),
      R"({"Name":"orders","LockDuration":"PT1M","RequiresSession":false,"SizeInBytes":77,"UserMetadata":"007",)"
      R"("CountDetails":{"ActiveMessageCount":3,"DeadLetterMessageCount":1},"Tomorrow":{"Type":"x","Inner":"kept"}})");
}

TEST(Atom, ARuleGoesThereAndBack) {
  rules::Rule rule;
  rule.name = "cheap";
  rules::CorrelationFilter filter;
  filter.label = "red & blue";
  filter.properties = {{"price", amqp::Value{std::int32_t{10}}}};
  rule.filter = filter;
  rule.action = rules::SqlAction{.expression = "SET x = 1"};
  const Description made = Description::of_rule(rule);
  auto page = read_answer(made.entry());
  ASSERT_TRUE(page) << page.error().detail;
  const auto read = page->items.at(0).rule();
  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_EQ(read->filter, rule.filter);
  EXPECT_EQ(read->action, rule.action);
}

TEST(Atom, APageSaysWhetherThereIsMore) {
  const std::string entry(queue_entry.substr(queue_entry.find("<entry")));
  const auto page = read_answer(
      "<feed xmlns='http://www.w3.org/2005/Atom'><link rel='self' href='a'/><link rel='next' href='b'/>" +
      entry + entry + "<entry><content><EventHubDescription/></content></entry></feed>");
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->more);
  EXPECT_EQ(page->items.size(), 2u);
  const auto nothing = read_answer("<feed><title>Publicly Listed Services</title></feed>");
  ASSERT_TRUE(nothing);
  EXPECT_TRUE(nothing->items.empty());
}

TEST(Atom, WhatIsNoAnswerIsRefused) {
  for (const std::string& wrong :
       {std::string("no XML"), std::string("<html/>"), std::string("<entry/>"), std::string()})
    EXPECT_EQ(read_answer(wrong).error().code, Errc::decode_error) << wrong;
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "<a>";
  for (int i = 0; i < 100; ++i) deep += "</a>";
  EXPECT_EQ(read_answer("<feed>" + deep + "</feed>").error().code, Errc::decode_error);
}

TEST(Atom, ErrorsAreReadForPeople) {
  EXPECT_EQ(read_error_detail(
                "<Error><Code>404</Code><Detail>SubCode=40400. Entity 'x' was not found. TrackingId:1_G0, "
                "SystemTracker:ns:x, Timestamp:2026</Detail></Error>"),
            "Entity 'x' was not found.");
  EXPECT_EQ(read_error_detail(R"({"error":{"code":"type.immutable","message":"the type\nstays"}})"),
            "the type stays");
  EXPECT_EQ(
      read_error_detail(
          R"({"error":{"code":"ExchangeInvalid","details":[{"path":"/Type","code":"x","message":"unknown"},)"
          R"({"path":"","message":"no"}]}})"),
      "/Type: unknown; no");
  EXPECT_EQ(read_error_detail("plain  words"), "plain words");
  EXPECT_EQ(read_error_detail(""), "");
}

}  // namespace
}  // namespace omnibus::client
