#include "auth/sasl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace omnibus::auth {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;

class SaslTest : public testing::Test {
 protected:
  void SetUp() override {
    put("", "Send Rule", "pri+mary/Key=", "second%ary", {Right::send});
    put("", "RootManageSharedAccessKey", "SAS_KEY_VALUE", "other",
        {Right::manage, Right::send, Right::listen});
    put("orders", "EntityRule", "entity-key", "entity-key-2", {Right::listen});
  }
  void put(const char* path, const char* name, const char* primary, const char* secondary,
           std::vector<Right> rights) {
    auto rule = make_rule(
        {.key_name = name, .primary_key = primary, .secondary_key = secondary, .rights = std::move(rights)},
        Instant{});
    ASSERT_TRUE(rule);
    ASSERT_TRUE(rules_.put(path, *rule));
  }
  SaslDecision plain(const std::string& response) { return policy_.decide("PLAIN", as_bytes(response), {}); }

  AccessRules rules_;
  SaslPolicy policy_{{}, rules_};
  SaslContext with_certificate_{
      .tls = true,
      .certificate = ClientCertificate{.subject = "CN=plant-7", .alternative_names = {"plant-7.test"}}};
};

TEST_F(SaslTest, OffersInTheOrderOfTheCloud) {
  EXPECT_THAT(policy_.mechanisms({}), ElementsAre("MSSBCBS", "PLAIN", "ANONYMOUS"));
  const SaslPolicy external({.client_certificates = true}, rules_);
  EXPECT_THAT(external.mechanisms(with_certificate_),
              ElementsAre("MSSBCBS", "PLAIN", "ANONYMOUS", "EXTERNAL"));
  EXPECT_THAT(external.mechanisms({.tls = true}), ElementsAre("MSSBCBS", "PLAIN", "ANONYMOUS"));
}

// .NET sends nothing, JS NUL and the key name, Python an empty response, Go a word, Java nothing.
TEST_F(SaslTest, AnonymousAndMssbcbsLetInWithoutRights) {
  for (const std::optional<std::string>& response :
       {std::optional<std::string>{}, std::optional{"\0RootManageSharedAccessKey"s}, std::optional{""s},
        std::optional{"anonymous"s}}) {
    for (const auto* mechanism : {"MSSBCBS", "ANONYMOUS"}) {
      const auto bytes = response ? std::optional(as_bytes(*response)) : std::nullopt;
      const auto decision = policy_.decide(mechanism, bytes, {});
      EXPECT_EQ(decision.code, SaslCode::ok);
      EXPECT_TRUE(decision.anonymous);
      EXPECT_TRUE(decision.base.empty());
    }
  }
  EXPECT_TRUE(policy_.decide_without_sasl().anonymous);
}

TEST_F(SaslTest, PlainGivesTheRightsOfTheRule) {
  const auto decision = plain("\0Send Rule\0pri+mary/Key="s);
  EXPECT_EQ(decision.code, SaslCode::ok);
  EXPECT_FALSE(decision.anonymous);
  EXPECT_EQ(decision.base, Rights{Right::send});
  EXPECT_EQ(decision.identity, "Send Rule");
  EXPECT_EQ(plain("\0RootManageSharedAccessKey\0SAS_KEY_VALUE"s).base, Rights::all());
  EXPECT_EQ(plain("someone\0send rule\0pri+mary/Key="s).code, SaslCode::ok);
}

TEST_F(SaslTest, PlainTakesTheSecondaryKeyToo) {
  EXPECT_EQ(plain("\0Send Rule\0second%ary"s).code, SaslCode::ok);
}

TEST_F(SaslTest, PlainTakesUrlEncodedNameAndKey) {
  EXPECT_EQ(plain("\0Send%20Rule\0pri%2Bmary%2FKey%3D"s).code, SaslCode::ok);
  EXPECT_EQ(plain("\0Send Rule\0pri%2bmary%2fKey%3d"s).code, SaslCode::ok);
}

