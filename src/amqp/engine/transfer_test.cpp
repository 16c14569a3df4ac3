// Messages in and out: frames, windows, sizes, aborts.
#include <gmock/gmock.h>

#include "amqp/engine/engine_rig.hpp"

namespace omnibus::amqp::test {
namespace {

using testing::ElementsAre;

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  return text;
}

TEST(Transfer, CarriesTagFormatStateAndSettlement) {
  Solo server;
  server.attached(false);
  Transfer transfer = plain_transfer(0, 0);
  transfer.message_format = 0x80013700;
  transfer.settled = true;
  const auto state = encode_composite(TransactionalState{.txn_id = as_bytes("txn"), .outcome = {}});
  transfer.state = {state};
  bool seen = false;
  server.events.transfer = [&](Link&, Delivery& delivery) {
    seen = true;
    EXPECT_EQ(delivery.message_format, 0x80013700u);
    EXPECT_TRUE(delivery.settled);
    EXPECT_THAT(delivery.tag, ElementsAre(1));
    EXPECT_TRUE(delivery.state.is(descriptor::transactional_state));
    const auto decoded = decode_composite<TransactionalState>(delivery.state.raw);
    ASSERT_TRUE(decoded);
    EXPECT_EQ(as_text(decoded->txn_id), "txn");
  };
  server.send(0, transfer, "x");
  EXPECT_TRUE(seen);
  EXPECT_EQ(server.events.sessions.at(0)->unsettled_incoming(), 0u);
}

TEST(Transfer, FirstFrameIsExplicitAndContinuationsAreElevenLong) {
  Solo server;
  Open open = plain_open();
  open.max_frame_size = 512;
  server.opened(open);
  server.send(0, plain_begin());
  server.send(0, plain_attach("x", 0, true));
  server.send(0, link_flow(0, 0, 1));
  server.read();
  server.frames.clear();
  static constexpr std::uint8_t tag[16] = {7};
  const std::string text = pattern(1200);
  server.link().send({.tag = tag, .message_format = 0, .settled = false, .state = {}, .context = 0},
                     Payload::copy_of(text));
  server.read();
  ASSERT_EQ(server.frames.size(), 3u);
  std::string whole;
  for (std::size_t i = 0; i < 3; ++i) {
    const Transfer t = server.frames[i].as<Transfer>();
    EXPECT_EQ(server.frames[i].fields(), 11u);
    EXPECT_LE(server.frames[i].body.size() + 8, 512u);
    EXPECT_EQ(t.more, i < 2);
    EXPECT_EQ(t.settled, false);
    EXPECT_EQ(t.delivery_id.has_value(), i == 0);
    EXPECT_EQ(t.message_format.has_value(), i == 0);
    whole += server.frames[i].payload();
  }
  EXPECT_EQ(server.frames[0].body.size() + 8, 512u);
  EXPECT_EQ(server.frames[0].as<Transfer>().delivery_tag->size(), 16u);
  EXPECT_EQ(whole, text);
}

// A message that just fits, and one byte more.
TEST(Transfer, FrameIsFilledToTheLastByte) {
  Pair probe;
  for (const int past : {0, 1}) {
    Solo server;
    Open open = plain_open();
    open.max_frame_size = 600;
    server.opened(open);
    server.send(0, plain_begin());
    server.send(0, plain_attach("x", 0, true));
    server.send(0, link_flow(0, 0, 9));
    server.read();
    server.frames.clear();
    server.link().send({}, Payload::copy_of("x"));
    const std::size_t head = server.read().at(0).body.size() + 8 - 1;
    server.frames.clear();
    server.link().send({}, Payload::copy_of(pattern(600 - head - 1 + static_cast<std::size_t>(past))));
    // The second id takes one byte more than the zero of the first.
    EXPECT_EQ(server.read().size(), past ? 2u : 1u);
  }
}

TEST(Transfer, EmptyMessageTravels) {
  Pair pair;
  pair.sender("up", 1).send({}, Payload{});
  pair.pump();
  EXPECT_THAT(pair.server_side.payloads, ElementsAre(""));
}

TEST(Transfer, LinksInterleaveTheirFrames) {
  Solo server;
  server.begun();
  for (std::uint32_t h = 0; h < 3; ++h) server.send(0, plain_attach("l" + std::to_string(h), h, false));
  for (std::uint32_t h = 0; h < 3; ++h) server.send(0, plain_transfer(h, h, true), "a" + std::to_string(h));
  Transfer more;
  more.more = true;
  for (std::uint32_t h = 0; h < 3; ++h) {
    more.handle = h;
    server.send(0, more, "b");
  }
  Transfer last;
  for (std::uint32_t h : {2u, 0u, 1u}) {
    last.handle = h;
    server.send(0, last, "c");
  }
  EXPECT_THAT(server.events.payloads, ElementsAre("a2bc", "a0bc", "a1bc"));
  EXPECT_THAT(server.events.ids, ElementsAre(2, 0, 1));
}

// Large frames are taken as they arrive; wherever the bytes are cut, the messages are the same.
TEST(Transfer, EverySplitOfALargeFrameGivesTheSameMessage) {
  const std::string big = pattern(6000);
  std::vector<std::uint8_t> wire;
  const auto add = [&](const std::vector<std::uint8_t>& bytes) {
    wire.insert(wire.end(), bytes.begin(), bytes.end());
  };
  add(frame_bytes(0, plain_transfer(0, 0), big));
  add(frame_bytes(0, plain_transfer(0, 1, true), big));
  Transfer rest;
  rest.handle = 0;
  add(frame_bytes(0, rest, big));
  add(frame_bytes(0, plain_transfer(0, 2), "small"));
  for (std::size_t cut = 1; cut < wire.size(); cut += cut < 100 || wire.size() - cut < 100 ? 1 : 61) {
    Solo server;
    server.attached(false);
    server.raw(Bytes{wire}.first(cut));
    server.raw(Bytes{wire}.subspan(cut));
    ASSERT_THAT(server.events.payloads, ElementsAre(big, big + big, "small")) << "cut at " << cut;
  }
}

// Out: the bytes offered for the write are the message's own. In: a frame that arrives in pieces is one
// block, filled as it comes.
TEST(Transfer, PayloadsAreNotCopiedOnTheWayOutAndOnceOnTheWayIn) {
  Solo server;
  server.attached(true);
  server.send(0, link_flow(0, 0, 1));
  take_output(server.engine, server.now);
  const Payload payload = Payload::copy_of(pattern(5000));
  server.link().send({}, payload);
  iovec runs[4];
  const std::size_t count = server.engine.gather(runs);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(runs[1].iov_base, payload.slice(0).bytes().data());
  EXPECT_EQ(runs[1].iov_len, 5000u);

  Solo receiver;
  receiver.attached(false);
  std::size_t slices = 0;
  receiver.events.transfer = [&](Link&, Delivery& delivery) { slices = delivery.payload.slice_count(); };
  const auto bytes = frame_bytes(0, plain_transfer(0, 0), pattern(50'000));
  for (std::size_t at = 0; at < bytes.size(); at += 1000)
    receiver.raw(Bytes{bytes}.subspan(at, std::min<std::size_t>(1000, bytes.size() - at)));
  EXPECT_EQ(slices, 1u);
}

TEST(Transfer, RandomSplitsInBothDirections) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random{seed};
    auto for_client = client_options();
    auto for_server = server_options();
    for_client.max_frame_size = static_cast<std::uint32_t>(512 + random.below(20'000));
    for_server.incoming_window = static_cast<std::uint32_t>(2 + random.below(20));
    Pair pair{for_client, for_server};
    pair.split_randomly(seed);
    const auto accept = [](Link& link, Delivery& delivery) {
      link.disposition(delivery.id, State::accepted());
      link.grant(1);
    };
    pair.server_side.transfer = accept;
    pair.client_side.transfer = accept;
    Link& up = pair.sender("up", 4);
    pair.receiver("down", 4);
    Link& down = pair.server_link("down");
    std::vector<std::string> sent_up, sent_down;
    for (int i = 0; i < 60; ++i) {
      const bool upward = random.below(2) == 0;
      Link& link = upward ? up : down;
      while (!link.sendable()) pair.pump();
      auto& sent = upward ? sent_up : sent_down;
      sent.push_back(pattern(random.below(random.below(4) == 0 ? 30'000 : 600)));
      link.send({}, Payload::copy_of(sent.back()));
    }
    pair.pump();
    EXPECT_EQ(pair.server_side.payloads, sent_up);
    EXPECT_EQ(pair.client_side.payloads, sent_down);
    EXPECT_EQ(pair.session->unsettled_outgoing() + pair.session->unsettled_incoming(), 0u);
  }
}

TEST(Transfer, MessageAtTheSizeLimitIsTakenAndOnePastIsDroppedAsItComes) {
  for (const bool in_pieces : {false, true}) {
    for (const std::size_t size : {5000u, 5001u}) {
      Solo server;
      server.begun();
      server.events.attach = [](Link& link, const Attach&) {
        AttachReply reply;
        reply.max_message_size = 5000;
        link.accept(reply);
      };
      server.send(0, plain_attach("x", 0, false));
      const std::string text = pattern(size);
      if (in_pieces) {
        server.send(0, plain_transfer(0, 0, true), text.substr(0, 3000));
        Transfer rest;
        server.send(0, rest, text.substr(3000));
      } else {
        const auto bytes = frame_bytes(0, plain_transfer(0, 0), text);
        for (std::size_t at = 0; at < bytes.size(); at += 700)
          server.raw(Bytes{bytes}.subspan(at, std::min<std::size_t>(700, bytes.size() - at)));
      }
      EXPECT_EQ(server.events.count("transfer 0 too-large"), size == 5001 ? 1u : 0u);
      ASSERT_EQ(server.events.payloads.size(), 1u);
      EXPECT_EQ(server.events.payloads[0], size == 5000 ? text : "");
      // The link lives on, and the owner can still say what became of it.
      EXPECT_TRUE(server.link().disposition(0, State::rejected({"amqp:link:message-size-exceeded", "", {}})));
      server.send(0, plain_transfer(0, 1), "next");
      EXPECT_EQ(server.events.payloads.back(), "next");
    }
  }
}

// A peer that begins messages and never finishes them cannot make us hold more than the bound, however
// many links it spreads them over; what is finished, aborted or dropped counts no more.
TEST(Transfer, UnfinishedMessagesOfAConnectionAreBounded) {
  auto options = server_options();
  options.partial_bytes_max = 1000;
  Solo server{options};
  server.begun();
  server.events.attach = [](Link& link, const Attach&) { link.accept({}); };
  for (std::uint32_t handle = 0; handle < 3; ++handle)
    server.send(0, plain_attach(std::to_string(handle), handle, false));
  server.read();
  server.send(0, plain_transfer(0, 0, true), pattern(600));
  Transfer aborted;
  aborted.aborted = true;
  server.send(0, aborted, "");
  server.send(0, plain_transfer(0, 1, true), pattern(600));
  server.send(0, plain_transfer(1, 2, true), pattern(400));
  EXPECT_EQ(server.detach_condition_sent(), "") << "at the limit";
  server.send(0, plain_transfer(2, 3, true), "x");
  EXPECT_EQ(server.detach_condition_sent(), "amqp:resource-limit-exceeded") << "one past it";
  Transfer rest;
  server.send(0, rest, "the end");
  ASSERT_EQ(server.events.payloads.size(), 1u) << "the others go on";
  EXPECT_EQ(server.events.payloads[0], pattern(600) + "the end");
}

TEST(Transfer, AbortedDeliveryIsForgotten) {
  Solo server;
  server.attached(false);
  server.link().grant(10);
  server.send(0, plain_transfer(0, 0, true), "part");
  Transfer abort;
  abort.aborted = true;
  server.send(0, abort);
  server.send(0, plain_transfer(0, 1), "next");
  Transfer at_once = plain_transfer(0, 2);
  at_once.aborted = true;
  server.send(0, at_once);
  EXPECT_THAT(server.events.payloads, ElementsAre("next"));
  EXPECT_EQ(server.link().credit(), 7u);
  EXPECT_EQ(server.events.sessions.at(0)->unsettled_incoming(), 1u);
}

TEST(Transfer, ErrorsOfADeliveryDetachTheLink) {
  const auto with = [](const auto& change) {
    Solo server;
    server.attached(false);
    change(server);
    EXPECT_EQ(server.end_condition_sent(), "");
    return server.detach_condition_sent();
  };
  EXPECT_EQ(with([](Solo& s) { s.send(0, Transfer{}, "no id"); }), "amqp:invalid-field");
  EXPECT_EQ(with([](Solo& s) {
              const std::string tag(33, 't');
              Transfer t = plain_transfer(0, 0);
              t.delivery_tag = as_bytes(tag);
              s.send(0, t, "long tag");
            }),
            "amqp:invalid-field");
  EXPECT_EQ(with([](Solo& s) {
              s.send(0, plain_transfer(0, 0, true), "a");
              s.send(0, plain_transfer(0, 1), "b");
            }),
            "amqp:invalid-field");
  Solo wrong_way;
  wrong_way.attached(true);
  wrong_way.send(0, plain_transfer(0, 0), "x");
  EXPECT_EQ(wrong_way.detach_condition_sent(), "amqp:not-allowed");
}

TEST(Transfer, GapInTheDeliveryIdsEndsTheSession) {
  Solo server;
  server.attached(false);
  server.send(0, plain_transfer(0, 7), "any start is fine");
  server.send(0, plain_transfer(0, 8), "ok");
  server.send(0, plain_transfer(0, 10), "gap");
  EXPECT_EQ(server.end_condition_sent(), "amqp:invalid-field");
  EXPECT_EQ(server.events.payloads.size(), 2u);
}

// ---- windows ----

TEST(Window, ClosesInTheMiddleOfAMessageAndOpensAgain) {
  Solo server;
  Open open = plain_open();
  open.max_frame_size = 512;
  server.opened(open);
  server.send(0, plain_begin(2));
  server.send(0, plain_attach("x", 0, true));
  server.send(0, link_flow(0, 0, 9, 2));
  server.read();
  server.frames.clear();
  const std::string text = pattern(2000);
  Link& link = server.link();
  link.send({}, Payload::copy_of(text));
  EXPECT_EQ(server.read().size(), 2u);
  EXPECT_FALSE(link.sendable());
  EXPECT_GT(link.session().backlog_bytes(), 0u);
  server.send(0, link_flow(0, 0, 9, 1, 3));
  EXPECT_EQ(server.read().size(), 3u);
  EXPECT_FALSE(link.sendable());
  const auto credits = server.events.count("credit");
  server.send(0, link_flow(0, 0, 9, 10, 4));
  EXPECT_GT(server.events.count("credit"), credits);
  EXPECT_TRUE(link.sendable());
  EXPECT_EQ(link.session().backlog_bytes(), 0u);
  std::string whole;
  for (const auto& frame : server.read()) whole += frame.payload();
  EXPECT_EQ(whole, text);
}

TEST(Window, AbortWaitsForItToo) {
  Solo server;
  Open open = plain_open();
  open.max_frame_size = 512;
  server.opened(open);
  server.send(0, plain_begin(1));
  server.send(0, plain_attach("x", 0, true));
  server.send(0, link_flow(0, 0, 9, 1));
  server.read();
  server.frames.clear();
  Link& link = server.link();
  const auto id = link.send({}, Payload::copy_of(pattern(2000)));
  EXPECT_TRUE(link.abort(id));
  EXPECT_FALSE(link.abort(id));
  EXPECT_EQ(link.session().backlog_bytes(), 0u);
  EXPECT_EQ(link.session().unsettled_outgoing(), 0u);
  EXPECT_EQ(server.read().size(), 1u);
  server.send(0, link_flow(0, 0, 9, 5, 2));
  ASSERT_EQ(server.read().size(), 2u);
  EXPECT_EQ(server.frames[1].as<Transfer>().aborted, true);
  link.send({}, Payload::copy_of("next"));
  EXPECT_EQ(server.read().at(2).as<Transfer>().delivery_id, id + 1);
  EXPECT_FALSE(link.abort(id + 1));  // all on its way
}

TEST(Window, LinkThatGoesTakesItsUnfinishedMessageAlong) {
  auto for_server = server_options();
  for_server.incoming_window = 1;
  auto for_client = client_options();
  for_client.max_frame_size = 512;
  Pair pair{for_client, for_server};
  Link& link = pair.sender("up", 5);
  link.send({}, Payload::copy_of(pattern(3000)));
  EXPECT_GT(pair.session->backlog_bytes(), 0u);
  link.detach();
  EXPECT_EQ(pair.session->backlog_bytes(), 0u);
  pair.pump();
  EXPECT_TRUE(pair.server_side.payloads.empty());
  Link& next = pair.sender("next", 5);
  next.send({}, Payload::copy_of("works"));
  pair.pump();
  EXPECT_THAT(pair.server_side.payloads, ElementsAre("works"));
}

TEST(Window, UnlimitedWindowOfDotNetIsUnderstood) {
  Solo server;
  server.attached(true, UINT32_MAX);
  server.send(0, link_flow(0, 0, 9, UINT32_MAX));
  EXPECT_TRUE(server.link().sendable());
  server.link().send({}, Payload::copy_of("x"));
  server.send(0, link_flow(0, 0, 9, UINT32_MAX));
  EXPECT_TRUE(server.link().sendable());
}

TEST(Window, FlowWithoutNextIncomingIdCountsFromOurFirst) {
  Solo server;
  server.attached(true, 3);
  Flow flow = link_flow(0, 0, 9, 3);
  flow.next_incoming_id.reset();
  server.send(0, flow);
  for (int i = 0; i < 3; ++i) server.link().send({}, Payload::copy_of("x"));
  EXPECT_FALSE(server.link().sendable());
  server.send(0, flow);
  EXPECT_FALSE(server.link().sendable());  // none of the three is known to have arrived
}

TEST(Window, OurWindowIsReopenedAtHalf) {
  auto options = server_options();
  options.incoming_window = 16;
  Solo server{options};
  server.attached(false);
  for (std::uint32_t i = 0; i < 8; ++i) {
    Transfer t = plain_transfer(0, i);
    t.settled = true;
    server.send(0, t, "x");
  }
  EXPECT_TRUE(server.numbers().empty());
  Transfer t = plain_transfer(0, 8);
  t.settled = true;
  server.send(0, t, "x");
  ASSERT_THAT(server.numbers(), ElementsAre(descriptor::flow));
  const Flow flow = server.frames[0].as<Flow>();
  EXPECT_EQ(flow.incoming_window, 16u);
  EXPECT_EQ(flow.next_incoming_id, 9u);
}

TEST(Window, OverrunIsToleratedOnceOverAndThenEndsTheSession) {
  for (const std::uint32_t count : {32u, 33u}) {
    auto options = server_options();
    options.incoming_window = 16;
    Solo server{options};
    server.attached(false);
    for (std::uint32_t i = 0; i < count; ++i) {
      server.send(0, plain_transfer(0, i), "unsettled");
      if (i % 5 != 0) continue;
      Flow ask;  // asking for our flow does not reset the count
      ask.incoming_window = 10;
      ask.echo = true;
      server.send(0, ask);
      server.read();
    }
    EXPECT_EQ(server.end_condition_sent(), count == 32 ? "" : "amqp:session:window-violation");
  }
}

TEST(Window, SettlingReopensAWindowThatUnsettledDeliveriesClosed) {
  auto options = server_options();
  options.incoming_window = 16;
  Solo server{options};
  server.attached(false);
  for (std::uint32_t i = 0; i < 16; ++i) server.send(0, plain_transfer(0, i), "x");
  EXPECT_TRUE(server.numbers().empty());
  for (std::uint32_t i = 0; i < 16; ++i) server.link().disposition(i, State::accepted());
  ASSERT_THAT(server.numbers(), ElementsAre(descriptor::disposition, descriptor::flow));
  EXPECT_EQ(server.frames[1].as<Flow>().incoming_window, 16u);
}

TEST(Unsettled, BoundStopsSendingAndASettlementStartsItAgain) {
  auto options = server_options();
  options.unsettled_max = 3;
  Solo server{options};
  server.attached(true);
  server.send(0, link_flow(0, 0, 100));
  Link& link = server.link();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(link.sendable());
    link.send({}, Payload::copy_of("x"));
  }
  EXPECT_FALSE(link.sendable());
  const auto credits = server.events.count("credit");
  Disposition accepted;
  accepted.role = true;
  accepted.first = 1;
  accepted.settled = true;
  server.send(0, accepted);
  EXPECT_TRUE(link.sendable());
  EXPECT_EQ(server.events.count("credit"), credits + 1);
}

}  // namespace
}  // namespace omnibus::amqp::test
