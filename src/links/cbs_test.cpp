#include "links/cbs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "links/links_rig.hpp"

namespace omnibus::links {
namespace {

using amqp::Role;
using amqp::Value;
using testing::HasSubstr;

TEST(Cbs, AGoodTokenIsAcceptedAndNamedInTheLogWithoutItsText) {
  LinksRig rig;
  const auto answer = rig.put_token("sb://localhost/Q", rig.sas("sb://localhost/q"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 202);
  EXPECT_EQ(answer->description, "Accepted");
  EXPECT_EQ(answer->condition, std::nullopt) << "its mere presence is a failure to Python";
  EXPECT_EQ(rig.log.lines.back(), "token q RootManageSharedAccessKey");
}

// JS looks the id up in a map, Java compares a ulong, Python a uuid: the type must come back too.
TEST(Cbs, TheCorrelationIdHasTypeAndValueOfTheMessageId) {
  LinksRig rig;
  for (const Value& id : {Value{"text"}, Value{std::uint64_t{7}}, Value{std::uint64_t{70000}},
                          Value{amqp::Uuid{}}, Value::binary(as_bytes("b"))}) {
    const auto answer = rig.put_token("sb://localhost/q", rig.sas("sb://localhost/q"), "jwt", id);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->correlation_id, id) << to_text(id);
    EXPECT_EQ(answer->status, 202) << "SAS text under the type jwt, as Python sends it";
  }
}

TEST(Cbs, FailuresCarryStatusTextAndCondition) {
  LinksRig rig;
  const auto check = [&](std::string_view what, std::optional<LinksRig::Answer> answer, int status,
                         std::string_view condition, std::string_view word) {
    SCOPED_TRACE(what);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, status);
    EXPECT_EQ(answer->condition, condition);
    EXPECT_THAT(answer->description, HasSubstr(word));
  };
  const std::string name = "sb://localhost/q";
  check("wrong key", rig.put_token(name, rig.sas(name, 1h, auth::default_rule_name, "wrong")), 401,
        "com.microsoft:auth-failed", "InvalidSignature");
  check("unknown rule", rig.put_token(name, rig.sas(name, 1h, "nobody")), 401, "com.microsoft:auth-failed",
        "");
  check("expired", rig.put_token(name, rig.sas(name, -1h)), 401, "com.microsoft:auth-failed", "ExpiredToken");
  check("for another", rig.put_token(name, rig.sas("sb://localhost/other")), 401, "com.microsoft:auth-failed",
        "InvalidAudience");
  check("malformed", rig.put_token(name, "SharedAccessSignature garbage"), 401, "com.microsoft:auth-failed",
        "MalformedToken");
  check("unknown type", rig.put_token(name, rig.sas(name), "amqp:swt"), 400, "com.microsoft:argument-error",
        "swt");
  for (const std::string& line : rig.log.lines)
    EXPECT_THAT(line, testing::Not(HasSubstr("sig="))) << "no secrets";
}

class CbsByHand : public testing::Test {
 protected:
  Payload request(std::optional<std::string> reply_to, bool with_name = true) {
    amqp::MessageBuilder builder;
    const auto id = amqp::encode(Value{"1"});
    builder.properties().message_id = {id};
    std::vector<std::uint8_t> reply;
    if (reply_to) {
      reply = amqp::encode(Value{*reply_to});
      builder.properties().reply_to = {reply};
    }
    builder.application_property("operation", "put-token");
    builder.application_property("type", "jwt");
    if (with_name) builder.application_property("name", "sb://localhost/q");
    builder.body(Value{rig.sas("sb://localhost/q")});
    return builder.build();
  }
  void send(amqp::Link& link, Payload payload) {
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    link.send(outgoing, std::move(payload));
    rig.pump();
  }
  std::size_t answers(amqp::Link& link) { return rig.heard.links[&link].messages.size(); }

