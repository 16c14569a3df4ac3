#include "client/connection_string.hpp"

#include <gtest/gtest.h>

#include "auth/access_rules.hpp"
#include "auth/sas_token.hpp"

namespace omnibus::client {
namespace {

TEST(ConnectionString, TheLocalOneIsInTheClear) {
  const auto local = parse_connection_string(local_connection_string);
  ASSERT_TRUE(local) << local.error().detail;
  EXPECT_EQ(local->amqp(), (Address{"localhost", 5672, false}));
  EXPECT_EQ(local->http(), (Address{"localhost", 5300, false}));
  EXPECT_EQ(local->key_name, "RootManageSharedAccessKey");
}

TEST(ConnectionString, TheCloudIsInTls) {
  const auto cloud = parse_connection_string(
      "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=send;SharedAccessKey=a+b/"
      "c=;EntityPath=orders");
  ASSERT_TRUE(cloud) << cloud.error().detail;
  EXPECT_EQ(cloud->amqp(), (Address{"shop.servicebus.windows.net", 5671, true}));
  EXPECT_EQ(cloud->http(), (Address{"shop.servicebus.windows.net", 443, true}));
  EXPECT_EQ(cloud->key, "a+b/c=");
  EXPECT_EQ(cloud->entity_path, "orders");
}

TEST(ConnectionString, EverySpellingOfItsParts) {
  const auto one = parse_connection_string(
      " endpoint = sb://[::1]:5672 ; sharedaccesskeyname=n;SHAREDACCESSKEY=k==;;usedevelopmentemulator=TRUE;"
      "OperationTimeout=00:01:00;EntityPath=/a/b/");
  ASSERT_TRUE(one) << one.error().detail;
  EXPECT_EQ(one->amqp(), (Address{"::1", 5672, false}));
  EXPECT_EQ(one->http(), one->amqp());
  EXPECT_EQ(one->amqp().text(), "[::1]:5672");
  EXPECT_EQ(one->host_in_uri(), "[::1]");
  EXPECT_EQ(one->key, "k==");
  EXPECT_EQ(one->entity_path, "a/b");
}

TEST(ConnectionString, ASignatureTakesThePlaceOfAKey) {
  const std::string token = "SharedAccessSignature sr=sb%3A%2F%2Fh&sig=x%3D&se=1&skn=n";
  const auto one = parse_connection_string("Endpoint=sb://h;SharedAccessSignature=" + token);
  ASSERT_TRUE(one) << one.error().detail;
  EXPECT_EQ(one->token("sb://h/orders", Instant{}), token);
}

TEST(ConnectionString, MistakesAreNamedAndKeysAreNot) {
  for (const char* wrong : {
           "",
           "Endpoint=sb://h",
           "SharedAccessKeyName=n;SharedAccessKey=sesame",
           "Endpoint=sb://;SharedAccessKeyName=n;SharedAccessKey=sesame",
           "Endpoint=ftp://h;SharedAccessKeyName=n;SharedAccessKey=sesame",
           "Endpoint=sb://h:0;SharedAccessKeyName=n;SharedAccessKey=sesame",
           "Endpoint=sb://h:99999;SharedAccessKeyName=n;SharedAccessKey=sesame",
           "Endpoint=sb://u@h;SharedAccessKeyName=n;SharedAccessKey=sesame",
           "Endpoint=sb://[::1;SharedAccessKeyName=n;SharedAccessKey=sesame",
           "Endpoint=sb://h;Endpoint=sb://g;SharedAccessKeyName=n;SharedAccessKey=sesame",
           "Endpoint=sb://h;SharedAccessKeyName=n;sesame",
           "Endpoint=sb://h;SharedAccessSignature=sesame",
           "Endpoint=sb://h;SharedAccessKeyName=n;SharedAccessKey=sesame;UseDevelopmentEmulator=yes",
       }) {
    const auto read = parse_connection_string(wrong);
    ASSERT_FALSE(read) << wrong;
    EXPECT_EQ(read.error().code, Errc::argument_error);
    EXPECT_FALSE(read.error().detail.contains("sesame")) << read.error().detail;
  }
  EXPECT_FALSE(parse_connection_string(std::string(connection_string_bytes_max + 1, ';')));
}

// What is made here is what the broker takes.
TEST(ConnectionString, ItsTokenIsVerifiedByTheKey) {
  const auto local = parse_connection_string(local_connection_string);
  const Instant now{std::chrono::seconds{1'800'000'000}};
  const auto token =
      auth::parse_sas_token(local->token("sb://localhost/orders", now + std::chrono::hours{1}));
  ASSERT_TRUE(token);
  EXPECT_EQ(token->resource, "sb://localhost/orders");
  auth::AccessRules rules;
  ASSERT_TRUE(rules.put("", {.key_name = "RootManageSharedAccessKey",
                             .primary_key = "SAS_KEY_VALUE",
                             .rights = {auth::Right::manage}}));
  EXPECT_TRUE(auth::verify_sas_token(*token, rules, "orders", now));
}

}  // namespace
}  // namespace omnibus::client
