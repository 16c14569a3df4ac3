// Every protocol on one address, as clients of each kind begin it.
#include "net/listener.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "net/net_rig.hpp"

namespace omnibus::net {
namespace {

TEST(HostPort, TakesNamesAddressesAndStars) {
  EXPECT_EQ(parse_host_port("localhost:5672").value(), (HostPort{"localhost", 5672}));
  EXPECT_EQ(parse_host_port("[::1]:0").value(), (HostPort{"::1", 0}));
  EXPECT_EQ(parse_host_port("*:65535").value(), (HostPort{"*", 65535}));
}

TEST(HostPort, RefusesTheRest) {
  for (const auto text : {"", "localhost", ":5672", "localhost:", "localhost:65536", "::1:5672",
                          "[localhost]:1", "localhost:-1", "localhost:5672x"})
    EXPECT_FALSE(parse_host_port(text).has_value()) << text;
}

TEST(Listener, SaysWhenAnAddressIsInUse) {
  Rig rig;
  TestHandler handler;
  ShardPool pool(1);
  const auto second = Listener::open(pool, {.addresses = {rig.listener->addresses().at(0)}}, handler);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Errc::io);
  EXPECT_NE(second.error().detail.find(rig.listener->addresses().at(0)), std::string::npos);
  EXPECT_NE(second.error().detail.find("already in use"), std::string::npos);
}

TEST(Listener, SaysWhenAnAddressIsNotOurs) {
  TestHandler handler;
  ShardPool pool(1);
  const auto opened = Listener::open(pool, {.addresses = {"192.0.2.1:0"}}, handler);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, Errc::io);
}

TEST(Listener, PlainAmqpReachesTheHandlerWithItsHeader) {
  Rig rig;
  for (const auto header : {amqp_header, sasl_header}) {
    Client client(rig.port());
    client.send(header);
    EXPECT_EQ(client.read(8), header);
    EXPECT_EQ(rig.events().wait("amqp"), "amqp tcp over_limit=false sni=");
  }
}

TEST(Listener, FirstBytesMayComeOneByOne) {
  Rig rig;
  Client client(rig.port());
  for (const char c : std::string(sasl_header) + "rest") client.send({&c, 1});
  EXPECT_EQ(client.read(12), std::string(sasl_header) + "rest");
}

TEST(Listener, AmqpInTlsFromTheFirstByte) {
  Rig rig;
  Client client(rig.port());
  client.start_tls();
  client.send(sasl_header);
  EXPECT_EQ(client.read(8), sasl_header);
  EXPECT_EQ(rig.events().wait("amqp"), "amqp tls over_limit=false sni=localhost");
}

TEST(Listener, AmqpAfterTheTlsUpgrade) {
  Rig rig;
  Client client(rig.port());
  client.send(tls_header);
  EXPECT_EQ(client.read(8), tls_header);
  client.start_tls();
  client.send(sasl_header);
  EXPECT_EQ(client.read(8), sasl_header);
  EXPECT_EQ(rig.events().wait("amqp"), "amqp tls over_limit=false sni=localhost");
}

TEST(Listener, TlsUpgradeInsideTlsIsAnsweredWithSasl) {
  Rig rig;
  Client client(rig.port());
  client.start_tls();
  client.send(tls_header);
  EXPECT_EQ(client.read_all(), sasl_header);
  EXPECT_EQ(rig.events().count("amqp"), 0u);
}

TEST(Listener, TlsUpgradeWithoutACertificateIsAnsweredWithSasl) {
  Rig rig({}, false);
  Client client(rig.port());
  client.send(tls_header);
  EXPECT_EQ(client.read_all(), sasl_header);
}

TEST(Listener, UnknownAmqpIsAnsweredWithSasl) {
  Rig rig;
  for (const auto header : {"AMQP\x00\x00\x09\x01"sv, "AMQP\x01\x01\x00\x00"sv, "AMQP\x03\x01\x00\x01"sv}) {
    Client client(rig.port());
    client.send(header);
    EXPECT_EQ(client.read_all(), sasl_header);
  }
  EXPECT_EQ(rig.events().count("amqp"), 0u);
}

TEST(Listener, RequireTlsOffersTheUpgrade) {
  Rig rig({.require_tls = true});
  for (const auto header : {amqp_header, sasl_header}) {
    Client client(rig.port());
    client.send(header);
    EXPECT_EQ(client.read_all(), tls_header);
  }
  Client encrypted(rig.port());
  encrypted.start_tls();
  encrypted.send(sasl_header);
  EXPECT_EQ(encrypted.read(8), sasl_header);
}

TEST(Listener, RequireTlsLeavesPlainHttpToTheHandler) {
  Rig rig({.require_tls = true});
  Client client(rig.port());
  client.send("GET /q HTTP/1.1\r\n\r\n");
  rig.events().wait("http GET /q tls=false");
}

TEST(Listener, GarbageIsClosedWithoutAWord) {
  Rig rig;
  for (const auto text : {"SSH-2.0-OpenSSH\r\n"sv, "\x16\x07"sv, "\x00\x00\x00\x00"sv}) {
    Client client(rig.port());
    client.send(text);
    EXPECT_EQ(client.read_all(), "");
  }
  Client inside(rig.port());
  inside.start_tls();
  inside.send("SSH-2.0-OpenSSH\r\n");
  EXPECT_EQ(inside.read_all(), "");
}

