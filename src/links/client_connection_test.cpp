#include "links/client_connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "links/links_rig.hpp"

namespace omnibus::links {
namespace {

using amqp::Role;
using testing::HasSubstr;

constexpr std::string_view plain_root{"\0RootManageSharedAccessKey\0SAS_KEY_VALUE", 40};

RigOptions plain(std::string_view response = plain_root) {
  RigOptions options;
  options.mechanism = "PLAIN";
  options.response = response;
  return options;
}

// ---- who may come in ----

TEST(ClientConnection, AnonymousIsLetInAndWelcomed) {
  LinksRig rig;
  EXPECT_EQ(rig.heard.sasl_code, 0);
  EXPECT_EQ(rig.heard.sasl_data, "Welcome!");
  EXPECT_TRUE(rig.client->is_open());
  EXPECT_THAT(rig.heard.broker_container, testing::MatchesRegex("[0-9a-f]{32}_G[0-9]+"));
}

TEST(ClientConnection, PlainWithTheWrongKeyEndsInSasl) {
  LinksRig rig{plain({"\0RootManageSharedAccessKey\0wrong", 32})};
  EXPECT_EQ(rig.heard.sasl_code, 1);
  EXPECT_TRUE(rig.broker->finished());
  EXPECT_THAT(rig.log.lines, testing::ElementsAre("failed PLAIN"));
}

TEST(ClientConnection, PlainNeedsNoToken) {
  LinksRig rig{plain()};
  auto& link = rig.attach("s", Role::sender, "missing");
  EXPECT_EQ(rig.heard.links[&link].detached->name, "amqp:not-found");
  rig.advance(21s);
  EXPECT_TRUE(rig.client->is_open()) << "the token rule is not for PLAIN";
}

TEST(ClientConnection, WithoutSaslLayerAClientIsAnonymous) {
  RigOptions options;
  options.mechanism = "";
  LinksRig rig{options};
  EXPECT_TRUE(rig.client->is_open());
  auto& link = rig.attach("s", Role::sender, "q");
  EXPECT_EQ(rig.heard.links[&link].detached->name, "amqp:unauthorized-access");
  EXPECT_EQ(rig.put_token("sb://localhost/q", rig.sas("sb://localhost/q"))->status, 202);
}

TEST(ClientConnection, AuthOffLetsEveryoneDoEverything) {
  RigOptions options;
  options.sasl.auth_off = true;
  options.settings.token_wait = 0ms;
  LinksRig rig{options};
  auto& link = rig.attach("s", Role::sender, "q");
  EXPECT_EQ(rig.heard.links[&link].detached->name, "amqp:not-found");
  EXPECT_EQ(rig.put_token("sb://localhost/q", "nonsense")->status, 202) << "$cbs still answers";
}

TEST(ClientConnection, OneConnectionTooManyIsToldSo) {
  RigOptions options;
  options.info.over_limit = true;
  LinksRig rig{options};
  ASSERT_TRUE(rig.heard.closed);
  EXPECT_EQ(rig.heard.closed->name, "amqp:resource-limit-exceeded");
  EXPECT_TRUE(rig.broker->finished());
}

// ---- addresses and rights ----

TEST(ClientConnection, BeforeATokenNothingButCbsIsAllowed) {
  LinksRig rig;
  for (const auto role : {Role::sender, Role::receiver}) {
    auto& link = rig.attach(fmt::format("l{}", static_cast<int>(role)), role, "q");
    EXPECT_EQ(rig.heard.links[&link].attached, false);
    EXPECT_EQ(rig.heard.links[&link].detached->name, "amqp:unauthorized-access");
    EXPECT_TRUE(rig.heard.links[&link].gone);
  }
  auto& cbs = rig.attach("c", Role::sender, "$CBS");
  EXPECT_EQ(rig.heard.links[&cbs].attached, true);
  EXPECT_EQ(cbs.credit(), 100u);
}

// JS and Java decide by this text whether to try again.
TEST(ClientConnection, AMissingEntityIsNamedInTheTextThatSdksMatch) {
  LinksRig rig{plain()};
  for (const std::string address :
       {"orders", "/orders/", "amqps://localhost:5671/orders", "amqp://x/orders"}) {
    auto& link = rig.attach(address, Role::receiver, address);
    const auto& heard = rig.heard.links[&link];
    EXPECT_EQ(heard.attached, false) << address;
    EXPECT_EQ(heard.detached->name, "amqp:not-found");
    EXPECT_THAT(heard.detached->description, HasSubstr("The messaging entity 'orders' could not be found"));
    EXPECT_THAT(heard.detached->description, HasSubstr("TrackingId:"));
  }
}

TEST(ClientConnection, AddressesThatCannotBeReadAreRefused) {
  LinksRig rig{plain()};
  for (const std::string address : {"sb://localhost/q", "http://localhost/q", "a%zz", "", "/"}) {
    auto& link = rig.attach("l" + address, Role::sender, address);
    EXPECT_EQ(rig.heard.links[&link].detached->name, "amqp:invalid-field") << address;
  }
}

TEST(ClientConnection, TerminiThatAreNotOfferedAreRefused) {
  LinksRig rig{plain()};
  const auto refusal = [&](const std::string& name, Role role, const std::vector<std::uint8_t>& source,
                           const std::vector<std::uint8_t>& target) {
    amqp::AttachRequest request;
    request.name = name;
    request.role = role;
    request.source = {source};
    request.target = {target};
    auto& link = rig.session().attach(request);
    rig.heard.links[&link];
    rig.pump();
    return rig.heard.links[&link].detached.value_or(amqp::Condition{}).name;
  };
  const auto own = amqp::encode_composite(amqp::Source{});
  amqp::Target dynamic;
  dynamic.dynamic = true;
  EXPECT_EQ(refusal("dynamic", Role::sender, own, amqp::encode_composite(dynamic)), "amqp:not-implemented");
  EXPECT_EQ(refusal("anonymous", Role::sender, own, {}), "amqp:invalid-field");
  EXPECT_EQ(refusal("null", Role::sender, own, amqp::encode_composite(amqp::Target{})), "amqp:invalid-field");
  EXPECT_EQ(refusal("foreign", Role::sender, own, amqp::encode(amqp::Value{"q"})), "amqp:invalid-field");
}

TEST(ClientConnection, RightsDecideByDirection) {
  LinksRig rig{plain({"\0listen\0listen-key", 18})};
  auto& receiver = rig.attach("r", Role::receiver, "q");
  EXPECT_EQ(rig.heard.links[&receiver].detached->name, "amqp:not-found") << "may listen, but there is none";
  auto& sender = rig.attach("s", Role::sender, "q");
  EXPECT_EQ(rig.heard.links[&sender].detached->name, "amqp:unauthorized-access");
  EXPECT_THAT(rig.heard.links[&sender].detached->description, HasSubstr("Send"));
}

TEST(ClientConnection, ATokenCoversItsPathAndWhatLiesBelow) {
  LinksRig rig;
  ASSERT_EQ(rig.put_token("amqp://localhost/Orders", rig.sas("amqp://localhost/orders"))->status, 202);
  const auto condition = [&](const std::string& address) {
    auto& link = rig.attach("l-" + address, Role::receiver, address);
    return rig.heard.links[&link].detached->name;
  };
  EXPECT_EQ(condition("orders"), "amqp:not-found");
  EXPECT_EQ(condition("ORDERS/$DeadLetterQueue"), "amqp:not-found");
  EXPECT_EQ(condition("orders/$management"), "amqp:not-found");
  EXPECT_EQ(condition("orders/Subscriptions/s"), "amqp:not-found");
  EXPECT_EQ(condition("orders2"), "amqp:unauthorized-access");
  EXPECT_EQ(condition("other"), "amqp:unauthorized-access");
}

// ---- time ----

TEST(ClientConnection, WithoutATokenTheConnectionIsDroppedAfterTwentySeconds) {
  LinksRig rig;
  rig.attach("c", Role::sender, "$cbs");
  rig.advance(19'999ms);
  EXPECT_FALSE(rig.heard.ended);
  rig.advance(1ms);
  ASSERT_TRUE(rig.heard.closed);
  EXPECT_EQ(rig.heard.closed->name, "amqp:unauthorized-access");
}

TEST(ClientConnection, ARefusedTokenDoesNotCount) {
  LinksRig rig;
  EXPECT_EQ(rig.put_token("sb://localhost/q", "SharedAccessSignature sr=q&sig=x&se=9999999999&skn=y")->status,
            401);
  rig.advance(20s);
  EXPECT_TRUE(rig.heard.ended);
}

TEST(ClientConnection, AConnectionThatNeverHadALinkGoesAfterAMinute) {
  LinksRig rig{plain()};
  rig.advance(59'999ms);
  EXPECT_FALSE(rig.heard.ended);
  rig.advance(1ms);
  ASSERT_TRUE(rig.heard.closed);
  EXPECT_EQ(rig.heard.closed->name, "amqp:connection:forced");
  EXPECT_THAT(rig.heard.closed->description, HasSubstr("60000"));
  EXPECT_THAT(rig.heard.closed->description, HasSubstr("LinkTracker"));
}

TEST(ClientConnection, AConnectionWhoseLinksAreGoneGoesAfterFiveMinutes) {
  auto options = plain();
  options.settings.idle_time_out = 0ms;
  LinksRig rig{options};
  auto& link = rig.attach("c", Role::sender, "$cbs");
  rig.advance(10min);
  EXPECT_FALSE(rig.heard.ended) << "a link keeps it";
  link.detach();
  rig.pump();
  rig.advance(299'999ms);
  EXPECT_FALSE(rig.heard.ended);
  rig.advance(1ms);
  ASSERT_TRUE(rig.heard.closed);
  EXPECT_THAT(rig.heard.closed->description, HasSubstr("300000"));
}

// An expired token takes its own links and leaves the rest of the connection alone.
TEST(ClientConnection, ExpiryDetachesJustTheLinksConcerned) {
  LinksRig rig;
  ASSERT_EQ(rig.put_token("sb://localhost/", rig.sas("sb://localhost/", 30s))->status, 202);
  auto& management = rig.attach("m", Role::receiver, "$management");
  ASSERT_EQ(rig.heard.links[&management].attached, true);
  rig.advance(29s);
  EXPECT_FALSE(rig.heard.links[&management].detached);
  rig.advance(2s);
  ASSERT_TRUE(rig.heard.links[&management].detached);
  EXPECT_EQ(rig.heard.links[&management].detached->name, "amqp:unauthorized-access");
  EXPECT_THAT(rig.heard.links[&management].detached->description, HasSubstr("ExpiredToken"));
  EXPECT_EQ(rig.log.lines.back(), "detached $management amqp:unauthorized-access");
  EXPECT_TRUE(rig.client->is_open());
  EXPECT_EQ(rig.put_token("sb://localhost/", rig.sas("sb://localhost/"))->status, 202) << "$cbs lives on";
}

// Their order is part of what a client sees, and the same in every process: not that of addresses in memory.
TEST(ClientConnection, LinksGoInTheOrderInWhichTheyCame) {
  LinksRig rig;
  for (int i = 0; i < 30; ++i) rig.queues.add({.name = fmt::format("q{}", i)}, rig.wall());
  ASSERT_EQ(rig.put_token("sb://localhost/", rig.sas("sb://localhost/", 30s))->status, 202);
  std::vector<amqp::Link*> early;
  for (int i = 0; i < 15; ++i)
    early.push_back(&rig.attach(fmt::format("early {}", i), Role::sender, fmt::format("q{}", i)));
  // Some make room in between, which those that come later may take.
  for (std::size_t i = 0; i < early.size(); i += 2) early[i]->detach();
  rig.pump();
  std::vector<std::string> expected;
  for (int i = 1; i < 15; i += 2) expected.push_back(fmt::format("detached q{} amqp:unauthorized-access", i));
  for (int i = 29; i >= 15; --i) {
    rig.attach(fmt::format("late {}", i), Role::sender, fmt::format("q{}", i));
    expected.push_back(fmt::format("detached q{} amqp:unauthorized-access", i));
  }
  rig.log.lines.clear();
  rig.advance(31s);
  EXPECT_EQ(rig.log.lines, expected);
}

TEST(ClientConnection, ARenewedTokenKeepsItsLinks) {
  LinksRig rig;
  ASSERT_EQ(rig.put_token("sb://localhost/", rig.sas("sb://localhost/", 30s))->status, 202);
  auto& management = rig.attach("m", Role::receiver, "$management");
  rig.advance(20s);
  ASSERT_EQ(rig.put_token("sb://localhost/", rig.sas("sb://localhost/", 30s))->status, 202);
  rig.advance(20s);
  EXPECT_FALSE(rig.heard.links[&management].detached);
  rig.advance(11s);
  EXPECT_TRUE(rig.heard.links[&management].detached);
}

TEST(ClientConnection, IdleLinksAreDetachedOnlyWhenAskedFor) {
  auto options = plain();
  options.settings.idle_link = 600s;
  options.settings.idle_time_out = 0ms;
  LinksRig rig{options};
  auto& link = rig.attach("m", Role::receiver, "$management");
  rig.advance(599'999ms);
  EXPECT_FALSE(rig.heard.links[&link].detached);
  rig.advance(1ms);
  ASSERT_TRUE(rig.heard.links[&link].detached);
  EXPECT_EQ(rig.heard.links[&link].detached->name, "amqp:link:detach-forced");
  EXPECT_EQ(rig.log.lines.back(), "detached $management amqp:link:detach-forced");
}

TEST(ClientConnection, AClientThatAsksForHeartbeatsGetsThem) {
  auto options = plain();
  options.client_idle = 2s;
  LinksRig rig{options};
  rig.attach("c", Role::sender, "$cbs");
  for (int i = 0; i < 60; ++i) {
    rig.advance(500ms);
    rig.client->tick(rig.now().tick);  // would end the connection after 2 s of silence
    rig.pump();
  }
  EXPECT_FALSE(rig.heard.ended);
}

TEST(ClientConnection, ShutdownClosesWithTheFrameThatMakesSdksReconnect) {
  LinksRig rig{plain()};
  rig.broker->close({Errc::connection_forced, "The broker is shutting down."}, rig.now());
  rig.pump();
  ASSERT_TRUE(rig.heard.closed);
  EXPECT_EQ(rig.heard.closed->name, "amqp:connection:forced");
  EXPECT_TRUE(rig.broker->finished());
}

}  // namespace
}  // namespace omnibus::links
