// WebSocket: the frame reader alone, then Beast as the client.
#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/ssl/impl/src.hpp>  // Asio is compiled separately, and the room has no use for this part
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>

#include "base/text.hpp"
#include "net/net_rig.hpp"
#include "net/websocket_frames.hpp"

namespace omnibus::net {
namespace {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;
using Kind = WebSocketDecoder::Kind;

std::string frame(std::uint8_t first, std::string_view payload, std::string_view mask = "\x01\x02\x03\x04") {
  std::string text{static_cast<char>(first)};
  if (payload.size() < 126) {
    text += static_cast<char>(0x80 | payload.size());
  } else {
    text += static_cast<char>(0x80 | 126);
    text += static_cast<char>(payload.size() >> 8);
    text += static_cast<char>(payload.size() & 0xff);
  }
  text += mask;
  for (std::size_t i = 0; i < payload.size(); ++i) text += static_cast<char>(payload[i] ^ mask[i % 4]);
  return text;
}

// All that comes out of `text`, fed in pieces of `step` bytes, as one line.
std::string decode(std::string_view text, std::size_t step, std::uint64_t limit = 1'000'000) {
  WebSocketDecoder decoder(limit);
  std::array<std::uint8_t, 16> scratch{};
  std::string data;
  std::string events;
  for (std::size_t at = 0; at < text.size(); at += step) {
    Bytes input = as_bytes(text.substr(at, step));
    for (;;) {
      const auto piece = decoder.next(input, scratch);
      if (piece.kind == Kind::need_more) break;
      if (piece.kind == Kind::data) data += as_text(piece.bytes);
      if (piece.kind == Kind::ping) events += fmt::format(" ping({})", as_text(piece.bytes));
      if (piece.kind == Kind::pong) events += " pong";
      if (piece.kind == Kind::close) events += fmt::format(" close({})", piece.bytes.size());
      if (piece.kind == Kind::refused) events += fmt::format(" refused({})", piece.close_code);
    }
    EXPECT_TRUE(input.empty());
  }
  return data + events;
}

TEST(WebSocketFrames, PayloadsAreOneStreamHoweverTheyAreSplit) {
  const std::string long_text(300, 'l');
  const std::string text = frame(0x02, "frag") + frame(0x89, "p") + frame(0x00, "") + frame(0x80, "mented ") +
                           frame(0x82, long_text) + frame(0x8a, "") + frame(0x88, "\x03\xe8");
  for (const std::size_t step : {1u, 2u, 3u, 7u, 1000u})
    EXPECT_EQ(decode(text, step), "fragmented " + long_text + " ping(p) pong close(2)") << step;
}

TEST(WebSocketFrames, RefusesWhatTheRfcForbids) {
  EXPECT_EQ(decode(frame(0x81, "text"), 100), " refused(1003)");
  EXPECT_EQ(decode("\x82\x01x", 100), " refused(1002)") << "unmasked";
  EXPECT_EQ(decode(frame(0xc2, "x"), 100), " refused(1002)") << "reserved bit";
  EXPECT_EQ(decode(frame(0x83, "x"), 100), " refused(1002)") << "unknown opcode";
  EXPECT_EQ(decode(frame(0x8b, "x"), 100), " refused(1002)") << "unknown control opcode";
  EXPECT_EQ(decode(frame(0x09, "x"), 100), " refused(1002)") << "fragmented ping";
  EXPECT_EQ(decode(frame(0x89, std::string(126, 'x')), 1000), " refused(1002)") << "long ping";
  EXPECT_EQ(decode(frame(0x80, "x"), 100), " refused(1002)") << "continuation of nothing";
  EXPECT_EQ(decode(frame(0x02, "a") + frame(0x82, "b"), 100), "a refused(1002)")
      << "message inside a message";
  EXPECT_EQ(decode(frame(0x88, "x"), 100), " refused(1002)") << "half a close code";
}

TEST(WebSocketFrames, MessageAtTheLimitPassesOnePastItDoesNot) {
  EXPECT_EQ(decode(frame(0x02, "12345") + frame(0x80, "67890"), 100, 10), "1234567890");
  EXPECT_EQ(decode(frame(0x02, "12345") + frame(0x80, "678901"), 100, 10), "12345 refused(1009)");
  EXPECT_EQ(decode(frame(0x82, "1234567890") + frame(0x82, "1234567890"), 100, 10), "12345678901234567890");
  EXPECT_EQ(decode("\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\1\1\1", 100), " refused(1009)");
}

TEST(WebSocketFrames, HeadersHaveTheThreeLengths) {
  EXPECT_EQ(websocket_binary_header(125).size, 2);
  EXPECT_EQ(websocket_binary_header(126).size, 4);
  EXPECT_EQ(websocket_binary_header(65535).size, 4);
  const auto big = websocket_binary_header(65536);
  EXPECT_EQ(big.size, 10);
  EXPECT_EQ(hex(Bytes{big.bytes.data(), 10}), "827f0000000000010000");
}

// Beast on the client's side, blocking.
template <class Below>
class BeastClient {
 public:
  template <class... Args>
  BeastClient(Rig& rig, Args&&... args) : socket_(context_, std::forward<Args>(args)...) {
    auto& tcp = boost::beast::get_lowest_layer(socket_);
    tcp.connect({asio::ip::make_address("127.0.0.1"), rig.port()});
    if constexpr (!std::is_same_v<Below, asio::ip::tcp::socket>)
      socket_.next_layer().handshake(asio::ssl::stream_base::client);
  }
  websocket::response_type upgrade(const std::string& protocols, const std::string& target) {
    socket_.set_option(websocket::stream_base::decorator(
        [&](websocket::request_type& request) { request.set("Sec-WebSocket-Protocol", protocols); }));
    websocket::response_type response;
    socket_.handshake(response, "localhost", target);
    socket_.binary(true);
    return response;
  }
  void send(std::string_view text) { socket_.write(asio::buffer(text)); }
  std::string read(std::size_t size) {
    while (have_.size() < size) {
      boost::beast::flat_buffer buffer;
      boost::system::error_code error;
      socket_.read(buffer, error);
      have_ += std::string_view(static_cast<const char*>(buffer.data().data()), buffer.size());
      if (error) break;
    }
    const auto text = have_.substr(0, size);
    have_.erase(0, size);
    return text;
  }
  asio::io_context context_;
  websocket::stream<Below> socket_;
  std::string have_;
};
using PlainClient = BeastClient<asio::ip::tcp::socket>;
using TlsClient = BeastClient<asio::ssl::stream<asio::ip::tcp::socket>>;

template <class C>
void talk(C& client, Rig& rig, const std::string& transport) {
  const auto response = client.upgrade("mqtt, AMQPWSB10, amqp", "/$servicebus/websocket/?x=y");
  EXPECT_EQ(response["Sec-WebSocket-Protocol"], "AMQPWSB10");
  // The header in two messages, as any split is allowed.
  client.send(sasl_header.substr(0, 3));
  client.send(sasl_header.substr(3));
  EXPECT_EQ(client.read(8), sasl_header);
  EXPECT_TRUE(rig.events().wait("amqp").starts_with("amqp " + transport + " "));
  for (const std::size_t size : {1u, 125u, 126u, 65'535u, 65'536u, 3'000'000u}) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i % 19);
    std::thread sender([&] { client.send(text); });
    if (transport == "wss") sender.join();  // an SSL object is for one thread; the echo fits the buffers
    EXPECT_EQ(client.read(size), text) << size;
    if (sender.joinable()) sender.join();
    if (transport == "wss" && size > 65'000) break;
  }
}

TEST(WebSocket, CarriesAmqpInTheClear) {
  Rig rig;
  PlainClient client(rig);
  talk(client, rig, "ws");
  client.socket_.close(websocket::close_code::normal);
  rig.events().wait("closed orderly");
}

TEST(WebSocket, CarriesAmqpInTls) {
  Rig rig;
  asio::ssl::context tls(asio::ssl::context::tls_client);
  tls.load_verify_file(test_certificates().ca_file);
  tls.set_verify_mode(asio::ssl::verify_peer);
  TlsClient client(rig, tls);
  talk(client, rig, "wss");
  boost::system::error_code ignored;
  client.socket_.close(websocket::close_code::normal, ignored);
  rig.events().wait("closed orderly");
}

TEST(WebSocket, TakesTheSubprotocolOfDotNetAndTheEncodedPath) {
  Rig rig;
  PlainClient client(rig);
  EXPECT_EQ(client.upgrade("amqp", "/%24servicebus/websocket")["Sec-WebSocket-Protocol"], "amqp");
}

TEST(WebSocket, AnswersPings) {
  Rig rig;
  PlainClient client(rig);
  client.upgrade("amqp", "/$servicebus/websocket");
  std::string pong;
  client.socket_.control_callback([&](websocket::frame_type kind, boost::beast::string_view text) {
    if (kind == websocket::frame_type::pong) pong = std::string(text);
  });
  client.socket_.ping("are you there");
  client.send(sasl_header);
  EXPECT_EQ(client.read(8), sasl_header);
  EXPECT_EQ(pong, "are you there");
}

TEST(WebSocket, RefusesText) {
  Rig rig;
  PlainClient client(rig);
  client.upgrade("amqp", "/$servicebus/websocket");
  client.socket_.text(true);
  client.send("AMQP as text");
  EXPECT_EQ(client.read(1), "");
  EXPECT_EQ(client.socket_.reason().code, websocket::close_code::unknown_data);
}

TEST(WebSocket, OurCloseIsAWebSocketClose) {
  Rig rig;
  PlainClient client(rig);
  client.upgrade("amqp", "/$servicebus/websocket");
  client.send(std::string(sasl_header) + "CLOSE");
  EXPECT_EQ(client.read(100), std::string(sasl_header) + "CLOSE");
  EXPECT_EQ(client.socket_.reason().code, websocket::close_code::normal);
  rig.events().wait("closed orderly");
}

TEST(WebSocket, OtherProtocolsInsideAreRefusedAsOutside) {
  Rig rig({.require_tls = true});
  PlainClient plain(rig);
  plain.upgrade("amqp", "/$servicebus/websocket");
  plain.send(sasl_header);
  EXPECT_EQ(plain.read(100), tls_header);
  PlainClient upgrading(rig);
  upgrading.upgrade("amqp", "/$servicebus/websocket");
  upgrading.send(tls_header);
  EXPECT_EQ(upgrading.read(100), sasl_header);
  PlainClient http(rig);
  http.upgrade("amqp", "/$servicebus/websocket");
  http.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(http.read(100), "");
}

TEST(WebSocket, SilenceAfterTheUpgradeIsCutOff) {
  Rig rig({.greeting_timeout = 1000ms});
  PlainClient client(rig);
  client.upgrade("amqp", "/$servicebus/websocket");
  EXPECT_EQ(client.read(1), "");
}

// A peer that floods us with pings and reads nothing makes us keep one pong, not all of them.
TEST(WebSocket, PingsWithoutReadingEndInTheWriteTimeout) {
  Rig rig({.write_timeout = 100ms});
  PlainClient client(rig);
  client.upgrade("amqp", "/$servicebus/websocket");
  client.send(std::string(sasl_header) + "FLOOD");
  boost::system::error_code error;
  for (int i = 0; i < 1'000'000 && !error; ++i) client.socket_.ping("123456789", error);
  EXPECT_TRUE(error);
  rig.events().wait("closed timeout");
}

}  // namespace
}  // namespace omnibus::net
