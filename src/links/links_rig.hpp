// A client and the broker's side of its connection, joined in memory. The test owns both clocks.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "amqp/codec/message.hpp"
#include "amqp/codec/value.hpp"
#include "amqp/engine/connection.hpp"
#include "auth/sas_token.hpp"
#include "base/check.hpp"
#include "links/client_connection.hpp"
#include "links/queue_port.hpp"

namespace omnibus::links {

using namespace std::chrono_literals;

inline constexpr std::string_view rig_key = "SAS_KEY_VALUE";

// What the client hears.
class RigClient final : public amqp::Handler {
 public:
  struct Heard {
    std::optional<bool> attached;  // the broker answered, and with a terminus
    std::optional<amqp::Condition> detached;
    bool gone = false;
    std::vector<std::string> messages;
    std::vector<std::uint32_t> accepted;
    // The broker's attach, as far as it matters to senders and receivers.
    std::optional<std::uint64_t> max_message_size;
    amqp::Value properties;
    amqp::Value source_filter;
    amqp::Value capabilities;  // of a coordinator
    amqp::SenderSettle snd_settle_mode{};
    amqp::ReceiverSettle rcv_settle_mode{};
    struct Got {
      std::uint32_t id = 0;
      std::string tag;
      std::string message;
      bool settled = false;
    };
    std::vector<Got> deliveries;
    struct Outcome {
      std::uint32_t id = 0;
      std::uint64_t state = 0;  // descriptor
      std::string condition;    // of rejected
      bool settled = false;
      std::string description;  // of rejected
      std::string transaction;  // of declared and transactional
      std::uint64_t inner = 0;  // descriptor of the outcome in transactional
    };
    std::vector<Outcome> outcomes;
  };
  bool accepts_all = true;  // every message, at once
  std::map<amqp::Link*, Heard> links;
  std::optional<std::uint8_t> sasl_code;
  std::string sasl_data;
  std::string broker_container;
  std::optional<amqp::Condition> closed;
  bool ended = false;

