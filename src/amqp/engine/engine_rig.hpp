// What the engine's tests stand on: a handler that writes down what it hears, two engines joined in
// memory, and one engine facing a peer that is played by hand, frame by frame. Time is the rig's.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "amqp/engine/connection.hpp"
#include "base/random.hpp"

namespace omnibus::amqp::test {

using namespace std::chrono_literals;

inline ConnectionOptions server_options() {
  ConnectionOptions options;
  options.container_id = "server";
  return options;
}
inline ConnectionOptions client_options() {
  ConnectionOptions options;
  options.side = ConnectionOptions::Side::client;
  options.container_id = "client";
  return options;
}

// Everything queued for output, as it would go to the socket.
inline std::vector<std::uint8_t> take_output(Connection& connection, Tick now) {
  std::vector<std::uint8_t> bytes;
  while (connection.has_output()) {
    iovec runs[8];
    const std::size_t count = connection.gather(runs);
    std::size_t taken = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto* at = static_cast<const std::uint8_t*>(runs[i].iov_base);
      bytes.insert(bytes.end(), at, at + runs[i].iov_len);
      taken += runs[i].iov_len;
    }
    connection.wrote(taken, now);
  }
  return bytes;
}

// Writes down every event as a line, and lets a test act in each of them. Accepts links unless told
// otherwise.
struct Recorder : Handler {
  std::vector<std::string> events;
  std::vector<Session*> sessions;
  std::vector<Link*> links;  // alive
  std::vector<std::uint32_t> ids;
  std::vector<std::string> payloads;
  std::size_t gone = 0, closed = 0;
  std::string close_condition;
  SaslStep sasl{SaslStep::Kind::outcome, 0, "Welcome!"};

  std::function<void(const char* event)> every;  // called in each callback, before anything else
  std::function<void(Link&, const Attach&)> attach = [](Link& link, const Attach&) { link.accept({}); };
  std::function<void(Link&, const Attach&)> attached;
  std::function<void(Link&, Delivery&)> transfer;
  std::function<void(Link&, const DispositionOf&)> disposition;
  std::function<void(Link&)> credit;
  std::function<void(Connection&, const Open&)> open;

  [[nodiscard]] std::size_t count(std::string_view text) const {
    std::size_t n = 0;
    for (const auto& event : events) n += event.starts_with(text);
    return n;
  }
  void note(const char* name, std::string line) {
    events.push_back(std::move(line));
    if (every) every(name);
  }
  static std::string text_of(const Condition* why) { return why ? " " + why->name : ""; }

  SaslStep on_sasl_init(const SaslInit& init) override {
    note("sasl-init", "sasl-init " + std::string(init.mechanism.text) + " " +
                          std::string(as_text(init.initial_response.value_or(Bytes{}))));
    return sasl;
  }
  SaslStep on_sasl_response(Bytes response) override {
    note("sasl-response", "sasl-response " + std::string(as_text(response)));
    return {SaslStep::Kind::outcome, 0, {}};
  }
  void on_sasl_outcome(const SaslOutcome& outcome) override {
    note("sasl-outcome", "sasl-outcome " + std::to_string(outcome.code) + " " +
                             std::string(as_text(outcome.additional_data.value_or(Bytes{}))));
  }
  void on_open(Connection& connection, const Open& peer) override {
    note("open", "open " + std::string(peer.container_id));
    if (open) open(connection, peer);
  }
  void on_begin(Session& session) override {
    sessions.push_back(&session);
    note("begin", "begin");
  }
  void on_end(Session& session, const Condition* why) override {
    std::erase(sessions, &session);
    note("end", "end" + text_of(why));
  }
  void on_attach(Link& link, const Attach& peer) override {
    links.push_back(&link);
    note("attach", "attach " + link.name());
    if (attach) attach(link, peer);
  }
  void on_attached(Link& link, const Attach& peer) override {
    links.push_back(&link);
    note("attached",
         "attached " + link.name() + (peer.source.is_null() && peer.target.is_null() ? " null" : ""));
    if (attached) attached(link, peer);
  }
  void on_detach(Link& link, bool is_closed, const Condition* why) override {
    note("detach", "detach " + link.name() + (is_closed ? " closed" : "") + text_of(why));
  }
  void on_link_gone(Link& link) override {
    std::erase(links, &link);
    ++gone;
    note("gone", "gone " + link.name());
  }
  void on_credit(Link& link) override {
    note("credit", "credit " + link.name() + " " + std::to_string(link.credit()) +
                       (link.drain_requested() ? " drain" : ""));
    if (credit) credit(link);
  }
  void on_drained(Link& link) override { note("drained", "drained " + link.name()); }
  void on_transfer(Link& link, Delivery& delivery) override {
    ids.push_back(delivery.id);
    payloads.push_back(delivery.payload.to_string());
    note("transfer", "transfer " + std::to_string(delivery.id) + (delivery.settled ? " settled" : "") +
                         (delivery.too_large ? " too-large" : ""));
    if (transfer) transfer(link, delivery);
  }
  void on_disposition(Link& link, const DispositionOf& of) override {
    note("disposition", "disposition " + std::to_string(of.id) + " " + std::to_string(of.state.descriptor) +
                            (of.settled ? " settled" : ""));
    if (disposition) disposition(link, of);
  }
  State on_late_outcome() override { return late_outcome; }
  State late_outcome;
  void on_closed(Connection&, const Condition* why) override {
    ++closed;
    close_condition = why ? why->name : "";
    note("closed", "closed" + text_of(why));
  }
};

