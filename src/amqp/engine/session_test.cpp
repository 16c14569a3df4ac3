// Sessions: channels, begin and end.
#include <gmock/gmock.h>

#include "amqp/engine/engine_rig.hpp"

namespace omnibus::amqp::test {
namespace {

using testing::ElementsAre;

TEST(Session, BeginIsAnsweredAsTheContractSays) {
  Solo server;
  server.opened();
  Begin begin = plain_begin();
  begin.outgoing_window = 77;
  begin.handle_max = 9;
  server.send(4, begin);
  const Begin answer = server.read().at(0).as<Begin>();
  EXPECT_EQ(answer.remote_channel, 4u);
  EXPECT_EQ(answer.next_outgoing_id, 1u);
  EXPECT_EQ(answer.incoming_window, 5000u);
  EXPECT_EQ(answer.outgoing_window, 77u);
  EXPECT_EQ(answer.handle_max, 9u);
}

TEST(Session, ChannelAtTheLimitIsTakenAndOnePastClosesTheConnection) {
  for (const std::uint16_t channel : {7, 8}) {
    auto options = server_options();
    options.channel_max = 7;
    Solo server{options};
    server.opened();
    server.send(channel, plain_begin());
    EXPECT_EQ(server.close_condition_sent(), channel == 7 ? "" : "amqp:connection:framing-error");
  }
}

TEST(Session, EveryChannelUpToTheLimitCanBeUsed) {
  auto options = server_options();
  options.channel_max = 40;
  Solo server{options};
  server.opened();
  for (std::uint16_t channel = 0; channel <= 40; ++channel) server.send(channel, plain_begin());
  EXPECT_EQ(server.engine.session_count(), 41u);
  EXPECT_FALSE(server.engine.may_begin());
  server.send(3, End{});
  EXPECT_TRUE(server.engine.may_begin());
}

// Our own session sits on a channel the peer also wants, and there is none left to move to.
TEST(Session, NoChannelLeftForThePeersSession) {
  auto options = server_options();
  options.channel_max = 0;
  Solo server{options};
  server.opened();
  server.engine.begin();
  server.send(0, plain_begin());
  EXPECT_EQ(server.close_condition_sent(), "amqp:resource-limit-exceeded");
}

TEST(Session, BusyChannelAndUnknownAnswerCloseTheConnection) {
  Solo busy;
  busy.begun();
  busy.send(0, plain_begin());
  EXPECT_EQ(busy.close_condition_sent(), "amqp:illegal-state");

  Solo unknown;
  unknown.opened();
  Begin begin = plain_begin();
  begin.remote_channel = 5;
  unknown.send(0, begin);
  EXPECT_EQ(unknown.close_condition_sent(), "amqp:illegal-state");
}

TEST(Session, EndFromEitherSideAndCrossing) {
  for (const int who : {0, 1, 2}) {
    Pair pair;
    pair.sender();
    if (who != 1) pair.session->end();
    if (who != 0) pair.server_side.sessions.at(0)->end(Condition{"test:why", "", {}});
    pair.pump();
    EXPECT_EQ(pair.client.session_count(), 0u) << who;
    EXPECT_EQ(pair.server.session_count(), 0u) << who;
    EXPECT_EQ(pair.client_side.count("end"), 1u) << who;
    EXPECT_EQ(pair.server_side.count("end"), 1u) << who;
    EXPECT_EQ(pair.client_side.gone, 1u) << who;
    EXPECT_EQ(pair.server_side.gone, 1u) << who;
    EXPECT_EQ(pair.client_side.count("end test:why"), who == 0 ? 0u : 1u);
    EXPECT_TRUE(pair.client.is_open());
    EXPECT_TRUE(pair.server.is_open());
    pair.session = nullptr;  // the channel can be used again
    pair.sender("again");
    EXPECT_EQ(pair.server.link_count(), 1u);
  }
}

TEST(Session, EndedBeforeItWasAnswered) {
  Pair pair;
  Session& session = pair.client.begin();
  AttachRequest request;
  request.name = "early";
  session.attach(request);
  session.end();
  pair.pump();
  EXPECT_EQ(pair.client_side.count("begin"), 0u);
  EXPECT_EQ(pair.client_side.count("end"), 1u);
  EXPECT_EQ(pair.client_side.gone, 1u);
  EXPECT_EQ(pair.client.session_count(), 0u);
  EXPECT_EQ(pair.server.session_count(), 0u);
}

TEST(Session, FramesAfterOurEndAreDroppedUntilThePeersEnd) {
  Solo server;
  server.attached(false);
  server.events.sessions.at(0)->end();
  server.send(0, plain_transfer(0, 0), "late");
  server.send(0, plain_attach("late", 1, false));
  server.send(0, link_flow(9, 0, 1));
  server.send(0, Detach{.handle = 9, .closed = {}, .error = {}});
  EXPECT_THAT(server.numbers(), ElementsAre(descriptor::end));
  EXPECT_TRUE(server.events.payloads.empty());
  EXPECT_FALSE(server.engine.finished());
  server.send(0, End{});
  EXPECT_EQ(server.engine.session_count(), 0u);
  EXPECT_EQ(server.events.count("end"), 1u);
}

// What azure-servicebus for Python does when it closes a receiver whose lock was renewed.
TEST(Session, DetachAfterThePeersOwnEndIsPassedOver) {
  Solo server;
  server.attached(false);
  server.send(0, End{});
  server.send(0, Detach{.handle = 0, .closed = false, .error = {}});
  server.send(0, End{});
  EXPECT_THAT(server.numbers(), ElementsAre(descriptor::end));
  EXPECT_FALSE(server.engine.finished());
  EXPECT_EQ(server.events.count("end"), 1u);
  server.send(0, plain_begin());  // the channel can be used again
  EXPECT_EQ(server.read().back().as<Begin>().remote_channel, 0u);
  server.send(0, End{});
  server.send(0, Close{});
  EXPECT_EQ(server.close_condition_sent(), "");
  EXPECT_EQ(server.events.closed, 1u);
}

TEST(Session, AnythingElseAfterThePeersOwnEndClosesTheConnection) {
  for (const int which : {0, 1, 2, 3, 4}) {
    Solo server;
    server.attached(false);
    server.send(0, End{});
    if (which == 0) server.send(0, plain_transfer(0, 0), "late");
    if (which == 1) server.send(0, link_flow(0, 0, 1));
    if (which == 2) server.send(0, plain_attach("late", 1, false));
    if (which == 3)
      server.send(
          0,
          Disposition{.role = true, .first = 0, .last = {}, .settled = true, .state = {}, .batchable = {}});
    // A detach must still be one: this one names no handle.
    if (which == 4) server.raw(as_bytes(std::string_view{"\0\0\0\x0c\x02\0\0\0\0\x53\x16\x45", 12}));
    EXPECT_EQ(server.close_condition_sent(), which == 4 ? "amqp:decode-error" : "amqp:not-allowed") << which;
    EXPECT_EQ(server.events.closed, 1u) << which;
  }
}

TEST(Session, HandleAtTheLimitIsTakenAndOnePastClosesTheConnection) {
  for (const std::uint32_t handle : {5u, 6u}) {
    auto options = server_options();
    options.handle_max = 5;
    Solo server{options};
    server.begun();
    server.send(0, plain_attach("x", handle, true));
    EXPECT_EQ(server.close_condition_sent(), handle == 5 ? "" : "amqp:connection:framing-error");
  }
}

TEST(Session, HandleInUseEndsTheSession) {
  Solo server;
  server.attached(true);
  server.send(0, plain_attach("second", 0, true));
  EXPECT_EQ(server.end_condition_sent(), "amqp:session:handle-in-use");
  EXPECT_EQ(server.events.gone, 1u);
  EXPECT_FALSE(server.engine.finished());
}

TEST(Session, UnattachedHandleEndsTheSession) {
  for (const int which : {0, 1, 2}) {
    Solo server;
    server.begun();
    if (which == 0) server.send(0, plain_transfer(3, 0), "x");
    if (which == 1) server.send(0, link_flow(3, 0, 1));
    if (which == 2) server.send(0, Detach{.handle = 3, .closed = true, .error = {}});
    EXPECT_EQ(server.end_condition_sent(), "amqp:session:unattached-handle") << which;
  }
}

// The peer allows us one handle and attaches two links: the second answer would need another handle.
TEST(Session, PeerWithTooSmallHandleMaxLosesTheSession) {
  Solo server;
  server.opened();
  Begin begin = plain_begin();
  begin.handle_max = 0;
  server.send(0, begin);
  server.send(0, plain_attach("a", 0, true));
  EXPECT_EQ(server.end_condition_sent(), "");
  server.send(0, plain_attach("b", 1, true));
  EXPECT_EQ(server.end_condition_sent(), "amqp:resource-limit-exceeded");
}

TEST(Session, EchoIsAnsweredWithAFlowThatCarriesNextIncomingId) {
  Solo server;
  server.begun();
  Flow flow;
  flow.incoming_window = 10;
  flow.echo = true;
  server.send(0, flow);
  ASSERT_THAT(server.numbers(), ElementsAre(descriptor::flow));
  const Flow answer = server.frames[0].as<Flow>();
  EXPECT_EQ(answer.next_incoming_id, 0u);
  EXPECT_FALSE(answer.handle.has_value());
  EXPECT_FALSE(answer.echo.value_or(false));
}

}  // namespace
}  // namespace omnibus::amqp::test
