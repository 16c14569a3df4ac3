// A Stream over a plain TCP socket, and the bottom of every other one.
//
// Idle connections own no buffer: the stream waits for readability and then reads into a buffer of the
// shard. Writes go straight to the socket; it waits for writability only after the kernel said "full".
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <optional>

#include "net/reactor_impl.hpp"
#include "net/stream.hpp"

namespace omnibus::net {

struct TcpSettings {
  // A peer that takes no byte for so long while there is output is cut off.
  std::chrono::milliseconds write_timeout{60'000};
  // How long to wait for the peer's own end after ours. Closing at once could make the kernel send a
  // reset, which throws away our last bytes on the peer's side.
  std::chrono::milliseconds linger{2'000};
};

class TcpStream final : public Stream, public Resident, public std::enable_shared_from_this<TcpStream> {
 public:
  // On the reactor's thread. `slot` is let go when the socket closes: it counts connections.
  static std::shared_ptr<TcpStream> make(Reactor& reactor, boost::asio::ip::tcp::socket socket,
                                         TcpSettings settings, std::shared_ptr<void> slot);
  ~TcpStream() override;

  // Once, after make(). The stream then keeps itself alive until it has closed.
  void start(std::unique_ptr<StreamHandler> handler);

  void wake() override;
  void pause_input() override { paused_ = true; }
  void resume_input() override;
  void close_after_flush() override;
  void abort(Error why) override;
  bool open() const override { return state_ == State::open; }
  void replace_handler(std::unique_ptr<StreamHandler> next) override;
  Reactor& reactor() override { return reactor_; }
  std::string peer() const override;
  std::string local() const override;
  std::string transport() const override { return "tcp"; }
  bool peer_finished() override;
  bool encrypted() const override { return false; }
  std::string server_name() const override { return {}; }
  const PeerCertificate* client_certificate() const override { return nullptr; }

  void evict(Error why) override { abort(std::move(why)); }

 private:
  enum class State : unsigned char {
    open,
    draining,   // close_after_flush() was asked for; input is dropped
    lingering,  // our side is shut, the handler is gone; waits for the peer's end
    closed,
  };

  TcpStream(Reactor& reactor, boost::asio::ip::tcp::socket socket, TcpSettings settings,
            std::shared_ptr<void> slot);
  void wait_readable();
  void on_readable();
  void on_end_of_input();
  void flush();
  void wait_writable();
  void finish_output();
  void close(std::optional<Error> why);
  void report_closed(std::optional<Error> why);
  void fail_with_errno(const char* what);

  Reactor& reactor_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::ip::tcp::endpoint peer_;
  TcpSettings settings_;
  std::shared_ptr<void> slot_;
  std::unique_ptr<StreamHandler> handler_;
  Timer deadline_;  // of a blocked write, or of the lingering
  State state_ = State::open;
  bool paused_ = false;
  bool waiting_readable_ = false;
  bool waiting_writable_ = false;
  bool flush_posted_ = false;
  bool end_of_input_ = false;
  bool reported_ = false;
};

[[nodiscard]] std::string address_text(const boost::asio::ip::tcp::endpoint& endpoint);

}  // namespace omnibus::net
