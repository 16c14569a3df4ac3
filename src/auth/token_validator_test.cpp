#include "auth/token_validator.hpp"

#include <gtest/gtest.h>

#include "auth/faults.hpp"
#include "auth/jwt_fixture.hpp"
#include "auth/sas_token.hpp"

namespace omnibus::auth {
namespace {

constexpr Instant noon{std::chrono::seconds{1'800'000'000}};
constexpr Instant end{std::chrono::seconds{1'900'000'000}};
constexpr std::string_view sas_type = "servicebus.windows.net:sastoken";

class TokenValidatorTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(rules_.put("", *make_default_rule("SAS_KEY_VALUE", noon)));
    ASSERT_TRUE(issuers_.add({.issuer = std::string(fixture::issuer), .jwks = std::string(fixture::jwks)}));
  }
  static std::string sas(std::string_view resource) {
    return make_sas_token(resource, default_rule_name, "SAS_KEY_VALUE", end);
  }

  AccessRules rules_;
  JwtIssuers issuers_;
  TokenValidator validator_{{}, rules_, issuers_};
};

TEST_F(TokenValidatorTest, AGoodSasTokenGrantsItsName) {
  const auto grant = validator_.validate(sas_type, "sb://h/Orders", sas("sb://h/orders"), noon);
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->path, "orders");
  EXPECT_EQ(grant->rights, Rights::all());
  EXPECT_EQ(grant->expires, end);
  EXPECT_EQ(grant->holder, "RootManageSharedAccessKey");
}

// The token may be for more than the name; what is stored is the name. [SB 2.6]
TEST_F(TokenValidatorTest, AWiderTokenGrantsTheNarrowerName) {
  for (const auto* resource :
       {"sb://h", "sb://h/", "https://h/orders", "amqps://other:5671/orders/subscriptions"}) {
    const auto grant = validator_.validate(sas_type, "amqps://h/orders/Subscriptions/x", sas(resource), noon);
    ASSERT_TRUE(grant) << resource;
    EXPECT_EQ(grant->path, "orders/subscriptions/x");
  }
}

TEST_F(TokenValidatorTest, ANarrowerOrOtherTokenIsForTheWrongAudience) {
  for (const auto* resource :
       {"sb://h/orders/subscriptions/x", "sb://h/order", "sb://h/orders2", "ftp://h/orders"}) {
    const auto grant = validator_.validate(sas_type, "sb://h/orders", sas(resource), noon);
    ASSERT_FALSE(grant) << resource;
    EXPECT_EQ(grant.error().code, Errc::auth_failed);
    EXPECT_TRUE(grant.error().detail.starts_with("InvalidAudience:"));
  }
  EXPECT_FALSE(validator_.validate(sas_type, "sb://h/", sas("sb://h/orders"), noon));
}

TEST_F(TokenValidatorTest, ContentDecidesNotTheType) {
  for (const auto type : {std::string_view("jwt"), std::string_view("amqp:jwt"), sas_type})
    EXPECT_TRUE(validator_.validate(type, "sb://h/q", sas("sb://h/q"), noon)) << type;
  for (const auto* type : {"jwt", "amqp:jwt"})
    EXPECT_TRUE(validator_.validate(type, "sb://h/q", fixture::rs256, noon)) << type;
  const auto wrong = validator_.validate(sas_type, "sb://h/q", fixture::rs256, noon);
  EXPECT_EQ(fault_of(wrong.error()), Fault::malformed_token);
}

TEST_F(TokenValidatorTest, UnknownTypesAndNamesAreArgumentErrors) {
  for (const auto* type : {"", "amqp:swt", "saml"}) {
    const auto grant = validator_.validate(type, "sb://h/q", sas("sb://h/q"), noon);
    ASSERT_FALSE(grant) << type;
    EXPECT_EQ(grant.error().code, Errc::argument_error);
  }
  EXPECT_EQ(validator_.validate("jwt", "ftp://h/q", sas("sb://h/q"), noon).error().code,
            Errc::argument_error);
  EXPECT_EQ(validator_.validate("jwt", "sb://h/%", sas("sb://h/q"), noon).error().code, Errc::argument_error);
}

TEST_F(TokenValidatorTest, BadTokensAreRefusedWithTheirWord) {
  const auto fault = [&](std::string_view token) {
    return fault_of(validator_.validate("jwt", "sb://h/q", token, noon).error());
  };
  EXPECT_EQ(fault(make_sas_token("sb://h/q", default_rule_name, "wrong", end)), Fault::invalid_signature);
  EXPECT_EQ(fault(make_sas_token("sb://h/q", "nobody", "SAS_KEY_VALUE", end)), Fault::invalid_signature);
  EXPECT_EQ(fault(make_sas_token("sb://h/q", default_rule_name, "SAS_KEY_VALUE", noon)),
            Fault::expired_token);
  EXPECT_EQ(fault("SharedAccessSignature sr"), Fault::malformed_token);
  EXPECT_EQ(fault("neither"), Fault::malformed_token);
  EXPECT_EQ(fault(""), Fault::malformed_token);
}

TEST_F(TokenValidatorTest, AJwtGrantsByItsClaims) {
  const auto grant = validator_.validate("jwt", "amqps://h/Orders", fixture::es256, noon);
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->path, "orders");
  EXPECT_EQ(grant->rights, Rights{Right::send});
  EXPECT_EQ(grant->holder, "app-17");
}

TEST_F(TokenValidatorTest, ARolledKeyStopsTheNextToken) {
  ASSERT_TRUE(rules_.put("", *make_default_rule("another-key", noon)));
  EXPECT_FALSE(validator_.validate(sas_type, "sb://h/q", sas("sb://h/q"), noon));
}

TEST_F(TokenValidatorTest, HttpHeadersAreJudgedTheSameWay) {
  EXPECT_TRUE(
      validator_.validate_authorization(sas("https://h/orders?api-version=2021-05"), "/Orders", noon));
  EXPECT_TRUE(validator_.validate_authorization(sas("https://h"), "/orders/messages/head?timeout=60", noon));
  EXPECT_TRUE(validator_.validate_authorization(fmt::format("Bearer {}", fixture::rs256), "/orders", noon));
  EXPECT_FALSE(validator_.validate_authorization(sas("https://h/orders"), "/orders2", noon));
  const auto fault = [&](std::string_view header) {
    const auto grant = validator_.validate_authorization(header, "/orders", noon);
    return grant ? std::nullopt : std::optional(fault_of(grant.error()));
  };
  EXPECT_EQ(fault("WRAP access_token=x"), Fault::malformed_token);
  EXPECT_EQ(fault(""), Fault::malformed_token);
  EXPECT_EQ(fault("nonsense"), Fault::malformed_token);
}

// As the administration client for JavaScript signs for a forwarding target.
TEST_F(TokenValidatorTest, TheBareNameOfOurHostIsTheWholeNamespace) {
  ASSERT_TRUE(rules_.put(
      "a",
      *make_rule(
          {.key_name = "mover", .primary_key = "move-key", .secondary_key = "spare", .rights = {Right::send}},
          noon)));
  const auto fault = [&](std::string_view token, std::string_view url, std::string_view own_host) {
    const auto grant = validator_.validate_authorization(token, url, noon, own_host);
    return grant ? std::nullopt : std::optional(fault_of(grant.error()));
  };
  EXPECT_EQ(fault(sas("H:5300"), "/orders", "h:5300"), std::nullopt);
  EXPECT_EQ(fault(sas("h:5300"), "/orders", ""), Fault::invalid_audience);
  EXPECT_EQ(fault(sas("h:5300"), "/orders", "h"), Fault::invalid_audience);
  EXPECT_EQ(fault(sas("other:5300"), "/orders", "h:5300"), Fault::invalid_audience);
  const auto mover = make_sas_token("h:5300", "mover", "move-key", end);
  const auto grant = validator_.validate_authorization(mover, "/A", noon, "h:5300");
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->path, "a");
  EXPECT_EQ(grant->rights, Rights{Right::send});
  EXPECT_EQ(fault(mover, "/b", "h:5300"), Fault::invalid_signature)
      << "a rule of one entity is no rule of another";
  EXPECT_EQ(fault(mover, "/", "h:5300"), Fault::invalid_signature);
  EXPECT_EQ(fault(make_sas_token("a", "mover", "move-key", end), "/b", "a"), Fault::invalid_signature)
      << "whatever the request says our name is";
  const TokenValidator strict({.owns_host = [](std::string_view host) { return host == "mine.test"; }},
                              rules_, issuers_);
  EXPECT_TRUE(strict.validate_authorization(sas("mine.test:5300"), "/a", noon, "mine.test:5300"));
  EXPECT_FALSE(strict.validate_authorization(sas("theirs.test"), "/a", noon, "theirs.test"));
}

// As the administration clients for Java and Go send it.
TEST_F(TokenValidatorTest, ABearerTokenMayComeWithoutItsWord) {
  const auto grant = validator_.validate_authorization(fixture::es256, "/orders", noon);
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->rights, Rights{Right::send});
  EXPECT_FALSE(validator_.validate_authorization(fmt::format("Digest {}", fixture::es256), "/orders", noon));
}

TEST_F(TokenValidatorTest, ATokenOfAnotherNamespaceIsRefusedWhenHostsMatter) {
  const TokenValidator strict({.owns_host = [](std::string_view host) { return host == "mine.test"; }},
                              rules_, issuers_);
  EXPECT_TRUE(strict.validate(sas_type, "sb://mine.test/q", sas("sb://Mine.Test:5671/q"), noon));
  const auto other = strict.validate(sas_type, "sb://mine.test/q", sas("sb://theirs.test/q"), noon);
  ASSERT_FALSE(other);
  EXPECT_EQ(fault_of(other.error()), Fault::invalid_audience);
}

TEST_F(TokenValidatorTest, WithAuthorizationOffEverythingIsGood) {
  const TokenValidator off({.auth_off = true}, rules_, issuers_);
  const auto grant = off.validate("whatever", "sb://h/Q", "nonsense", noon);
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->path, "q");
  EXPECT_EQ(grant->rights, Rights::all());
  EXPECT_EQ(grant->expires, never);
  EXPECT_TRUE(off.validate_authorization("", "/q", noon));
}

}  // namespace
}  // namespace omnibus::auth
