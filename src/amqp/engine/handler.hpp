// What a connection tells its owner. All calls come from inside Connection::receive(), tick() or close(),
// on the core that owns the connection. A handler may call any method of the connection, its sessions
// and links from here, except receive() and the destructor.
#pragma once

#include <optional>
#include <string>

#include "amqp/codec/performatives.hpp"
#include "amqp/engine/condition.hpp"
#include "amqp/engine/delivery_state.hpp"
#include "base/bytes.hpp"

namespace omnibus::amqp {

class Connection;
class Session;
class Link;

// A message that arrived whole. Views are valid during the call; the payload can be kept.
struct Delivery {
  std::uint32_t id = 0;
  Bytes tag;
  std::uint32_t message_format = 0;
  bool settled = false;
  // The message was larger than the link's max-message-size: its bytes were dropped as they came, and
  // the owner decides how to say so (Service Bus rejects the delivery and keeps the link).
  bool too_large = false;
  StateView state;
  Payload payload;
};

struct DispositionOf {
  std::uint32_t id = 0;
  std::uint64_t context = 0;  // as given to send(); 0 for incoming deliveries
  StateView state;
  bool settled = false;
};

// The server's answer to a SASL step.
struct SaslStep {
  enum class Kind { outcome, challenge } kind = Kind::outcome;
  std::uint8_t code = 0;  // 0 ok, 1 auth, 2 sys, 3 sys-perm, 4 sys-temp
  std::string data;       // additional-data or challenge
};

class Handler {
 public:
  virtual ~Handler() = default;

  // Server: the client chose a mechanism, or answered a challenge.
  virtual SaslStep on_sasl_init(const SaslInit&) { return {}; }
  virtual SaslStep on_sasl_response(Bytes) { return {SaslStep::Kind::outcome, 1, {}}; }
  // Client: SASL ended; with a code other than 0 the connection is over.
  virtual void on_sasl_outcome(const SaslOutcome&) {}

  // The peer's open. A server answers it after this call, unless it was closed in it.
  virtual void on_open(Connection&, const Open&) {}
  virtual void on_begin(Session&) {}
  virtual void on_end(Session&, const Condition*) {}

  // The peer attached a link that it initiated: answer now or later with accept() or refuse(). The views
  // in `attach` stay valid until then.
  virtual void on_attach(Link& link, const Attach& attach);
  // The peer answered our attach. A null source or target means a detach with the reason follows.
  virtual void on_attached(Link&, const Attach&) {}
  // The peer detached; the engine answers after this call.
  virtual void on_detach(Link&, bool /*closed*/, const Condition*) {}
  // Last word about a link, whatever ended it; the reference dies after the call. Comes once for every
  // link that on_attach() or Session::attach() gave out.
  virtual void on_link_gone(Link&) {}

  // Sender: credit, drain or window changed; look at link.sendable() and link.drain_requested().
  virtual void on_credit(Link&) {}
  // Receiver: the sender has used or given back all credit after drain().
  virtual void on_drained(Link&) {}
  virtual void on_transfer(Link&, Delivery&) {}
  virtual void on_disposition(Link&, const DispositionOf&) {}
  // The peer gave an outcome, unsettled, for a delivery of ours that is settled already. What it is told; no
  // state: nothing, as the spec has it.
  virtual State on_late_outcome() { return {}; }

  // The peer closed, or an error of either side ended the connection. Links are gone already.
  virtual void on_closed(Connection&, const Condition*) {}
};

}  // namespace omnibus::amqp
