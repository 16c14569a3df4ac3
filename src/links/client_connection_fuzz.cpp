// A client that may say anything, from its first byte on: SASL, tokens for $cbs, and what links are asked
// for. Whatever comes, the connection answers or closes, ends whole, and who has shown no right reaches no
// entity.
#include "amqp/engine/fuzz_rig.hpp"
#include "links/links_rig.hpp"

namespace omnibus::links {
namespace {

// Holds the broker to what it promises about those who have no rights.
class Watch final : public ConnectionObserver {
 public:
  bool has_rights = false;
  int closed_times = 0;

  void authenticated(std::string_view mechanism, std::string_view) override {
    has_rights = has_rights || mechanism == "PLAIN" || mechanism == "EXTERNAL";
  }
  void token_accepted(std::string_view, std::string_view) override { has_rights = true; }
  void link_attached(std::string_view address, bool) override {
    if (has_rights || address == "(coordinator)") return;
    const auto node = resolve_address(address, [](std::string_view) { return nullptr; });
    check(node && node->node == Address::Node::cbs, "without a right there is $cbs and nothing else");
  }
  void closed(std::string_view, std::string_view) override { ++closed_times; }
};

// The broker's side alone: the client is the input.
class RawRig {
 public:
  RawRig(bool auth_off, bool with_certificate)
      : sasl_({.auth_off = auth_off,
               .client_certificates = with_certificate,
               .certificate_rights = {{"CN=known", auth::Rights::all()}}},
              rules_),
        validator_({.auth_off = auth_off}, rules_, issuers_) {
    check(rules_.put("", *auth::make_default_rule(rig_key, wall_)).has_value());
    watch.has_rights = auth_off;
    if (auth_off) settings_.token_wait = 0ms;
    ClientInfo info{.peer = "127.0.0.1:1", .transport = "tcp", .sasl = {.tls = with_certificate}};
    if (with_certificate)
      info.sasl.certificate = auth::ClientCertificate{.subject = "CN=other", .alternative_names = {}};
    queues.add({.name = "orders"}, wall_);
    queues.add({.name = "talks", .requires_session = true}, wall_);
    queues.add_topic({.name = "news"}, wall_);
    queues.subscribe("news", "all", wall_);
    queues.add_topic({.name = "rates", .exchange = rules::ExchangeType::topic}, wall_);
    queues.add_partitioned({.name = "many"}, 4, wall_);
    broker = std::make_unique<ClientConnection>(settings_, std::move(info), sasl_, validator_, random_, watch,
                                                queues, 1);
    broker->start(now());
  }

  // In pieces of `step` bytes; 0: at once.
  void feed(Bytes bytes, std::size_t step = 0) {
    while (!bytes.empty() && !broker->finished()) {
      const std::size_t part = step == 0 ? bytes.size() : std::min(step, bytes.size());
      // A copy of its own, so that reading past the end is seen.
      const std::vector<std::uint8_t> piece(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(part));
      broker->receive(piece, now());
      settle();
      bytes = bytes.subspan(part);
    }
  }
  void wait(std::chrono::milliseconds span) {
    tick_ += span;
    wall_ += span;
    settle();
  }
  void finish() {
    wait(25s);   // for the first token
    wait(310s);  // for a link
    queues.remove("orders");
    const std::string gone[] = {"orders"};
    broker->entities_changed(gone, now());
    settle();
    broker->lost(now());
    check(broker->finished() && broker->links() == 0 && broker->sessions() == 0, "the end is the end");
    check(watch.closed_times <= 1, "a connection closes once");
    check(watch.has_rights || queues.taken == 0, "without a right nobody reaches an entity");
  }

  std::string output;  // of the broker, so far
  Watch watch;
  QueuePort queues;
  std::unique_ptr<ClientConnection> broker;

 private:
  [[nodiscard]] Now now() const { return {tick_, wall_}; }
  void settle() {
    for (bool moved = true; moved;) {
      broker->tick(now());
      moved = queues.run(wall_, [&](broker::Answer& answer) { broker->deliver(answer, now()); });
      broker->on_room(now());
      while (broker->has_output()) {
        iovec parts[16];
        std::size_t bytes = 0;
        const std::size_t count = broker->gather(parts);
        for (std::size_t i = 0; i < count; ++i) {
          output.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
          bytes += parts[i].iov_len;
        }
        if (bytes == 0) break;
        broker->wrote(bytes, now());
        moved = true;
      }
    }
  }