TEST_F(SaslTest, PlainRefusesWrongKeysUnknownAndEntityRules) {
  for (const auto& response :
       {"\0Send Rule\0pri+mary/Key"s, "\0Send Rule\0PRI+MARY/KEY="s, "\0nobody\0no rule has this key"s,
        "\0nobody\0nor this one"s, "\0Send Rule\0SAS_KEY_VALUE"s, "\0EntityRule\0entity-key"s}) {
    const auto decision = plain(response);
    EXPECT_EQ(decision.code, SaslCode::auth) << response;
    EXPECT_TRUE(decision.base.empty());
  }
}

TEST_F(SaslTest, PlainRefusesWhatIsNotThreeParts) {
  for (const auto& response : {""s, "\0"s, "\0\0"s, "Send Rule\0pri+mary/Key="s, "\0Send Rule\0"s,
                               "\0\0pri+mary/Key="s, "\0Send Rule\0pri+mary/Key=\0"s, "Send Rule"s})
    EXPECT_EQ(plain(response).code, SaslCode::auth);
}

TEST_F(SaslTest, PlainIsBounded) {
  const auto credentials = "\0Send Rule\0pri+mary/Key="s;
  EXPECT_EQ(plain(std::string(plain_bytes_max - credentials.size(), 'z') + credentials).code, SaslCode::ok);
  EXPECT_EQ(plain(std::string(plain_bytes_max - credentials.size() + 1, 'z') + credentials).code,
            SaslCode::auth);
}

TEST_F(SaslTest, PlainWithoutResponseIsAskedForIt) {
  EXPECT_TRUE(policy_.decide("PLAIN", std::nullopt, {}).needs_challenge);
  EXPECT_FALSE(plain("\0Send Rule\0pri+mary/Key="s).needs_challenge);
}

TEST_F(SaslTest, ExternalGivesWhatTheCertificateIsConfiguredFor) {
  const SaslPolicy policy({.client_certificates = true,
                           .certificate_rights = {{.name = "CN=plant-7", .rights = {Right::send}},
                                                  {.name = "plant-7.test", .rights = {Right::listen}},
                                                  {.name = "plant-8.test", .rights = {Right::manage}}}},
                          rules_);
  const auto decision = policy.decide("EXTERNAL", std::nullopt, with_certificate_);
  EXPECT_EQ(decision.code, SaslCode::ok);
  EXPECT_EQ(decision.base, (Rights{Right::send, Right::listen}));
  EXPECT_EQ(decision.identity, "CN=plant-7");
  EXPECT_EQ(policy.decide("EXTERNAL", std::nullopt, {}).code, SaslCode::auth);
}

TEST_F(SaslTest, ExternalWithAnUnknownCertificateOrSwitchedOffIsRefused) {
  const SaslPolicy nobody({.client_certificates = true}, rules_);
  EXPECT_EQ(nobody.decide("EXTERNAL", std::nullopt, with_certificate_).code, SaslCode::auth);
  const SaslPolicy off({.certificate_rights = {{.name = "CN=plant-7", .rights = {Right::send}}}}, rules_);
  EXPECT_EQ(off.decide("EXTERNAL", std::nullopt, with_certificate_).code, SaslCode::auth);
  // A row without a name must not match a certificate without a subject.
  const SaslPolicy blank(
      {.client_certificates = true, .certificate_rights = {{.name = "", .rights = Rights::all()}}}, rules_);
  EXPECT_EQ(blank
                .decide("EXTERNAL", std::nullopt,
                        {.tls = true, .certificate = ClientCertificate{.alternative_names = {""}}})
                .code,
            SaslCode::auth);
}

TEST_F(SaslTest, UnknownMechanismsAreRefused) {
  for (const auto* mechanism : {"", "plain", "SCRAM-SHA-256", "XOAUTH2"})
    EXPECT_EQ(policy_.decide(mechanism, as_bytes("\0Send Rule\0pri+mary/Key="s), {}).code, SaslCode::auth);
}

TEST_F(SaslTest, WithAuthorizationOffEveryoneMayDoEverything) {
  const SaslPolicy off({.auth_off = true}, rules_);
  EXPECT_EQ(off.decide("ANONYMOUS", std::nullopt, {}).base, Rights::all());
  const auto decision = off.decide("PLAIN", as_bytes("\0who\0ever"s), {});
  EXPECT_EQ(decision.code, SaslCode::ok);
  EXPECT_EQ(decision.base, Rights::all());
}

}  // namespace
}  // namespace omnibus::auth
