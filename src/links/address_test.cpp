#include "links/address.hpp"

#include <gtest/gtest.h>

namespace omnibus::links {
namespace {

using Node = Address::Node;

void expect(std::string_view text, Node node, std::string_view path) {
  const auto address = parse_address(text);
  ASSERT_TRUE(address) << text << ": " << address.error().detail;
  EXPECT_EQ(address->node, node) << text;
  EXPECT_EQ(address->path, path) << text;
}

TEST(Address, EverySpellingOfANode) {
  expect("queue", Node::entity, "queue");
  expect("/queue", Node::entity, "queue");
  expect("queue/", Node::entity, "queue");
  expect("a/b/c", Node::entity, "a/b/c");
  expect("topic/Subscriptions/sub", Node::entity, "topic/Subscriptions/sub");
  expect("q/$DeadLetterQueue", Node::entity, "q/$DeadLetterQueue");
  expect("amqp://host/q", Node::entity, "q");
  expect("AMQPS://host:5671/a/b", Node::entity, "a/b");
  expect("%71ueue%2Fx", Node::entity, "queue/x");
  expect("$cbs", Node::cbs, "");
  expect("/$CBS", Node::cbs, "");
  expect("amqp://host/$cbs", Node::cbs, "");
  expect("$management", Node::management, "");
  expect("q/$Management", Node::management, "q");
  expect("t/Subscriptions/s/$DeadLetterQueue/$management", Node::management,
         "t/Subscriptions/s/$DeadLetterQueue");
}

TEST(Address, WhatIsNoAddress) {
  for (const std::string_view text :
       {"", "/", "sb://host/q", "https://host/q", "amqp://host", "amqp://host/", "%", "%4", "a%ff"}) {
    const auto address = parse_address(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code, Errc::invalid_field) << text;
  }
}

TEST(Address, LengthIsBounded) {
  EXPECT_TRUE(parse_address(std::string(address_bytes_max, 'a')));
  EXPECT_FALSE(parse_address(std::string(address_bytes_max + 1, 'a')));
}

}  // namespace
}  // namespace omnibus::links
