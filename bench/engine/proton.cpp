// Proton as a good server uses it: no sockets, input pushed and output popped in bursts, one buffer for
// message bytes, events drained in batches.
#include <proton/connection.h>
#include <proton/delivery.h>
#include <proton/disposition.h>
#include <proton/event.h>
#include <proton/link.h>
#include <proton/session.h>
#include <proton/transport.h>

#include <algorithm>
#include <cstring>

#include "contestant.hpp"

namespace bench {
namespace {

class Proton {
 public:
  Proton() {
    pn_transport_set_server(transport_);
    pn_transport_set_max_frame(transport_, frame_max);
    pn_transport_bind(transport_, connection_);
    pn_connection_collect(connection_, collector_);
    pn_connection_set_container(connection_, "bench");
  }
  ~Proton() {
    pn_transport_unbind(transport_);
    pn_transport_free(transport_);
    pn_connection_free(connection_);
    pn_collector_free(collector_);
  }

  template <class Handle>
  void receive(const Wire& wire, Handle handle) {
    const auto* at = reinterpret_cast<const char*>(wire.data());
    std::size_t left = wire.size();
    while (left > 0) {
      const ssize_t capacity = pn_transport_capacity(transport_);
      if (capacity <= 0) return;
      const std::size_t part = std::min(left, static_cast<std::size_t>(capacity));
      std::memcpy(pn_transport_tail(transport_), at, part);  // a socket would read into it
      pn_transport_process(transport_, part);
      at += part;
      left -= part;
      events(handle);
    }
  }
  template <class Handle>
  void events(Handle handle) {
    while (pn_event_t* event = pn_collector_peek(collector_)) {
      handle(event);
      pn_collector_pop(collector_);
    }
  }
  std::size_t discard() {
    std::size_t total = 0;
    for (ssize_t pending; (pending = pn_transport_pending(transport_)) > 0;) {
      total += static_cast<std::size_t>(pending);
      pn_transport_pop(transport_, static_cast<std::size_t>(pending));
    }
    return total;
  }

  pn_transport_t* transport_ = pn_transport();
  pn_connection_t* connection_ = pn_connection();
  pn_collector_t* collector_ = pn_collector();
  pn_link_t* link_ = nullptr;
};

void open_all(Proton& proton, pn_event_t* event) {
  switch (pn_event_type(event)) {
    case PN_CONNECTION_REMOTE_OPEN:
      pn_connection_open(pn_event_connection(event));
      break;
    case PN_SESSION_REMOTE_OPEN:
      pn_session_set_incoming_capacity(pn_event_session(event), 5000u * frame_max / 16);
      pn_session_open(pn_event_session(event));
      break;
    case PN_LINK_REMOTE_OPEN:
      proton.link_ = pn_event_link(event);
      pn_link_open(proton.link_);
      if (pn_link_is_receiver(proton.link_)) pn_link_flow(proton.link_, 1000);
      break;
    default:
      break;
  }
}

}  // namespace

Run proton_receive(std::uint32_t bursts, std::size_t size) {
  Transfers transfers{size};
  Proton proton;
  proton.receive(peer_start(true), [&](pn_event_t* event) { open_all(proton, event); });
  proton.discard();
  std::vector<char> buffer(size + 1);
  Run run;
  const auto take = [&](pn_event_t* event) {
    if (pn_event_type(event) != PN_DELIVERY) return;
    pn_delivery_t* delivery = pn_event_delivery(event);
    if (!pn_delivery_readable(delivery) || pn_delivery_partial(delivery)) return;
    pn_link_t* link = pn_delivery_link(delivery);
    const ssize_t got = pn_link_recv(link, buffer.data(), buffer.size());
    if (got > 0) run.payload_bytes += static_cast<std::size_t>(got);
    pn_delivery_update(delivery, PN_ACCEPTED);
    pn_delivery_settle(delivery);
    ++run.messages;
    if (pn_link_credit(link) < 500) pn_link_flow(link, 1000 - pn_link_credit(link));
  };
  const Stopwatch watch;
  for (std::uint32_t i = 0; i < bursts; ++i) {
    proton.receive(transfers.from(i * burst), take);
    proton.discard();
  }
  watch.stop(run);
  if (run.payload_bytes != run.messages * size) run.messages = 0;
  return run;
}

Run proton_send(std::uint32_t bursts, std::size_t size) {
  Proton proton;
  proton.receive(peer_start(false), [&](pn_event_t* event) { open_all(proton, event); });
  proton.discard();
  const std::vector<char> message(size, 'x');
  std::vector<Wire> answers;
  for (std::uint32_t i = 0; i < bursts; ++i)
    answers.push_back(peer_accepts(i * burst, i * burst + burst - 1));
  Run run;
  const auto settle = [&](pn_event_t* event) {
    if (pn_event_type(event) != PN_DELIVERY) return;
    pn_delivery_t* delivery = pn_event_delivery(event);
    if (!pn_delivery_updated(delivery)) return;
    run.messages += pn_delivery_settled(delivery);
    pn_delivery_settle(delivery);
  };
  std::uint64_t tag = 0;
  const Stopwatch watch;
  for (const Wire& answer : answers) {
    for (std::uint32_t i = 0; i < burst; ++i) {
      ++tag;
      pn_delivery(proton.link_, pn_dtag(reinterpret_cast<const char*>(&tag), sizeof tag));
      pn_link_send(proton.link_, message.data(), message.size());
      pn_link_advance(proton.link_);
    }
    run.payload_bytes += proton.discard();
    proton.receive(answer, settle);
  }
  watch.stop(run);
  return run;
}

}  // namespace bench
