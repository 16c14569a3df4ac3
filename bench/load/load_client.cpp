#include "load_client.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <memory>

#include "amqp/codec/message.hpp"
#include "amqp/codec/value.hpp"
#include "amqp/engine/connection.hpp"
#include "net/connect.hpp"
#include "net/listener.hpp"

namespace omnibus::bench {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "bench: {}\n", why);
  std::_Exit(1);
}

// Reactors whose connections may end.
std::atomic<int> ending{0};

// Servers may tell connections and links apart by their names.
std::string unique_name(const char* what) {
  static std::atomic<int> number{0};
  return fmt::format("{}-{}-{}", what, ::getpid(), ++number);
}

// The bytes in front of the filler: an id, and the moment of sending as the first bytes of the data.
Payload make_message(std::uint64_t number, Tick now, bool durable, const Slice& filler) {
  amqp::Encoder out;
  if (durable) {
    amqp::Header header;
    header.durable = true;
    out.put_composite(header);
  }
  amqp::Properties properties;
  std::uint8_t id[9] = {0x80};
  amqp::store_be(id + 1, number);
  properties.message_id = {Bytes{id, 9}};
  out.put_composite(properties);
  auto bytes = out.take();
  std::uint8_t data[8 + 8] = {0x00, 0x53, 0x75, 0xb0};
  amqp::store_be(data + 4, filler.size + 8);
  amqp::store_be(data + 8, static_cast<std::uint64_t>(now.time_since_epoch().count()));
  bytes.insert(bytes.end(), data, data + 16);
  Payload message = Payload::copy_of(Bytes{bytes});
  message.append(filler);
  return message;
}

Tick sent_at(const Payload& payload) {
  const auto view = amqp::MessageView::parse(payload);
  if (!view) give_up("a message cannot be read");
  auto sections = view->body_sections();
  const auto section = sections.next();
  if (!section || section->content.size() < 8) give_up("a message without the moment of its sending");
  std::vector<std::uint8_t> scratch;
  const Bytes bytes = view->bytes({section->content.begin, section->content.begin + 8}, scratch);
  return Tick{
      std::chrono::nanoseconds{static_cast<std::int64_t>(amqp::load_be<std::uint64_t>(bytes.data()))}};
}

class Client : public net::StreamHandler, protected amqp::Handler {
 public:
  Client(net::Stream& stream, amqp::ConnectionOptions options)
      : stream_(stream), engine_(std::move(options), *this), heartbeat_(stream.reactor()) {
    engine_.start(tick_now());
    stream_.wake();
  }
  void on_input(Bytes bytes) override {
    engine_.receive(bytes, tick_now());
    if (!looked_after_ && engine_.is_open()) look_after();
    if (engine_.has_output()) stream_.wake();
  }
  std::size_t gather(std::span<iovec> out) override { return engine_.gather(out); }
  void wrote(std::size_t bytes) override { engine_.wrote(bytes, tick_now()); }
  void on_closed(const Error* why) override {
    if (ending == 0) give_up(fmt::format("a connection ended: {}", why ? why->detail : "the peer left"));
  }

 protected:
  void on_closed(amqp::Connection&, const amqp::Condition* condition) override {
    if (condition && ending == 0)
      give_up(fmt::format("a connection was closed: {} {}", condition->name, condition->description));
  }
  void on_end(amqp::Session&, const amqp::Condition* condition) override {
    if (condition && ending == 0)
      give_up(fmt::format("a session was ended: {} {}", condition->name, condition->description));
  }
  void on_detach(amqp::Link&, bool, const amqp::Condition* condition) override {
    give_up(condition ? condition->description : "a link was detached");
  }
  static amqp::ConnectionOptions client_options(const LoadTarget& target) {
    amqp::ConnectionOptions options;
    options.side = amqp::ConnectionOptions::Side::client;
    options.container_id = unique_name("bench");
    options.hostname = "localhost";
    options.idle_time_out = 0ms;
    options.sasl_mechanisms = {target.user.empty() ? "ANONYMOUS" : "PLAIN"};
    if (!target.user.empty()) options.sasl_response = fmt::format("\0{}\0{}"sv, target.user, target.password);
    return options;
  }
  amqp::Link& attach(amqp::Role role, const std::string& address) {
    const auto encoded = amqp::encode(amqp::Value{std::string_view{address}});
    amqp::Source source;
    source.address = {encoded};
    amqp::Target target;
    target.address = {encoded};
    const auto source_bytes = amqp::encode_composite(source);
    const auto target_bytes = amqp::encode_composite(target);
    amqp::AttachRequest request;
    request.name = unique_name(role == amqp::Role::sender ? "sender" : "receiver");
    request.role = role;
    request.snd_settle_mode = amqp::SenderSettle::unsettled;
    request.source = {source_bytes};
    request.target = {target_bytes};
    return engine_.begin().attach(request);
  }

  // Heartbeats, for peers that close idle connections.
  void look_after() {
    looked_after_ = true;
    const auto next = engine_.tick(tick_now());
    if (engine_.has_output()) stream_.wake();
    if (next) heartbeat_.arm(*next, [this] { look_after(); });
  }

