// The broker's end of one link: what hangs on an amqp::Link and hears its events.
//
// One class per thing a link can talk to: requests, responses, sending to and receiving from entities.
// Owned by its link, on the connection's core.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "amqp/engine/link.hpp"
#include "auth/rights.hpp"
#include "base/clock.hpp"

namespace omnibus::links {

// All clocks at one moment: deadlines go by the tick, tokens by the wall, messages by the wall too, unless a
// test has moved their time ahead of it.
struct Now {
  Tick tick;
  Instant wall;
  std::chrono::milliseconds ahead{};

  [[nodiscard]] Instant of_messages() const { return wall + ahead; }
};

class LinkEnd : public amqp::LinkAttachment {
 public:
  // What keeps this link open; nothing for $cbs, which is open to all.
  struct Claim {
    std::optional<std::string> path;    // nothing: a right anywhere will do
    std::optional<auth::Right> right;   // nothing: any right will do
    std::optional<std::string> also{};  // another path that needs the same right: the end of a via transfer
  };
  explicit LinkEnd(std::optional<Claim> claim) : claim_(std::move(claim)) {}

  virtual void on_transfer(amqp::Link&, amqp::Delivery&, Now) {}
  virtual void on_credit(amqp::Link&, Now) {}
  virtual void on_disposition(amqp::Link&, const amqp::DispositionOf&, Now) {}
  virtual void on_gone(amqp::Link&) {}
  // The name of the entity that this link sends to; empty: it does not send.
  [[nodiscard]] virtual std::string_view sends_to() const { return {}; }

  [[nodiscard]] const std::optional<Claim>& claim() const { return claim_; }

 private:
  std::optional<Claim> claim_;
};

}  // namespace omnibus::links