TEST(Listener, BrokenTlsHelloEndsTheConnectionOnly) {
  Rig rig;
  {
    Client client(rig.port());
    client.send("\x16\x03\x01\x00\x05hello there, this is no handshake"sv);
    client.read_all();
  }
  Client good(rig.port());
  good.start_tls();
  good.send(sasl_header);
  EXPECT_EQ(good.read(8), sasl_header);
}

// Nothing, half a header, half a hello, a TLS handshake with silence after it: all are cut off.
TEST(Listener, SilentPeersAreCutOff) {
  Rig rig({.greeting_timeout = 2000ms});  // long enough for a handshake on a busy machine
  for (const auto text : {""sv, "AMQ"sv, "\x16\x03\x01"sv}) {
    Client client(rig.port());
    client.send(text);
    client.read_all();  // returns when the server has closed
  }
  Client inside(rig.port());
  inside.start_tls();
  inside.read_all();
  EXPECT_EQ(rig.events().count("amqp"), 0u);
}

TEST(Listener, TooManyConnectionsAreToldThenDropped) {
  Rig rig({.connections_max = 1, .connections_hard_max = 2});
  Client first(rig.port());
  first.send(sasl_header);
  first.read(8);
  EXPECT_EQ(rig.events().wait("amqp"), "amqp tcp over_limit=false sni=");
  Client second(rig.port());
  second.send(sasl_header);
  second.read(8);
  EXPECT_EQ(rig.events().wait("amqp"), "amqp tcp over_limit=true sni=");
  EXPECT_EQ(rig.listener->connections(), 2u);
  Client third(rig.port());
  (void)third.try_send(sasl_header);
  EXPECT_TRUE(third.read_all().size() <= 1);
  rig.events().wait("trouble: 2 connections");
  EXPECT_EQ(rig.events().count("amqp"), 0u);
  // A place that gets free is used again.
  second.send("CLOSE");
  second.read_all();
  second.reset();
  rig.events().wait("closed");
  while (rig.listener->connections() == 2) std::this_thread::yield();
  Client fourth(rig.port());
  fourth.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(fourth.read_all().starts_with("HTTP/1.1 503 "));
}

TEST(Listener, SpreadsConnectionsOverTheShards) {
  Rig rig;
  std::deque<Client> clients;
  for (int i = 0; i < 10; ++i) {
    clients.emplace_back(rig.port()).send(sasl_header);
    clients.back().read(8);
  }
  EXPECT_EQ(rig.pool[0].connections(), 5u);
  EXPECT_EQ(rig.pool[1].connections(), 5u);
}

TEST(Listener, ClientCertificateIsAskedForAndShown) {
  const auto& files = test_certificates();
  auto server = TlsContext::make_server({files.certificate_file, files.key_file, files.ca_file});
  ASSERT_TRUE(server.has_value());
  Rig rig({.tls = *server});
  Client nobody(rig.port());
  nobody.start_tls();
  nobody.send(sasl_header);
  EXPECT_EQ(nobody.read(8), sasl_header);
  EXPECT_EQ(rig.events().wait("amqp"), "amqp tls over_limit=false sni=localhost");
  const TemporaryFolder folder;
  const auto [certificate, key] =
      make_client_certificate(folder.path(), "worker", "URI:spiffe://contoso/worker");
  Client worker(rig.port());
  worker.start_tls("localhost", certificate, key);
  worker.send(sasl_header);
  EXPECT_EQ(worker.read(8), sasl_header);
  EXPECT_EQ(rig.events().wait("amqp"),
            "amqp tls over_limit=false sni=localhost client=CN=worker URI:spiffe://contoso/worker");
}

TEST(Listener, ForeignClientCertificateFailsTheHandshake) {
  const auto& files = test_certificates();
  const TemporaryFolder folder;
  const auto foreign = ensure_local_certificates(folder.path(), {}, wall_now()).value();
  Rig rig({.tls = TlsContext::make_server({files.certificate_file, files.key_file, files.ca_file}).value()});
  Client client(rig.port());
  client.start_tls("localhost", foreign.certificate_file, foreign.key_file);
  (void)client.try_send(sasl_header);
  EXPECT_EQ(client.read_all(), "");
  EXPECT_EQ(rig.events().count("amqp"), 0u);
}

// Out of descriptors: one line in the log, and accepting goes on once there are some again.
TEST(Listener, SurvivesRunningOutOfDescriptors) {
  Rig rig;
  Client before(rig.port());
  before.send(sasl_header);
  before.read(8);
  Client waiting_later(rig.port());  // accepted while there are descriptors
  waiting_later.send(sasl_header);
  waiting_later.read(8);
  const int probe = ::dup(0);
  ::close(probe);
  rlimit old{};
  ::getrlimit(RLIMIT_NOFILE, &old);
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);  // connects below, without needing another one
  rlimit tight = old;
  tight.rlim_cur = static_cast<rlim_t>(fd) + 1;
  ::setrlimit(RLIMIT_NOFILE, &tight);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(rig.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_NE(rig.events().wait("trouble: cannot accept").find("Too many open files"), std::string::npos);
  ::setrlimit(RLIMIT_NOFILE, &old);
  ::send(fd, sasl_header.data(), sasl_header.size(), MSG_NOSIGNAL);
  std::array<char, 8> answer{};
  EXPECT_EQ(::recv(fd, answer.data(), answer.size(), MSG_WAITALL), 8);
  ::close(fd);
  EXPECT_EQ(rig.events().count("trouble"), 0u) << "one line per episode";
}

}  // namespace
}  // namespace omnibus::net
