// Listens on addresses, finds out what each peer speaks, and hands it on.
//
// Every address takes every protocol: AMQP plain, after a TLS upgrade, or in TLS; HTTP and HTTPS;
// WebSocket in both. Connections are accepted on the pool's first shard and live on the least loaded
// one. What is answered to which first bytes: README.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/http.hpp"
#include "net/http_reader.hpp"
#include "net/reactor.hpp"
#include "net/stream.hpp"
#include "net/tls.hpp"

namespace omnibus::net {

// What happens to connections. One object serves all shards: calls come on the thread of the shard
// that owns the connection, so several at once. Outlives the pool.
class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;
  // A peer that speaks AMQP; the new handler's first on_input() begins with the protocol header (id 0 or
  // 3). With `over_limit` it is to be told so and closed. Null closes the socket.
  virtual std::unique_ptr<StreamHandler> on_amqp(Stream& stream, bool over_limit) = 0;
  // With RequireTls plain requests come too (request.tls is false): what to answer is the admin's rule.
  virtual void on_http(HttpRequest request, HttpReply reply) = 0;
  // What to answer when it never became a request: no HTTP (400), too slow (408), too large (413, 431), one
  // connection too many (503).
  virtual HttpResponse refusal(int status, Reactor& /*shard*/) { return {.status = status}; }
  // A line for the log: accepting fails, or a hard limit was reached. Once per episode.
  virtual void on_trouble(const Error& what) = 0;
};

struct ListenerSettings {
  // HOST:PORT, [IPV6]:PORT, *:PORT (all addresses, both families). A name listens on all it resolves
  // to. Port 0 picks one.
  std::vector<std::string> addresses = {};
  std::shared_ptr<TlsContext> tls = {};  // null: no TLS here, hellos are closed
  bool require_tls = false;              // refuses AMQP in the clear

  // Past the first number connections are told they are too many; past the second they are dropped.
  std::size_t connections_max = 10'000;
  std::size_t connections_hard_max = 11'000;

  // From accept to the end of all handshakes and the first AMQP header or HTTP request header.
  std::chrono::milliseconds greeting_timeout{10'000};
  std::chrono::milliseconds write_timeout{60'000};
  std::chrono::milliseconds linger{2'000};

  HttpLimits http = {};
  std::chrono::milliseconds http_header_timeout{10'000};  // of a request once begun
  std::chrono::milliseconds http_body_timeout{60'000};
  std::chrono::milliseconds http_idle_timeout{75'000};  // between requests
  std::uint64_t websocket_message_bytes_max = 256 * 1024 * 1024;
};

class Listener {
 public:
  // Binds and listens at once; accepts as soon as the pool runs. Fails with `argument_error` (an
  // address that is none) or `io` (in use, not ours, not permitted); the detail names the address.
  [[nodiscard]] static Result<std::unique_ptr<Listener>> open(ShardPool& pool, ListenerSettings settings,
                                                              ConnectionHandler& handler);
  // Stops accepting. Connections live on with the pool, which outlives the listener.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  void stop_accepting();  // any thread
  // What is really listened on, with the ports that were picked: "127.0.0.1:5672", "[::1]:5672".
  [[nodiscard]] const std::vector<std::string>& addresses() const { return addresses_; }
  [[nodiscard]] std::size_t connections() const;  // any thread

 private:
  struct Shared;
  class Acceptor;
  explicit Listener(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  std::shared_ptr<Shared> shared_;
  std::vector<std::shared_ptr<Acceptor>> acceptors_;
  std::vector<std::string> addresses_;
};

// "[::1]:5672" -> {"::1", "5672"}; "*" stays. Fails with `argument_error`.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
  bool operator==(const HostPort&) const = default;
};
[[nodiscard]] Result<HostPort> parse_host_port(std::string_view text);

}  // namespace omnibus::net
