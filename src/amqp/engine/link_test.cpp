// Links: attach, detach, credit and drain.
#include <gmock/gmock.h>

#include "amqp/engine/engine_rig.hpp"

namespace omnibus::amqp::test {
namespace {

using testing::ElementsAre;

TEST(Attach, AnswerEchoesNameModesAndTerminus) {
  Solo server;
  server.begun();
  Attach attach = plain_attach("a link", 2, true);
  attach.snd_settle_mode = 0;
  attach.rcv_settle_mode = 1;
  server.send(0, attach);
  const Attach answer = server.read().at(0).as<Attach>();
  EXPECT_EQ(answer.link_name, "a link");
  EXPECT_EQ(answer.handle, 0u);
  EXPECT_FALSE(answer.role);
  EXPECT_EQ(answer.snd_settle_mode, 0u);
  EXPECT_EQ(answer.rcv_settle_mode, 1u);
  EXPECT_TRUE(same_bytes(answer.source.bytes, attach.source.bytes));
  EXPECT_TRUE(same_bytes(answer.target.bytes, attach.target.bytes));
  EXPECT_EQ(answer.initial_delivery_count, 0u);
  EXPECT_THAT(answer.properties.bytes, ElementsAre(code::map8, 1, 0));  // never null
}

TEST(Attach, OmittedModesAreChosenByTheOwner) {
  Solo server;
  server.begun();
  server.events.attach = [](Link& link, const Attach&) {
    AttachReply reply;
    reply.snd_settle_mode = SenderSettle::settled;
    reply.rcv_settle_mode = ReceiverSettle::second;
    reply.max_message_size = 4711;
    link.accept(reply);
  };
  server.send(0, plain_attach("x", 0, false));
  const Attach answer = server.read().at(0).as<Attach>();
  EXPECT_EQ(answer.snd_settle_mode, 1u);
  EXPECT_EQ(answer.rcv_settle_mode, 1u);
  EXPECT_EQ(answer.max_message_size, 4711u);
  EXPECT_FALSE(answer.initial_delivery_count.has_value());
  EXPECT_EQ(server.link().snd_settle_mode(), SenderSettle::settled);
}

TEST(Attach, RefusalIsAttachWithoutTerminusAndClosingDetachInOneWrite) {
  Solo server;
  server.begun();
  server.events.attach = [](Link& link, const Attach&) {
    link.refuse({"amqp:not-found", "no such thing", {}});
  };
  server.send(0, plain_attach("x", 0, false));
  ASSERT_THAT(server.numbers(), ElementsAre(descriptor::attach, descriptor::detach));
  const Attach answer = server.frames[0].as<Attach>();
  EXPECT_TRUE(answer.source.is_null());
  EXPECT_TRUE(answer.target.is_null());
  EXPECT_EQ(server.frames[1].as<Detach>().closed, true);
  EXPECT_EQ(server.detach_condition_sent(), "amqp:not-found");
  EXPECT_EQ(server.events.gone, 0u);
  server.send(0, Detach{.handle = 0, .closed = true, .error = {}});
  EXPECT_EQ(server.events.gone, 1u);
  EXPECT_EQ(server.frames.size(), 2u);
}

TEST(Attach, PipelinedTransfersOnARefusedLinkAreDropped) {
  Solo server;
  server.begun();
  server.events.attach = [](Link& link, const Attach&) { link.refuse({"amqp:not-found", "", {}}); };
  server.send(0, plain_attach("x", 0, false));
  server.send(0, plain_transfer(0, 0), "a");
  server.send(0, plain_transfer(0, 1), "b");
  server.send(0, link_flow(0, 0, 1));
  EXPECT_EQ(server.end_condition_sent(), "");
  EXPECT_TRUE(server.events.payloads.empty());
}

TEST(Attach, BeyondLinksMaxIsRefusedAndTwiceOfItClosesTheConnection) {
  auto options = server_options();
  options.links_max = 3;
  Solo server{options};
  server.begun();
  for (std::uint32_t i = 0; i < 3; ++i) server.send(0, plain_attach("x" + std::to_string(i), i, true));
  EXPECT_EQ(server.detach_condition_sent(), "");
  server.send(0, plain_attach("y", 3, true));
  EXPECT_EQ(server.detach_condition_sent(), "amqp:resource-limit-exceeded");
  EXPECT_EQ(server.events.count("attach"), 3u);
  // The owner never saw the refused one, so it does not hear of its end.
  server.send(0, Detach{.handle = 3, .closed = true, .error = {}});
  EXPECT_EQ(server.events.gone, 0u);
  // A peer that does not answer the detach cannot pile up links.
  for (std::uint32_t i = 3; i < 6; ++i) server.send(0, plain_attach("z" + std::to_string(i), i, true));
  EXPECT_EQ(server.close_condition_sent(), "");
  server.send(0, plain_attach("last", 6, true));
  EXPECT_EQ(server.close_condition_sent(), "amqp:resource-limit-exceeded");
  EXPECT_EQ(server.events.gone, 3u);
}

TEST(Attach, MalformedPartsCloseTheConnection) {
  Solo server;
  server.begun();
  static constexpr std::uint8_t broken[] = {code::list8, 3, 9, 0x40, 0x40};  // nine elements, says it
  Attach attach = plain_attach("x", 0, true);
  attach.properties = {broken};
  server.send(0, attach);
  EXPECT_EQ(server.close_condition_sent(), "amqp:decode-error");
}

TEST(Attach, SettleModeOutOfRangeIsRefused) {
  Solo server;
  server.begun();
  Attach attach = plain_attach("x", 0, true);
  attach.snd_settle_mode = 3;
  server.send(0, attach);
  EXPECT_EQ(server.detach_condition_sent(), "amqp:invalid-field");
}

// ---- deferred answers ----

TEST(Attach, DeferredAnswerKeepsTheCreditThatCameMeanwhile) {
  Solo server;
  server.events.attach = nullptr;
  server.attached(true);
  Flow flow = link_flow(0, 0, 3);
  flow.echo = true;
  server.send(0, flow);
  EXPECT_EQ(server.events.count("credit"), 0u);
  EXPECT_TRUE(server.numbers().empty());
  EXPECT_EQ(server.link().remote_attach().link_name, "link");
  EXPECT_FALSE(server.link().sendable());
  server.link().accept({});
  EXPECT_TRUE(server.link().sendable());
  EXPECT_EQ(server.link().credit(), 3u);
  EXPECT_THAT(server.numbers(), ElementsAre(descriptor::attach, descriptor::flow));
}

TEST(Attach, PeerThatGivesUpWhileWeThinkIsToldOurHandleAndLetGo) {
  Solo server;
  server.events.attach = nullptr;
  server.attached(true);
  Link& link = server.link();
  server.send(0, Detach{.handle = 0, .closed = true, .error = {}});
  EXPECT_THAT(server.numbers(), ElementsAre(descriptor::attach, descriptor::detach));
  EXPECT_TRUE(server.frames[0].as<Attach>().source.is_null());
  EXPECT_EQ(server.events.gone, 1u);
  link.accept({});  // the owner's answer comes too late and says nothing
  link.refuse({"late", "", {}});
  EXPECT_EQ(server.numbers().size(), 2u);
}

TEST(Attach, TransferBeforeTheAnswerIsRefused) {
  Solo server;
  server.events.attach = nullptr;
  server.attached(false);
  server.send(0, plain_transfer(0, 0), "eager");
  EXPECT_THAT(server.numbers(), ElementsAre(descriptor::attach, descriptor::detach));
  EXPECT_EQ(server.detach_condition_sent(), "amqp:link:transfer-limit-exceeded");
  server.link().accept({});
  EXPECT_EQ(server.numbers().size(), 2u);
}

TEST(Attach, SessionEndTakesADeferredLinkWithoutAnswer) {
  Solo server;
  server.events.attach = nullptr;
  server.attached(true);
  server.send(0, End{});
  EXPECT_THAT(server.numbers(), ElementsAre(descriptor::end));
  EXPECT_EQ(server.events.gone, 1u);
}

// ---- detach ----

TEST(Detach, FromEitherSideAndCrossing) {
  for (const bool closed : {true, false}) {
    for (const int who : {0, 1, 2}) {
      Pair pair;
      Link& link = pair.sender("up", 5);
      link.send({}, Payload::copy_of("in flight"));
      pair.pump();
      if (who != 1) link.detach(std::nullopt, closed);
      if (who != 0) pair.server_link("up").detach(Condition{"test:why", "", {}}, closed);
      pair.pump();
      EXPECT_EQ(pair.client_side.gone, 1u) << who;
      EXPECT_EQ(pair.server_side.gone, 1u) << who;
      EXPECT_EQ(pair.client.link_count() + pair.server.link_count(), 0u);
      EXPECT_EQ(pair.client_side.count(closed ? "detach up closed test:why" : "detach up test:why"),
                who == 1 ? 1u : 0u);
      EXPECT_EQ(pair.session->unsettled_outgoing(), 0u);
      EXPECT_EQ(pair.session->state(), Session::State::mapped);
      Link& again = pair.sender("up", 1);  // handle and name are free again
      EXPECT_TRUE(again.sendable());
    }
  }
}

TEST(Detach, RestOfADeliveryThatCrossedOurDetachIsDropped) {
  Solo server;
  server.attached(false);
  server.send(0, plain_attach("other", 1, false));
  server.send(0, plain_transfer(0, 0, true), "part");
  server.send(0, plain_transfer(1, 1), "whole");
  server.link().detach();
  server.send(0, plain_transfer(0, 0), "rest");  // with its id repeated, after another link's delivery
  Transfer bare;
  bare.handle = 0;
  server.send(0, bare, "rest");
  server.send(0, plain_transfer(1, 2), "next");
  EXPECT_EQ(server.end_condition_sent(), "");
  EXPECT_THAT(server.events.payloads, ElementsAre("whole", "next"));
}

TEST(Detach, LinkDetachedBeforeItWasAnswered) {
  Pair pair;
  Session& session = pair.client.begin();
  AttachRequest request;
  request.name = "early";
  Link& link = session.attach(request);
  link.detach();
  pair.pump();
  EXPECT_EQ(pair.client_side.count("attached"), 0u);
  EXPECT_EQ(pair.client_side.gone, 1u);
  EXPECT_EQ(pair.server_side.gone, 1u);
}

// ---- credit ----

TEST(Credit, IsUsedUpAndRenewed) {
  Pair pair;
  Link& link = pair.sender("up", 2);
  EXPECT_EQ(link.credit(), 2u);
  link.send({}, Payload::copy_of("1"));
  link.send({}, Payload::copy_of("2"));
  EXPECT_FALSE(link.sendable());
  pair.pump();
  EXPECT_EQ(pair.server_link("up").credit(), 0u);
  pair.server_link("up").grant(1);
  pair.pump();
  EXPECT_TRUE(link.sendable());
  EXPECT_THAT(pair.server_side.payloads, ElementsAre("1", "2"));
}

TEST(Credit, CountsWhatThePeerHadNotSeen) {
  Solo server;
  server.attached(true);
  server.send(0, link_flow(0, 0, 5));
  server.link().send({}, Payload::copy_of("1"));
  server.link().send({}, Payload::copy_of("2"));
  server.send(0, link_flow(0, 0, 5));  // written before the peer saw either
  EXPECT_EQ(server.link().credit(), 3u);
  server.send(0, link_flow(0, 2, 5));
  EXPECT_EQ(server.link().credit(), 5u);
  server.send(0, link_flow(0, 0, 1));  // lowered below what is on its way
  EXPECT_EQ(server.link().credit(), 0u);
  server.send(0, link_flow(0, 2, UINT32_MAX));
  EXPECT_EQ(server.link().credit(), UINT32_MAX);
}

TEST(Credit, MissingDeliveryCountMeansTheInitialOne) {
  Solo server;
  server.attached(true);
  server.send(0, link_flow(0, 0, 5));
  server.link().send({}, Payload::copy_of("1"));
  Flow flow = link_flow(0, 0, 5);
  flow.delivery_count.reset();
  server.send(0, flow);
  EXPECT_EQ(server.link().credit(), 4u);
}

TEST(Credit, FlowsOfAReceiverCarryWhatClientsCalculateWith) {
  Solo server;
  server.attached(false);
  server.link().grant(100);
  server.send(0, plain_transfer(0, 0), "x");
  server.link().grant(1);
  ASSERT_THAT(server.numbers(), ElementsAre(descriptor::flow));  // one for both grants
  const Flow flow = server.frames[0].as<Flow>();
  EXPECT_EQ(flow.next_incoming_id, 1u);
  EXPECT_EQ(flow.delivery_count, 1u);
  EXPECT_EQ(flow.link_credit, 100u);
  EXPECT_EQ(flow.handle, 0u);
}

// [AMQP §2.7.4] Before the sender has said where it counts from, a receiver cannot name a count.
TEST(Credit, PipelinedFlowNamesNoDeliveryCount) {
  Solo client{client_options()};
  AttachRequest request;
  request.name = "down";
  request.role = Role::receiver;
  client.engine.begin().attach(request).grant(5);
  ASSERT_THAT(client.numbers(),
              ElementsAre(descriptor::open, descriptor::begin, descriptor::attach, descriptor::flow));
  const Flow flow = client.frames[3].as<Flow>();
  EXPECT_EQ(flow.link_credit, 5u);
  EXPECT_FALSE(flow.delivery_count.has_value());
  EXPECT_FALSE(flow.next_incoming_id.has_value());
}

TEST(Credit, TransfersBeyondItAreTaken) {  // Python ignores credit
  Solo server;
  server.attached(false);
  server.send(0, plain_transfer(0, 0), "uninvited");
  EXPECT_THAT(server.events.payloads, ElementsAre("uninvited"));
  EXPECT_EQ(server.link().credit(), 0u);
}

TEST(Credit, AvailableTravelsFromSenderToReceiver) {
  Pair pair;
  Link& link = pair.sender("up", 1);
  link.set_available(12);
  Session& far = *pair.server_side.sessions.at(0);
  (void)far;
  pair.server_link("up").drain();
  pair.pump();
  link.drained();
  pair.pump();
  EXPECT_EQ(pair.server_link("up").available(), 12u);
}

TEST(Drain, GivesBackTheCreditThatIsLeft) {
  Pair pair;
  Link& link = pair.receiver("down", 10);
  Link& sender = pair.server_link("down");
  pair.server_side.credit = [](Link& l) {
    if (!l.drain_requested()) return;
    l.send({}, Payload::copy_of("last"));
    l.drained();
  };
  link.drain();
  pair.pump();
  EXPECT_THAT(pair.client_side.payloads, ElementsAre("last"));
  EXPECT_EQ(pair.client_side.count("drained"), 1u);
  EXPECT_EQ(link.credit(), 0u);
  EXPECT_EQ(sender.credit(), 0u);
  EXPECT_FALSE(sender.drain_requested());
  link.grant(2);  // and it goes on afterwards
  pair.pump();
  EXPECT_EQ(sender.credit(), 2u);
}

// JS waits for exactly this flow [service-bus contract 3.7].
TEST(Drain, AnswerHasCreditZeroDrainAndAnAdvancedCount) {
  Solo server;
  server.attached(true);
  Flow flow = link_flow(0, 0, 4);
  flow.drain = true;
  server.send(0, flow);
  EXPECT_TRUE(server.link().drain_requested());
  server.link().send({}, Payload::copy_of("x"));
  server.link().drained();
  ASSERT_THAT(server.numbers(), ElementsAre(descriptor::transfer, descriptor::flow));
  const Flow answer = server.frames[1].as<Flow>();
  EXPECT_EQ(answer.link_credit, 0u);
  EXPECT_EQ(answer.delivery_count, 4u);
  EXPECT_EQ(answer.drain, true);
  EXPECT_EQ(answer.echo, false);
}

TEST(Credit, LinkEchoIsAnsweredOnTheLink) {
  Solo server;
  server.attached(true);
  Flow flow = link_flow(0, 0, 4);
  flow.echo = true;
  server.send(0, flow);
  ASSERT_THAT(server.numbers(), ElementsAre(descriptor::flow));
  EXPECT_EQ(server.frames[0].as<Flow>().link_credit, 4u);
  EXPECT_EQ(server.frames[0].as<Flow>().handle, 0u);
}

// All counters of a link and session pass 2^32 in the middle of the traffic.
TEST(Credit, CountersWrapAround) {
  auto for_client = client_options();
  auto for_server = server_options();
  for (auto* options : {&for_client, &for_server}) {
    options->first_delivery_count = UINT32_MAX - 5;
    options->first_delivery_id = UINT32_MAX - 3;
    options->first_transfer_id = UINT32_MAX - 8;
    options->incoming_window = 16;
    options->max_frame_size = 512;
  }
  Pair pair{for_client, for_server};
  pair.server_side.transfer = [](Link& link, Delivery& delivery) {
    link.disposition(delivery.id, State::accepted());
    link.grant(1);
  };
  Link& link = pair.sender("up", 3);
  std::vector<std::string> sent;
  for (int i = 0; i < 40; ++i) {
    while (!link.sendable()) pair.pump();
    sent.push_back(std::string(static_cast<std::size_t>(i) * 60, 'x') + std::to_string(i));
    link.send({}, Payload::copy_of(sent.back()));
    if (i % 3 == 0) pair.pump();
  }
  pair.pump();
  EXPECT_EQ(pair.server_side.payloads, sent);
  EXPECT_EQ(pair.client_side.count("disposition"), 40u);
  EXPECT_EQ(pair.session->unsettled_outgoing(), 0u);
  EXPECT_EQ(link.credit(), 3u);
  EXPECT_EQ(pair.server_side.ids.front(), UINT32_MAX - 3);
  EXPECT_EQ(pair.server_side.ids.back(), 36u - 1);
}

}  // namespace
}  // namespace omnibus::amqp::test