// Client and server joined in memory.
class Pair {
 public:
  explicit Pair(ConnectionOptions for_client = client_options(),
                ConnectionOptions for_server = server_options())
      : client(std::move(for_client), client_side), server(std::move(for_server), server_side) {
    client.start(now);
    server.start(now);
  }

  // How many bytes of what is left to hand over at once; the whole by default.
  std::function<std::size_t(std::size_t left)> split = [](std::size_t left) { return left; };
  void split_randomly(std::uint64_t seed) {
    split = [random = Random{seed}](std::size_t left) mutable {
      return static_cast<std::size_t>(1 + random.below(std::min<std::size_t>(left, 1 + random.below(3000))));
    };
  }

  // Carries bytes both ways until both sides are quiet.
  void pump() {
    for (int turn = 0; turn < 10'000; ++turn) {
      const auto up = take_output(client, now);
      const auto down = take_output(server, now);
      if (up.empty() && down.empty()) return;
      hand(server, up);
      hand(client, down);
    }
    FAIL() << "the two sides never come to rest";
  }
  void hand(Connection& to, Bytes bytes) {
    while (!bytes.empty()) {
      const std::size_t part = std::min(bytes.size(), split(bytes.size()));
      to.receive(bytes.first(part), now);
      bytes = bytes.subspan(part);
    }
  }

  // A session with one link on which the client sends, and its two ends.
  Link& sender(const std::string& name = "up", std::uint32_t credit = 0) {
    return link(name, Role::sender, credit);
  }
  Link& receiver(const std::string& name = "down", std::uint32_t credit = 0) {
    return link(name, Role::receiver, credit);
  }
  Link& link(const std::string& name, Role role, std::uint32_t credit) {
    if (!session) session = &client.begin();
    AttachRequest request{.name = name,
                          .role = role,
                          .source = {},
                          .target = {},
                          .max_message_size = {},
                          .offered_capabilities = {},
                          .desired_capabilities = {},
                          .properties = {}};
    Link& own = session->attach(request);
    pump();
    if (credit > 0) {
      (role == Role::sender ? server_link(name) : own).grant(credit);
      pump();
    }
    return own;
  }
  Link& server_link(const std::string& name) {
    for (Link* link : server_side.links)
      if (link->name() == name) return *link;
    throw std::runtime_error("no such link");
  }

  Tick now{1000s};
  Recorder client_side, server_side;
  Connection client, server;
  Session* session = nullptr;  // the client's, made by the first link
};

// One frame as the engine wrote it.
struct Frame {
  std::uint8_t type = 0;
  std::uint16_t channel = 0;
  std::vector<std::uint8_t> body;

  [[nodiscard]] std::uint64_t number() const {
    if (body.empty()) return 0;
    Decoder in{body};
    return in.read_descriptor().value_or(UINT64_MAX);
  }
  template <class T>
  [[nodiscard]] T as() const {
    Decoder in{body};
    EXPECT_EQ(in.read_descriptor(), T::descriptor) << T::name;
    T value;
    EXPECT_TRUE(read_fields(in, value)) << T::name << ": " << in.problem();
    return value;
  }
  // How many fields the list on the wire has.
  [[nodiscard]] std::uint32_t fields() const {
    Decoder in{body};
    in.read_descriptor();
    const auto list = in.read_list();
    return list ? list->count : 0;
  }
  [[nodiscard]] std::string payload() const {
    Decoder in{body};
    in.read_descriptor();
    in.read_list();
    return std::string(as_text(in.rest()));
  }
};

