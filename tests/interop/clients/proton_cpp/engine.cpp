#include "engine.hpp"

#include <netdb.h>
#include <poll.h>
#include <proton/condition.h>
#include <proton/connection.h>
#include <proton/event.h>
#include <proton/sasl.h>
#include <proton/session.h>
#include <proton/terminus.h>
#include <proton/transport.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "report.hpp"

namespace interop {
namespace {

constexpr int give_up = 10'000;

int connect_to(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  check(getaddrinfo(host.c_str(), port.c_str(), &hints, &found) == 0, "no address for " + host);
  int socket = -1;
  for (const addrinfo* one = found; one && socket < 0; one = one->ai_next) {
    socket = ::socket(one->ai_family, one->ai_socktype, one->ai_protocol);
    if (socket >= 0 && ::connect(socket, one->ai_addr, one->ai_addrlen) != 0) {
      ::close(socket);
      socket = -1;
    }
  }
  freeaddrinfo(found);
  check(socket >= 0, "no connection to " + host + ":" + port);
  return socket;
}

std::string text_of(pn_condition_t* condition) {
  if (!condition || !pn_condition_is_set(condition)) return "no reason";
  const char* description = pn_condition_get_description(condition);
  return std::string(pn_condition_get_name(condition)) + ": " + (description ? description : "");
}

std::string trouble_of(pn_event_t* event) {
  switch (pn_event_type(event)) {
    case PN_LINK_REMOTE_CLOSE:
    case PN_LINK_REMOTE_DETACH:
      if (pn_link_state(pn_event_link(event)) & PN_LOCAL_CLOSED) return "";  // we did
      return "the link was closed: " + text_of(pn_link_remote_condition(pn_event_link(event)));
    case PN_SESSION_REMOTE_CLOSE:
      return "the session was closed: " + text_of(pn_session_remote_condition(pn_event_session(event)));
    case PN_CONNECTION_REMOTE_CLOSE:
      return "the connection was closed: " +
             text_of(pn_connection_remote_condition(pn_event_connection(event)));
    case PN_TRANSPORT_ERROR:
      return "the transport failed: " + text_of(pn_transport_condition(pn_event_transport(event)));
    default:
      return "";
  }
}

}  // namespace

Engine::Engine(const std::string& host, const std::string& port, const std::string& user,
               const std::string& password)
    : socket_(connect_to(host, port)) {
  check(pn_connection_driver_init(&driver_, nullptr, nullptr) == 0, "no memory");
  pn_connection_t* connection = driver_.connection;
  pn_connection_set_container(connection, "engine");
  pn_connection_set_hostname(connection, host.c_str());
  pn_connection_set_user(connection, user.c_str());
  pn_connection_set_password(connection, password.c_str());
  pn_sasl_t* sasl = pn_sasl(driver_.transport);
  pn_sasl_allowed_mechs(sasl, "PLAIN");
  pn_sasl_set_allow_insecure_mechs(sasl, true);
  pn_connection_open(connection);
  session_ = pn_session(connection);
  pn_session_open(session_);
  require([&] { return (pn_session_state(session_) & PN_REMOTE_ACTIVE) != 0; }, "the session");
}

Engine::~Engine() {
  pn_connection_driver_destroy(&driver_);
  ::close(socket_);
}

bool Engine::run_until(const std::function<bool()>& done, int milliseconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (true) {
    while (pn_event_t* event = pn_connection_driver_next_event(&driver_))
      if (const std::string trouble = trouble_of(event); !trouble.empty()) trouble_ = trouble;
    check(trouble_.empty(), trouble_);
    pn_bytes_t out = pn_connection_driver_write_buffer(&driver_);
    if (out.size > 0) {
      const ssize_t written = ::send(socket_, out.start, out.size, MSG_NOSIGNAL);
      check(written > 0, "the broker takes no more bytes");
      pn_connection_driver_write_done(&driver_, static_cast<std::size_t>(written));
      continue;
    }
    if (done()) return true;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waiting{socket_, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) continue;
    const pn_rwbytes_t in = pn_connection_driver_read_buffer(&driver_);
    const ssize_t got = ::recv(socket_, in.start, in.size, 0);
    check(got > 0, "the broker closed the socket");
    pn_connection_driver_read_done(&driver_, static_cast<std::size_t>(got));
  }
}

void Engine::require(const std::function<bool()>& done, const std::string& what) {
  check(run_until(done, give_up), "waited too long for " + what);
}

pn_link_t* Engine::open(pn_link_t* link) {
  pn_link_open(link);
  require([&] { return (pn_link_state(link) & PN_REMOTE_ACTIVE) != 0; }, "a link");
  return link;
}

pn_link_t* Engine::sender(const std::string& address) {
  pn_link_t* link = pn_sender(session_, ("to " + address).c_str());
  pn_terminus_set_address(pn_link_target(link), address.c_str());
  return open(link);
}

pn_link_t* Engine::receiver(const std::string& address) {
  pn_link_t* link = pn_receiver(session_, ("from " + address).c_str());
  pn_terminus_set_address(pn_link_source(link), address.c_str());
  return open(link);
}

pn_link_t* Engine::coordinator() {
  pn_link_t* link = pn_sender(session_, "controller");
  const std::string local = "amqp:local-transactions";
  pn_terminus_set_type(pn_link_target(link), PN_COORDINATOR);
  pn_data_put_symbol(pn_terminus_capabilities(pn_link_target(link)), pn_bytes(local.size(), local.data()));
  return open(link);
}

pn_delivery_t* Engine::send(pn_link_t* link, const Fill& body, std::uint64_t state, const Fill& data) {
  require([&] { return pn_link_credit(link) > 0; }, "credit");
  pn_message_t* message = pn_message();
  body(pn_message_body(message));
  std::vector<char> bytes(4096);
  std::size_t size = bytes.size();
  const int failed = pn_message_encode(message, bytes.data(), &size);
  pn_message_free(message);
  check(failed == 0, "the message cannot be encoded");
  const std::string tag = std::to_string(++tags_);
  pn_delivery_t* delivery = pn_delivery(link, pn_dtag(tag.data(), tag.size()));
  if (state != 0) {
    data(pn_disposition_data(pn_delivery_local(delivery)));
    pn_delivery_update(delivery, state);
  }
  pn_link_send(link, bytes.data(), size);
  pn_link_advance(link);
  require([&] { return pn_delivery_remote_state(delivery) != 0; }, "an outcome");
  return delivery;
}

std::optional<Engine::Received> Engine::receive(pn_link_t* link, int milliseconds) {
  if (pn_link_credit(link) == 0) pn_link_flow(link, 1);
  const auto whole = [&] {
    pn_delivery_t* current = pn_link_current(link);
    return current && pn_delivery_readable(current) && !pn_delivery_partial(current);
  };
  if (!run_until(whole, milliseconds)) return std::nullopt;
  Received received;
  received.delivery = pn_link_current(link);
  std::vector<char> bytes(pn_delivery_pending(received.delivery));
  const ssize_t size = pn_link_recv(link, bytes.data(), bytes.size());
  pn_link_advance(link);
  pn_message_t* message = pn_message();
  check(size > 0 && pn_message_decode(message, bytes.data(), static_cast<std::size_t>(size)) == 0,
        "a message cannot be decoded");
  received.delivery_count = pn_message_get_delivery_count(message);
  pn_data_t* body = pn_message_body(message);
  pn_data_rewind(body);
  check(pn_data_next(body) && pn_data_type(body) == PN_STRING, "the body is no text");
  const pn_bytes_t text = pn_data_get_string(body);
  received.text.assign(text.start, text.size);
  pn_message_free(message);
  return received;
}

void Engine::settle(pn_delivery_t* delivery, std::uint64_t state, const Fill& data) {
  if (data) data(pn_disposition_data(pn_delivery_local(delivery)));
  pn_delivery_update(delivery, state);
  pn_delivery_settle(delivery);
  require([] { return true; }, "the socket");
}

}  // namespace interop
