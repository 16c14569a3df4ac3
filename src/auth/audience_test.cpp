#include "auth/audience.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace omnibus::auth {
namespace {

std::string path_of(std::string_view text) {
  const auto audience = parse_audience(text);
  return audience ? audience->path : "error: " + audience.error().detail;
}

// Each SDK writes the same queue in its own way.
TEST(Audience, AllSpellingsOfAQueueAreOnePath) {
  for (const auto* text : {"sb://localhost/Orders", "sb://localhost:5672/orders", "amqp://host/orders",
                           "amqps://host/ORDERS/", "amqps://host:5671//orders//", "http://host/orders",
                           "https://host/orders?api-version=2021-05", "orders", "/Orders", "SB://HOST/orders",
                           "sb://host/%6frders", "sb://[::1]:5672/orders", "https://host/orders#x"})
    EXPECT_EQ(path_of(text), "orders") << text;
}

TEST(Audience, DeeperPathsKeepTheirSegments) {
  EXPECT_EQ(path_of("sb://h/Topic/Subscriptions/A%20b"), "topic/subscriptions/a b");
  EXPECT_EQ(path_of("sb://h/orders/$management"), "orders/$management");
  EXPECT_EQ(path_of("amqps://h/hub/ConsumerGroups/$Default/Partitions/0"),
            "hub/consumergroups/$default/partitions/0");
}

TEST(Audience, WithoutPathItIsTheWholeNamespace) {
  for (const auto* text : {"", "/", "sb://host", "sb://host/", "https://host:443/?x=1", "https://host?x=1"})
    EXPECT_EQ(path_of(text), "") << text;
}

TEST(Audience, HostIsKeptWithoutPort) {
  EXPECT_EQ(parse_audience("sb://MyNs.Example:5671/q")->host, "myns.example");
  EXPECT_EQ(parse_audience("sb://[::1]:5671/q")->host, "[::1]");
  EXPECT_EQ(parse_audience("sb://[::1]/q")->host, "[::1]");
  EXPECT_EQ(parse_audience("q")->host, "");
}

// An escape is decoded once: "%252f" must not become a slash behind the back of whoever checked the text.
TEST(Audience, EscapesAreDecodedOnce) { EXPECT_EQ(path_of("sb://h/a%252fb"), "a%2fb"); }

TEST(Audience, WhatIsNoAudienceIsAnArgumentError) {
  for (const std::string_view text :
       {std::string_view("ftp://host/q"), std::string_view("sb://h/%zz"), std::string_view("sb://h/a%00b"),
        std::string_view("sb://h/a%0ab"), std::string_view("a\nb"), std::string_view("sb://h/%ff"),
        std::string_view("sb://h\x01/q")}) {
    const auto audience = parse_audience(text);
    ASSERT_FALSE(audience) << text;
    EXPECT_EQ(audience.error().code, Errc::argument_error);
    EXPECT_TRUE(is_utf8(audience.error().detail));
  }
}

TEST(Audience, LengthIsBounded) {
  EXPECT_TRUE(parse_audience(std::string(audience_bytes_max, 'a')));
  EXPECT_FALSE(parse_audience(std::string(audience_bytes_max + 1, 'a')));
}

TEST(Audience, AScopeCoversWholeSegmentsOnly) {
  EXPECT_TRUE(covers("", "orders"));
  EXPECT_TRUE(covers("", ""));
  EXPECT_TRUE(covers("orders", "orders"));
  for (const auto* below : {"orders/$management", "orders/subscriptions/x", "orders/$deadletterqueue",
                            "orders/$transfer/$deadletterqueue"})
    EXPECT_TRUE(covers("orders", below)) << below;
  EXPECT_FALSE(covers("orders", "orders2"));
  EXPECT_FALSE(covers("orders", ""));
  EXPECT_FALSE(covers("orders/a", "orders"));
}

}  // namespace
}  // namespace omnibus::auth
