// Streams over real sockets: back-pressure, endings of every kind, and the client's side.
#include "net/stream.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>
#include <thread>

#include "net/connect.hpp"
#include "net/net_rig.hpp"

namespace omnibus::net {
namespace {

// Begins as AMQP, so that the echo handler gets the stream.
struct EchoClient : Client {
  explicit EchoClient(Rig& rig, bool tls = false, int receive_buffer = 0)
      : Client(rig.port(), receive_buffer) {
    if (tls) start_tls();
    send(sasl_header);
    EXPECT_EQ(read(8), sasl_header);
  }
};

class StreamTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Transport, StreamTest, testing::Bool(),
                         [](const auto& param) { return param.param ? "Tls" : "Tcp"; });

TEST_P(StreamTest, MuchDataComesBackWhole) {
  Rig rig;
  EchoClient client(rig, GetParam());
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += static_cast<char>('a' + i * 7 % 23);
  std::thread sender;
  if (!GetParam()) {  // an SSL object is for one thread
    sender = std::thread([&] { client.send(text); });
    EXPECT_EQ(client.read(text.size()), text);
    sender.join();
  } else {
    for (std::size_t at = 0; at < text.size(); at += 50'000) {
      client.send(std::string_view(text).substr(at, 50'000));
      ASSERT_EQ(client.read(50'000), text.substr(at, 50'000));
    }
  }
}

TEST_P(StreamTest, CloseAfterFlushWritesEverythingFirst) {
  Rig rig;
  EchoClient client(rig, GetParam());
  const std::string text = std::string(200'000, 'y') + "CLOSE";
  client.send(text);
  EXPECT_EQ(client.read_all().size(), text.size());
  rig.events().wait("closed orderly");
}

// What the peer still sends after our end does not turn into a reset that eats our last bytes.
TEST_P(StreamTest, InputAfterTheCloseIsDropped) {
  Rig rig;
  EchoClient client(rig, GetParam());
  client.send("CLOSE");
  rig.events().wait("closed orderly");
  (void)client.try_send(std::string(100'000, 'z'));
  EXPECT_EQ(client.read_all(), "CLOSE");
}

TEST_P(StreamTest, AbortFromInsideOnInputIsTheEnd) {
  Rig rig;
  EchoClient client(rig, GetParam());
  client.send("ABORT");
  client.read_all();
  EXPECT_EQ(rig.events().wait("closed"), "closed not_allowed: asked to");
  rig.events().wait("input ABORT");
}

TEST_P(StreamTest, PeerThatLeavesIsAnOrderlyEnd) {
  Rig rig;
  {
    EchoClient client(rig, GetParam());
  }
  rig.events().wait("closed orderly");
}

TEST(Stream, ResetIsToldWithItsReason) {
  Rig rig;
  EchoClient client(rig);
  client.reset();
  EXPECT_TRUE(rig.events().wait("closed io:").find("127.0.0.1") != std::string::npos);
}

TEST(Stream, HalfClosedPeerStillGetsItsAnswer) {
  Rig rig;
  EchoClient client(rig);
  const std::string text(500'000, 'h');
  std::thread sender([&] {
    client.send(text);
    client.finish_sending();
  });
  EXPECT_EQ(client.read_all().size(), text.size());
  sender.join();
  rig.events().wait("closed orderly");
}

// With reading paused the sender runs into full kernel buffers: there is a bound, and the handler sees
// none of what comes after.
TEST_P(StreamTest, PausedInputStopsTheSender) {
  Rig rig;
  EchoClient client(rig, GetParam());
  client.send("PAUSE");
  EXPECT_EQ(client.read(5), "PAUSE");
  const auto inputs = rig.events().count("input");
  const timeval brief{0, 200'000};
  ::setsockopt(client.fd(), SOL_SOCKET, SO_SNDTIMEO, &brief, sizeof brief);
  const std::string chunk(64 * 1024, 'p');
  std::size_t sent = 0;
  while (sent < 64 * 1024 * 1024 && client.try_send(chunk)) sent += chunk.size();
  EXPECT_LT(sent, 64u * 1024 * 1024);
  EXPECT_EQ(rig.events().count("input"), inputs);
}

// The peer never reads. The handler would write for ever; the stream gives up on the peer.
TEST_P(StreamTest, PeerThatNeverReadsIsCutOff) {
  Rig rig({.write_timeout = 100ms});
  EchoClient client(rig, GetParam(), 4096);
  client.send("FLOOD");
  EXPECT_TRUE(rig.events().wait("closed timeout").find("took no output for 100 ms") != std::string::npos);
}

TEST(Stream, ManyConnectionsLeavingAtOnceAreAllToldAndCounted) {
  Rig rig;
  {
    std::deque<EchoClient> clients;
    for (int i = 0; i < 200; ++i) clients.emplace_back(rig);
    EXPECT_EQ(rig.listener->connections(), 200u);
  }
  for (int i = 0; i < 200; ++i) rig.events().wait("closed orderly");
  while (rig.listener->connections() != 0) std::this_thread::yield();
}

TEST(Stream, StoppingTheShardsClosesWhatIsOpen) {
  TestHandler handler;
  ShardPool pool(2);
  auto listener = Listener::open(pool, {.addresses = {"127.0.0.1:0"}}, handler).value();
  pool.start();
  const auto port = parse_host_port(listener->addresses().at(0)).value().port;
  std::deque<Client> clients;
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back(port).send(sasl_header);
    EXPECT_EQ(clients.back().read(8), sasl_header);
  }
  Client silent(port);  // nobody's yet
  pool.stop();
  EXPECT_EQ(handler.events.count("closed connection_forced: the shard stops"), 20u);
  for (auto& client : clients) client.read_all();
}

// A client stream whose handler keeps what it gets and tells about its end.
class Collector : public StreamHandler {
 public:
  Collector(Stream& stream, Events& events, std::string first)
      : stream_(stream), events_(events), output_(std::move(first)) {
    stream_.wake();
  }
  void on_input(Bytes bytes) override { events_.push("got " + std::string(as_text(bytes))); }
  std::size_t gather(std::span<iovec> out) override {
    if (output_.empty()) return 0;
    out[0] = {output_.data(), output_.size()};
    return 1;
  }
  void wrote(std::size_t bytes) override { output_.erase(0, bytes); }
  void on_closed(const Error* why) override { events_.push(why ? "gone " + why->detail : "gone"); }

 private:
  Stream& stream_;
  Events& events_;
  std::string output_;
};

class ConnectTest : public testing::Test {
 protected:
  ~ConnectTest() override {
    reactor_.stop();
    reactor_.join();
  }
  void start(ConnectOptions options) {
    reactor_.start();
    connect(reactor_, std::move(options), [this](Result<Stream*> stream) -> std::unique_ptr<StreamHandler> {
      if (!stream) {
        events_.push(fmt::format("failed {}: {}", name_of(stream.error().code), stream.error().detail));
        return nullptr;
      }
      events_.push("connected " + (*stream)->transport());
      return std::make_unique<Collector>(**stream, events_, std::string(sasl_header));
    });
  }
  Rig rig_;
  Events events_;
  Reactor reactor_;
};

TEST_F(ConnectTest, Plain) {
  start({.host = "127.0.0.1", .port = rig_.port()});
  EXPECT_EQ(events_.wait("connected"), "connected tcp");
  EXPECT_EQ(events_.wait("got"), "got " + std::string(sasl_header));
}

TEST_F(ConnectTest, TlsWithATrustedCertificate) {
  auto tls = TlsContext::make_client({.ca_file = test_certificates().ca_file});
  start({.host = "127.0.0.1", .port = rig_.port(), .tls = *tls});
  EXPECT_EQ(events_.wait("connected"), "connected tls");
  EXPECT_EQ(events_.wait("got"), "got " + std::string(sasl_header));
}

TEST_F(ConnectTest, TlsWithAForeignNameIsRefused) {
  auto tls = TlsContext::make_client({.ca_file = test_certificates().ca_file});
  start({.host = "127.0.0.1", .port = rig_.port(), .tls = *tls, .server_name = "elsewhere.example"});
  EXPECT_NE(events_.wait("failed io").find("ostname mismatch"), std::string::npos);
}

TEST_F(ConnectTest, TlsWithoutVerificationTakesAnyName) {
  auto tls = TlsContext::make_client({.verify = false});
  start({.host = "127.0.0.1", .port = rig_.port(), .tls = *tls, .server_name = "elsewhere.example"});
  EXPECT_EQ(events_.wait("connected"), "connected tls");
}

TEST_F(ConnectTest, RefusedConnectionNamesThePeer) {
  std::uint16_t port = 0;
  {
    Rig gone;
    port = gone.port();
  }
  start({.host = "127.0.0.1", .port = port});
  EXPECT_NE(events_.wait("failed io").find(fmt::format("127.0.0.1:{}", port)), std::string::npos);
}

}  // namespace
}  // namespace omnibus::net
