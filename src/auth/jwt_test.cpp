#include "auth/jwt.hpp"

#include <gtest/gtest.h>

#include "auth/faults.hpp"
#include "auth/jwt_fixture.hpp"
#include "auth/secrets.hpp"
#include "base/text.hpp"

namespace omnibus::auth {
namespace {

using namespace std::chrono_literals;
constexpr Instant noon{std::chrono::seconds{1'800'000'000}};
constexpr std::string_view good_header = R"({"alg":"HS256","typ":"JWT"})";
constexpr std::string_view good_claims =
    R"({"iss":"https://issuer.test/","aud":"https://servicebus.azure.net/","exp":1800003600,"roles":["Send"]})";

std::string base64url(Bytes bytes) {
  std::string text = base64_encode(bytes);
  while (text.ends_with('=')) text.pop_back();
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return text;
}

std::string join(std::string_view header, std::string_view claims) {
  return base64url(as_bytes(header)) + "." + base64url(as_bytes(claims));
}

std::string signed_hs256(std::string_view header, std::string_view claims,
                         std::string_view secret = fixture::secret) {
  const auto text = join(header, claims);
  return text + "." + base64url(hmac_sha256(secret, text));
}

JwtIssuerSettings settings() {
  return {.issuer = std::string(fixture::issuer),
          .jwks = std::string(fixture::jwks),
          .hs256_secret = std::string(fixture::secret)};
}

JwtIssuers issuers_of(JwtIssuerSettings one) {
  JwtIssuers issuers;
  const auto added = issuers.add(std::move(one));
  EXPECT_TRUE(added) << added.error().detail;
  return issuers;
}

Fault fault(std::string_view token, const JwtIssuers& issuers, Instant now = noon) {
  const auto grant = issuers.validate(token, "orders", now);
  if (grant) return Fault::none;
  EXPECT_EQ(grant.error().code, Errc::auth_failed);
  return fault_of(grant.error());
}

Fault fault_of_claims(std::string_view claims, Instant now = noon) {
  return fault(signed_hs256(good_header, claims), issuers_of(settings()), now);
}

TEST(Jwt, TokensOfAnIndependentMakerAreGoodInEveryAlgorithm) {
  const auto issuers = issuers_of(settings());
  for (const auto token : {fixture::rs256, fixture::rs384, fixture::rs512, fixture::es256, fixture::hs256}) {
    const auto grant = issuers.validate(token, "orders", noon);
    ASSERT_TRUE(grant) << grant.error().detail;
    EXPECT_EQ(grant->rights, Rights{Right::send});
    EXPECT_EQ(grant->subject, "app-17");
    EXPECT_EQ(grant->expires, Instant{1'900'000'060s});  // exp and the skew
  }
}

TEST(Jwt, AChangedSignatureOrTextIsRefused) {
  const auto issuers = issuers_of(settings());
  for (const auto token : {fixture::rs256, fixture::es256, fixture::hs256}) {
    std::string text(token);
    const auto at = text.rfind('.') + 5;
    text[at] = text[at] == 'A' ? 'B' : 'A';
    EXPECT_EQ(fault(text, issuers), Fault::invalid_signature);

    const auto last = std::string(token.substr(token.rfind('.')));
    const auto forged = join(R"({"alg":"RS256","kid":"rsa-1"})", good_claims) + last;
    EXPECT_EQ(fault(forged, issuers), Fault::invalid_signature);
  }
}

TEST(Jwt, AlgorithmNoneDoesNotExist) {
  const auto issuers = issuers_of(settings());
  for (const auto* alg : {"none", "None", "NONE", "", "hs256", "HS512", "PS256"}) {
    const auto text = join(fmt::format(R"({{"alg":"{}"}})", alg), good_claims);
    EXPECT_EQ(fault(text + ".", issuers), Fault::malformed_token) << alg;
    EXPECT_EQ(fault(text + ".AAAA", issuers), Fault::malformed_token) << alg;
  }
  EXPECT_EQ(fault(join(R"({"typ":"JWT"})", good_claims) + ".AAAA", issuers), Fault::malformed_token);
  EXPECT_EQ(fault(join(R"({"alg":5})", good_claims) + ".AAAA", issuers), Fault::malformed_token);
}

// The classic forgery: sign with HMAC, using the public key that everybody knows as the secret.
TEST(Jwt, APublicKeyIsNeverAnHmacSecret) {
  auto only_public = settings();
  only_public.hs256_secret.clear();
  const auto issuers = issuers_of(std::move(only_public));
  const auto jwks = std::string(fixture::jwks);
  const auto n_at = jwks.find("\"n\": \"") + 6;
  const auto n_text = jwks.substr(n_at, jwks.find('"', n_at) - n_at);
  ASSERT_GT(n_text.size(), 300u);
  for (const auto& secret : {jwks, n_text, *base64_decode(n_text), std::string()}) {
    EXPECT_EQ(fault(signed_hs256(good_header, good_claims, secret), issuers), Fault::invalid_signature);
    EXPECT_EQ(fault(signed_hs256(R"({"alg":"HS256","kid":"rsa-1"})", good_claims, secret), issuers),
              Fault::invalid_signature);
  }
}

TEST(Jwt, TheKeyIdChoosesTheKey) {
  const auto issuers = issuers_of(settings());
  auto renamed = settings();
  renamed.hs256_secret.clear();
  for (std::size_t at = 0; (at = renamed.jwks.find("rsa-1", at)) != std::string::npos;)
    renamed.jwks.replace(at, 5, "rsa-2");
  EXPECT_EQ(fault(fixture::rs256, issuers), Fault::none);
  EXPECT_EQ(fault(fixture::rs256, issuers_of(renamed)), Fault::invalid_signature);
  EXPECT_EQ(fault(signed_hs256(R"({"alg":"HS256","kid":7})", good_claims), issuers), Fault::malformed_token);
}

TEST(Jwt, AKeyForOneAlgorithmIsForNoOther) {
  auto one = settings();
  const std::string kid = "\"kid\": \"rsa-1\"";
  one.jwks.replace(one.jwks.find(kid), kid.size(), kid + ", \"alg\": \"RS256\"");
  const auto issuers = issuers_of(one);
  EXPECT_EQ(fault(fixture::rs256, issuers), Fault::none);
  EXPECT_EQ(fault(fixture::rs512, issuers), Fault::invalid_signature);
}

TEST(Jwt, ExpiryAndNotBeforeHaveTheSkew) {
  const auto token = R"({"iss":"https://issuer.test/","aud":"https://servicebus.azure.net",)"
                     R"("exp":1800003600,"nbf":1800000000,"roles":"Send"})";
  EXPECT_EQ(fault_of_claims(token, noon), Fault::none);
  EXPECT_EQ(fault_of_claims(token, noon - 60s), Fault::none);
  EXPECT_EQ(fault_of_claims(token, noon - 61s), Fault::malformed_token);
  EXPECT_EQ(fault_of_claims(token, noon + 3659s), Fault::none);
  EXPECT_EQ(fault_of_claims(token, noon + 3660s), Fault::expired_token);

  auto exact = settings();
  exact.clock_skew = 0s;
  const auto issuers = issuers_of(exact);
  EXPECT_EQ(fault(signed_hs256(good_header, token), issuers, noon + 3599s), Fault::none);
  EXPECT_EQ(fault(signed_hs256(good_header, token), issuers, noon + 3600s), Fault::expired_token);
}

TEST(Jwt, TimesMustBeNumbersAndMayBeHuge) {
  const auto with_exp = [](std::string_view exp) {
    return fault_of_claims(fmt::format(
        R"({{"iss":"https://issuer.test/","aud":"https://servicebus.azure.net","exp":{},"roles":"Send"}})",
        exp));
  };
  EXPECT_EQ(with_exp("1800000000.5"), Fault::none);
  EXPECT_EQ(with_exp("1e300"), Fault::none);
  EXPECT_EQ(with_exp("18446744073709551615"), Fault::none);
  EXPECT_EQ(with_exp("-1"), Fault::expired_token);
  EXPECT_EQ(with_exp("-1e300"), Fault::expired_token);
  for (const auto* exp : {"\"1900000000\"", "null", "true", "[1900000000]"})
    EXPECT_EQ(with_exp(exp), Fault::malformed_token) << exp;
  EXPECT_EQ(fault_of_claims(
                R"({"iss":"https://issuer.test/","aud":"https://servicebus.azure.net","roles":"Send"})"),
            Fault::malformed_token);
}

TEST(Jwt, AudienceAndIssuerMustFit) {
  const auto with = [](std::string_view iss, std::string_view aud) {
    return fault_of_claims(fmt::format(R"({{"iss":{},"aud":{},"exp":1800003600,"roles":"Send"}})", iss, aud));
  };
  const auto* iss = R"("https://issuer.test/")";
  EXPECT_EQ(with(iss, R"("https://servicebus.azure.net/")"), Fault::none);
  EXPECT_EQ(with(iss, R"(["https://graph.test","https://servicebus.azure.net"])"), Fault::none);
  EXPECT_EQ(with(iss, R"("https://graph.test")"), Fault::invalid_audience);
  EXPECT_EQ(with(iss, R"("https://servicebus.azure.net.evil.test")"), Fault::invalid_audience);
  EXPECT_EQ(with(iss, "[]"), Fault::invalid_audience);
  EXPECT_EQ(with(iss, "{}"), Fault::invalid_audience);
  EXPECT_EQ(with(R"("https://issuer.test")", R"("https://servicebus.azure.net")"), Fault::invalid_issuer);
  EXPECT_EQ(with("5", R"("https://servicebus.azure.net")"), Fault::malformed_token);
}

TEST(Jwt, AnIssuerCannotSignForAnother) {
  auto issuers = issuers_of(settings());
  ASSERT_TRUE(issuers.add({.issuer = "https://other.test/", .hs256_secret = std::string(32, 'o')}));
  EXPECT_EQ(fault(signed_hs256(good_header, good_claims, std::string(32, 'o')), issuers),
            Fault::invalid_signature);
}

TEST(Jwt, CutTokensAreMalformedNeverGood) {
  const auto issuers = issuers_of(settings());
  for (std::size_t size = 0; size < fixture::hs256.size(); ++size)
    EXPECT_NE(fault(fixture::hs256.substr(0, size), issuers), Fault::none) << size;
  EXPECT_EQ(fault("a.b", issuers), Fault::malformed_token);
  EXPECT_EQ(fault("...", issuers), Fault::malformed_token);
  EXPECT_EQ(fault(std::string(fixture::hs256) + ".x", issuers), Fault::malformed_token);
  EXPECT_EQ(fault(std::string(fixture::hs256) + "=", issuers), Fault::malformed_token);
}

TEST(Jwt, TwinNamesAreRefusedAtAnyDepth) {
  EXPECT_EQ(
      fault_of_claims(
          R"({"iss":"https://issuer.test/","aud":"https://servicebus.azure.net","exp":1,"exp":1800003600})"),
      Fault::malformed_token);
  EXPECT_EQ(fault_of_claims(R"({"iss":"https://issuer.test/","x":{"a":1,"\u0061":2}})"),
            Fault::malformed_token);
  const auto issuers = issuers_of(settings());
  EXPECT_EQ(fault(signed_hs256(R"({"alg":"none","alg":"HS256"})", good_claims), issuers),
            Fault::malformed_token);
  // The same name in two different objects is no twin.
  EXPECT_EQ(fault_of_claims(R"({"iss":"https://issuer.test/","aud":"https://servicebus.azure.net",)"
                            R"("exp":1800003600,"roles":"Send","a":{"exp":1},"b":{"exp":2}})"),
            Fault::none);
}

TEST(Jwt, DepthAndSizeAreBounded) {
  const auto nested = [](std::size_t depth) {
    return fault_of_claims(
        fmt::format(R"({{"iss":"https://issuer.test/","aud":"https://servicebus.azure.net",)"
                    R"("exp":1800003600,"roles":"Send","deep":{}{}}})",
                    std::string(depth, '['), std::string(depth, ']')));
  };
  EXPECT_EQ(nested(7), Fault::none);
  EXPECT_EQ(nested(8), Fault::malformed_token);
  EXPECT_EQ(nested(5000), Fault::malformed_token);

  const auto padded = [](std::size_t pad) {
    std::string claims(good_claims);
    claims.insert(claims.size() - 1, std::string(pad, ' '));
    return signed_hs256(good_header, claims);
  };
  std::size_t pad = 0;
  while (padded(pad + 1).size() <= jwt_bytes_max)
    pad += std::max<std::size_t>(1, (jwt_bytes_max - padded(pad).size()) / 2);
  const auto issuers = issuers_of(settings());
  EXPECT_EQ(fault(padded(pad), issuers), Fault::none);
  EXPECT_EQ(fault(padded(pad + 2), issuers), Fault::malformed_token);
}

TEST(Jwt, WhatMustBeUnderstoodAndIsNotIsRefused) {
  const auto issuers = issuers_of(settings());
  EXPECT_EQ(fault(signed_hs256(R"({"alg":"HS256","crit":["b64"],"b64":false})", good_claims), issuers),
            Fault::malformed_token);
  EXPECT_EQ(fault_of_claims("[1]"), Fault::malformed_token);
  EXPECT_EQ(fault_of_claims("{} {}"), Fault::malformed_token);
  EXPECT_EQ(fault_of_claims("{\"a\":\"\xff\"}"), Fault::malformed_token);
}

TEST(Jwt, ClaimsBecomeRights) {
  const auto rights = [](std::string_view claims) -> std::string {
    const auto grant =
        issuers_of(settings())
            .validate(
                signed_hs256(good_header,
                             fmt::format(R"({{"iss":"https://issuer.test/",)"
                                         R"("aud":"https://servicebus.azure.net","exp":1800003600,{}}})",
                                         claims)),
                "orders", noon);
    if (!grant) return std::string(word_of(fault_of(grant.error())));
    return to_string(grant->rights);
  };
  EXPECT_EQ(rights(R"("roles":["Azure Service Bus Data Owner"])"), "Manage");
  EXPECT_EQ(rights(R"("roles":["Azure Service Bus Data Sender","Azure Service Bus Data Receiver"])"),
            "Send, Listen");
  EXPECT_EQ(rights(R"("roles":["Azure Event Hubs Data Receiver"])"), "Listen");
  EXPECT_EQ(rights(R"("roles":["Azure Event Hubs Data Sender"])"), "Send");
  EXPECT_EQ(rights(R"("roles":["Azure Event Hubs Data Owner"])"), "Manage");
  EXPECT_EQ(rights(R"("scp":"profile Listen Send")"), "Send, Listen");
  EXPECT_EQ(rights(R"("scope":"Manage")"), "Manage");
  EXPECT_EQ(rights(R"("roles":"Send Listen")"), "Unauthorized");  // a role is one value
  EXPECT_EQ(rights(R"("roles":["send"])"), "Unauthorized");
  EXPECT_EQ(rights(R"("roles":[{"a":"Send"},7])"), "Unauthorized");
  EXPECT_EQ(rights(R"("groups":["Send"])"), "Unauthorized");
}

TEST(Jwt, TheTableOfRightsIsASettingAndCanNameAPath) {
  auto one = settings();
  one.claim_rights = {{.claim = "oid", .value = "17", .rights = {Right::listen}, .path = "/Orders/"}};
  const auto issuers = issuers_of(one);
  const auto token = signed_hs256(good_header, R"({"iss":"https://issuer.test/","oid":"17",)"
                                               R"("aud":"https://servicebus.azure.net","exp":1800003600})");
  EXPECT_EQ(issuers.validate(token, "orders/$deadletterqueue", noon)->rights, Rights{Right::listen});
  EXPECT_EQ(issuers.validate(token, "orders", noon)->subject, "17");
  EXPECT_FALSE(issuers.validate(token, "invoices", noon));
  EXPECT_FALSE(issuers.validate(token, "", noon));
  EXPECT_EQ(fault(signed_hs256(good_header, good_claims), issuers), Fault::no_rights);
}

TEST(JwtIssuers, UnusableSettingsAreRefused) {
  const auto code = [](auto change) {
    auto one = settings();
    change(one);
    JwtIssuers issuers;
    const auto added = issuers.add(one);
    EXPECT_EQ(issuers.empty(), !added.has_value());
    return added ? std::optional<Errc>{} : added.error().code;
  };
  EXPECT_EQ(code([](auto&) {}), std::nullopt);
  EXPECT_EQ(code([](auto& s) { s.issuer.clear(); }), Errc::argument_error);
  EXPECT_EQ(code([](auto& s) { s.audiences.clear(); }), Errc::argument_error);
  EXPECT_EQ(code([](auto& s) { s.jwks.clear(), s.hs256_secret.clear(); }), Errc::argument_error);
  EXPECT_EQ(code([](auto& s) { s.hs256_secret = std::string(31, 's'); }), Errc::argument_error);
  EXPECT_EQ(code([](auto& s) { s.hs256_secret = std::string(32, 's'); }), std::nullopt);
  EXPECT_EQ(code([](auto& s) { s.clock_skew = -1s; }), Errc::argument_error);
  EXPECT_EQ(code([](auto& s) { s.jwks = "{}"; }), Errc::argument_error);
  EXPECT_EQ(code([](auto& s) { s.jwks = "not json"; }), Errc::argument_error);
}

TEST(Jwks, KeysOfOtherKindsArePassedOver) {
  const auto keys = parse_jwks(R"({"keys":[{"kty":"oct","k":"AAAA"},{"kty":"OKP","crv":"Ed25519","x":"AA"},
      {"kty":"EC","crv":"P-384","x":"AA","y":"AA"},{"kty":"RSA","use":"enc","n":"AA","e":"AQAB"},
      {"kty":"RSA","alg":"PS256","n":"AA","e":"AQAB"}]})");
  ASSERT_TRUE(keys);
  EXPECT_TRUE(keys->empty());
  EXPECT_EQ(parse_jwks(fixture::jwks)->size(), 2u);
}

TEST(Jwks, BrokenNumbersAreRefused) {
  for (const auto* text :
       {R"({"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]})", R"({"keys":[{"kty":"RSA","e":"AQAB"}]})",
        R"({"keys":[{"kty":"RSA","n":"!","e":"AQAB"}]})", R"({"keys":[5]})", R"({"keys":{}})",
        R"({"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]})"})
    EXPECT_FALSE(parse_jwks(text)) << text;
  // 32 bytes each, but no point of the curve.
  const auto ones = base64url(as_bytes(std::string(32, '\x01')));
  EXPECT_FALSE(
      parse_jwks(fmt::format(R"({{"keys":[{{"kty":"EC","crv":"P-256","x":"{0}","y":"{0}"}}]}})", ones)));
  // An exponent of one makes every text its own signature.
  const auto modulus = base64url(as_bytes(std::string(256, '\xff')));
  EXPECT_FALSE(parse_jwks(fmt::format(R"({{"keys":[{{"kty":"RSA","n":"{}","e":"AQ"}}]}})", modulus)));
  const auto huge = base64url(as_bytes(std::string(1026, '\xff')));
  EXPECT_FALSE(parse_jwks(fmt::format(R"({{"keys":[{{"kty":"RSA","n":"{}","e":"AQAB"}}]}})", huge)));
}

TEST(Jwks, NumberOfKeysIsBounded) {
  const auto document = [](std::size_t count) {
    std::string list;
    for (std::size_t i = 0; i < count; ++i) list += i == 0 ? R"({"kty":"oct"})" : R"(,{"kty":"oct"})";
    return fmt::format(R"({{"keys":[{}]}})", list);
  };
  EXPECT_TRUE(parse_jwks(document(jwks_keys_max)));
  EXPECT_FALSE(parse_jwks(document(jwks_keys_max + 1)));
  EXPECT_FALSE(parse_jwks(std::string(jwks_bytes_max + 1, ' ')));
}

}  // namespace
}  // namespace omnibus::auth