  net::Stream& stream_;
  amqp::Connection engine_;
  net::Timer heartbeat_;
  bool looked_after_ = false;
};

class Sender final : public Client {
 public:
  Sender(net::Stream& stream, LoadTarget target, SenderLoad load, SenderCounts& counts)
      : Client(stream, client_options(target)),
        target_(std::move(target)),
        load_(std::move(load)),
        counts_(counts),
        timer_(stream.reactor()) {
    const std::uint32_t rest = load_.body_bytes > 8 ? load_.body_bytes - 8 : 0;
    const Payload bytes = Payload::copy_of(std::string(std::max(rest, 1u), 'x'));
    filler_ = bytes.slice(0);
  }

 private:
  void on_open(amqp::Connection&, const amqp::Open&) override {
    link_ = &attach(amqp::Role::sender, target_.address);
  }
  void on_credit(amqp::Link&) override {
    if (started_ == Tick{}) started_ = tick_now();
    load_.rate > 0 ? pace() : fill();
  }
  void on_disposition(amqp::Link&, const amqp::DispositionOf& disposition) override {
    if (!disposition.state.is(amqp::descriptor::accepted)) give_up("a message was not accepted");
    const Tick now = tick_now();
    {
      const std::lock_guard lock(counts_.mutex);
      counts_.outcome_after.add(
          now - Tick{std::chrono::nanoseconds{static_cast<std::int64_t>(disposition.context)}});
    }
    --under_way_;
    counts_.accepted.fetch_add(1, std::memory_order_relaxed);
    if (load_.rate == 0) fill();
  }
  [[nodiscard]] bool may_send() const {
    return link_->sendable() && under_way_ < load_.window && !counts_.stop.load(std::memory_order_relaxed) &&
           (load_.messages_max == 0 || number_ < load_.messages_max);
  }
  // Asked when all that was granted is used up: a receiver's count lives in the cache of another core.
  [[nodiscard]] bool has_room() {
    if (!load_.room || room_ > 0) return true;
    room_ = load_.room();
    return room_ > 0;
  }
  void send_one(Tick now) {
    std::uint8_t tag[8];
    amqp::store_be(tag, ++number_);
    amqp::Outgoing outgoing;
    outgoing.tag = tag;
    outgoing.context = static_cast<std::uint64_t>(now.time_since_epoch().count());
    link_->send(outgoing, make_message(number_, now, load_.durable, filler_));
    ++under_way_;
    if (room_ > 0) --room_;
    counts_.sent.fetch_add(1, std::memory_order_relaxed);
  }
  void fill() {
    while (may_send() && has_room()) send_one(tick_now());
    if (engine_.has_output()) stream_.wake();
    if (may_send() && !timer_.armed()) timer_.arm(tick_now() + 1ms, [this] { fill(); });
  }
  [[nodiscard]] Tick due_at(std::uint64_t number) const {
    return started_ + std::chrono::nanoseconds{
                          static_cast<std::int64_t>(static_cast<double>(number) / load_.rate * 1e9)};
  }
  void pace() {
    const Tick now = tick_now();
    if (counts_.pause) {
      started_ += now - due_at(number_);
      return timer_.arm(now + 1ms, [this] { pace(); });
    }
    const auto due =
        static_cast<std::uint64_t>(std::chrono::duration<double>(now - started_).count() * load_.rate);
    while (number_ < due && may_send()) send_one(load_.stamp_due ? due_at(number_ + 1) : now);
    if (engine_.has_output()) stream_.wake();
    // A sender that may not go on is looked after a little later, not at once and again.
    timer_.arm(std::max(due_at(number_ + 1), number_ < due ? now + 1ms : now), [this] { pace(); });
  }

  const LoadTarget target_;
  const SenderLoad load_;
  SenderCounts& counts_;
  net::Timer timer_;
  Slice filler_;
  amqp::Link* link_ = nullptr;
  Tick started_{};
  std::uint64_t number_ = 0;
  std::uint32_t under_way_ = 0;
  std::uint32_t room_ = 0;
};

class Receiver final : public Client {
 public:
  Receiver(net::Stream& stream, LoadTarget target, std::uint32_t credit, ReceiverCounts& counts)
      : Client(stream, client_options(target)),
        target_(std::move(target)),
        credit_(credit),
        counts_(counts) {}

 private:
  void on_open(amqp::Connection&, const amqp::Open&) override {
    attach(amqp::Role::receiver, target_.address).grant(credit_);
  }
  void on_transfer(amqp::Link& link, amqp::Delivery& delivery) override {
    if (!delivery.settled) link.disposition(delivery.id, amqp::State::accepted());
    if (link.credit() <= credit_ / 2) link.grant(credit_ - link.credit());
    const Tick now = tick_now();
    {
      const std::lock_guard lock(counts_.mutex);
      const Tick sent = sent_at(delivery.payload);
      counts_.latency.add(now - sent);
      if (counts_.arrivals) counts_.arrivals->push_back({sent, now});
    }
    counts_.received.fetch_add(1, std::memory_order_relaxed);
  }
  const LoadTarget target_;
  const std::uint32_t credit_;
  ReceiverCounts& counts_;
};

