// Joins one byte stream of net with one client of links: moves bytes and answers, brings the time, logs.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "links/client_connection.hpp"
#include "net/reactor.hpp"
#include "net/stream.hpp"
#include "node/connection_log.hpp"
#include "node/connection_port.hpp"
#include "node/shard.hpp"

namespace omnibus::node {

class AmqpStream final : public net::StreamHandler, public Asker {
 public:
  AmqpStream(Shard& shard, net::Stream& stream, bool over_limit);
  ~AmqpStream() override;

  // The number of the namespace that its client has chosen.
  [[nodiscard]] std::uint32_t name_space() const { return port_.space().facts().number; }
  void close(const Error& why);
  void deliver(broker::Answer& answer, links::Now now) override { client_.deliver(answer, now); }
  void delivered() override { follow_up(); }
  void on_room() override;
  void give_up(std::uint16_t store, links::Now now) override { client_.give_up(store, now); }
  [[nodiscard]] std::size_t sessions() const { return client_.sessions(); }
  [[nodiscard]] std::size_t links() const { return client_.links(); }
  // Lower-cased names of entities that are gone or take no messages any more.
  void entities_changed(std::span<const std::string> names);

  void on_input(Bytes bytes) override;
  std::size_t gather(std::span<iovec> out) override { return client_.gather(out); }
  void wrote(std::size_t bytes) override;
  void on_closed(const Error* why) override;

 private:
  // After anything happened: have output written, follow an end, and keep the timer right.
  void follow_up();
  void tick();
  // Whether the client is read at all: not while it does not read itself, nor while entities lag behind.
  void pace();

  Shard& shard_;
  net::Stream& stream_;
  const std::uint32_t number_;
  ConnectionLog log_;
  ConnectionPort port_;
  links::ClientConnection client_;
  net::Timer timer_;
  bool closing_ = false;
  bool paused_ = false;
};

}  // namespace omnibus::node
