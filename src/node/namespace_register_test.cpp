// The register of namespaces and their documents: what is written is read again, what is damaged is not
// taken.
#include "node/namespace_register.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "auth/key_file.hpp"
#include "node/namespace_document.hpp"
#include "node/space.hpp"

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

NamespaceRegister example() {
  NamespaceRegister all;
  all.next = 9;
  NamespaceEntry one;
  one.number = 3;
  one.name = "Billing";
  one.host_names = {"billing.test"};
  one.created = Instant{1'700'000'000'123ms};
  one.default_rule = *auth::make_default_rule("secret", one.created);
  all.entries.push_back(one);
  one.number = 8;
  one.name = "other";
  one.host_names = {};
  one.default_rule.reset();
  one.rules = {
      *auth::make_rule({.key_name = "send", .primary_key = "k", .rights = {auth::Right::send}}, one.created)};
  all.entries.push_back(one);
  all.dropped = {1, 2};
  return all;
}

TEST(NamespaceRegister, IsReadAsItWasWritten) {
  for (const auto& all : {NamespaceRegister{}, example()}) {
    const auto again = read_register(write_register(all));
    ASSERT_TRUE(again) << again.error().detail;
    EXPECT_EQ(*again, all);
  }
  EXPECT_EQ(example().find("BILLING")->number, 3u);
  EXPECT_TRUE(example().is_dropped(2));
  EXPECT_FALSE(example().is_dropped(3));
}

// A register that cannot be read is not an empty one: numbers would be used again.
TEST(NamespaceRegister, DamageIsNotTakenForNothing) {
  const std::string good = write_register(example());
  for (std::size_t cut = 0; cut + 2 < good.size(); ++cut)
    EXPECT_FALSE(read_register(good.substr(0, cut))) << cut;
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return read_register(text);
  };
  EXPECT_FALSE(with(R"("Version":1)", R"("Version":2)"));
  EXPECT_FALSE(with(R"("Next":9)", R"("Next":8)")) << "8 is in use";
  EXPECT_FALSE(with(R"("Number":3)", R"("Number":8)"));
  EXPECT_FALSE(with(R"("Number":3)", R"("Number":0)")) << "the default one is not in it";
  EXPECT_FALSE(with(R"("Billing")", R"("Other")"));
  EXPECT_FALSE(with(R"([1,2])", R"([1,3])"));
  EXPECT_TRUE(with(R"("Next":9)", R"("Next":10)"));
}

TEST(NamespaceRegister, NamesAreLabelsOfHostNames) {
  for (const auto* good : {"a", "T1", "test-17", "0"}) EXPECT_TRUE(is_namespace_name(good)) << good;
  EXPECT_TRUE(is_namespace_name(std::string(63, 'a')));
  for (const auto* bad : {"", "-a", "a-", "a.b", "a_b", "a b", "ż", "a/b"})
    EXPECT_FALSE(is_namespace_name(bad)) << bad;
  EXPECT_FALSE(is_namespace_name(std::string(64, 'a')));
  EXPECT_THAT(implied_hosts("T1"), ElementsAre("t1.localhost", "t1.servicebus.windows.net"));
}

TEST(NamespaceRegister, TheKnownKeyIsForLoopbackAlone) {
  const auto entry = example().entries.front();
  EXPECT_EQ(effective_rules(entry, true).front().primary_key, auth::loopback_key);
  EXPECT_EQ(effective_rules(entry, false).front().primary_key, "secret");
}

TEST(PlainHost, PortsAndBracketsAndTheLastDotGo) {
  EXPECT_EQ(plain_host("T1.LocalHost:5672"), "t1.localhost");
  EXPECT_EQ(plain_host("t1.localhost."), "t1.localhost");
  EXPECT_EQ(plain_host("[::1]:5672"), "::1");
  EXPECT_EQ(plain_host("::1"), "::1");
  EXPECT_EQ(plain_host(""), "");
}

TEST(NamespaceDocument, SaysHostNamesAndRules) {
  EXPECT_FALSE(read_namespace_document("")->host_names);
  const auto document = read_namespace_document(
      R"({"HostNames": ["T1.Test"], "AuthorizationRules": [{"KeyName": "a", "PrimaryKey": "k", "Rights": ["Send"]}]})");
  ASSERT_TRUE(document) << document.error().detail;
  EXPECT_THAT(*document->host_names, ElementsAre("t1.test"));
  EXPECT_EQ(document->rules->front().key_name, "a");
}

TEST(NamespaceDocument, MistakesAreToldWithTheirLine) {
  const auto what = [](std::string_view text) {
    const auto document = read_namespace_document(text);
    return document ? "" : document.error().detail;
  };
  EXPECT_THAT(what("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(what("{\n\"Hosts\": []}"), HasSubstr("line 2"));
  EXPECT_THAT(what(R"({"HostNames": ["a:1"]})"), HasSubstr("HostNames[0]"));
  EXPECT_THAT(what(R"({"AuthorizationRules": [{"KeyName": "a", "Rights": ["Rule"]}]})"), HasSubstr("Rights"));
  EXPECT_THAT(what(std::string(namespace_document_bytes_max + 1, ' ')), HasSubstr("at most"));
}

// Whoever is shown a namespace can send it back.
TEST(NamespaceDocument, WhatIsShownIsADocument) {
  NamespaceView view;
  view.name = "t1";
  view.host_names = {"t1.localhost"};
  view.rules = {*auth::make_default_rule("key", Instant{})};
  EXPECT_EQ(
      connection_string(view, 40001),
      "Endpoint=sb://t1.localhost:40001;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=key;"
      "UseDevelopmentEmulator=true;");
  const auto document = read_namespace_document(write_namespace(view, 5672));
  ASSERT_TRUE(document) << document.error().detail;
  EXPECT_EQ(document->rules->front().primary_key, "key");
  EXPECT_THAT(write_namespaces({view}),
              HasSubstr(R"({"value":[{"Name":"t1","IsDefault":false,"HostNames":["t1.localhost"])"));
}

}  // namespace
}  // namespace omnibus::node
