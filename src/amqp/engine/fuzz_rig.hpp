// What the engine's fuzzers share: a handler that acts as the fuzz bytes say, and keeps the books that
// the engine promises (each link goes once, the connection closes once, nothing is heard afterwards).
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "amqp/engine/connection.hpp"
#include "base/check.hpp"

namespace omnibus::amqp::fuzz {

// Bytes to decide by; zeros when they run out.
class Script {
 public:
  explicit Script(Bytes bytes) : left_(bytes) {}
  std::uint8_t next() {
    if (left_.empty()) return 0;
    const std::uint8_t value = left_[0];
    left_ = left_.subspan(1);
    return value;
  }
  [[nodiscard]] bool empty() const { return left_.empty(); }

 private:
  Bytes left_;
};

inline std::vector<std::uint8_t> drain_output(Connection& connection, Tick now) {
  std::vector<std::uint8_t> bytes;
  while (connection.has_output()) {
    iovec runs[4];
    std::size_t taken = 0;
    const std::size_t count = connection.gather(runs);
    for (std::size_t i = 0; i < count; ++i) {
      const auto* at = static_cast<const std::uint8_t*>(runs[i].iov_base);
      bytes.insert(bytes.end(), at, at + runs[i].iov_len);
      taken += runs[i].iov_len;
    }
    connection.wrote(taken, now);
  }
  return bytes;
}

inline void feed(Connection& connection, Bytes bytes, std::uint8_t cut, Tick now) {
  std::size_t step = cut == 0 ? std::max<std::size_t>(bytes.size(), 1) : cut;
  while (!bytes.empty()) {
    const std::size_t part = std::min(step, bytes.size());
    // A copy of its own, so that reading past the end is seen.
    const std::vector<std::uint8_t> piece(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(part));
    connection.receive(piece, now);
    drain_output(connection, now);
    bytes = bytes.subspan(part);
  }
}

inline ConnectionOptions server_options() {
  ConnectionOptions options;
  options.container_id = "fuzz";
  options.channel_max = 20;
  options.handle_max = 30;
  options.links_max = 12;
  options.incoming_window = 8;
  options.unsettled_max = 16;
  options.message_bytes_max = 20'000;
  options.max_frame_size = 16'384;
  return options;
}

class FuzzHandler : public Handler {
 public:
  explicit FuzzHandler(Bytes script) : script_(script) {}

  std::vector<Session*> sessions;
  std::vector<Link*> links;
  std::size_t names = 0;
  bool accused = false;  // an error condition came that neither handler makes up

  void own(Session& session) { sessions.push_back(&session); }

  // After the end every link and session is accounted for.
  void finish(Connection& connection) {
    connection.lost();
    check(connection.finished(), "lost() finishes");
    check(links.empty() && sessions.empty(), "every link and session has ended");
    check(connection.link_count() == 0 && connection.session_count() == 0, "and the engine agrees");
    check(closed_ == 1, "on_closed comes once");
  }

  void play(Link& link, Script& script) {
    const std::uint8_t what = script.next();
    switch (what % 10) {
      case 0:
        if (link.role() == Role::receiver) link.grant(what / 10 % 4);
        break;
      case 1:
        if (link.role() == Role::receiver) link.drain();
        break;
      case 2:
        if (link.role() == Role::sender) link.drained();
        break;
      case 3:
        if (what > 200) link.detach();
        break;
      case 4:
        if (what > 240) link.session().end();
        break;
      case 5:
        if (!unsettled_.empty()) {
          const std::uint32_t id = unsettled_[what / 10u % unsettled_.size()];
          link.disposition(id, what & 1 ? State::accepted() : State::rejected({"fuzz:no", "", {}}), what & 2);
        }
        break;
      case 6:
        if (link.state() == Link::State::attach_received)
          what & 32 ? link.accept({}) : link.refuse({"fuzz:no", "", {}});
        break;
      case 7:
        if (last_sent_) link.abort(*last_sent_);
        break;
      default:
        if (link.sendable()) {
          const std::uint8_t tag[] = {what, 1, 2, 3};
          last_sent_ = link.send(
              {.tag = tag, .message_format = what, .settled = (what & 16) != 0, .state = {}, .context = what},
              Payload::copy_of(std::string(std::size_t{what} * (what & 64 ? 40u : 1u), 'm')));
          unsettled_.push_back(*last_sent_);
        }
    }
    if (unsettled_.size() > 32) unsettled_.erase(unsettled_.begin());
  }

