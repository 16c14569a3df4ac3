#include "net/listener.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "net/greeter.hpp"
#include "net/tcp_stream.hpp"

namespace omnibus::net {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr int accepts_per_turn_max = 64;
constexpr std::chrono::milliseconds retry_accept_after{100};

class UniqueFd {
 public:
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&&) = delete;
  ~UniqueFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string os_error(int code) { return std::system_category().message(code); }

// The error is an errno.
std::expected<UniqueFd, int> listen_on(const addrinfo& address) {
  UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (fd.get() < 0) return std::unexpected(errno);
  const int on = 1;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // Each family by itself, so that 0.0.0.0 and [::] can both be asked for.
  if (address.ai_family == AF_INET6) (void)::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0 || ::listen(fd.get(), 4096) != 0)
    return std::unexpected(errno);
  return fd;
}

Error cannot_listen(std::string_view address, int code) {
  return {Errc::io, fmt::format("cannot listen on {}: {}", address,
                                code == EADDRINUSE ? "the address is already in use" : os_error(code))};
}

}  // namespace

Result<HostPort> parse_host_port(std::string_view text) {
  const auto bad = [&] {
    return fail(Errc::argument_error, "'{}' is not an address: HOST:PORT, [IPV6]:PORT or *:PORT is expected",
                text);
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad();
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (host.find(':') == std::string_view::npos) return bad();
  } else if (host.find_first_of(": /[]") != std::string_view::npos) {
    return bad();
  }
  HostPort result{std::string(host), 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (host.empty() || port.empty() || error != std::errc{} || end != port.data() + port.size()) return bad();
  return result;
}

struct Listener::Shared {
  ShardPool& pool;
  std::shared_ptr<const Service> service;
  // Held by each connection's slot too, which may outlive the listener.
  std::shared_ptr<std::atomic<std::size_t>> connections = std::make_shared<std::atomic<std::size_t>>(0);
  bool told_hard_max = false;  // the accepting shard only
};

// One listening socket, on the pool's first shard.
class Listener::Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  Acceptor(std::shared_ptr<Shared> shared, tcp protocol, UniqueFd fd)
      : shared_(std::move(shared)),
        reactor_(shared_->pool[0]),
        acceptor_(reactor_.impl().context, protocol, fd.release()),
        retry_(reactor_) {}

  tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

  void wait() {
    if (!acceptor_.is_open()) return;
    acceptor_.async_wait(tcp::acceptor::wait_read, [self = shared_from_this()](const error_code& error) {
      if (!error) self->accept_some();
    });
  }

  void close() {
    retry_.cancel();
    error_code ignored;
    acceptor_.close(ignored);
  }

 private:
  void accept_some() {
    for (int i = 0; i < accepts_per_turn_max && acceptor_.is_open(); ++i) {
      UniqueFd fd(::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (fd.get() >= 0) {
        in_trouble_ = false;
        take(std::move(fd));
        continue;
      }
      const int code = errno;
      if (code == EAGAIN || code == EWOULDBLOCK) break;
      // These concern one peer that left again; accept(2) says to go on.
      if (code == EINTR || code == ECONNABORTED || code == EPROTO || code == ENETDOWN ||
          code == EHOSTUNREACH || code == ENETUNREACH)
        continue;
      // No descriptors or no memory: the peer stays in the queue, and waiting for readability would
      // spin. Others may let go of theirs meanwhile.
      if (!std::exchange(in_trouble_, true))
        shared_->service->handler.on_trouble(Error{
            Errc::io,
            fmt::format("cannot accept connections on {}: {}", address_text(endpoint()), os_error(code))});
      retry_.arm(reactor_.now() + retry_accept_after, [this] { accept_some(); });
      return;
    }
    wait();
  }

  void take(UniqueFd fd) {
    const auto& settings = shared_->service->settings;
    const std::size_t before = shared_->connections->fetch_add(1);
    if (before >= settings.connections_hard_max) {
      shared_->connections->fetch_sub(1);
      if (!std::exchange(shared_->told_hard_max, true))
        shared_->service->handler.on_trouble(Error{
            Errc::resource_limit_exceeded, fmt::format("{} connections are open; more are dropped", before)});
      return;
    }
    shared_->told_hard_max = false;
    Reactor& shard = shared_->pool.least_loaded();
    auto& load = shard.impl().connections;
    load.fetch_add(1);
    std::shared_ptr<void> slot(nullptr, [total = shared_->connections, &load](void*) {
      total->fetch_sub(1);
      load.fetch_sub(1);
    });
    const bool over_limit = before >= settings.connections_max;
    shard.post([&shard, service = shared_->service, protocol = acceptor_.local_endpoint().protocol(),
                over_limit, slot = std::move(slot), socket_fd = std::move(fd)]() mutable {
      tcp::socket socket(shard.impl().context);
      error_code error;
      socket.assign(protocol, socket_fd.get(), error);
      if (error) {  // the loop has no room for it
        service->handler.on_trouble(
            Error{Errc::io, fmt::format("cannot take a connection: {}", error.message())});
        return;
      }
      socket_fd.release();
      const auto& with = service->settings;
      auto stream =
          TcpStream::make(shard, std::move(socket), {with.write_timeout, with.linger}, std::move(slot));
      stream->start(std::make_unique<Greeter>(*stream, service, Greeter::Layer::plain, over_limit,
                                              shard.now() + with.greeting_timeout));
    });
  }

  std::shared_ptr<Shared> shared_;
  Reactor& reactor_;
  tcp::acceptor acceptor_;
  Timer retry_;
  bool in_trouble_ = false;
};

Result<std::unique_ptr<Listener>> Listener::open(ShardPool& pool, ListenerSettings settings,
                                                 ConnectionHandler& handler) {
  auto wanted = settings.addresses;
  auto shared = std::make_shared<Shared>(pool, std::make_shared<const Service>(std::move(settings), handler));
  std::unique_ptr<Listener> listener(new Listener(shared));
  for (const auto& text : wanted) {
    auto address = parse_host_port(text);
    if (!address) return fail(address.error());
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(address->port);
    const int code =
        ::getaddrinfo(address->host == "*" ? nullptr : address->host.c_str(), port.c_str(), &hints, &found);
    if (code != 0) return fail(Errc::argument_error, "cannot listen on {}: {}", text, ::gai_strerror(code));
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
    const std::size_t had = listener->acceptors_.size();
    std::optional<Error> not_here;
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
      auto fd = listen_on(*each);
      if (!fd) {
        // A name may stand for a family this machine does not have; one that works is enough.
        not_here = cannot_listen(text, fd.error());
        if (each->ai_family == AF_INET6 && (fd.error() == EADDRNOTAVAIL || fd.error() == EAFNOSUPPORT))
          continue;
        return fail(*not_here);
      }
      auto acceptor = std::make_shared<Acceptor>(shared, each->ai_family == AF_INET6 ? tcp::v6() : tcp::v4(),
                                                 std::move(*fd));
      listener->addresses_.push_back(address_text(acceptor->endpoint()));
      listener->acceptors_.push_back(std::move(acceptor));
    }
    if (listener->acceptors_.size() == had && not_here) return fail(*not_here);
  }
  for (auto& acceptor : listener->acceptors_) pool[0].post([acceptor] { acceptor->wait(); });
  return listener;
}

Listener::~Listener() { stop_accepting(); }

void Listener::stop_accepting() {
  for (auto& acceptor : acceptors_) shared_->pool[0].post([acceptor] { acceptor->close(); });
}

std::size_t Listener::connections() const { return shared_->connections->load(); }

}  // namespace omnibus::net
