// Protocol headers and the SASL layer.
#include <gmock/gmock.h>

#include "amqp/engine/engine_rig.hpp"

namespace omnibus::amqp::test {
namespace {

using testing::Contains;
using testing::ElementsAre;

ConnectionOptions with_sasl(ConnectionOptions options, std::vector<std::string> mechanisms) {
  options.sasl_mechanisms = std::move(mechanisms);
  return options;
}

template <class T>
std::vector<std::uint8_t> sasl_frame(const T& performative) {
  return frame_bytes(0, performative, {}, frame_type_sasl);
}

Solo sasl_server() { return Solo{with_sasl(server_options(), {"MSSBCBS", "PLAIN", "ANONYMOUS"})}; }

const Bytes sasl_header() {
  static constexpr auto header = protocol_header(ProtocolId::sasl);
  return header;
}

TEST(Sasl, ServerOffersItsMechanismsWithoutWaiting) {
  Solo server = sasl_server();
  server.raw(sasl_header());
  ASSERT_EQ(server.read().size(), 1u);
  EXPECT_THAT(server.headers, ElementsAre(3));
  EXPECT_EQ(server.frames[0].type, frame_type_sasl);
  const auto offer = server.frames[0].as<SaslMechanisms>();
  const std::string expected = std::string("\xe0\x1c\x03\xa3") +
                               "\x07MSSBCBS\x05PLAIN\x09"
                               "ANONYMOUS";
  EXPECT_EQ(as_text(offer.sasl_server_mechanisms.bytes).substr(2), std::string_view(expected).substr(2));
}

TEST(Sasl, WholeHandshakeInOneByteSteps) {
  auto for_client = with_sasl(client_options(), {"PLAIN"});
  for_client.sasl_response = std::string("\0user\0key", 9);
  Pair pair{for_client, with_sasl(server_options(), {"MSSBCBS", "PLAIN"})};
  pair.split = [](std::size_t) { return 1; };
  pair.pump();
  EXPECT_TRUE(pair.client.is_open());
  EXPECT_TRUE(pair.server.is_open());
  EXPECT_THAT(pair.server_side.events,
              Contains(std::string("sasl-init PLAIN ") + std::string("\0user\0key", 9)));
  EXPECT_THAT(pair.client_side.events, Contains("sasl-outcome 0 Welcome!"));
}

TEST(Sasl, ChallengeIsAnswered) {
  auto for_client = with_sasl(client_options(), {"CRAM"});
  for_client.sasl_response = "answer";
  Pair pair{for_client, with_sasl(server_options(), {"CRAM"})};
  pair.server_side.sasl = {SaslStep::Kind::challenge, 0, "question"};
  pair.pump();
  EXPECT_THAT(pair.server_side.events, Contains("sasl-response answer"));
  EXPECT_TRUE(pair.client.is_open());
}

TEST(Sasl, FailureEndsBothSides) {
  Pair pair{with_sasl(client_options(), {"PLAIN"}), with_sasl(server_options(), {"PLAIN"})};
  pair.server_side.sasl = {SaslStep::Kind::outcome, 1, {}};
  pair.pump();
  EXPECT_TRUE(pair.server.finished());
  EXPECT_TRUE(pair.client.finished());
  EXPECT_EQ(pair.server_side.closed, 1u);
  EXPECT_EQ(pair.client_side.close_condition, "amqp:unauthorized-access");
  EXPECT_THAT(pair.client_side.events, Contains("sasl-outcome 1 "));
}

TEST(Sasl, ClientDoesNotSendItsSecretToAServerThatDoesNotOfferTheMechanism) {
  Pair pair{with_sasl(client_options(), {"PLAIN"}), with_sasl(server_options(), {"ANONYMOUS", "PLAINER"})};
  pair.pump();
  EXPECT_TRUE(pair.client.finished());
  EXPECT_EQ(pair.client_side.close_condition, "amqp:unauthorized-access");
  EXPECT_EQ(pair.server_side.count("sasl-init"), 0u);
}

TEST(Sasl, ClientTakesAMechanismThatIsOneSymbol) {
  Solo client{with_sasl(client_options(), {"PLAIN"})};
  client.raw(sasl_header());
  static constexpr std::uint8_t one[] = {code::symbol8, 5, 'P', 'L', 'A', 'I', 'N'};
  client.raw(sasl_frame(SaslMechanisms{{one}}));
  ASSERT_EQ(client.read().size(), 1u);
  EXPECT_EQ(client.frames[0].as<SaslInit>().mechanism.text, "PLAIN");
}

TEST(Sasl, FrameOf512BytesIsTakenAndOneMoreIsNot) {
  for (const std::size_t size : {512u, 513u}) {
    Solo server = sasl_server();
    server.raw(sasl_header());
    SaslInit init{.mechanism = {"PLAIN"}, .initial_response = Bytes{}, .hostname = {}};
    std::string text(300, 'x');
    init.initial_response = as_bytes(text);
    const std::size_t overhead = sasl_frame(init).size() - text.size();
    text.resize(size - overhead, 'x');
    init.initial_response = as_bytes(text);
    ASSERT_EQ(sasl_frame(init).size(), size);
    server.raw(sasl_frame(init));
    EXPECT_EQ(server.events.count("sasl-init"), size == 512 ? 1u : 0u);
    EXPECT_EQ(server.engine.finished(), size == 513);
    EXPECT_EQ(server.events.closed, size == 513 ? 1u : 0u);
  }
}

TEST(Sasl, ResponseBeforeInitAndASecondInitAreRefused) {
  {
    Solo server = sasl_server();
    server.raw(sasl_header());
    server.raw(sasl_frame(SaslResponse{}));
    EXPECT_TRUE(server.engine.finished());
    EXPECT_EQ(server.events.count("sasl-response"), 0u);
  }
  {
    Solo server = sasl_server();
    server.events.sasl = {SaslStep::Kind::challenge, 0, "?"};
    server.raw(sasl_header());
    const SaslInit init{.mechanism = {"PLAIN"}, .initial_response = {}, .hostname = {}};
    server.raw(sasl_frame(init));
    EXPECT_FALSE(server.engine.finished());
    server.raw(sasl_frame(init));
    EXPECT_TRUE(server.engine.finished());
    EXPECT_EQ(server.events.count("sasl-init"), 1u);
  }
}

TEST(Sasl, AmqpFrameInsideTheSaslLayerIsRefused) {
  Solo server = sasl_server();
  server.raw(sasl_header());
  server.send(0, plain_open());
  EXPECT_TRUE(server.engine.finished());
  EXPECT_EQ(server.events.close_condition, "amqp:connection:framing-error");
}

TEST(Sasl, CloseInsideInitSaysNothingMore) {
  Solo server = sasl_server();
  server.raw(sasl_header());
  server.read();
  server.frames.clear();
  server.events.every = [&](const char*) { server.engine.close(); };
  server.raw(sasl_frame(SaslInit{.mechanism = {"PLAIN"}, .initial_response = {}, .hostname = {}}));
  EXPECT_TRUE(server.engine.finished());
  EXPECT_TRUE(server.read().empty());
  EXPECT_EQ(server.events.closed, 1u);
}

TEST(Header, ClientWithoutSaslIsServedUnlessItIsRequired) {
  Solo open = sasl_server();
  open.raw(Bytes{protocol_header(ProtocolId::amqp)});
  open.read();
  EXPECT_THAT(open.headers, ElementsAre(0));
  EXPECT_FALSE(open.engine.finished());

  auto options = with_sasl(server_options(), {"PLAIN"});
  options.sasl_required = true;
  Solo strict{options};
  strict.raw(Bytes{protocol_header(ProtocolId::amqp)});
  strict.read();
  EXPECT_THAT(strict.headers, ElementsAre(3));
  EXPECT_TRUE(strict.engine.finished());
}

// [service-bus contract 1.2] A header we do not speak is answered with one that we do.
TEST(Header, UnknownProtocolIsAnsweredWithOurs) {
  for (const std::string& bytes :
       {std::string("AMQP\2\1\0\0", 8), std::string("AMQP\0\0\x9\1", 8), std::string("AMQP\3\2\0\0", 8)}) {
    Solo server = sasl_server();
    server.raw(as_bytes(bytes));
    server.read();
    EXPECT_THAT(server.headers, ElementsAre(3));
    EXPECT_TRUE(server.engine.finished());
    EXPECT_EQ(server.events.closed, 1u);
  }
}

TEST(Header, WhatIsNoAmqpGetsNoAnswer) {
  Solo server = sasl_server();
  server.raw(as_bytes("GET / HTTP/1.1\r\n"));
  EXPECT_TRUE(take_output(server.engine, server.now).empty());
  EXPECT_TRUE(server.engine.finished());
}

// A client may have begun and attached before it learns that the server does not speak its protocol.
TEST(Header, WrongAnswerTakesPipelinedLinksAway) {
  Solo client{client_options()};
  AttachRequest request;
  request.name = "early";
  client.engine.begin().attach(request);
  client.raw(sasl_header());
  EXPECT_TRUE(client.engine.finished());
  EXPECT_EQ(client.events.gone, 1u);
  EXPECT_EQ(client.events.count("end"), 1u);
  EXPECT_EQ(client.events.closed, 1u);
}

}  // namespace
}  // namespace omnibus::amqp::test