  ConnectionSettings settings_{.idle_link = 200s};
  Tick tick_{1h};
  Instant wall_{std::chrono::sys_days{std::chrono::year{2026} / 1 / 15}};
  auth::AccessRules rules_;
  auth::JwtIssuers issuers_;
  auth::SaslPolicy sasl_;
  auth::TokenValidator validator_;
  Random random_{1};
};

using Wire = std::vector<std::uint8_t>;

// Open, with a session; without SASL, which is as good as ANONYMOUS.
Wire opened() {
  Wire wire;
  const auto header = amqp::protocol_header(amqp::ProtocolId::amqp);
  wire.insert(wire.end(), header.begin(), header.end());
  amqp::Open open;
  open.container_id = "fuzz";
  open.hostname = "localhost";
  amqp::fuzz::add_frame(wire, open);
  amqp::Begin begin;
  begin.incoming_window = 1000;
  begin.outgoing_window = 1000;
  amqp::fuzz::add_frame(wire, begin);
  return wire;
}

void add_attach(Wire& wire, std::uint32_t handle, bool receives, std::string_view address) {
  const auto at = amqp::encode(amqp::Value{address});
  const auto own = amqp::encode(amqp::Value{"reply"});
  amqp::Source source;
  source.address = {receives ? at : own};
  amqp::Target target;
  target.address = {receives ? own : at};
  const auto source_bytes = amqp::encode_composite(source);
  const auto target_bytes = amqp::encode_composite(target);
  const std::string name = fmt::format("link-{}", handle);
  amqp::Attach attach;
  attach.link_name = name;
  attach.handle = handle;
  attach.role = receives;
  attach.source = {source_bytes};
  attach.target = {target_bytes};
  if (!receives) attach.initial_delivery_count = 0;
  amqp::fuzz::add_frame(wire, attach);
  if (!receives) return;
  amqp::Flow flow;
  flow.next_incoming_id = 0;
  flow.incoming_window = flow.outgoing_window = 1000;
  flow.handle = handle;
  flow.delivery_count = 0;
  flow.link_credit = 100;
  amqp::fuzz::add_frame(wire, flow);
}

void add_transfer(Wire& wire, std::uint32_t handle, Bytes message) {
  amqp::Transfer transfer;
  transfer.handle = handle;
  transfer.delivery_id = 0;
  transfer.delivery_tag = as_bytes("t");
  transfer.message_format = 0;
  const std::size_t at = wire.size();
  amqp::fuzz::add_frame(wire, transfer);
  wire.insert(wire.end(), message.begin(), message.end());
  amqp::put_frame_header(wire.data() + at, static_cast<std::uint32_t>(wire.size() - at),
                         amqp::frame_type_amqp, 0);
}

// A terminus of the input's making on both sides of a link, and properties; with credit, to be served.
void ask_for_link(RawRig& rig, std::uint8_t how, std::uint8_t first, std::uint8_t second, Bytes rest) {
  const auto take = [&](std::size_t bytes) {
    const Bytes part = rest.first(std::min(bytes, rest.size()));
    rest = rest.subspan(part.size());
    return part;
  };
  const Bytes source = take(first);
  const Bytes target = take(second);
  amqp::Attach attach;
  attach.link_name = "asked";
  attach.role = how & 1;
  if (how & 2) attach.snd_settle_mode = how >> 4 & 3;
  if (how & 2) attach.rcv_settle_mode = how >> 6 & 3;
  if (!attach.role) attach.initial_delivery_count = 0;
  if (!source.empty()) attach.source = {source};
  if (!target.empty()) attach.target = {target};
  if (!rest.empty()) attach.properties = {rest};
  Wire wire;
  amqp::fuzz::add_frame(wire, attach);
  rig.feed(wire);
  if (rig.broker->links() == 0) return;
  wire.clear();
  if (attach.role) {
    amqp::Flow flow;
    flow.next_incoming_id = 0;
    flow.incoming_window = flow.outgoing_window = 1000;
    flow.handle = 0;
    flow.delivery_count = 0;
    flow.link_credit = 10;
    amqp::fuzz::add_frame(wire, flow);
  } else {
    constexpr std::uint8_t message[] = {0x00, 0x53, 0x75, 0xa0, 0x01, 'x'};
    add_transfer(wire, 0, message);
  }
  rig.feed(wire);
}

// Type, name and token in three lines: one answer, whatever they are.
void put_token(std::string_view text) {
  if (!is_utf8(text)) return;
  const auto line = [&] {
    const auto end = std::min(text.find('\n'), text.size());
    const auto one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return one;
  };
  const auto type = line();
  const auto name = line();
  LinksRig rig;
  const auto answer = rig.put_token(name, text, type);
  check(answer.has_value(), "every request is answered");
  check(answer->status == 202 || answer->status == 400 || answer->status == 401 || answer->status == 403,
        "a token is good or it is not");
  check(answer->correlation_id == amqp::Value{"id-1"} && is_utf8(answer->description));
  check((answer->status == 202) == !answer->condition.has_value(), "a failure has a condition");
}

}  // namespace
}  // namespace omnibus::links

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus;
  using namespace omnibus::links;
  if (size < 4 || size > 50'000) return 0;
  const std::uint8_t how = data[1];
  const Bytes rest{data + 2, size - 2};
  switch (data[0] % 6) {
    case 0: {  // everything is the client's
      RawRig rig{false, (how & 1) != 0};
      rig.feed(rest, how / 2);
      rig.finish();
      break;
    }
    case 1:
    case 2: {  // frames on a connection that is open; the second time with every right
      RawRig rig{data[0] % 6 == 2, false};
      rig.feed(opened());
      rig.feed(rest, how / 2);
      rig.finish();
      break;
    }
    case 3: {  // a whole request to $cbs
      RawRig rig{false, false};
      Wire wire = opened();
      add_attach(wire, 0, false, "$cbs");
      add_attach(wire, 1, true, "$cbs");
      add_transfer(wire, 0, rest);
      rig.feed(wire);
      check(!rig.broker->finished() && rig.broker->links() == 2, "a bad request is no bad connection");
      rig.finish();
      break;
    }
    case 4:
      put_token(as_text(rest));
      break;
    default: {
      RawRig rig{(how & 8) != 0, false};
      rig.feed(opened());
      ask_for_link(rig, how, data[2], data[3], Bytes{data + 4, size - 4});
      rig.finish();
      break;
    }
  }
  return 0;
}
