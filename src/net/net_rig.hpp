// For tests: a listener on loopback, handlers that tell what happens to them, and blocking clients.
#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include "base/temporary_folder.hpp"
#include "net/certificates.hpp"
#include "net/listener.hpp"
#include "net/openssl_tools.hpp"

namespace omnibus::net {

using namespace std::chrono_literals;
using namespace std::string_view_literals;

inline constexpr std::string_view amqp_header = "AMQP\x00\x01\x00\x00"sv;
inline constexpr std::string_view tls_header = "AMQP\x02\x01\x00\x00"sv;
inline constexpr std::string_view sasl_header = "AMQP\x03\x01\x00\x00"sv;

// What happened, in order, told from any thread. Waiting for something that never comes fails the test
// after a long while.
class Events {
 public:
  void push(std::string event);
  // Waits for the first event not yet taken that starts with `prefix`, and takes it.
  std::string wait(std::string_view prefix);
  [[nodiscard]] std::size_t count(std::string_view prefix) const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> events_;
};

// Made once per process: tests share them.
const LocalCertificates& test_certificates();

// A certificate of the test CA for a client: its file and its key's.
std::pair<std::string, std::string> make_client_certificate(const std::filesystem::path& folder,
                                                            const std::string& name, const std::string& san);

// Gives back what it gets. Understands words in its input: "CLOSE", "ABORT", "PAUSE" (stop reading),
// "FLOOD" (write without end).
class EchoHandler : public StreamHandler {
 public:
  EchoHandler(Stream& stream, Events& events) : stream_(stream), events_(events) {}
  void on_input(Bytes bytes) override;
  std::size_t gather(std::span<iovec> out) override;
  void wrote(std::size_t bytes) override;
  void on_closed(const Error* why) override;

 private:
  Stream& stream_;
  Events& events_;
  std::deque<std::string> output_;
  std::size_t sent_ = 0;
  bool flood_ = false;
};

// AMQP connections are echoed; HTTP requests are answered with a line about them.
class TestHandler : public ConnectionHandler {
 public:
  std::unique_ptr<StreamHandler> on_amqp(Stream& stream, bool over_limit) override;
  void on_http(HttpRequest request, HttpReply reply) override;
  void on_trouble(const Error& what) override { events.push("trouble: " + what.detail); }
  Events events;
  std::mutex held_mutex;
  std::optional<HttpReply> held;  // the reply of a request for /hold or /wait
  Reactor* held_on = nullptr;
};

class Rig {
 public:
  explicit Rig(ListenerSettings settings = {}, bool with_tls = true);
  ~Rig();
  [[nodiscard]] std::uint16_t port() const;
  Events& events() { return handler.events; }

  TestHandler handler;
  ShardPool pool{2};
  std::unique_ptr<Listener> listener;
};

// A blocking client.
class Client {
 public:
  explicit Client(std::uint16_t port, int receive_buffer = 0);
  ~Client();
  void start_tls(const std::string& server_name = "localhost", const std::string& certificate = {},
                 const std::string& key = {});
  void send(std::string_view text);
  // False when the peer is gone.
  bool try_send(std::string_view text);
  std::string read(std::size_t size);  // exactly; less at the end of the stream
  std::string read_until(std::string_view end);
  std::string read_all();  // to the end of the stream; "!" at its end after a reset
  void finish_sending();
  void reset();  // closes with a reset
  [[nodiscard]] int fd() const { return fd_; }
  // How much the kernel holds that the peer has not read.
  [[nodiscard]] bool can_send_now() const;

 private:
  long read_some(char* out, std::size_t size);
  int fd_ = -1;
  std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>> context_;
  SslPtr ssl_;
};

}  // namespace omnibus::net
