// A relay that keeps nothing: what a server costs that only passes messages on, for the comparison.
//
//   memory_relay PORT_FILE
//
// Qpid Proton's proactor on one thread, on a port of 127.0.0.1 that it writes into the file. A message that
// comes for an address is held in memory, accepted at once, and sent to a receiver of that address; the
// receiver's outcome is heard and forgotten. Credit stops when 20,000 messages of an address wait.
// It runs until SIGTERM.
#include <fmt/format.h>
#include <proton/connection.h>
#include <proton/delivery.h>
#include <proton/disposition.h>
#include <proton/event.h>
#include <proton/link.h>
#include <proton/listener.h>
#include <proton/netaddr.h>
#include <proton/proactor.h>
#include <proton/session.h>
#include <proton/terminus.h>
#include <proton/transport.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr int credit_window = 1000;
constexpr std::size_t waiting_max = 20'000;

struct Address {
  std::deque<std::vector<char>> waiting;
  std::vector<pn_link_t*> takers;   // links on which we send
  std::vector<pn_link_t*> starved;  // links that get credit again when there is room
  std::size_t next = 0;             // the taker whose turn it is
};

class Relay {
 public:
  explicit Relay(std::string port_file) : port_file_(std::move(port_file)) {
    pn_proactor_listen(proactor_, pn_listener(), "127.0.0.1:0", 128);
  }
  void run() {
    for (;;) {
      pn_event_batch_t* batch = pn_proactor_wait(proactor_);
      while (pn_event_t* event = pn_event_batch_next(batch)) handle(event);
      pn_proactor_done(proactor_, batch);
    }
  }

 private:
  Address& address_of(pn_link_t* link) {
    pn_terminus_t* terminus =
        pn_link_is_receiver(link) ? pn_link_remote_target(link) : pn_link_remote_source(link);
    const char* name = pn_terminus_get_address(terminus);
    return addresses_[name ? name : ""];
  }
  void handle(pn_event_t* event) {
    switch (pn_event_type(event)) {
      case PN_LISTENER_OPEN:
        listening(pn_event_listener(event));
        break;
      case PN_LISTENER_ACCEPT: {
        pn_transport_t* transport = pn_transport();
        pn_transport_set_server(transport);
        pn_transport_set_max_frame(transport, 65536);
        pn_transport_require_auth(transport, false);
        pn_listener_accept2(pn_event_listener(event), nullptr, transport);
        break;
      }
      case PN_CONNECTION_REMOTE_OPEN:
        pn_connection_open(pn_event_connection(event));
        break;
      case PN_SESSION_REMOTE_OPEN:
        pn_session_set_incoming_capacity(pn_event_session(event), 64u << 20);
        pn_session_open(pn_event_session(event));
        break;
      case PN_LINK_REMOTE_OPEN:
        attached(pn_event_link(event));
        break;
      case PN_DELIVERY:
        delivered(pn_event_delivery(event));
        break;
      case PN_LINK_FLOW:
      case PN_CONNECTION_WAKE:
        if (pn_connection_t* connection = pn_event_connection(event)) send_on(connection);
        break;
      case PN_TRANSPORT_CLOSED:
        forget(pn_event_connection(event));
        break;
      default:
        break;
    }
  }
  void listening(pn_listener_t* listener) {
    char host[64];
    char port[16];
    pn_netaddr_host_port(pn_listener_addr(listener), host, sizeof host, port, sizeof port);
    const std::string unfinished = port_file_ + ".new";
    std::ofstream(unfinished) << port;
    std::filesystem::rename(unfinished, port_file_);
  }
  void attached(pn_link_t* link) {
    pn_terminus_copy(pn_link_source(link), pn_link_remote_source(link));
    pn_terminus_copy(pn_link_target(link), pn_link_remote_target(link));
    pn_link_set_context(link, &address_of(link));
    pn_link_open(link);
    if (pn_link_is_receiver(link))
      pn_link_flow(link, credit_window);
    else
      address_of(link).takers.push_back(link);
  }
  void delivered(pn_delivery_t* delivery) {
    pn_link_t* link = pn_delivery_link(delivery);
    if (pn_link_is_sender(link)) {
      if (pn_delivery_updated(delivery)) pn_delivery_settle(delivery);
      return;
    }
    if (!pn_delivery_readable(delivery) || pn_delivery_partial(delivery)) return;
    Address& address = *static_cast<Address*>(pn_link_get_context(link));
    std::vector<char> message(pn_delivery_pending(delivery));
    pn_link_recv(link, message.data(), message.size());
    pn_delivery_update(delivery, PN_ACCEPTED);
    pn_delivery_settle(delivery);
    address.waiting.push_back(std::move(message));
    if (pn_link_credit(link) < credit_window / 2) {
      if (address.waiting.size() < waiting_max)
        pn_link_flow(link, credit_window - pn_link_credit(link));
      else if (std::ranges::find(address.starved, link) == address.starved.end())
        address.starved.push_back(link);
    }
    if (!address.takers.empty()) wake(address.takers[address.next++ % address.takers.size()]);
  }
  // A connection may be written to only from its own events: it is woken for them, once until it is.
  static void wake(pn_link_t* link) {
    static char woken;
    pn_connection_t* connection = pn_session_connection(pn_link_session(link));
    if (pn_connection_get_context(connection)) return;
    pn_connection_set_context(connection, &woken);
    pn_connection_wake(connection);
  }
  void send_on(pn_connection_t* connection) {
    pn_connection_set_context(connection, nullptr);
    for (pn_link_t* link = pn_link_head(connection, PN_LOCAL_ACTIVE); link;
         link = pn_link_next(link, PN_LOCAL_ACTIVE)) {
      Address& address = *static_cast<Address*>(pn_link_get_context(link));
      if (pn_link_is_receiver(link)) {
        if (std::erase(address.starved, link) > 0) pn_link_flow(link, credit_window - pn_link_credit(link));
        continue;
      }
      while (!address.waiting.empty() && pn_link_credit(link) > 0) {
        const std::uint64_t tag = ++tag_;
        pn_delivery(link, pn_dtag(reinterpret_cast<const char*>(&tag), sizeof tag));
        const std::vector<char>& message = address.waiting.front();
        pn_link_send(link, message.data(), message.size());
        pn_link_advance(link);
        address.waiting.pop_front();
      }
      if (address.waiting.size() < waiting_max / 2)
        for (pn_link_t* starved : address.starved) wake(starved);
    }
  }
  void forget(pn_connection_t* connection) {
    for (auto& [name, address] : addresses_) {
      const auto gone = [connection](pn_link_t* link) {
        return pn_session_connection(pn_link_session(link)) == connection;
      };
      std::erase_if(address.takers, gone);
      std::erase_if(address.starved, gone);
    }
  }

  const std::string port_file_;
  pn_proactor_t* proactor_ = pn_proactor();
  std::map<std::string, Address> addresses_;
  std::uint64_t tag_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: memory_relay PORT_FILE\n");
    return 2;
  }
  Relay(argv[1]).run();
}
