#include "links/address.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/text.hpp"

namespace omnibus::links {
namespace {

using Node = Address::Node;
using broker::SubQueue;

// Some entities of every kind.
std::shared_ptr<const EntityFacts> find(std::string_view name) {
  static const auto all = [] {
    std::map<std::string, std::shared_ptr<EntityFacts>> made;
    const auto add = [&](std::string called, EntityKind kind) {
      auto facts = std::make_shared<EntityFacts>();
      facts->name = called;
      facts->kind = kind;
      return made[ascii_lower(called)] = facts;
    };
    for (const char* queue : {"queue", "queue/x", "a/b/c", "q", "queues/q", "orders/is/a/queue"})
      add(queue, EntityKind::queue);
    add("topic", EntityKind::topic);
    add("topic/Subscriptions/sub", EntityKind::subscription);
    add("deep/er", EntityKind::topic)->exchange = rules::ExchangeType::topic;
    add("orders", EntityKind::topic)->exchange = rules::ExchangeType::direct;
    add("orders/Subscriptions/audit", EntityKind::subscription);
    return made;
  }();
  const auto found = all.find(ascii_lower(name));
  return found == all.end() ? nullptr : found->second;
}

Address resolved(std::string_view text) {
  const auto address = resolve_address(text, find);
  EXPECT_TRUE(address) << text << ": " << address.error().detail;
  return address.value_or(Address{});
}
void expect(std::string_view text, Node node, std::string_view path, std::string_view entity,
            SubQueue sub_queue = SubQueue::active) {
  const Address address = resolved(text);
  EXPECT_EQ(address.node, node) << text;
  EXPECT_EQ(address.path, path) << text;
  EXPECT_EQ(address.sub_queue, sub_queue) << text;
  EXPECT_EQ(address.facts ? address.facts->name : "", entity) << text;
  EXPECT_EQ(address.routing_key, std::nullopt) << text;
}
void expect_key(std::string_view text, std::string_view exchange, std::string_view key) {
  const Address address = resolved(text);
  EXPECT_EQ(address.node, Node::entity) << text;
  ASSERT_TRUE(address.facts) << text;
  EXPECT_EQ(address.facts->name, exchange) << text;
  EXPECT_TRUE(equals_ignoring_case(address.path, exchange)) << "rights are the exchange's: " << text;
  EXPECT_EQ(address.routing_key, key) << text;
}
void expect_nothing(std::string_view text, std::string_view path) {
  const Address address = resolved(text);
  EXPECT_FALSE(address.facts) << text;
  EXPECT_EQ(address.path, path) << text;
}
void expect_invalid(std::string_view text) {
  const auto address = resolve_address(text, find);
  ASSERT_FALSE(address) << text;
  EXPECT_EQ(address.error().code, Errc::invalid_field) << text;
}

TEST(Address, EverySpellingOfANode) {
  expect("queue", Node::entity, "queue", "queue");
  expect("/queue", Node::entity, "queue", "queue");
  expect("QUEUE/", Node::entity, "QUEUE", "queue");
  expect("a/b/c", Node::entity, "a/b/c", "a/b/c");
  expect("topic", Node::entity, "topic", "topic");
  expect("topic/subscriptions/SUB", Node::entity, "topic/subscriptions/SUB", "topic/Subscriptions/sub");
  expect("amqp://host/q", Node::entity, "q", "q");
  expect("AMQPS://host:5671/a/b/c", Node::entity, "a/b/c", "a/b/c");
  expect("%71ueue%2Fx", Node::entity, "queue/x", "queue/x");
  expect("/topic%2FSubscriptions%2Fsub", Node::entity, "topic/Subscriptions/sub", "topic/Subscriptions/sub");
  expect("$cbs", Node::cbs, "", "");
  expect("/$CBS", Node::cbs, "", "");
  expect("amqp://host/$cbs", Node::cbs, "", "");
  expect("$management", Node::management, "", "");
  expect("q/$Management", Node::management, "q", "q");
  expect("topic/$management", Node::management, "topic", "topic");
  expect("topic/Subscriptions/sub/$management", Node::management, "topic/Subscriptions/sub",
         "topic/Subscriptions/sub");
}

TEST(Address, SubQueuesAreTakenFromTheRight) {
  expect("q/$DeadLetterQueue", Node::entity, "q/$DeadLetterQueue", "q", SubQueue::dead_letter);
  expect("q/$deadletterqueue/$MANAGEMENT", Node::management, "q/$deadletterqueue", "q",
         SubQueue::dead_letter);
  expect("topic/Subscriptions/sub/$Transfer/$DeadLetterQueue", Node::entity,
         "topic/Subscriptions/sub/$Transfer/$DeadLetterQueue", "topic/Subscriptions/sub",
         SubQueue::transfer_dead_letter);
  expect("amqps://host/topic/Subscriptions/sub/$DeadLetterQueue/$management", Node::management,
         "topic/Subscriptions/sub/$DeadLetterQueue", "topic/Subscriptions/sub", SubQueue::dead_letter);
}

TEST(Address, WhatNamesNothing) {
  expect_nothing("none", "none");
  expect_nothing("none/$DeadLetterQueue", "none/$DeadLetterQueue");
  expect_nothing("none/$management", "none");
  expect_nothing("topic/Subscriptions/none", "topic/Subscriptions/none");
  // A topic holds no messages, and is no exchange.
  expect_nothing("topic/$DeadLetterQueue", "topic/$DeadLetterQueue");
  expect_nothing("topic/$DeadLetterQueue/$management", "topic/$DeadLetterQueue");
  expect_nothing("topic/key", "topic/key");
  expect_nothing("orders/$DeadLetterQueue", "orders/$DeadLetterQueue");
  expect_nothing("orders/Subscriptions", "orders/Subscriptions");
  expect_nothing("orders/eu.paid/$management", "orders/eu.paid");
  expect_nothing("orders/Subscriptions/none", "orders/Subscriptions/none");
  expect_nothing("/exchanges/none/key", "none");
  expect_nothing("/exchanges/topic/key", "topic");
  expect_nothing("/queues/none%2FSubscriptions%2Fsub", "none/Subscriptions/sub");
}

TEST(Address, AnExchangeAndItsRoutingKey) {
  expect("orders", Node::entity, "orders", "orders");
  expect("/orders", Node::entity, "orders", "orders");
  expect_key("orders/eu.paid", "orders", "eu.paid");
  expect_key("/Orders/eu.paid", "orders", "eu.paid");
  expect_key("amqps://host/orders/eu.paid", "orders", "eu.paid");
  expect_key("orders/a%2Fb%20c", "orders", "a/b c");
  expect_key("deep/er/key", "deep/er", "key");
  expect_key("/exchanges/orders/eu.paid", "orders", "eu.paid");
  expect_key("/exchanges/deep%2Fer/%24k%2F1", "deep/er", "$k/1");
  expect_key("/exchanges/orders", "orders", "");
  expect_key("amqp://host/exchanges/orders", "orders", "");
  // What names an entity is that entity.
  expect("orders/is/a/queue", Node::entity, "orders/is/a/queue", "orders/is/a/queue");
}

TEST(Address, TheAliasOfARabbitClient) {
  expect("/queues/orders%2FSubscriptions%2Faudit", Node::entity, "orders/Subscriptions/audit",
         "orders/Subscriptions/audit");
  expect("/queues/orders%2FSubscriptions%2Faudit%2F$DeadLetterQueue", Node::entity,
         "orders/Subscriptions/audit/$DeadLetterQueue", "orders/Subscriptions/audit", SubQueue::dead_letter);
  expect("/queues/queue%2Fx", Node::entity, "queue/x", "queue/x");
  // There is a queue of the whole name, which comes first.
  expect("/queues/q", Node::entity, "queues/q", "queues/q");
}

TEST(Address, WhatIsNoAddress) {
  for (const std::string_view text :
       {"", "/", "sb://host/q", "https://host/q", "amqp://host", "amqp://host/", "%", "%4", "a%ff",
        "/exchanges/orders/a/b", "/exchanges//key", "/queues/a/b", "/queues/%2F", "/exchanges/orders/%zz"})
    expect_invalid(text);
}

TEST(Address, LengthsAreBounded) {
  expect_nothing(std::string(address_bytes_max, 'a'), std::string(address_bytes_max, 'a'));
  expect_invalid(std::string(address_bytes_max + 1, 'a'));
  const std::string key(rules::routing_key_bytes_max, 'k');
  expect_key("orders/" + key, "orders", key);
  expect_invalid("orders/" + key + "k");
  expect_invalid("/exchanges/orders/" + key + "k");
}

}  // namespace
}  // namespace omnibus::links