  SaslStep on_sasl_init(const SaslInit&) override { return sasl(); }
  SaslStep on_sasl_response(Bytes) override { return sasl(); }
  void on_open(Connection&, const Open&) override { alive(); }
  void on_begin(Session& session) override {
    alive();
    if (std::ranges::find(sessions, &session) == sessions.end()) sessions.push_back(&session);
  }
  void on_end(Session& session, const Condition* why) override {
    alive();
    blame(why);
    std::erase(sessions, &session);
  }
  void on_attach(Link& link, const Attach&) override {
    alive();
    check(std::ranges::find(links, &link) == links.end(), "a link is new");
    links.push_back(&link);
    switch (script_.next() % 8) {
      case 0:
        return link.refuse({"fuzz:no", "not today", {}});
      case 1:
        return;  // later, perhaps
      default:
        link.accept({});
        if (link.role() == Role::receiver) link.grant(script_.next() % 8);
    }
  }
  void on_attached(Link& link, const Attach&) override { known(link); }
  void on_detach(Link& link, bool, const Condition* why) override {
    known(link);
    blame(why);
    if (script_.next() % 4 == 0) play(link, script_);
  }
  void on_link_gone(Link& link) override {
    known(link);
    std::erase(links, &link);
  }
  void on_credit(Link& link) override {
    known(link);
    play(link, script_);
  }
  void on_drained(Link& link) override { known(link); }
  void on_transfer(Link& link, Delivery& delivery) override {
    known(link);
    check(delivery.payload.size() <= 20'000, "messages stay within their bound");
    if (!delivery.settled) unsettled_.push_back(delivery.id);
    play(link, script_);
  }
  void on_disposition(Link& link, const DispositionOf& of) override {
    known(link);
    if (!of.settled && script_.next() % 2) link.disposition(of.id, State::encoded(of.state.raw));
    play(link, script_);
  }
  void on_closed(Connection&, const Condition* why) override {
    blame(why);
    ++closed_;
  }

 private:
  SaslStep sasl() {
    alive();
    const std::uint8_t what = script_.next();
    return {what % 4 == 0 ? SaslStep::Kind::challenge : SaslStep::Kind::outcome,
            static_cast<std::uint8_t>(what % 8 == 1), "data"};
  }
  void alive() const { check(closed_ == 0, "nothing is heard after on_closed"); }
  void known(Link& link) const {
    alive();
    check(std::ranges::find(links, &link) != links.end(), "only links that were given out are heard");
  }
  void blame(const Condition* why) {
    // What the fuzzers themselves cause: their own refusals, silence, a lost transport, limits, SASL.
    if (!why || why->name == "fuzz:no" || why->name == condition::connection_forced ||
        why->name == condition::unauthorized_access || why->name == condition::resource_limit_exceeded ||
        why->name == condition::detach_forced)
      return;
    accused = true;
  }

  Script script_;
  std::vector<std::uint32_t> unsettled_;
  std::optional<std::uint32_t> last_sent_;
  std::size_t closed_ = 0;
};

template <class T>
void add_frame(std::vector<std::uint8_t>& wire, const T& performative) {
  const std::size_t at = wire.size();
  wire.resize(at + frame_header_bytes);
  const auto body = encode_composite(performative);
  wire.insert(wire.end(), body.begin(), body.end());
  put_frame_header(wire.data() + at, static_cast<std::uint32_t>(wire.size() - at), frame_type_amqp, 0);
}

inline std::vector<std::uint8_t> opened_with_two_links() {
  std::vector<std::uint8_t> wire;
  const auto header = protocol_header(ProtocolId::amqp);
  wire.insert(wire.end(), header.begin(), header.end());
  Open open;
  open.container_id = "peer";
  add_frame(wire, open);
  Begin begin;
  begin.incoming_window = 100;
  add_frame(wire, begin);
  for (const bool receives : {false, true}) {
    Attach attach;
    attach.link_name = receives ? "down" : "up";
    attach.handle = receives;
    attach.role = receives;
    add_frame(wire, attach);
  }
  return wire;
}

}  // namespace omnibus::amqp::fuzz