  void on_sasl_outcome(const amqp::SaslOutcome& outcome) override {
    sasl_code = outcome.code;
    sasl_data = as_text(outcome.additional_data.value_or(Bytes{}));
  }
  void on_open(amqp::Connection&, const amqp::Open& open) override { broker_container = open.container_id; }
  void on_attached(amqp::Link& link, const amqp::Attach& attach) override {
    const bool sends = link.role() == amqp::Role::sender;
    Heard& heard = links[&link];
    heard.attached = !(sends ? attach.target : attach.source).is_null();
    heard.max_message_size = attach.max_message_size;
    if (const auto coordinator = amqp::decode_composite<amqp::Coordinator>(attach.target))
      heard.capabilities = amqp::decode_value(coordinator->capabilities).value_or(amqp::Value{});
    heard.properties = amqp::decode_value(attach.properties).value_or(amqp::Value{});
    heard.snd_settle_mode = link.snd_settle_mode();
    heard.rcv_settle_mode = link.rcv_settle_mode();
    if (const auto source = amqp::decode_composite<amqp::Source>(attach.source))
      heard.source_filter = amqp::decode_value(source->filter).value_or(amqp::Value{});
  }
  void on_detach(amqp::Link& link, bool, const amqp::Condition* condition) override {
    links[&link].detached = condition ? *condition : amqp::Condition{};
  }
  void on_link_gone(amqp::Link& link) override { links[&link].gone = true; }
  void on_transfer(amqp::Link& link, amqp::Delivery& delivery) override {
    links[&link].messages.push_back(delivery.payload.to_string());
    links[&link].deliveries.push_back(
        {delivery.id, std::string{as_text(delivery.tag)}, delivery.payload.to_string(), delivery.settled});
    if (!delivery.settled && accepts_all) link.disposition(delivery.id, amqp::State::accepted());
  }
  void on_disposition(amqp::Link& link, const amqp::DispositionOf& disposition) override {
    if (disposition.state.is(amqp::descriptor::accepted)) links[&link].accepted.push_back(disposition.id);
    Heard::Outcome outcome{disposition.id, disposition.state.descriptor, "", disposition.settled, "", "", 0};
    if (const auto rejected = amqp::decode_composite<amqp::Rejected>(disposition.state.raw))
      if (const auto error = amqp::decode_condition(rejected->error)) {
        outcome.condition = error->name;
        outcome.description = error->description;
      }
    if (const auto declared = amqp::decode_composite<amqp::Declared>(disposition.state.raw))
      outcome.transaction = as_text(declared->txn_id);
    if (const auto state = amqp::decode_composite<amqp::TransactionalState>(disposition.state.raw)) {
      outcome.transaction = as_text(state->txn_id);
      outcome.inner = amqp::view_state(state->outcome).descriptor;
    }
    links[&link].outcomes.push_back(std::move(outcome));
  }
  void on_closed(amqp::Connection&, const amqp::Condition* condition) override {
    ended = true;
    if (condition) closed = *condition;
  }
};

class RigObserver final : public ConnectionObserver {
 public:
  std::vector<std::string> lines;
  void authenticated(std::string_view mechanism, std::string_view identity) override {
    lines.push_back(fmt::format("authenticated {} {}", mechanism, identity));
  }
  void authentication_failed(std::string_view mechanism, std::string_view) override {
    lines.push_back(fmt::format("failed {}", mechanism));
  }
  void token_accepted(std::string_view path, std::string_view holder) override {
    lines.push_back(fmt::format("token {} {}", path, holder));
  }
  void token_refused(std::string_view path, const Error& why) override {
    lines.push_back(fmt::format("refused {} {}", path, why.detail));
  }
  void link_detached(std::string_view address, std::string_view, std::string_view condition,
                     std::string_view) override {
    lines.push_back(fmt::format("detached {} {}", address, condition));
  }
  void rule_changed(const RuleChange& change) override {
    lines.push_back(fmt::format("rule {} {} {}/{} {}{}", change.who, change.adds ? "added" : "removed",
                                change.subscription, change.rule, change.status,
                                change.in_transaction ? " in a transaction" : ""));
  }
  void message_unreadable(std::string_view entity, std::int64_t sequence, const Error&) override {
    lines.push_back(fmt::format("unreadable {} {}", entity, sequence));
  }
};

struct RigOptions {
  ConnectionSettings settings;
  auth::SaslSettings sasl;
  ClientInfo info{"127.0.0.1:1", "tcp", {}, false};
  std::string mechanism = "ANONYMOUS";  // empty: no SASL layer
  std::string response;
  std::chrono::milliseconds client_idle{0};
};

class LinksRig {
 public:
  explicit LinksRig(RigOptions options = {}) : options_(std::move(options)), sasl_(options_.sasl, rules_) {
    check(rules_.put("", *auth::make_default_rule(rig_key, wall())).has_value());
    auth::RuleDocument listen{
        .key_name = "listen", .primary_key = "listen-key", .rights = {auth::Right::listen}};
    check(rules_.put("", *auth::make_rule(listen, wall())).has_value());
    validator_ = std::make_unique<auth::TokenValidator>(
        auth::ValidatorSettings{.auth_off = options_.sasl.auth_off}, rules_, issuers_);
    broker = std::make_unique<ClientConnection>(options_.settings, options_.info, sasl_, *validator_, random_,
                                                log, queues, 1);
    amqp::ConnectionOptions client_options;
    client_options.side = amqp::ConnectionOptions::Side::client;
    client_options.container_id = "rig";
    client_options.hostname = "localhost";
    client_options.idle_time_out = options_.client_idle;
    if (!options_.mechanism.empty()) client_options.sasl_mechanisms = {options_.mechanism};
    client_options.sasl_response = options_.response;
    client = std::make_unique<amqp::Connection>(client_options, heard);
    broker->start(now());
    client->start(now().tick);
    pump();
  }

