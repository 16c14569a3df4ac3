// The broker as a whole, in this process, over real sockets.
#include "node/server.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "base/clock.hpp"
#include "net/listener.hpp"
#include "node/data_folder.hpp"

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::string_view sasl_header{"AMQP\x03\x01\x00\x00", 8};
constexpr std::string_view amqp_header{"AMQP\x00\x01\x00\x00", 8};

class Socket {
 public:
  explicit Socket(const std::string& address) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(net::parse_host_port(address)->port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
    const timeval patience{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Socket() { ::close(fd_); }
  [[nodiscard]] bool connected() const { return connected_; }
  void send(std::string_view bytes) {
    ASSERT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
  }
  std::string receive(std::size_t bytes) {
    std::string got(bytes, 0);
    const auto n = ::recv(fd_, got.data(), bytes, MSG_WAITALL);
    got.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    return got;
  }
  std::string receive_to_end() {
    std::string all;
    for (std::string part; !(part = receive_some()).empty();) all += part;
    return all;
  }

 private:
  std::string receive_some() {
    std::string got(4096, 0);
    const auto n = ::recv(fd_, got.data(), got.size(), 0);
    got.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    return got;
  }
  int fd_;
  bool connected_ = false;
};

class ServerTest : public testing::Test {
 protected:
  ServeOptions options() {
    ServeOptions options;
    options.data = folder_->path() / "data";
    options.listen = {"127.0.0.1:0"};
    return options;
  }
  static std::string http_get(const std::string& address, const std::string& path) {
    Socket socket(address);
    socket.send("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    return socket.receive_to_end();
  }
  static std::string http_post(const std::string& address, const std::string& path) {
    Socket socket(address);
    socket.send("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    return socket.receive_to_end();
  }
  static void wait_until_drained(const Server& server) {
    for (int i = 0; i < 2000 && !server.drained(); ++i) std::this_thread::sleep_for(5ms);
    EXPECT_TRUE(server.drained());
  }
  // An open frame that says no more than a container id.
  static std::string open_frame() {
    std::string frame{"\0\0\0\x11\x02\0\0\0\0\x53\x10\xc0\x04\x01\xa1\x01x", 17};
    return frame;
  }

  std::unique_ptr<DataFolder> folder_ = *DataFolder::temporary();
};

TEST_F(ServerTest, ListensTellsWhereAndCleansUp) {
  const auto file = folder_->path() / "data" / "listen.json";
  {
    const auto server = Server::start(options());
    ASSERT_TRUE(server) << server.error().detail;
    std::ifstream in(file);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto port = net::parse_host_port((*server)->addresses()[0])->port;
    EXPECT_EQ(text, "{\"listen\":[{\"host\":\"127.0.0.1\",\"port\":" + std::to_string(port) + "}]}\n");
    EXPECT_THAT((*server)->connection_string(),
                HasSubstr("SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;"));
  }
  EXPECT_FALSE(std::filesystem::exists(file)) << "a stopped broker listens nowhere";
}

TEST_F(ServerTest, ServesAmqpAndHttpOnTheSamePort) {
  const auto server = Server::start(options());
  ASSERT_TRUE(server) << server.error().detail;
  const std::string address = (*server)->addresses()[0];
  Socket amqp(address);
  amqp.send(sasl_header);
  EXPECT_EQ(amqp.receive(8), sasl_header);
  EXPECT_THAT(http_get(address, "/health"), HasSubstr("200 OK"));
  EXPECT_THAT(http_get(address, "/cert"), HasSubstr("BEGIN CERTIFICATE"));
}

TEST_F(ServerTest, AStoreIsSwitchedOverHttpWhereTheConfigurationAllowsIt) {
  for (const bool allowed : {false, true}) {
    auto with = options();
    with.config.store_switch = allowed;
    with.storage.stores = 2;
    const auto server = Server::start(with);
    ASSERT_TRUE(server) << server.error().detail;
    const std::string address = (*server)->addresses()[0];
    const auto serves = [&](bool wanted) {
      for (int i = 0; i < 2000 && (*server)->serves(1) != wanted; ++i) std::this_thread::sleep_for(5ms);
      return (*server)->serves(1) == wanted;
    };
    // Where it is not switched on, it is an address like any other: without a token nobody learns more.
    const std::string missing = allowed ? " 404 " : " 401 ";
    EXPECT_THAT(http_post(address, "/$stores/1/down"), HasSubstr(allowed ? " 202 " : " 401 "));
    EXPECT_TRUE(serves(!allowed));
    EXPECT_THAT(http_post(address, "/$stores/2/down"), HasSubstr(missing)) << "there is none";
    EXPECT_THAT(http_post(address, "/$stores/1/upside"), HasSubstr(missing));
    EXPECT_THAT(http_post(address, "/$stores/1/up"), HasSubstr(allowed ? " 202 " : " 401 "));
    EXPECT_TRUE(serves(true));
  }
}

TEST_F(ServerTest, TwoBrokersCannotShareAFolderOrAnAddress) {
  const auto first = Server::start(options());
  ASSERT_TRUE(first);
  const auto second = Server::start(options());
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().detail, HasSubstr("in use by another broker"));

  auto elsewhere = options();
  elsewhere.data = folder_->path() / "other";
  elsewhere.listen = (*first)->addresses();
  const auto third = Server::start(std::move(elsewhere));
  ASSERT_FALSE(third);
  EXPECT_THAT(third.error().detail, HasSubstr((*first)->addresses()[0]));
}

// Open to the network, the well-known key would be no key.
TEST_F(ServerTest, ASecretIsMadeOnceWhenOthersCanReachTheBroker) {
  auto open = options();
  open.listen = {"0.0.0.0:0"};
  std::string first_string;
  {
    const auto server = Server::start(open);
    ASSERT_TRUE(server) << server.error().detail;
    first_string = (*server)->connection_string();
    EXPECT_THAT(first_string, testing::Not(HasSubstr("SAS_KEY_VALUE")));
    EXPECT_THAT((*server)->key_hint(), HasSubstr("shown once"));
  }
  const auto again = Server::start(open);
  ASSERT_TRUE(again);
  EXPECT_THAT((*again)->connection_string(), HasSubstr("SharedAccessKey=KEY;")) << "not shown a second time";
  EXPECT_THAT((*again)->key_hint(), HasSubstr("root.key"));
}

TEST_F(ServerTest, ShutdownSaysCloseToOpenConnections) {
  const auto server = Server::start(options());
  ASSERT_TRUE(server);
  Socket client((*server)->addresses()[0]);
  client.send(std::string(amqp_header) + open_frame());
  ASSERT_EQ(client.receive(8), amqp_header);
  const std::string size = client.receive(4);
  client.receive(static_cast<unsigned char>(size[3]) - 4u);  // the broker's open

  (*server)->begin_shutdown();
  const std::string rest = client.receive_to_end();
  EXPECT_THAT(rest, HasSubstr("amqp:connection:forced"));
  wait_until_drained(**server);
}

TEST_F(ServerTest, EphemeralLeavesNothing) {
  auto options = this->options();
  options.ephemeral = true;
  std::filesystem::path data;
  {
    const auto server = Server::start(std::move(options));
    ASSERT_TRUE(server) << server.error().detail;
    data = (*server)->data();
    EXPECT_TRUE(std::filesystem::exists(data / "tls" / "ca.pem"));
  }
  EXPECT_FALSE(std::filesystem::exists(data));
  EXPECT_FALSE(std::filesystem::exists(folder_->path() / "data"));
}

TEST_F(ServerTest, GarbageDisturbsNobody) {
  const auto server = Server::start(options());
  ASSERT_TRUE(server);
  const std::string address = (*server)->addresses()[0];
  Socket good(address);
  good.send(std::string(amqp_header) + open_frame());
  ASSERT_EQ(good.receive(8), amqp_header);
  for (const std::string& bad : {std::string("\x01\x02\x03garbage that is nothing"),
                                 std::string(sasl_header) + std::string(600, '\xff'),
                                 std::string(amqp_header) + std::string("\xff\xff\xff\xff\x02\0\0\0", 8)}) {
    Socket socket(address);
    socket.send(bad);
    socket.receive_to_end();
  }
  EXPECT_EQ(good.receive(4).size(), 4u) << "its open still comes";
  EXPECT_THAT(http_get(address, "/health"), HasSubstr("200 OK"));
}

}  // namespace
}  // namespace omnibus::node
