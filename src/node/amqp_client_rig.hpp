// A client of the running broker for tests: the engine on a blocking socket.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "amqp/codec/message.hpp"
#include "amqp/codec/value.hpp"
#include "amqp/engine/connection.hpp"
#include "base/clock.hpp"
#include "net/listener.hpp"

namespace omnibus::node {

class AmqpClient final : private amqp::Handler {
 public:
  // What the broker said about a link.
  struct Heard {
    std::optional<bool> attached;  // it answered, and with a terminus
    std::optional<amqp::Condition> detached;
    std::optional<std::uint64_t> max_message_size;
    struct Got {
      std::uint32_t id = 0;
      std::string message;
    };
    std::vector<Got> deliveries;
    std::vector<std::uint64_t> outcomes;  // descriptors
    std::string transaction;              // the last that was declared
    std::string rejected;                 // the condition of the last rejection
  };

  static constexpr std::chrono::seconds patience{20};  // only a hanging broker comes near it

  // Who it says it is, and which host it wants.
  struct Who {
    std::string host = "localhost";
    std::string rule = "RootManageSharedAccessKey";
    std::string key = "SAS_KEY_VALUE";
    bool is_refused = false;  // the test wants it to be
  };

  explicit AmqpClient(const std::string& address) : AmqpClient(address, Who{}) {}
  AmqpClient(const std::string& address, const Who& who) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(net::parse_host_port(address)->port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    amqp::ConnectionOptions options;
    options.side = amqp::ConnectionOptions::Side::client;
    options.container_id = "test";
    options.hostname = who.host;
    options.sasl_mechanisms = {"PLAIN"};
    options.sasl_response = std::string(1, '\0') + who.rule + std::string(1, '\0') + who.key;
    amqp::Handler& handler = *this;
    engine_ = std::make_unique<amqp::Connection>(options, handler);
    engine_->start(tick_now());
    if (who.is_refused) {
      EXPECT_FALSE(until([this] { return open_ && !ended_; })) << "it was let in";
      return;
    }
    EXPECT_TRUE(until([this] { return open_; })) << "no open came";
    session_ = &engine_->begin();
  }
  ~AmqpClient() override { cut(); }
  AmqpClient(const AmqpClient&) = delete;
  AmqpClient& operator=(const AmqpClient&) = delete;

  // Set when the broker closed the connection.
  [[nodiscard]] const std::optional<amqp::Condition>& closed() const { return closed_; }
  [[nodiscard]] bool is_open() const { return open_ && !ended_; }

  // The socket is gone, without a word.
  void cut() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

