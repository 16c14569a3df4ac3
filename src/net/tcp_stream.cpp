#include "net/tcp_stream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

#include "base/check.hpp"

namespace omnibus::net {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

// Bounds of one turn, so that one busy connection cannot keep the others of its shard waiting.
constexpr int reads_per_turn_max = 2;
constexpr int writes_per_turn_max = 16;
constexpr std::size_t iovecs_max = 256;

void set_option(int fd, int level, int name, int value) {
  // Options tune; a kernel that refuses one still gives a correct stream.
  (void)::setsockopt(fd, level, name, &value, sizeof value);
}

}  // namespace

std::string address_text(const tcp::endpoint& endpoint) {
  const auto address = endpoint.address();
  if (address.is_v6()) return fmt::format("[{}]:{}", address.to_string(), endpoint.port());
  return fmt::format("{}:{}", address.to_string(), endpoint.port());
}

std::shared_ptr<TcpStream> TcpStream::make(Reactor& reactor, tcp::socket socket, TcpSettings settings,
                                           std::shared_ptr<void> slot) {
  return std::shared_ptr<TcpStream>(new TcpStream(reactor, std::move(socket), settings, std::move(slot)));
}

TcpStream::TcpStream(Reactor& reactor, tcp::socket socket, TcpSettings settings, std::shared_ptr<void> slot)
    : reactor_(reactor),
      socket_(std::move(socket)),
      settings_(settings),
      slot_(std::move(slot)),
      deadline_(reactor) {
  error_code ignored;  // a peer that is gone already shows at the first read
  peer_ = socket_.remote_endpoint(ignored);
  const int fd = socket_.native_handle();
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 15);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

TcpStream::~TcpStream() = default;

void TcpStream::start(std::unique_ptr<StreamHandler> handler) {
  handler_ = std::move(handler);
  auto& impl = reactor_.impl();
  if (impl.stopping) return abort(Error{Errc::connection_forced, "the shard stops"});
  if (state_ == State::closed) return;  // aborted while the handler was made
  impl.residents.emplace(this, shared_from_this());
  wait_readable();
}

void TcpStream::wake() {
  if (flush_posted_ || waiting_writable_ || reported_) return;
  flush_posted_ = true;
  reactor_.post([self = shared_from_this()] {
    self->flush_posted_ = false;
    self->flush();
  });
}

void TcpStream::resume_input() {
  paused_ = false;
  wait_readable();
}

void TcpStream::close_after_flush() {
  if (state_ != State::open) return;
  state_ = State::draining;
  wake();
  wait_readable();  // drops input, so that a peer which writes before it reads gets on
}

void TcpStream::abort(Error why) {
  if (state_ == State::closed) return;
  // The peer gets a reset and the kernel drops what it still holds for it.
  const ::linger drop{1, 0};
  (void)::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_LINGER, &drop, sizeof drop);
  close(std::move(why));
}

void TcpStream::replace_handler(std::unique_ptr<StreamHandler> next) {
  check(handler_ != nullptr, "a closed stream has no handler to replace");
  reactor_.post([old = std::exchange(handler_, std::move(next))] {});
}

std::string TcpStream::peer() const { return address_text(peer_); }

std::string TcpStream::local() const {
  error_code error;
  const auto endpoint = socket_.local_endpoint(error);
  return error ? std::string{} : address_text(endpoint);
}

void TcpStream::wait_readable() {
  if (waiting_readable_ || end_of_input_ || state_ == State::closed) return;
  if (paused_ && state_ == State::open) return;
  waiting_readable_ = true;
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](const error_code& error) {
    self->waiting_readable_ = false;
    if (!error) self->on_readable();
  });
}

void TcpStream::on_readable() {
  const auto buffer = reactor_.impl().read_buffer.get();
  for (int round = 0; round < reads_per_turn_max; ++round) {
    if (state_ == State::closed || (paused_ && state_ == State::open)) break;
    const ssize_t got = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      return fail_with_errno("read");
    }
    if (got == 0) return on_end_of_input();
    if (state_ == State::open) handler_->on_input(Bytes{buffer.data(), static_cast<std::size_t>(got)});
    // A short read emptied the socket; asking again would only cost a call.
    if (static_cast<std::size_t>(got) < buffer.size()) break;
  }
  wait_readable();
}

void TcpStream::on_end_of_input() {
  end_of_input_ = true;
  if (state_ == State::lingering) return close(std::nullopt);
  if (state_ == State::open && !handler_->on_peer_finished()) close_after_flush();
}

bool TcpStream::peer_finished() {
  if (end_of_input_ || state_ == State::closed) return true;
  char next = 0;
  return ::recv(socket_.native_handle(), &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void TcpStream::flush() {
  if (waiting_writable_ || reported_ || state_ == State::closed) return;
  std::array<iovec, iovecs_max> parts;
  for (int round = 0; round < writes_per_turn_max; ++round) {
    const std::size_t count = handler_->gather(parts);
    if (state_ == State::closed) return;
    check(count <= parts.size(), "gather() stays within its span");
    if (count == 0) {
      deadline_.cancel();
      if (state_ == State::draining) finish_output();
      return;
    }
    std::size_t offered = 0;
    for (std::size_t i = 0; i < count; ++i) offered += parts[i].iov_len;
    check(offered > 0, "gathered entries are not empty");
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return wait_writable();
      return fail_with_errno("write");
    }
    deadline_.cancel();  // the peer took something
    handler_->wrote(static_cast<std::size_t>(sent));
    if (state_ == State::closed) return;
    if (static_cast<std::size_t>(sent) < offered) return wait_writable();
  }
  wake();
}

void TcpStream::wait_writable() {
  if (!deadline_.armed()) {
    deadline_.arm(reactor_.now() + settings_.write_timeout, [this] {
      abort(Error{Errc::timeout,
                  fmt::format("{} took no output for {} ms", peer(), settings_.write_timeout.count())});
    });
  }
  waiting_writable_ = true;
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](const error_code& error) {
    self->waiting_writable_ = false;
    if (!error) self->flush();
  });
}

void TcpStream::finish_output() {
  if (end_of_input_) return close(std::nullopt);
  if (::shutdown(socket_.native_handle(), SHUT_WR) != 0) return close(std::nullopt);  // peer is gone
  report_closed(std::nullopt);
  state_ = State::lingering;
  deadline_.arm(reactor_.now() + settings_.linger, [this] { close(std::nullopt); });
  wait_readable();
}

void TcpStream::fail_with_errno(const char* what) {
  const int code = errno;
  close(Error{Errc::io, fmt::format("{} {}: {}", what, peer(), std::system_category().message(code))});
}

void TcpStream::close(std::optional<Error> why) {
  if (state_ == State::closed) return;
  const auto self = shared_from_this();  // the table below may hold the last reference
  report_closed(std::move(why));
  state_ = State::closed;
  deadline_.cancel();
  error_code ignored;  // the descriptor is gone either way
  socket_.close(ignored);
  slot_.reset();
  reactor_.impl().residents.erase(this);
}

void TcpStream::report_closed(std::optional<Error> why) {
  if (std::exchange(reported_, true)) return;
  reactor_.post([self = shared_from_this(), why = std::move(why)] {
    // Kept in place during the call, so that the layers above can still ask about the stream.
    if (self->handler_) self->handler_->on_closed(why ? &*why : nullptr);
    self->handler_.reset();
  });
}

}  // namespace omnibus::net