  [[nodiscard]] Now now() const { return {tick_, wall_}; }
  [[nodiscard]] Instant wall() const { return wall_; }

  std::size_t input_bytes_max = SIZE_MAX;  // the broker reads so much at a time

  // Moves bytes both ways until nobody has more to say, and lets the broker do what is due.
  void pump() {
    for (bool moved = true; moved;) {
      moved = false;
      next_ = broker->tick(now());
      moved |= queues.run(wall_, [&](broker::Answer& answer) { broker->deliver(answer, now()); });
      broker->on_room(now());
      while (broker->has_output()) {
        const std::string bytes = take([&](std::span<iovec> out) { return broker->gather(out); },
                                       [&](std::size_t n) { broker->wrote(n, now()); });
        if (bytes.empty()) break;
        client->receive(as_bytes(bytes), tick_);
        moved = true;
      }
      std::string bytes;
      while (client->has_output())
        bytes += take([&](std::span<iovec> out) { return client->gather(out); },
                      [&](std::size_t n) { client->wrote(n, tick_); });
      moved |= !bytes.empty();
      for (Bytes rest = as_bytes(bytes); !rest.empty() && !broker->finished();) {
        broker->receive(rest.first(std::min(rest.size(), input_bytes_max)), now());
        rest = rest.subspan(std::min(rest.size(), input_bytes_max));
      }
    }
  }

  // Goes from deadline to deadline, as timers would.
  void advance(std::chrono::milliseconds by) {
    const Tick end = tick_ + by;
    for (;;) {
      // The queues' deadlines are on the wall clock, which here runs with the other.
      Tick due = next_.value_or(Tick::max());
      if (const Instant queues_due = queues.next_deadline(); queues_due != broker::never)
        due = std::min(due, tick_ + std::max(queues_due - wall_, 0ms));
      if (due > end || broker->finished()) break;
      const Tick at = std::max(due, tick_ + 1ms);
      wall_ += std::chrono::ceil<std::chrono::milliseconds>(at - tick_);
      tick_ = at;
      pump();
    }
    wall_ += std::chrono::ceil<std::chrono::milliseconds>(end - tick_);
    tick_ = end;
    pump();
  }

  amqp::Session& session() {
    if (!session_) session_ = &client->begin();
    return *session_;
  }

  struct AttachWith {
    amqp::SenderSettle snd = amqp::SenderSettle::mixed;
    amqp::ReceiverSettle rcv = amqp::ReceiverSettle::first;
    amqp::Value filter{};      // of the source
    amqp::Value properties{};  // of the link
    amqp::Session* session = nullptr;
    bool to_coordinator = false;
  };
  amqp::Link& attach(const std::string& name, amqp::Role role, std::string_view address,
                     std::string_view own = "me") {
    return attach(name, role, address, AttachWith{}, own);
  }
  amqp::Link& attach(const std::string& name, amqp::Role role, std::string_view address,
                     const AttachWith& with, std::string_view own = "me") {
    const auto filter = amqp::encode(with.filter);
    const auto properties = amqp::encode(with.properties);
    const auto address_bytes = amqp::encode(amqp::Value{address});
    const auto own_bytes = amqp::encode(amqp::Value{own});
    const bool sends = role == amqp::Role::sender;
    amqp::Source source;
    source.address = {sends ? own_bytes : address_bytes};
    source.filter = {filter};
    amqp::Target target;
    target.address = {sends ? address_bytes : own_bytes};
    const auto source_bytes = amqp::encode_composite(source);
    const auto target_bytes =
        with.to_coordinator ? amqp::encode_composite(amqp::Coordinator{}) : amqp::encode_composite(target);
    amqp::AttachRequest request;
    request.name = name;
    request.role = role;
    request.snd_settle_mode = with.snd;
    request.rcv_settle_mode = with.rcv;
    request.properties = {properties};
    request.source = {source_bytes};
    request.target = {target_bytes};
    amqp::Link& link = (with.session ? *with.session : session()).attach(request);
    heard.links[&link];
    pump();
    return link;
  }