  // Moves bytes until it holds; false when it does not for too long, or the broker hung up.
  template <class Holds>
  [[nodiscard]] bool until(const Holds& holds) {
    const Tick deadline = tick_now() + patience;
    for (;;) {
      write_all();
      if (holds()) return true;
      pollfd waiting{socket_, POLLIN, 0};
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - tick_now());
      if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) return false;
      std::array<std::uint8_t, 65536> buffer;
      const auto got = ::recv(socket_, buffer.data(), buffer.size(), 0);
      if (got <= 0) return holds();
      engine_->receive(Bytes{buffer.data(), static_cast<std::size_t>(got)}, tick_now());
    }
  }

  // `filter` is the source's. A sender to `coordinator` controls transactions.
  static constexpr std::string_view coordinator = "(coordinator)";
  amqp::Link& attach(amqp::Role role, std::string_view address, const amqp::Value& filter = {}) {
    const auto filter_bytes = amqp::encode(filter);
    const auto address_bytes = amqp::encode(amqp::Value{address});
    const auto own_bytes = amqp::encode(amqp::Value{"me"});
    const bool sends = role == amqp::Role::sender;
    amqp::Source source;
    source.address = {sends ? own_bytes : address_bytes};
    source.filter = {filter_bytes};
    amqp::Target target;
    target.address = {sends ? address_bytes : own_bytes};
    const auto source_bytes = amqp::encode_composite(source);
    const auto target_bytes =
        address == coordinator ? amqp::encode_composite(amqp::Coordinator{}) : amqp::encode_composite(target);
    amqp::AttachRequest request;
    request.name = "link " + std::to_string(++links_);
    request.role = role;
    request.snd_settle_mode = sends ? amqp::SenderSettle::mixed : amqp::SenderSettle::unsettled;
    request.rcv_settle_mode = sends ? amqp::ReceiverSettle::first : amqp::ReceiverSettle::second;
    request.source = {source_bytes};
    request.target = {target_bytes};
    amqp::Link& link = session_->attach(request);
    heard_[&link] = {};  // the place of one that is gone may be used again
    EXPECT_TRUE(until([&] { return of(link).attached.has_value(); })) << address;
    return link;
  }
  Heard& of(amqp::Link& link) { return heard_[&link]; }

  static Payload message(std::string_view body, std::string_view session = "") {
    amqp::MessageBuilder builder;
    const auto id = amqp::encode(amqp::Value{body.substr(0, 64)});
    builder.properties().message_id = {id};
    if (!session.empty()) builder.properties().group_id = session;
    builder.body(amqp::Value{body});
    return builder.build();
  }
  // Sends all, as credit comes, and waits until each is accepted.
  [[nodiscard]] bool send(amqp::Link& link, const std::vector<Payload>& messages) {
    const std::size_t want = accepted(link) + messages.size();
    for (const Payload& one : messages) {
      if (!until([&] { return link.sendable(); })) return false;
      amqp::Outgoing outgoing;
      outgoing.tag = as_bytes("t");
      link.send(outgoing, one);
    }
    return until([&] { return accepted(link) >= want; });
  }
  // One control message or message, in a transaction if one is named; the descriptor of its outcome.
  std::uint64_t send_one(amqp::Link& link, const Payload& payload, const std::string& transaction = "") {
    if (!until([&] { return link.sendable(); })) return 0;
    std::vector<std::uint8_t> state;
    if (!transaction.empty())
      state =
          amqp::encode_composite(amqp::TransactionalState{.txn_id = as_bytes(transaction), .outcome = {}});
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    outgoing.state = {state};
    const std::size_t before = of(link).outcomes.size();
    link.send(outgoing, payload);
    return until([&] { return of(link).outcomes.size() > before; }) ? of(link).outcomes.back() : 0;
  }
  static Payload control(const std::vector<std::uint8_t>& body) {
    return Payload::copy_of(std::string{"\x00\x53\x77", 3} + std::string{as_text(body)});
  }
  // Waits for so many deliveries, all told, and gives their bodies.
  std::vector<std::string> receive(amqp::Link& link, std::size_t count) {
    EXPECT_TRUE(until([&] { return of(link).deliveries.size() >= count; }))
        << of(link).deliveries.size() << " came";
    std::vector<std::string> bodies;
    for (const auto& got : of(link).deliveries) bodies.push_back(body_of(got.message));
    return bodies;
  }
  // Accepts every delivery and waits for the broker's word on each.
  [[nodiscard]] bool complete_all(amqp::Link& link) {
    auto& heard = of(link);
    for (const auto& got : heard.deliveries) link.disposition(got.id, amqp::State::accepted(), false);
    return until([&] { return accepted(link) >= heard.deliveries.size(); });
  }

  static std::string body_of(const std::string& encoded) {
    const auto view = amqp::MessageView::parse(as_bytes(encoded));
    EXPECT_TRUE(view.has_value());
    std::vector<std::uint8_t> scratch;
    const auto body = amqp::decode_value(view->body_value(scratch));
    return std::string(body->as_text().value_or("?"));
  }

  [[nodiscard]] std::size_t accepted(amqp::Link& link) {
    const auto& outcomes = of(link).outcomes;
    return static_cast<std::size_t>(std::ranges::count(outcomes, std::uint64_t{amqp::descriptor::accepted}));
  }

 private:
  void on_open(amqp::Connection&, const amqp::Open&) override { open_ = true; }
  void on_closed(amqp::Connection&, const amqp::Condition* condition) override {
    ended_ = true;
    closed_ = condition ? *condition : amqp::Condition{};
  }
  void on_attached(amqp::Link& link, const amqp::Attach& attach) override {
    const bool sends = link.role() == amqp::Role::sender;
    heard_[&link].attached = !(sends ? attach.target : attach.source).is_null();
    heard_[&link].max_message_size = attach.max_message_size;
  }
  void on_detach(amqp::Link& link, bool, const amqp::Condition* condition) override {
    heard_[&link].detached = condition ? *condition : amqp::Condition{};
  }
  void on_transfer(amqp::Link& link, amqp::Delivery& delivery) override {
    heard_[&link].deliveries.push_back({delivery.id, delivery.payload.to_string()});
  }
  void on_disposition(amqp::Link& link, const amqp::DispositionOf& disposition) override {
    auto& heard = heard_[&link];
    heard.outcomes.push_back(disposition.state.descriptor);
    if (const auto declared = amqp::decode_composite<amqp::Declared>(disposition.state.raw))
      heard.transaction = as_text(declared->txn_id);
    if (const auto rejected = amqp::decode_composite<amqp::Rejected>(disposition.state.raw))
      if (const auto error = amqp::decode_condition(rejected->error)) heard.rejected = error->name;
  }

  void write_all() {
    while (engine_->has_output()) {
      iovec parts[16];
      const std::size_t count = engine_->gather(parts);
      if (count == 0) return;
      const msghdr one{.msg_name = nullptr,
                       .msg_namelen = 0,
                       .msg_iov = parts,
                       .msg_iovlen = count,
                       .msg_control = nullptr,
                       .msg_controllen = 0,
                       .msg_flags = 0};
      const auto sent = ::sendmsg(socket_, &one, MSG_NOSIGNAL);
      if (sent <= 0) return;
      engine_->wrote(static_cast<std::size_t>(sent), tick_now());
    }
  }

  int socket_;
  bool open_ = false;
  bool ended_ = false;
  std::optional<amqp::Condition> closed_;
  std::map<amqp::Link*, Heard> heard_;
  std::unique_ptr<amqp::Connection> engine_;
  amqp::Session* session_ = nullptr;
  int links_ = 0;
};

}  // namespace omnibus::node
