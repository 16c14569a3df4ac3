#include "net/connect.hpp"

#include <boost/asio/connect.hpp>

#include "net/tcp_stream.hpp"
#include "net/tls_stream.hpp"

namespace omnibus::net {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

class Connector : public std::enable_shared_from_this<Connector> {
 public:
  Connector(Reactor& reactor, ConnectOptions options, Connected connected)
      : reactor_(reactor),
        options_(std::move(options)),
        connected_(std::move(connected)),
        resolver_(reactor.impl().context),
        socket_(reactor.impl().context),
        deadline_(reactor),
        deadline_at_(reactor.now() + options_.timeout) {}

  void start() {
    deadline_.arm(deadline_at_, [self = shared_from_this()] {
      self->resolver_.cancel();
      error_code ignored;
      self->socket_.close(ignored);
      self->give_up(
          Error{Errc::timeout, fmt::format("no connection to {}:{} within {} ms", self->options_.host,
                                           self->options_.port, self->options_.timeout.count())});
    });
    resolver_.async_resolve(options_.host, std::to_string(options_.port), tcp::resolver::numeric_service,
                            [self = shared_from_this()](const error_code& error, const auto& found) {
                              if (error) return self->give_up(error);
                              boost::asio::async_connect(
                                  self->socket_, found,
                                  [self](const error_code& failed, const tcp::endpoint&) {
                                    if (failed) return self->give_up(failed);
                                    self->established();
                                  });
                            });
  }

 private:
  void give_up(const error_code& error) {
    give_up(Error{Errc::io,
                  fmt::format("cannot connect to {}:{}: {}", options_.host, options_.port, error.message())});
  }
  void give_up(Error why) {
    if (!connected_) return;
    deadline_.cancel();
    (void)std::exchange(connected_, nullptr)(fail(std::move(why)));
  }

  void established() {
    if (!connected_) return;  // too late
    deadline_.cancel();
    const auto tcp_stream =
        TcpStream::make(reactor_, std::move(socket_), {.write_timeout = options_.write_timeout}, nullptr);
    if (!options_.tls) {
      auto handler = std::exchange(connected_, nullptr)(tcp_stream.get());
      if (handler) tcp_stream->start(std::move(handler));
      return;
    }
    const auto self = shared_from_this();
    auto tls = std::make_unique<TlsStream>(*tcp_stream, options_.tls, deadline_at_, [self](Stream& stream) {
      return std::exchange(self->connected_, nullptr)(&stream);
    });
    TlsStream& stream = *tls;
    tcp_stream->start(std::move(tls));
    stream.start_client(options_.server_name.empty() ? options_.host : options_.server_name,
                        [self](const Error& why) { self->give_up(why); });
  }

  Reactor& reactor_;
  ConnectOptions options_;
  Connected connected_;
  tcp::resolver resolver_;
  tcp::socket socket_;
  Timer deadline_;
  Tick deadline_at_;
};

}  // namespace

void connect(Reactor& reactor, ConnectOptions options, Connected connected) {
  reactor.post([&reactor, options = std::move(options), connected = std::move(connected)]() mutable {
    std::make_shared<Connector>(reactor, std::move(options), std::move(connected))->start();
  });
}

}  // namespace omnibus::net
