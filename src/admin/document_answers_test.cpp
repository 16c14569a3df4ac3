#include "admin/document_answers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace omnibus::admin {
namespace {

using testing::HasSubstr;

TEST(DocumentAnswers, ARequestSaysByItsHeadersThatItIsAboutADocument) {
  const auto is = [](std::string method, std::string header, std::string value) {
    net::HttpRequest request;
    request.method = std::move(method);
    request.headers = {{std::move(header), std::move(value)}};
    return is_about_document(request);
  };
  EXPECT_TRUE(is("PUT", "content-type", "Application/JSON; charset=utf-8"));
  EXPECT_FALSE(is("PUT", "Content-Type", "application/atom+xml;type=entry;charset=utf-8"));
  EXPECT_FALSE(is("PUT", "Accept", "application/json"));
  EXPECT_TRUE(is("GET", "Accept", "application/json"));
  EXPECT_FALSE(is("GET", "Accept", "application/json, application/xml")) << "Atom is good too";
  EXPECT_FALSE(is("GET", "Accept", "application/json, */*"));
  EXPECT_FALSE(is("DELETE", "Accept", "application/json"));
}

TEST(DocumentAnswers, TextsAreEscaped) {
  EXPECT_EQ(json_text("a\"b\\c\n\x01\xc3\xa9"), "\"a\\\"b\\\\c\\u000a\\u0001\xc3\xa9\"");
}

TEST(DocumentAnswers, OnlyConflictsAreAConflict) {
  const DocumentFinding immutable{.path = "/Type", .code = "type.immutable", .message = "no"};
  const DocumentFinding wrong{
      .path = "/Subscriptions/0/RoutingKey", .code = "routing-key.syntax", .message = "bad"};
  const DocumentFinding warning{.is_warning = true, .path = "/A", .code = "w", .message = "hm"};
  const auto answer = [](std::vector<DocumentFinding> findings) { return findings_response(findings); };
  EXPECT_EQ(answer({immutable}).status, 409);
  EXPECT_EQ(answer({immutable, wrong}).status, 400);
  EXPECT_EQ(
      answer({wrong, warning}).body,
      R"({"error":{"code":"SubscriptionInvalid","details":[{"path":"/Subscriptions/0/RoutingKey",)"
      R"("code":"routing-key.syntax","message":"bad"}]},"warnings":[{"path":"/A","code":"w","message":"hm"}]})");
  EXPECT_THAT(answer({immutable, warning}).body, HasSubstr("ExchangeInvalid"));
}

}  // namespace
}  // namespace omnibus::admin