template <class T>
std::vector<std::uint8_t> frame_bytes(std::uint16_t channel, const T& performative,
                                      std::string_view payload = {}, std::uint8_t type = frame_type_amqp) {
  std::vector<std::uint8_t> bytes(frame_header_bytes);
  const auto body = encode_composite(performative);
  bytes.insert(bytes.end(), body.begin(), body.end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  put_frame_header(bytes.data(), static_cast<std::uint32_t>(bytes.size()), type, channel);
  return bytes;
}

inline Open plain_open() {
  Open open;
  open.container_id = "peer";
  return open;
}
inline Begin plain_begin(std::uint32_t window = 1000) {
  Begin begin;
  begin.next_outgoing_id = 0;
  begin.incoming_window = window;
  begin.outgoing_window = 1000;
  return begin;
}
inline Attach plain_attach(std::string_view name, std::uint32_t handle, bool receiver) {
  static constexpr std::uint8_t source[] = {0, 0x53, 0x28, 0x45};
  static constexpr std::uint8_t target[] = {0, 0x53, 0x29, 0x45};
  Attach attach;
  attach.link_name = name;
  attach.handle = handle;
  attach.role = receiver;
  attach.source = {source};
  attach.target = {target};
  if (!receiver) attach.initial_delivery_count = 0;
  return attach;
}
inline Transfer plain_transfer(std::uint32_t handle, std::uint32_t id, bool more = false) {
  static constexpr std::uint8_t tag[] = {1};
  Transfer transfer;
  transfer.handle = handle;
  transfer.delivery_id = id;
  transfer.delivery_tag = Bytes{tag};
  transfer.more = more;
  return transfer;
}
// A flow of a peer that has seen `seen` of our transfers and takes `window` more.
inline Flow link_flow(std::uint32_t handle, std::uint32_t delivery_count, std::uint32_t credit,
                      std::uint32_t window = 1000, std::uint32_t seen = 1) {
  Flow flow;
  flow.next_incoming_id = seen;
  flow.incoming_window = window;
  flow.next_outgoing_id = 0;
  flow.outgoing_window = 1000;
  flow.handle = handle;
  flow.delivery_count = delivery_count;
  flow.link_credit = credit;
  return flow;
}

// One engine, and a peer played by hand.
class Solo {
 public:
  explicit Solo(ConnectionOptions options = server_options()) : engine(std::move(options), events) {
    engine.start(now);
  }
  // Header and open, and forgets the answers.
  Solo& opened(const Open& open = plain_open()) {
    raw(Bytes{protocol_header(ProtocolId::amqp)});
    send(0, open);
    read();
    frames.clear();
    return *this;
  }
  Solo& begun(std::uint16_t channel = 0, std::uint32_t window = 1000) {
    opened();
    send(channel, plain_begin(window));
    read();
    frames.clear();
    return *this;
  }
  Solo& attached(bool peer_receives, std::uint32_t window = 1000) {
    begun(0, window);
    send(0, plain_attach("link", 0, peer_receives));
    read();
    frames.clear();
    return *this;
  }

  void raw(Bytes bytes) { engine.receive(bytes, now); }
  template <class T>
  void send(std::uint16_t channel, const T& performative, std::string_view payload = {}) {
    raw(frame_bytes(channel, performative, payload));
  }
  // Takes what the engine wrote and splits it into frames.
  std::vector<Frame>& read() {
    const auto bytes = take_output(engine, now);
    unread.insert(unread.end(), bytes.begin(), bytes.end());
    while (unread.size() >= 8) {
      if (as_text(Bytes{unread}.first(4)) == "AMQP") {
        headers.push_back(unread[4]);
        unread.erase(unread.begin(), unread.begin() + 8);
        continue;
      }
      const FrameHeader header = read_frame_header(unread.data());
      if (unread.size() < header.size) break;
      frames.push_back(
          {header.type, header.channel, {unread.begin() + header.doff * 4, unread.begin() + header.size}});
      unread.erase(unread.begin(), unread.begin() + header.size);
    }
    return frames;
  }
  // The numbers of the frames written since the last look.
  std::vector<std::uint64_t> numbers() {
    read();
    std::vector<std::uint64_t> out;
    for (const auto& frame : frames) out.push_back(frame.number());
    return out;
  }
  std::string close_condition_sent() {
    for (const auto& frame : read())
      if (frame.number() == descriptor::close)
        if (const auto why = decode_condition(frame.as<Close>().error)) return why->name;
    return "";
  }
  std::string end_condition_sent() {
    for (const auto& frame : read())
      if (frame.number() == descriptor::end)
        if (const auto why = decode_condition(frame.as<End>().error)) return why->name;
    return "";
  }
  std::string detach_condition_sent() {
    for (const auto& frame : read())
      if (frame.number() == descriptor::detach)
        if (const auto why = decode_condition(frame.as<Detach>().error)) return why->name;
    return "";
  }
  Link& link() { return *events.links.at(0); }

  Tick now{1000s};
  Recorder events;
  Connection engine;
  std::vector<Frame> frames;
  std::vector<std::uint8_t> headers;
  std::vector<std::uint8_t> unread;
};

}  // namespace omnibus::amqp::test
