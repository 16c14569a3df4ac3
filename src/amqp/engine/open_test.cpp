// open, close, framing and time.
#include <gmock/gmock.h>

#include "amqp/engine/engine_rig.hpp"

namespace omnibus::amqp::test {
namespace {

using testing::ElementsAre;

TEST(Open, ServerAnswersWithTheSmallerValuesAndAllTenFields) {
  Solo server;
  Open open = plain_open();
  open.max_frame_size = 1024;
  open.channel_max = 7;
  server.raw(Bytes{protocol_header(ProtocolId::amqp)});
  server.send(0, open);
  ASSERT_EQ(server.read().size(), 1u);
  const Open answer = server.frames[0].as<Open>();
  EXPECT_EQ(server.frames[0].fields(), 10u);
  EXPECT_EQ(answer.max_frame_size, 1024u);
  EXPECT_EQ(answer.channel_max, 7u);
  EXPECT_EQ(answer.idle_time_out, 240'000u);
  EXPECT_FALSE(answer.hostname.has_value());
}

TEST(Open, AbsentLimitsMeanOurs) {
  Solo server;
  server.raw(Bytes{protocol_header(ProtocolId::amqp)});
  server.send(0, plain_open());
  const Open answer = server.read().at(0).as<Open>();
  EXPECT_EQ(answer.max_frame_size, 65536u);
  EXPECT_EQ(answer.channel_max, 4999u);
}

TEST(Open, FrameSizeBelow512IsRefused) {
  for (const std::uint32_t size : {511u, 512u}) {
    Solo server;
    Open open = plain_open();
    open.max_frame_size = size;
    server.opened(open);
    EXPECT_EQ(server.engine.finished(), size == 511);
  }
}

TEST(Open, SecondOpenAndOtherFirstFrameAreRefused) {
  Solo twice;
  twice.opened();
  twice.send(0, plain_open());
  EXPECT_EQ(twice.close_condition_sent(), "amqp:illegal-state");

  Solo other;
  other.raw(Bytes{protocol_header(ProtocolId::amqp)});
  other.send(0, plain_begin());
  EXPECT_THAT(other.numbers(), ElementsAre(descriptor::open, descriptor::close));
  EXPECT_EQ(other.close_condition_sent(), "amqp:illegal-state");
}

// All clients may write their whole start behind an open that is not answered yet.
TEST(Open, EverythingPipelinedInOneWrite) {
  Solo server;
  server.events.attach = [](Link& link, const Attach&) {
    link.accept({});
    if (link.role() == Role::receiver) link.grant(10);
  };
  std::vector<std::uint8_t> all;
  const auto add = [&](const auto& bytes) { all.insert(all.end(), bytes.begin(), bytes.end()); };
  add(protocol_header(ProtocolId::amqp));
  add(frame_bytes(0, plain_open()));
  add(frame_bytes(3, plain_begin()));
  add(frame_bytes(3, plain_attach("in", 5, false)));
  add(frame_bytes(3, plain_attach("out", 6, true)));
  add(frame_bytes(3, link_flow(6, 0, 4)));
  add(frame_bytes(3, plain_transfer(5, 0), "hello"));
  for (const std::size_t step : {all.size(), std::size_t{1}, std::size_t{7}}) {
    Solo peer;
    peer.events.attach = server.events.attach;
    for (std::size_t at = 0; at < all.size(); at += step)
      peer.raw(Bytes{all}.subspan(at, std::min(step, all.size() - at)));
    EXPECT_THAT(peer.events.payloads, ElementsAre("hello"));
    EXPECT_EQ(peer.events.count("credit out 4"), 1u);
    EXPECT_THAT(peer.numbers(), ElementsAre(descriptor::open, descriptor::begin, descriptor::attach,
                                            descriptor::attach, descriptor::flow));
    EXPECT_EQ(peer.frames[1].as<Begin>().remote_channel, 3u);
    EXPECT_EQ(peer.frames[1].fields(), 8u);
    EXPECT_EQ(peer.frames[2].fields(), 14u);
    EXPECT_EQ(peer.frames[4].fields(), 11u);
  }
}

TEST(Open, ServerThatBeginsInsideOnOpenStillSaysOpenFirst) {
  Solo server;
  server.events.open = [](Connection& connection, const Open&) { connection.begin(); };
  server.raw(Bytes{protocol_header(ProtocolId::amqp)});
  server.send(0, plain_open());
  EXPECT_THAT(server.numbers(), ElementsAre(descriptor::open, descriptor::begin));
}

TEST(Close, PeerClosesAndIsAnswered) {
  Pair pair;
  pair.sender();
  pair.client.close(Condition{"test:over", "enough", {}});
  pair.pump();
  EXPECT_TRUE(pair.client.finished());
  EXPECT_TRUE(pair.server.finished());
  EXPECT_EQ(pair.server_side.close_condition, "test:over");
  EXPECT_EQ(pair.client_side.close_condition, "");
  EXPECT_EQ(pair.server_side.gone, 1u);
  EXPECT_EQ(pair.client_side.gone, 1u);
  EXPECT_EQ(pair.client.link_count(), 0u);
  EXPECT_EQ(pair.client.session_count(), 0u);
}

TEST(Close, CrossingClosesEndBothSidesOnce) {
  Pair pair;
  pair.sender();
  pair.client.close();
  pair.server.close();
  pair.pump();
  EXPECT_TRUE(pair.client.finished());
  EXPECT_TRUE(pair.server.finished());
  EXPECT_EQ(pair.client_side.closed, 1u);
  EXPECT_EQ(pair.server_side.closed, 1u);
  EXPECT_EQ(pair.client_side.gone, 1u);
  EXPECT_EQ(pair.server_side.gone, 1u);
}

TEST(Close, NothingIsWrittenOrHeardAfterOurClose) {
  Solo server;
  server.events.attach = [](Link& link, const Attach&) { link.accept({}); };
  server.attached(true);
  server.send(0, link_flow(0, 0, 10));
  Link& link = server.link();
  const auto id = link.send({}, Payload::copy_of("x"));
  server.read();
  server.frames.clear();
  server.engine.close();
  EXPECT_FALSE(link.sendable());
  EXPECT_FALSE(link.disposition(id, State::accepted()));
  link.drained();
  link.detach();
  link.session().end();
  EXPECT_THAT(server.numbers(), ElementsAre(descriptor::close));
  const auto heard = server.events.events.size();
  server.send(0, link_flow(0, 0, 20));
  server.send(0, plain_attach("late", 1, true));
  EXPECT_EQ(server.events.events.size(), heard);
  server.send(0, Close{});
  EXPECT_EQ(server.events.gone, 1u);
  EXPECT_EQ(server.events.closed, 1u);
  EXPECT_THAT(server.numbers(), ElementsAre(descriptor::close));
}

TEST(Close, AnswerIsAwaitedForAWhileAlsoAfterALongSilence) {
  Solo server;
  server.opened();
  server.now += 200s;  // nobody said anything, or told the engine the time
  server.engine.close();
  EXPECT_EQ(server.engine.tick(server.now), server.now + 5s);
  EXPECT_FALSE(server.engine.finished());
  server.now += 5s;
  EXPECT_EQ(server.engine.tick(server.now), std::nullopt);
  EXPECT_TRUE(server.engine.finished());
  EXPECT_EQ(server.events.closed, 1u);
}

TEST(Close, BeforeTheLayerIsUpItIsSilent) {
  Solo server;
  server.engine.close();
  EXPECT_TRUE(server.engine.finished());
  EXPECT_FALSE(server.engine.has_output());
  EXPECT_EQ(server.events.closed, 1u);

  Solo client{client_options()};
  client.engine.close();
  EXPECT_THAT(client.numbers(), ElementsAre(descriptor::open, descriptor::close));
  EXPECT_TRUE(client.engine.finished());
}

TEST(Close, LostTransportTellsEveryLink) {
  Pair pair;
  pair.sender("a");
  pair.receiver("b");
  pair.server.lost();
  pair.server.lost();
  EXPECT_EQ(pair.server_side.gone, 2u);
  EXPECT_EQ(pair.server_side.count("end"), 1u);
  EXPECT_EQ(pair.server_side.closed, 1u);
  EXPECT_FALSE(pair.server.has_output());
}

// ---- framing ----

TEST(Framing, FrameAtTheLimitIsTakenAndOnePastIsNot) {
  for (const std::size_t size : {1024u, 1025u}) {
    auto options = server_options();
    options.max_frame_size = 1024;
    Solo server{options};
    server.attached(false);
    const std::size_t head = frame_bytes(0, plain_transfer(0, 0)).size();
    server.send(0, plain_transfer(0, 0), std::string(size - head, 'x'));
    EXPECT_EQ(server.events.payloads.size(), size == 1024 ? 1u : 0u);
    EXPECT_EQ(server.close_condition_sent(), size == 1024 ? "" : "amqp:connection:framing-error");
  }
}

TEST(Framing, BadHeadersCloseTheConnection) {
  const std::vector<std::string> bad = {
      std::string("\0\0\0\x08\x01\0\0\0", 8),  // data offset inside the header
      std::string("\0\0\0\x08\x03\0\0\0", 8),  // data offset past the end
      std::string("\0\0\0\x07\x02\0\0\0", 8),  // smaller than its header
      std::string("\0\0\0\x00\x02\0\0\0", 8),   std::string("\0\0\0\x08\x02\x01\0\0", 8),  // a SASL frame
      std::string("\0\0\0\x08\x02\x09\0\0", 8),
  };
  for (const auto& bytes : bad) {
    Solo server;
    server.opened();
    server.raw(as_bytes(bytes));
    EXPECT_EQ(server.close_condition_sent(), "amqp:connection:framing-error")
        << testing::PrintToString(bytes);
    EXPECT_TRUE(server.engine.finished());
  }
}

TEST(Framing, ExtendedHeaderIsSkippedAndEmptyFrameIsAHeartbeat) {
  Solo server;
  server.opened();
  auto begin = frame_bytes(0, plain_begin());
  begin.insert(begin.begin() + 8, {9, 9, 9, 9});
  put_frame_header(begin.data(), static_cast<std::uint32_t>(begin.size()), 0, 0);
  begin[4] = 3;
  server.raw(as_bytes(std::string("\0\0\0\x08\x02\0\0\0", 8)));
  server.raw(begin);
  EXPECT_THAT(server.numbers(), ElementsAre(descriptor::begin));
}

TEST(Framing, BrokenBodiesCloseTheConnection) {
  const auto body_frame = [](std::string body) {
    std::string frame(8, '\0');
    frame += body;
    put_frame_header(reinterpret_cast<std::uint8_t*>(frame.data()), static_cast<std::uint32_t>(frame.size()),
                     0, 0);
    return frame;
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\xa1\x01x", "amqp:decode-error"},                                         // no performative at all
      {std::string("\x00\x53\x11\xc0\x09\x08\x40", 7), "amqp:decode-error"},      // begin, cut off
      {std::string("\x00\x53\x11\xc0\x03\x02\x40\x43", 8), "amqp:decode-error"},  // begin without windows
      {std::string("\x00\x53\x77\x45", 4), "amqp:not-implemented"},               // unknown performative
      {std::string("\x00\x53\x13\x45", 4), "amqp:decode-error"},  // flow without its mandatory fields
  };
  for (const auto& [body, condition] : cases) {
    Solo server;
    server.begun();
    server.raw(as_bytes(body_frame(body)));
    EXPECT_EQ(server.close_condition_sent(), condition) << testing::PrintToString(body);
    EXPECT_EQ(server.events.closed, 1u);
  }
}

TEST(Framing, FrameOnAChannelWithoutSession) {
  Solo server;
  server.begun();
  server.send(1, plain_attach("x", 0, true));
  EXPECT_EQ(server.close_condition_sent(), "amqp:not-allowed");
}

// ---- time ----

TEST(Time, SilentPeerIsDroppedAtItsIdleTimeOut) {
  Solo server;
  server.opened();
  EXPECT_EQ(server.engine.tick(server.now), server.now + 240s);
  server.now += 239'999ms;
  server.engine.tick(server.now);
  EXPECT_FALSE(server.engine.finished());
  server.now += 1ms;
  EXPECT_EQ(server.engine.tick(server.now), std::nullopt);
  EXPECT_TRUE(server.engine.finished());
  EXPECT_EQ(server.close_condition_sent(), "amqp:connection:forced");
}

TEST(Time, HeartbeatGoesOutAtHalfOfWhatThePeerAskedFor) {
  auto options = server_options();
  options.idle_time_out = 0ms;
  Solo server{options};
  Open open = plain_open();
  open.idle_time_out = 60'000;
  server.opened(open);
  const Tick start = server.now;
  EXPECT_EQ(server.engine.tick(start), start + 30s);
  // Asked early, the answer stays the same: the beat is counted from the last write.
  EXPECT_EQ(server.engine.tick(start + 20s), start + 30s);
  EXPECT_FALSE(server.engine.has_output());
  server.now = start + 30s;
  EXPECT_EQ(server.engine.tick(server.now), start + 60s);
  const auto beat = take_output(server.engine, server.now);
  EXPECT_THAT(beat, ElementsAre(0, 0, 0, 8, 2, 0, 0, 0));
  EXPECT_EQ(server.engine.tick(start + 45s), start + 60s);
}

TEST(Time, TinyIdleTimeOutIsRefused) {
  for (const std::uint32_t ms : {99u, 100u}) {
    Solo server;
    Open open = plain_open();
    open.idle_time_out = ms;
    server.raw(Bytes{protocol_header(ProtocolId::amqp)});
    server.send(0, open);
    EXPECT_EQ(server.close_condition_sent(), ms == 99 ? "amqp:not-allowed" : "");
  }
}

TEST(Time, OpenIsAwaitedForAWhile) {
  Solo server;
  EXPECT_EQ(server.engine.tick(server.now), server.now + 30s);
  server.now += 30s;
  EXPECT_EQ(server.engine.tick(server.now), std::nullopt);
  EXPECT_TRUE(server.engine.finished());
  EXPECT_EQ(server.events.closed, 1u);
}

}  // namespace
}  // namespace omnibus::amqp::test
