#include "client/wire.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace omnibus::client {
namespace {

using std::chrono::milliseconds;

struct AddressList {
  addrinfo* first = nullptr;
  ~AddressList() {
    if (first) ::freeaddrinfo(first);
  }
};

std::string text_of(int error) { return std::error_code(error, std::generic_category()).message(); }

std::string newest_tls_error() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = code ? ERR_reason_error_string(code) : nullptr;
  return reason ? reason : "unknown error";
}

int left_until(Tick deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - tick_now()).count();
  // Never longer than this, so that a signal just before poll() is noticed soon.
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 500));
}

std::string hint_for(int error, const Address& address) {
  if (error != ECONNREFUSED) return {};
  const bool is_local =
      address.host == "localhost" || address.host.starts_with("127.") || address.host == "::1";
  return is_local ? ". Is the broker running? `omnibus serve` starts one"
                  : ". Nobody listens there: look at host and port of the connection string";
}

// A socket that is connected to one of the addresses, or what went wrong with the last of them.
Result<int> connect_to_one(const addrinfo* list, const Address& address, Tick deadline) {
  int error = 0;
  for (const addrinfo* one = list; one; one = one->ai_next) {
    const int socket =
        ::socket(one->ai_family, one->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, one->ai_protocol);
    if (socket < 0) {
      error = errno;
      continue;
    }
    error = ::connect(socket, one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    while (error == EINPROGRESS && tick_now() < deadline) {
      pollfd waiting{socket, POLLOUT, 0};
      if (::poll(&waiting, 1, left_until(deadline)) <= 0) continue;
      socklen_t size = sizeof error;
      if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    }
    if (error == 0) return socket;
    ::close(socket);
  }
  if (error == EINPROGRESS)
    return fail(Errc::timeout,
                "no connection to {} in time: look at host and port, and whether something blocks it",
                address.text());
  return fail(Errc::io, "cannot connect to {}: {}{}", address.text(), text_of(error),
              hint_for(error, address));
}

}  // namespace

struct Wire::Tls {
  std::shared_ptr<net::TlsContext> context;
  SSL* ssl = nullptr;
  Tls() = default;
  ~Tls() {
    if (ssl) SSL_free(ssl);
  }
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;
};

Wire::Wire(int socket, Address address) : socket_(socket), address_(std::move(address)) {}

Wire::~Wire() {
  if (tls_) SSL_shutdown(tls_->ssl);  // says goodbye; nobody waits for the answer
  tls_.reset();
  ::close(socket_);
}

Result<std::unique_ptr<Wire>> Wire::connect(const Address& address, const Trust& trust, Tick deadline) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  AddressList found;
  if (const int wrong =
          ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found.first);
      wrong != 0)
    return fail(Errc::io, "there is no host '{}': {}", address.host, ::gai_strerror(wrong));
  auto socket = connect_to_one(found.first, address, deadline);
  if (!socket) return fail(socket.error());
  const int yes = 1;
  (void)::setsockopt(*socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  std::unique_ptr<Wire> wire(new Wire(*socket, address));
  if (address.tls) {
    auto started = wire->start_tls(trust, deadline);
    if (!started) return fail(started.error());
  }
  return wire;
}

Result<void> Wire::start_tls(const Trust& trust, Tick deadline) {
  auto context = net::TlsContext::make_client({.verify = trust.verify});
  if (!context) return fail(context.error());
  if (trust.verify && !trust.ca_file.empty() &&
      SSL_CTX_load_verify_file((*context)->get(), trust.ca_file.c_str()) != 1)
    return fail(Errc::argument_error, "the certificates in '{}' cannot be read: {}", trust.ca_file,
                newest_tls_error());
  auto tls = std::make_unique<Tls>();
  tls->context = *std::move(context);
  tls->ssl = SSL_new(tls->context->get());
  SSL* ssl = tls->ssl;
  if (!ssl || SSL_set_fd(ssl, socket_) != 1) return fail(Errc::internal_error, "TLS: {}", newest_tls_error());
  SSL_set_connect_state(ssl);
  const std::string& host = address_.host;
  std::array<unsigned char, sizeof(in6_addr)> ignored{};
  const bool is_address = inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
                          inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
  bool is_named = is_address || SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                                         const_cast<char*>(host.c_str())) == 1;
  if (is_named && trust.verify)
    is_named = is_address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1
                          : SSL_set1_host(ssl, host.c_str()) == 1;
  if (!is_named) return fail(Errc::argument_error, "'{}' is not a host name", host);
  tls_ = std::move(tls);
  for (;;) {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl);
    if (done == 1) return {};
    const int why = SSL_get_error(ssl, done);
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
      const long verdict = SSL_get_verify_result(ssl);
      std::string reason = newest_tls_error();
      tls_.reset();
      if (verdict != X509_V_OK)
        return fail(
            Errc::io,
            "the certificate of {} is not trusted: {}. --ca FILE names the authority that vouches for it (a "
            "local broker's is DATA/tls/ca.pem)",
            address_.text(), X509_verify_cert_error_string(verdict));
      return fail(
          Errc::io,
          "no TLS with {}: {}. For a broker that speaks in the clear add UseDevelopmentEmulator=true to the "
          "connection string",
          address_.text(), reason);
    }
    auto ready = wait(why == SSL_ERROR_WANT_WRITE, deadline);
    if (!ready) return fail(ready.error());
    if (!*ready) return fail(Errc::timeout, "no TLS with {} in time", address_.text());
  }
}

Result<std::size_t> Wire::tls_moved(int result, std::size_t bytes, const char* doing) {
  if (result == 1) return bytes;
  switch (SSL_get_error(tls_->ssl, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return std::size_t{0};
    case SSL_ERROR_ZERO_RETURN:
      return fail(Errc::io, "{} closed the connection", address_.text());
    default:
      return fail(Errc::io, "{} {}: {}", doing, address_.text(), newest_tls_error());
  }
}

Result<std::size_t> Wire::read(std::span<std::uint8_t> into) {
  if (tls_) {
    std::size_t got = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(tls_->ssl, into.data(), into.size(), &got);
    return tls_moved(result, got, "reading from");
  }
  const auto got = ::recv(socket_, into.data(), into.size(), 0);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == 0) return fail(Errc::io, "{} closed the connection", address_.text());
  if (errno == EAGAIN || errno == EINTR) return std::size_t{0};
  return fail(Errc::io, "reading from {}: {}", address_.text(), text_of(errno));
}

Result<std::size_t> Wire::write(Bytes bytes) {
  if (bytes.empty()) return std::size_t{0};
  if (tls_) {
    std::size_t sent = 0;
    ERR_clear_error();
    const int result = SSL_write_ex(tls_->ssl, bytes.data(), bytes.size(), &sent);
    return tls_moved(result, sent, "writing to");
  }
  const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno == EAGAIN || errno == EINTR) return std::size_t{0};
  return fail(Errc::io, "writing to {}: {}", address_.text(), text_of(errno));
}

Result<bool> Wire::wait(bool to_write, Tick deadline) {
  if (tls_ && SSL_pending(tls_->ssl) > 0) return true;
  pollfd waiting{socket_, static_cast<short>(POLLIN | (to_write ? POLLOUT : 0)), 0};
  const int ready = ::poll(&waiting, 1, left_until(deadline));
  if (ready < 0 && errno != EINTR)
    return fail(Errc::io, "waiting for {}: {}", address_.text(), text_of(errno));
  return ready != 0 || tick_now() < deadline;
}

}  // namespace omnibus::client