class Idle final : public Client {
 public:
  Idle(net::Stream& stream, LoadTarget target, IdleCounts& counts)
      : Client(stream, client_options(target)), target_(std::move(target)), counts_(counts) {}

 private:
  enum class State : std::uint8_t { opening, attached, refused };
  void on_open(amqp::Connection&, const amqp::Open&) override { attach(amqp::Role::sender, target_.address); }
  void on_attached(amqp::Link&, const amqp::Attach&) override {
    state_ = State::attached;
    ++counts_.attached;
  }
  void on_end(amqp::Session& session, const amqp::Condition* condition) override {
    if (!refuse()) Client::on_end(session, condition);
  }
  void on_closed(amqp::Connection& connection, const amqp::Condition* condition) override {
    if (!refuse()) Client::on_closed(connection, condition);
  }
  void on_closed(const Error* why) override {
    if (!refuse()) Client::on_closed(why);
  }
  // A connection that never came up is counted and let go; whoever counts decides how many are too many.
  bool refuse() {
    if (state_ == State::attached) return false;
    if (state_ == State::opening) {
      state_ = State::refused;
      ++counts_.refused;
      stream_.abort({Errc::io, "refused"});
    }
    return true;
  }

  const LoadTarget target_;
  IdleCounts& counts_;
  State state_ = State::opening;
};

class Sink final : public Client {
 public:
  Sink(net::Stream& stream, ReceiverCounts& counts) : Client(stream, options()), counts_(counts) {}

 private:
  static amqp::ConnectionOptions options() {
    amqp::ConnectionOptions options;
    options.container_id = "sink";
    options.sasl_mechanisms = {"ANONYMOUS"};
    return options;
  }
  void on_attach(amqp::Link& link, const amqp::Attach&) override {
    link.accept({});
    link.grant(credit);
  }
  void on_transfer(amqp::Link& link, amqp::Delivery& delivery) override {
    link.disposition(delivery.id, amqp::State::accepted());
    if (link.credit() <= credit / 2) link.grant(credit - link.credit());
    counts_.received.fetch_add(1, std::memory_order_relaxed);
  }
  // The sender ends the connection as it likes.
  void on_closed(const Error*) override {}
  static constexpr std::uint32_t credit = 1000;
  ReceiverCounts& counts_;
};

template <class Make>
void connect(net::Reactor& reactor, std::uint16_t port, Make make) {
  net::connect(reactor, {.host = "127.0.0.1", .port = port}, [make](Result<net::Stream*> stream) {
    if (!stream) give_up(stream.error().detail);
    return std::unique_ptr<net::StreamHandler>(make(**stream));
  });
}

}  // namespace

void end_load(net::Reactor& reactor) {
  ++ending;
  reactor.stop();
  reactor.join();
  --ending;
}

void start_sender(net::Reactor& reactor, const LoadTarget& target, const SenderLoad& load,
                  SenderCounts& counts) {
  connect(reactor, target.port,
          [=, &counts](net::Stream& stream) { return new Sender(stream, target, load, counts); });
}

void start_receiver(net::Reactor& reactor, const LoadTarget& target, std::uint32_t credit,
                    ReceiverCounts& counts) {
  connect(reactor, target.port,
          [=, &counts](net::Stream& stream) { return new Receiver(stream, target, credit, counts); });
}

void start_idle(net::Reactor& reactor, const LoadTarget& target, IdleCounts& counts) {
  connect(reactor, target.port,
          [=, &counts](net::Stream& stream) { return new Idle(stream, target, counts); });
}

struct SinkServer::Accepting final : net::ConnectionHandler {
  explicit Accepting(ReceiverCounts& c) : counts(c) {}
  std::unique_ptr<net::StreamHandler> on_amqp(net::Stream& stream, bool) override {
    return std::make_unique<Sink>(stream, counts);
  }
  void on_http(net::HttpRequest, net::HttpReply) override {}
  void on_trouble(const Error& what) override { give_up(what.detail); }
  ReceiverCounts& counts;
  std::unique_ptr<net::Listener> listener;
};

SinkServer::SinkServer(net::ShardPool& pool, ReceiverCounts& counts)
    : accepting_(std::make_unique<Accepting>(counts)) {
  net::ListenerSettings settings;
  settings.addresses = {"127.0.0.1:0"};
  auto listener = net::Listener::open(pool, std::move(settings), *accepting_);
  if (!listener) give_up(listener.error().detail);
  accepting_->listener = *std::move(listener);
}

SinkServer::~SinkServer() = default;

std::uint16_t SinkServer::port() const {
  const std::string& address = accepting_->listener->addresses().front();
  return static_cast<std::uint16_t>(std::atoi(address.c_str() + address.rfind(':') + 1));
}

}  // namespace omnibus::bench