  LinksRig rig;
};

// Python sends no reply-to at all, JS puts the link's name there, the others the target of the link.
TEST_F(CbsByHand, TheAnswerFindsItsLinkByTargetThenNameThenSession) {
  auto& sender = rig.attach("s", Role::sender, "$cbs");
  auto& by_session = rig.attach("by-session", Role::receiver, "$cbs", "$cbs");
  auto& by_name = rig.attach("named", Role::receiver, "$cbs", "x");
  auto& by_target = rig.attach("t", Role::receiver, "$cbs", "reply-here");
  for (auto* link : {&by_session, &by_name, &by_target}) link->grant(10);
  rig.pump();

  send(sender, request("reply-here"));
  EXPECT_EQ(answers(by_target), 1u);
  send(sender, request("named"));
  EXPECT_EQ(answers(by_name), 1u);
  send(sender, request(std::nullopt));
  EXPECT_EQ(answers(by_session), 1u);
}

// Java gives one credit per request, and gives it late.
TEST_F(CbsByHand, AnAnswerWaitsForCredit) {
  auto& sender = rig.attach("s", Role::sender, "$cbs");
  auto& receiver = rig.attach("r", Role::receiver, "$cbs");
  send(sender, request(std::nullopt));
  send(sender, request(std::nullopt));
  EXPECT_EQ(answers(receiver), 0u);
  EXPECT_EQ(rig.heard.links[&sender].accepted.size(), 2u) << "the requests themselves are settled";
  receiver.grant(1);
  rig.pump();
  EXPECT_EQ(answers(receiver), 1u);
  receiver.grant(5);
  receiver.drain();
  rig.pump();
  EXPECT_EQ(answers(receiver), 2u);
  EXPECT_EQ(receiver.credit(), 0u) << "drained";
}

TEST_F(CbsByHand, ARequestNobodyCanAnswerIsAcceptedAndDropped) {
  auto& sender = rig.attach("s", Role::sender, "$cbs");
  send(sender, request("nowhere"));
  EXPECT_EQ(rig.heard.links[&sender].accepted.size(), 1u);
  EXPECT_TRUE(rig.client->is_open());
}

TEST_F(CbsByHand, AMissingPropertyIsAnArgumentError) {
  auto& sender = rig.attach("s", Role::sender, "$cbs");
  auto& receiver = rig.attach("r", Role::receiver, "$cbs");
  receiver.grant(1);
  rig.pump();
  send(sender, request(std::nullopt, false));
  ASSERT_EQ(answers(receiver), 1u);
  const auto answer = LinksRig::read_answer(rig.heard.links[&receiver].messages[0], "status-code",
                                            "status-description", "error-condition");
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.description, HasSubstr("name"));
}

// The bound on answers that wait: at the limit all is well, one past it the link goes.
TEST_F(CbsByHand, AnswersWithoutCreditAreBounded) {
  auto& sender = rig.attach("s", Role::sender, "$cbs");
  auto& receiver = rig.attach("r", Role::receiver, "$cbs");
  for (std::size_t i = 0; i < RequestNode::waiting_max; ++i) send(sender, request(std::nullopt));
  EXPECT_FALSE(rig.heard.links[&receiver].detached);
  send(sender, request(std::nullopt));
  ASSERT_TRUE(rig.heard.links[&receiver].detached);
  EXPECT_EQ(rig.heard.links[&receiver].detached->name, "amqp:resource-limit-exceeded");
  EXPECT_TRUE(rig.client->is_open());
}

TEST_F(CbsByHand, WhatIsNoMessageIsRejected) {
  auto& sender = rig.attach("s", Role::sender, "$cbs");
  send(sender, Payload::copy_of("not a message"));
  EXPECT_TRUE(rig.heard.links[&sender].accepted.empty());
  EXPECT_TRUE(rig.client->is_open());
}

// The node of the namespace answers in camelCase, as every $management does.
TEST_F(CbsByHand, NamespaceManagementKnowsNoOperationYet) {
  ASSERT_EQ(rig.put_token("sb://localhost/", rig.sas("sb://localhost/"))->status, 202);
  auto& sender = rig.attach("ms", Role::sender, "$management");
  auto& receiver = rig.attach("mr", Role::receiver, "$management");
  receiver.grant(1);
  rig.pump();
  send(sender, request(std::nullopt));
  ASSERT_EQ(answers(receiver), 1u);
  const auto answer = LinksRig::read_answer(rig.heard.links[&receiver].messages[0], "statusCode",
                                            "statusDescription", "errorCondition");
  EXPECT_EQ(answer.status, 501);
  EXPECT_EQ(answer.condition, "amqp:not-implemented");
}

}  // namespace
}  // namespace omnibus::links
