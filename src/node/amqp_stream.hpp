// Joins one byte stream of net with one client of links: moves bytes, brings the time, logs.
#pragma once

#include <memory>

#include "links/client_connection.hpp"
#include "net/reactor.hpp"
#include "net/stream.hpp"
#include "node/connection_log.hpp"

namespace omnibus::node {

class Shard;

class AmqpStream final : public net::StreamHandler {
 public:
  AmqpStream(Shard& shard, net::Stream& stream, bool over_limit);
  ~AmqpStream() override;

  void close(const Error& why);

  void on_input(Bytes bytes) override;
  std::size_t gather(std::span<iovec> out) override { return client_.gather(out); }
  void wrote(std::size_t bytes) override;
  void on_closed(const Error* why) override;

 private:
  // After anything happened: have output written, follow an end, and keep the timer right.
  void follow_up();
  void tick();

  Shard& shard_;
  net::Stream& stream_;
  ConnectionLog log_;
  links::ClientConnection client_;
  net::Timer timer_;
  bool closing_ = false;
  bool paused_ = false;
};

}  // namespace omnibus::node
