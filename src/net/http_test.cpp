// HTTP: the reader alone, then whole sessions over sockets.
#include "net/http.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>
#include <thread>

#include "net/http_reader.hpp"
#include "net/http_upgrade.hpp"
#include "net/net_rig.hpp"

namespace omnibus::net {
namespace {

using Outcome = HttpReader::Outcome;

TEST(HttpReader, TakesAByteAtATime) {
  HttpReader reader({});
  const auto text = "PUT /q?api-version=2021-05 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"sv;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    reader.append(as_bytes(text.substr(i, 1)));
    ASSERT_EQ(reader.next(), Outcome::need_more) << i;
  }
  reader.append(as_bytes(text.substr(text.size() - 1)));
  ASSERT_EQ(reader.next(), Outcome::request);
  bool keep_alive = false;
  const auto request = reader.take(keep_alive);
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.target, "/q?api-version=2021-05");
  EXPECT_EQ(request.body, "hello");
  EXPECT_EQ(*request.header("HOST"), "a");
  EXPECT_EQ(request.header("nothing"), nullptr);
  EXPECT_TRUE(keep_alive);
  EXPECT_EQ(reader.buffered(), 0u);
}

TEST(HttpReader, TakesTheAbsoluteForm) {
  const auto target_of = [](std::string_view target) {
    HttpReader reader({});
    reader.append(as_bytes("GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_EQ(reader.next(), Outcome::request) << target;
    bool keep_alive = false;
    return reader.take(keep_alive).target;
  };
  EXPECT_EQ(target_of("https://host/$servicebus/websocket"), "/$servicebus/websocket");
  EXPECT_EQ(target_of("HTTP://host:5300/q?x=1"), "/q?x=1");
  EXPECT_EQ(target_of("http://host"), "/");
  EXPECT_EQ(target_of("http://host?x"), "/?x");
  EXPECT_EQ(target_of("/a://b"), "/a://b");
}

TEST(HttpReader, JoinsChunks) {
  HttpReader reader({});
  reader.append(
      as_bytes("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"));
  ASSERT_EQ(reader.next(), Outcome::request);
  bool keep_alive = false;
  EXPECT_EQ(reader.take(keep_alive).body, "abcde");
}

TEST(HttpReader, KeepsWhatBelongsToTheNextRequest) {
  HttpReader reader({});
  reader.append(as_bytes("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.0\r\n\r\n"));
  bool keep_alive = false;
  ASSERT_EQ(reader.next(), Outcome::request);
  EXPECT_EQ(reader.take(keep_alive).target, "/1");
  EXPECT_TRUE(keep_alive);
  ASSERT_EQ(reader.next(), Outcome::request);
  EXPECT_EQ(reader.take(keep_alive).target, "/2");
  EXPECT_FALSE(keep_alive);
  EXPECT_EQ(reader.next(), Outcome::need_more);
}

TEST(HttpReader, BodyAtTheLimitIsTakenOnePastItIsNot) {
  for (const bool chunked : {false, true}) {
    for (const std::size_t size : {10u, 11u}) {
      HttpReader reader({.header_bytes_max = 1024, .body_bytes_max = 10});
      const std::string body(size, 'x');
      reader.append(
          as_bytes(chunked ? fmt::format("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n"
                                         "0\r\n\r\n",
                                         size, body)
                           : fmt::format("PUT / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{}", size, body)));
      EXPECT_EQ(reader.next(), size == 10 ? Outcome::request : Outcome::refused) << chunked << size;
      if (size == 11) {
        EXPECT_EQ(reader.status(), 413);
      }
    }
  }
}

TEST(HttpReader, HeaderPastTheLimitIsRefused) {
  HttpReader reader({.header_bytes_max = 100, .body_bytes_max = 10});
  reader.append(as_bytes("GET / HTTP/1.1\r\nX: " + std::string(100, 'x') + "\r\n\r\n"));
  EXPECT_EQ(reader.next(), Outcome::refused);
  EXPECT_EQ(reader.status(), 431);
}

// However the network cuts it, the last chunk and its trailers too.
TEST(HttpReader, AChunkedBodyInPiecesOfAnySize) {
  for (const std::string_view chunks :
       {"0\r\n\r\n", "0\r\nX: y\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n", "0;x=y\r\n\r\n"}) {
    const std::string all = fmt::format("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{}", chunks);
    for (std::size_t piece = 1; piece < 8; ++piece) {
      HttpReader reader({});
      Outcome last = Outcome::need_more;
      for (std::size_t at = 0; at < all.size(); at += piece) {
        EXPECT_EQ(last, Outcome::need_more);
        reader.append(as_bytes(std::string_view{all}.substr(at, piece)));
        last = reader.next();
      }
      EXPECT_EQ(last, Outcome::request) << chunks << " by " << piece;
    }
  }
}

// A line that never ends is not collected for ever, neither in the header nor between chunks.
TEST(HttpReader, EndlessLinesAreRefused) {
  for (const auto start :
       {"GET /", "GET / HTTP/1.1\r\nX: ", "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;"}) {
    HttpReader reader({.header_bytes_max = 1000, .body_bytes_max = 10});
    reader.append(as_bytes(start));
    int rounds = 0;
    while (reader.next() == Outcome::need_more && ++rounds < 100)
      reader.append(as_bytes(std::string(100, 'x')));
    EXPECT_LT(rounds, 20) << start;
    EXPECT_EQ(reader.next(), Outcome::refused);
  }
}

TEST(HttpReader, NonsenseIsRefused) {
  for (const auto text : {"GET / HTTP/2.0\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n",
                          "PUT / HTTP/1.1\r\nContent-Length: x\r\n\r\n"}) {
    HttpReader reader({});
    reader.append(as_bytes(text));
    EXPECT_EQ(reader.next(), Outcome::refused) << text;
    EXPECT_EQ(reader.status(), 400);
  }
}

TEST(HttpReader, TellsWhenTheClientWaitsForContinue) {
  HttpReader reader({});
  reader.append(as_bytes("PUT / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n\r\n"));
  EXPECT_EQ(reader.next(), Outcome::continue_expected);
  EXPECT_EQ(reader.next(), Outcome::need_more);
  reader.append(as_bytes("ok"));
  EXPECT_EQ(reader.next(), Outcome::request);
}

TEST(Upgrade, KnowsThePathInAllItsSpellings) {
  for (const auto target :
       {"/$servicebus/websocket", "/$servicebus/websocket/", "/%24servicebus/websocket",
        "/$servicebus/websocket?sb=1", "/$servicebus/websocket/?x", "/$ServiceBus/WebSocket"})
    EXPECT_TRUE(is_websocket_target(target)) << target;
  for (const auto target : {"/", "/$servicebus", "/$servicebus/websocket/x", "/$servicebus/websocket//",
                            "/%2", "/q/$servicebus/websocket"})
    EXPECT_FALSE(is_websocket_target(target)) << target;
}

TEST(Upgrade, ChoosesTheFirstKnownSubprotocolAsWritten) {
  EXPECT_EQ(choose_subprotocol("AMQPWSB10"), "AMQPWSB10");
  EXPECT_EQ(choose_subprotocol("mqtt, amqp , AMQPWSB10"), "amqp");
  EXPECT_EQ(choose_subprotocol("AMQPWSB10,amqp"), "AMQPWSB10");
  EXPECT_EQ(choose_subprotocol("mqtt,,amqpx"), std::nullopt);
  EXPECT_EQ(choose_subprotocol(""), std::nullopt);
}

TEST(Upgrade, AnswersTheKeyOfTheRfc) {
  EXPECT_EQ(websocket_accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

std::string upgrade_request(std::string_view more) {
  return fmt::format(
      "GET /$servicebus/websocket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: keep-alive, "
      "Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{}\r\n",
      more);
}

class HttpTest : public testing::TestWithParam<bool> {
 protected:
  void open(Rig& rig) {
    client_.emplace(rig.port());
    if (GetParam()) client_->start_tls();
  }
  Client& client() { return *client_; }
  // Status line and headers of the next answer, then its body of `size` bytes.
  std::string answer(std::size_t size = 0) {
    auto text = client().read_until("\r\n\r\n");
    return text + client().read(size);
  }

 private:
  std::optional<Client> client_;
};
INSTANTIATE_TEST_SUITE_P(Transport, HttpTest, testing::Bool(),
                         [](const auto& param) { return param.param ? "Https" : "Http"; });

TEST_P(HttpTest, AnswersRequestAfterRequest) {
  Rig rig;
  open(rig);
  for (int i = 0; i < 3; ++i) {
    client().send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
    const auto text = answer(11);
    EXPECT_TRUE(text.starts_with("HTTP/1.1 200 OK\r\n")) << text;
    EXPECT_TRUE(text.ends_with("GET /health")) << text;
    EXPECT_NE(text.find("X-Echo: a  b\r\n"), std::string::npos) << "a header stays one line";
  }
  rig.events().wait(GetParam() ? "http GET /health tls=true" : "http GET /health tls=false");
}

TEST_P(HttpTest, PipelinedRequestsAreAnsweredInOrder) {
  Rig rig;
  open(rig);
  client().send("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\nConnection: close\r\n\r\n");
  const auto text = client().read_all();
  const auto first = text.find("GET /1");
  const auto second = text.find("GET /2");
  const auto third = text.find("GET /3");
  EXPECT_TRUE(first < second && second < third && third != std::string::npos) << text;
}

TEST_P(HttpTest, BigAnswersArriveWhole) {
  Rig rig;
  open(rig);
  client().send("GET /big HTTP/1.0\r\n\r\n");
  const auto text = client().read_all();
  EXPECT_EQ(text.size() - text.find("\r\n\r\n") - 4, 3'000'000u);
}

TEST_P(HttpTest, ContinueIsSentBeforeTheBody) {
  Rig rig;
  open(rig);
  client().send("PUT /q HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(answer(), "HTTP/1.1 100 Continue\r\n\r\n");
  client().send("body");
  EXPECT_TRUE(client().read_all().starts_with("HTTP/1.1 200 OK\r\n"));
  rig.events().wait("http PUT /q tls=" + std::string(GetParam() ? "true" : "false") + " body=body");
}

TEST_P(HttpTest, HeadHasALengthAndNoBody) {
  Rig rig;
  open(rig);
  client().send("HEAD /q HTTP/1.1\r\nConnection: close\r\n\r\n");
  const auto text = client().read_all();
  EXPECT_NE(text.find("Content-Length: 7\r\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\r\n\r\n"));
}

TEST_P(HttpTest, AnswerMayComeLater) {
  Rig rig;
  open(rig);
  client().send("GET /hold HTTP/1.1\r\n\r\nGET /after HTTP/1.1\r\nConnection: close\r\n\r\n");
  rig.events().wait("held");
  {
    const std::lock_guard lock(rig.handler.held_mutex);
    rig.handler.held_on->post(
        [reply = std::move(*rig.handler.held)]() mutable { reply.send({.status = 202, .body = "later"}); });
    rig.handler.held.reset();
  }
  const auto text = client().read_all();
  EXPECT_TRUE(text.starts_with("HTTP/1.1 202 Accepted\r\n")) << text;
  EXPECT_TRUE(text.ends_with("GET /after")) << text;
}

TEST_P(HttpTest, AnswerForAPeerThatLeftIsDropped) {
  Rig rig;
  open(rig);
  client().send("GET /hold HTTP/1.1\r\n\r\n");
  rig.events().wait("held");
  client().reset();
  while (rig.listener->connections() != 0) std::this_thread::yield();
  // The turn that closed the connection may not be over; once another one has begun, the session's end is
  // in the queue.
  std::promise<void> next_turn;
  {
    const std::lock_guard lock(rig.handler.held_mutex);
    rig.handler.held_on->post([&] { next_turn.set_value(); });
  }
  next_turn.get_future().wait();
  std::promise<bool> wanted;
  {
    const std::lock_guard lock(rig.handler.held_mutex);
    rig.handler.held_on->post([reply = std::move(*rig.handler.held), &wanted]() mutable {
      wanted.set_value(reply.wanted());
      reply.send({.status = 200});
    });
    rig.handler.held.reset();
  }
  EXPECT_FALSE(wanted.get_future().get());
}

TEST_P(HttpTest, WhoWaitsForLongHearsThatItsClientWent) {
  Rig rig;
  open(rig);
  client().send("GET /wait HTTP/1.1\r\n\r\n");
  rig.events().wait("held");
  client().reset();
  rig.events().wait("gone");
  const std::lock_guard lock(rig.handler.held_mutex);
  rig.handler.held.reset();
}

// It may be there all the same, and gets an answer if there is one.
TEST(Http, AHalfClosedClientCountsAsGone) {
  Rig rig;
  Client client(rig.port());
  client.send("GET /wait HTTP/1.1\r\n\r\n");
  rig.events().wait("held");
  client.finish_sending();
  rig.events().wait("gone");
  {
    const std::lock_guard lock(rig.handler.held_mutex);
    rig.handler.held_on->post([reply = std::move(*rig.handler.held)]() mutable {
      const bool ended = reply.ended();
      reply.send({.status = 200, .body = ended ? "late" : "?"});
    });
    rig.handler.held.reset();
  }
  EXPECT_TRUE(client.read_all().ends_with("late"));
}

TEST_P(HttpTest, WhoWaitsMayAskForItsClient) {
  Rig rig;
  open(rig);
  client().send("GET /wait HTTP/1.1\r\nConnection: close\r\n\r\n");
  rig.events().wait("held");
  {
    const std::lock_guard lock(rig.handler.held_mutex);
    rig.handler.held_on->post([reply = std::move(*rig.handler.held)]() mutable {
      const bool ended = reply.ended();
      reply.send({.status = 200, .body = ended ? "?" : "still there"});
    });
    rig.handler.held.reset();
  }
  EXPECT_TRUE(client().read_all().ends_with("still there"));
}

TEST_P(HttpTest, ForgottenReplyIsA500) {
  Rig rig;
  open(rig);
  client().send("GET /drop HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(answer().starts_with("HTTP/1.1 500 "));
}

TEST(Http, HalfClosedClientGetsItsAnswer) {
  Rig rig;
  Client client(rig.port());
  client.send("GET /q HTTP/1.1\r\n\r\n");
  client.finish_sending();
  EXPECT_TRUE(client.read_all().ends_with("GET /q"));
}

// The answer comes after the client's end has been seen.
TEST(Http, HalfClosedClientGetsALateAnswerToo) {
  Rig rig;
  Client client(rig.port());
  client.send("GET /hold HTTP/1.1\r\n\r\n");
  client.finish_sending();
  rig.events().wait("held");
  {
    const std::lock_guard lock(rig.handler.held_mutex);
    rig.handler.held_on->post(
        [reply = std::move(*rig.handler.held)]() mutable { reply.send({.status = 200, .body = "late"}); });
    rig.handler.held.reset();
  }
  EXPECT_TRUE(client.read_all().ends_with("late"));
}

TEST_P(HttpTest, TooMuchIsRefusedWithItsStatus) {
  Rig rig({.http = {.header_bytes_max = 2000, .body_bytes_max = 1000}});
  open(rig);
  client().send("GET / HTTP/1.1\r\nX: " + std::string(3000, 'x') + "\r\n\r\n");
  EXPECT_TRUE(client().read_all().starts_with("HTTP/1.1 431 "));
  open(rig);
  client().send("PUT / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n");
  EXPECT_TRUE(client().read_all().starts_with("HTTP/1.1 413 "));
  open(rig);
  client().send("PUT / HTTP/1.1\r\nbad header\r\n\r\n");
  EXPECT_TRUE(client().read_all().starts_with("HTTP/1.1 400 "));
}

// A header that comes drop by drop does not hold the connection: each byte is in time, the whole is not.
TEST_P(HttpTest, SlowHeadersAreCutOff) {
  Rig rig({.greeting_timeout = 2000ms});  // long enough for a handshake on a busy machine
  open(rig);
  client().send("GET / HTTP/1.1\r\n");
  // Slow enough that the header stays far below its limit.
  for (;; std::this_thread::sleep_for(5ms)) {
    if (!(client().try_send("X: y\r\n") && rig.listener->connections() == 1 && client().can_send_now()))
      break;
    std::array<char, 1> byte{};
    if (::recv(client().fd(), byte.data(), 1, MSG_PEEK | MSG_DONTWAIT) == 1) break;
  }
  EXPECT_TRUE(client().read_all().starts_with("HTTP/1.1 408 "));
}

TEST_P(HttpTest, IdleConnectionsEndQuietly) {
  Rig rig({.http_idle_timeout = 50ms});
  open(rig);
  client().send("GET /q HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(client().read_all().ends_with("GET /q"));
}

TEST_P(HttpTest, UpgradeWithoutAKnownSubprotocolIsA400) {
  Rig rig;
  open(rig);
  client().send(upgrade_request("Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n"));
  EXPECT_TRUE(answer().starts_with("HTTP/1.1 400 "));
  open(rig);
  client().send(upgrade_request("Sec-WebSocket-Version: 8\r\nSec-WebSocket-Protocol: amqp\r\n"));
  EXPECT_TRUE(answer().starts_with("HTTP/1.1 426 "));
  open(rig);
  client().send("GET /$servicebus/websocket HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(answer().starts_with("HTTP/1.1 426 "));
}

// The client does not wait for the 101: its first frame is in the same packet.
TEST_P(HttpTest, FramesBehindTheUpgradeAreNotLost) {
  Rig rig;
  open(rig);
  client().send(upgrade_request("Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: amqp\r\n") +
                "\x82\x88" + std::string(4, '\0') + std::string(sasl_header));
  EXPECT_TRUE(answer().starts_with("HTTP/1.1 101 "));
  EXPECT_EQ(client().read(10), "\x82\x08" + std::string(sasl_header));
}

}  // namespace
}  // namespace omnibus::net
