#include "auth/sas_token.hpp"

#include <gtest/gtest.h>

#include "auth/faults.hpp"
#include "auth/secrets.hpp"
#include "base/text.hpp"

namespace omnibus::auth {
namespace {

constexpr Instant noon{std::chrono::seconds{1'800'000'000}};
constexpr Instant end{std::chrono::seconds{1'900'000'000}};
const std::string some_sig = percent_encode(base64_encode(Digest{}));

Fault parse_fault(const std::string& fields) {
  const auto token = parse_sas_token(std::string(sas_prefix) + fields);
  return token ? Fault::none : fault_of(token.error());
}

class SasTokenTest : public testing::Test {
 protected:
  void SetUp() override {
    put("", "Send Rule", "SAS_KEY_VALUE", "the-second-key", {Right::send});
    put("orders", "Send Rule", "of-the-queue", "of-the-queue-2", {Right::listen});
  }
  void put(const char* path, const char* name, const char* primary, const char* secondary,
           std::vector<Right> rights) {
    auto rule = make_rule(
        {.key_name = name, .primary_key = primary, .secondary_key = secondary, .rights = std::move(rights)},
        noon);
    ASSERT_TRUE(rule);
    ASSERT_TRUE(rules_.put(path, *rule));
  }
  Result<const AccessRule*> verify(std::string_view text, std::string_view path, Instant now = noon) {
    auto token = parse_sas_token(text);
    if (!token) return fail(token.error());
    return verify_sas_token(*token, rules_, path, now);
  }

  AccessRules rules_;
};

// The JS and Python texts are what those SDKs produce, byte for byte; those of Go, Java and .NET were signed
// by an independent program after the SDK's recipe [SB 2.5]. The rule's name has a blank because that is
// where they differ. The queue has a rule of the same name, which must not hide that of the namespace.
TEST_F(SasTokenTest, TokensInTheSpellingOfEverySdkAreGood) {
  for (const auto* text : {
           // JS: encodeURIComponent
           "SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2FOrders&"
           "sig=NrAWRzNvd0Z7CdsoSpdWLeB5TYRyLCq8vudPoyV0xd8%3D&se=1900000000&skn=Send%20Rule",
           // Python: quote_plus, the rule's name twice
           "SharedAccessSignature sr=sb%3A%2F%2Flocalhost%3A5672%2FOrders&"
           "sig=o98%2BkoSneDV%2FW5ZYY83rodc34Heb3cHcweJ1RLRCZa0%3D&se=1900000000&skn=Send%2BRule",
           // Go: lower-cased, lower-case escapes, the rule's name as it is
           "SharedAccessSignature sr=amqps%3a%2f%2flocalhost%2forders&"
           "sig=VfZ%2BtPj%2BKkL2Re2nFBcUm49p3H5OS4XWky84znm86TE%3D&se=1900000000&skn=Send Rule",
           // Java: URLEncoder
           "SharedAccessSignature sr=amqp%3A%2F%2Flocalhost%2FOrders&"
           "sig=8qaBlD4w8BAkovsySHKCn482BTXWeAs9LG%2BAPUr%2BX0M%3D&se=1900000000&skn=Send Rule",
           // .NET: WebUtility.UrlEncode
           "SharedAccessSignature sr=amqps%3A%2F%2Flocalhost%2FOrders%2F&"
           "sig=JmPEAYLXzd9ufYMLpE1ws04fkE4VCrH77bQ8Q%2FnmEJA%3D&se=1900000000&skn=Send+Rule",
           // JS and Go administration: the whole request URL
           "SharedAccessSignature "
           "sr=https%3A%2F%2Flocalhost%2Forders%3Fapi-version%3D2021-05%26enrich%3Dfalse&"
           "sig=hi8cK5MIMG8EjZg4660VkW5QttnsQKCk%2FRPrbkyoxCU%3D&se=1900000000&skn=Send%20Rule",
       }) {
    const auto rule = verify(text, "orders");
    ASSERT_TRUE(rule) << text << ": " << rule.error().detail;
    EXPECT_EQ((*rule)->primary_key, "SAS_KEY_VALUE");
    EXPECT_EQ(parse_sas_token(text)->expires, end);
  }
}

TEST_F(SasTokenTest, FieldsMayComeInAnyOrderWithStrangersBetween) {
  const auto token = make_sas_token("sb://h/orders", "Send Rule", "SAS_KEY_VALUE", end);
  std::vector<std::string> fields;
  for (std::string_view rest = std::string_view(token).substr(sas_prefix.size()); !rest.empty();) {
    const auto field = rest.substr(0, rest.find('&'));
    fields.emplace_back(field);
    rest.remove_prefix(std::min(rest.size(), field.size() + 1));
  }
  ASSERT_EQ(fields.size(), 4u);
  EXPECT_TRUE(
      verify(fmt::format("SharedAccessSignature {}&x=y&{}&{}&{}", fields[3], fields[1], fields[2], fields[0]),
             "orders"));
}

TEST_F(SasTokenTest, SecondaryKeySignsToo) {
  EXPECT_TRUE(verify(make_sas_token("sb://h/q", "Send Rule", "the-second-key", end), "q"));
}

TEST_F(SasTokenTest, EntityRuleHoldsOnItsEntityAndBelowOnly) {
  const auto token = make_sas_token("sb://h/orders", "Send Rule", "of-the-queue", end);
  EXPECT_EQ((*verify(token, "orders"))->rights, Rights{Right::listen});
  EXPECT_TRUE(verify(token, "orders/$deadletterqueue"));
  EXPECT_EQ(fault_of(verify(token, "invoices").error()), Fault::invalid_signature);
  EXPECT_EQ(fault_of(verify(token, "").error()), Fault::invalid_signature);
}

// The key is text: a client that Base64-decodes it first signs with other bytes.
TEST_F(SasTokenTest, KeyIsNotBase64Decoded) {
  put("", "b64", "QUJD", "second", {Right::send});
  EXPECT_TRUE(verify(make_sas_token("sb://h/q", "b64", "QUJD", end), "q"));
  EXPECT_FALSE(verify(make_sas_token("sb://h/q", "b64", "ABC", end), "q"));
}

TEST_F(SasTokenTest, AnyChangedByteBreaksTheSignature) {
  const auto good = make_sas_token("sb://h/orders", "Send Rule", "SAS_KEY_VALUE", end);
  ASSERT_TRUE(verify(good, "orders"));
  const auto changed = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    const auto rule = verify(text, "orders");
    return rule ? Fault::none : fault_of(rule.error());
  };
  EXPECT_EQ(changed("orders", "orderz"), Fault::invalid_signature);
  EXPECT_EQ(changed("%3A", "%3a"), Fault::invalid_signature);  // as written, not as meant
  EXPECT_EQ(changed("se=1900000000", "se=1900000001"), Fault::invalid_signature);
  EXPECT_EQ(changed("se=1900000000", "se=01900000000"), Fault::invalid_signature);
  EXPECT_EQ(changed("skn=Send", "skn=Sand"), Fault::invalid_signature);
}

TEST_F(SasTokenTest, UnknownRuleAndWrongKeyReadTheSame) {
  const auto wrong = verify(make_sas_token("sb://h/q", "Send Rule", "wrong", end), "q");
  const auto unknown = verify(make_sas_token("sb://h/q", "Lend Rule", "no rule has this key", end), "q");
  ASSERT_FALSE(wrong);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(fault_of(unknown.error()), Fault::invalid_signature);
  EXPECT_TRUE(wrong.error().detail.starts_with("InvalidSignature:"));
  std::string detail = unknown.error().detail;
  detail.replace(detail.find("Lend"), 4, "Send");
  EXPECT_EQ(wrong.error().detail, detail);
}

TEST_F(SasTokenTest, ExpiresAtItsSecond) {
  const auto token = make_sas_token("sb://h/q", "Send Rule", "SAS_KEY_VALUE", end);
  EXPECT_TRUE(verify(token, "q", end - std::chrono::milliseconds{1}));
  const auto late = verify(token, "q", end);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::auth_failed);
  EXPECT_TRUE(late.error().detail.starts_with("ExpiredToken:"));
}

TEST_F(SasTokenTest, NameIsReadRawDecodedOnceAndTwice) {
  using Names = std::vector<std::string>;
  const auto names = [](const std::string& skn) {
    return parse_sas_token(fmt::format("{}sr=x&sig={}&se=1&skn={}", sas_prefix, some_sig, skn))->key_names;
  };
  EXPECT_EQ(names("plain"), Names{"plain"});
  EXPECT_EQ(names("a%2520b"), (Names{"a b", "a%20b", "a%2520b"}));
  EXPECT_EQ(names("a%252520b"), (Names{"a%20b", "a%2520b", "a%252520b"}));  // at most twice
  EXPECT_EQ(names("100%"), Names{"100%"});
  EXPECT_EQ(names("a+b"), (Names{"a b", "a+b"}));
}

TEST_F(SasTokenTest, MalformedTokensAreToldSo) {
  const std::string good = fmt::format("sr=x&sig={}&se=1&skn=r", some_sig);
  ASSERT_EQ(parse_fault(good), Fault::none);
  ASSERT_EQ(parse_fault(good + "&"), Fault::none);  // a closing '&' adds no field
  for (const auto& fields :
       {std::string(), std::string("&"), "x&" + good, good + "&sr=y", good + "&se=2",
        fmt::format("sig={}&se=1&skn=r", some_sig), std::string("sr=x&se=1&skn=r"),
        fmt::format("sr=x&sig={}&skn=r", some_sig), fmt::format("sr=x&sig={}&se=1", some_sig),
        fmt::format("sr=x&sig={}&se=&skn=r", some_sig), fmt::format("sr=x&sig={}&se=-1&skn=r", some_sig),
        fmt::format("sr=x&sig={}&se=1.5&skn=r", some_sig), fmt::format("sr=x&sig={}&se=0x9&skn=r", some_sig),
        fmt::format("sr=x&sig={}&se=111111111111111111111&skn=r", some_sig),
        fmt::format("sr=%zz&sig={}&se=1&skn=r", some_sig), std::string("sr=x&sig=AAAA&se=1&skn=r"),
        std::string("sr=x&sig=%&se=1&skn=r"), fmt::format("SR=x&sig={}&se=1&skn=r", some_sig)}) {
    EXPECT_EQ(parse_fault(fields), Fault::malformed_token) << fields;
  }
  EXPECT_EQ(fault_of(parse_sas_token("SharedAccessSignature").error()), Fault::malformed_token);
  EXPECT_EQ(fault_of(parse_sas_token("").error()), Fault::malformed_token);
}

TEST_F(SasTokenTest, HugeExpiryDoesNotOverflow) {
  const auto token =
      parse_sas_token(fmt::format("{}sr=x&sig={}&se=99999999999999999999&skn=r", sas_prefix, some_sig));
  ASSERT_TRUE(token);
  EXPECT_EQ(token->expires, Instant{std::chrono::seconds{253'402'300'799}});
}

TEST_F(SasTokenTest, LengthAndFieldsAreBounded) {
  const std::string tail = fmt::format("&sig={}&se=1&skn=r", some_sig);
  const std::size_t room = sas_token_bytes_max - sas_prefix.size() - tail.size() - 3;
  EXPECT_EQ(parse_fault("sr=" + std::string(room, 'x') + tail), Fault::none);
  EXPECT_EQ(parse_fault("sr=" + std::string(room + 1, 'x') + tail), Fault::malformed_token);
  std::string strangers;
  for (int i = 0; i < 12; ++i) strangers += "&x=y";
  EXPECT_EQ(parse_fault("sr=x" + tail + strangers), Fault::none);
  EXPECT_EQ(parse_fault("sr=x" + tail + strangers + "&x=y"), Fault::malformed_token);
}

TEST_F(SasTokenTest, ErrorsHoldNeitherSignatureNorKey) {
  const auto token = make_sas_token("sb://h/q", "Send Rule", "wrong-key", end);
  const auto rule = verify(token, "q");
  ASSERT_FALSE(rule);
  const auto sig = token.substr(token.find("sig=") + 4, 20);
  for (const std::string_view secret :
       {std::string_view(sig), std::string_view("wrong-key"), std::string_view("SAS_KEY_VALUE"),
        std::string_view("the-second-key")})
    EXPECT_EQ(rule.error().detail.find(secret), std::string::npos);
}

}  // namespace
}  // namespace omnibus::auth