  [[nodiscard]] std::string sas(std::string_view resource, std::chrono::seconds life = 1h,
                                std::string_view rule = auth::default_rule_name,
                                std::string_view key = rig_key) const {
    return auth::make_sas_token(resource, rule, key, std::chrono::ceil<std::chrono::seconds>(wall_) + life);
  }

  struct Answer {
    int status = 0;
    std::string description;
    std::optional<std::string> condition;
    amqp::Value correlation_id;
  };

  // put-token on a $cbs pair that is made on first use. Nothing when no answer came.
  std::optional<Answer> put_token(std::string_view name, std::string_view token,
                                  std::string_view type = "servicebus.windows.net:sastoken",
                                  const amqp::Value& message_id = "id-1") {
    if (!cbs_send_) {
      cbs_send_ = &attach("cbs-send", amqp::Role::sender, "$cbs");
      cbs_receive_ = &attach("cbs-receive", amqp::Role::receiver, "$cbs", "cbs-reply");
      cbs_receive_->grant(100);
      pump();
    }
    amqp::MessageBuilder builder;
    const auto id = amqp::encode(message_id);
    const auto reply_to = amqp::encode(amqp::Value{"cbs-reply"});
    builder.properties().message_id = {id};
    builder.properties().reply_to = {reply_to};
    builder.application_property("operation", "put-token");
    builder.application_property("type", type);
    builder.application_property("name", name);
    builder.body(amqp::Value{token});
    auto& messages = heard.links[cbs_receive_].messages;
    const std::size_t before = messages.size();
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    cbs_send_->send(outgoing, builder.build());
    pump();
    if (messages.size() == before) return std::nullopt;
    return read_answer(messages.back(), "status-code", "status-description", "error-condition");
  }

  static Answer read_answer(const std::string& message, std::string_view code, std::string_view text,
                            std::string_view condition) {
    const auto view = amqp::MessageView::parse(as_bytes(message));
    check(view.has_value(), "the answer is a message");
    Answer answer;
    const auto property = [&](std::string_view key) {
      return *amqp::decode_value(*view->application_property(key));
    };
    const amqp::Value status = property(code);
    check(status.get_if<std::int32_t>() != nullptr, "the status is an int: Go takes no other type");
    answer.status = *status.get_if<std::int32_t>();
    answer.description = property(text).as_text().value_or("(null)");
    if (const amqp::Value value = property(condition); value.get_if<amqp::SymbolValue>())
      answer.condition = std::string(*value.as_text());
    answer.correlation_id = *amqp::decode_value(view->properties()->correlation_id);
    return answer;
  }

  RigClient heard;
  RigObserver log;
  QueuePort queues;
  std::unique_ptr<ClientConnection> broker;
  std::unique_ptr<amqp::Connection> client;

 private:
  template <class Gather, class Wrote>
  static std::string take(Gather gather, Wrote wrote) {
    iovec parts[16];
    std::string bytes;
    const std::size_t count = gather(parts);
    for (std::size_t i = 0; i < count; ++i)
      bytes.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
    wrote(bytes.size());
    return bytes;
  }

  RigOptions options_;
  Tick tick_{1h};
  Instant wall_{std::chrono::sys_days{std::chrono::year{2026} / 1 / 15}};
  auth::AccessRules rules_;
  auth::JwtIssuers issuers_;
  auth::SaslPolicy sasl_;
  std::unique_ptr<auth::TokenValidator> validator_;
  Random random_{1};
  std::optional<Tick> next_;
  amqp::Session* session_ = nullptr;
  amqp::Link* cbs_send_ = nullptr;
  amqp::Link* cbs_receive_ = nullptr;
};

}  // namespace omnibus::links
