#include "sim/sim_client.hpp"

#include <fmt/format.h>

#include "amqp/codec/message.hpp"

namespace omnibus::sim {
namespace {

using namespace std::chrono_literals;

// Only an answer that says so binds the broker: after an internal error nobody can say what happened.
Outcome outcome_of(std::string_view condition) {
  return condition == "amqp:internal-error" || condition == "com.microsoft:timeout" ? Outcome::unknown
                                                                                    : Outcome::refused;
}

}  // namespace

Answered read_answer(const amqp::StateView& state) {
  Answered answered;
  if (const auto enlisted = amqp::decode_composite<amqp::TransactionalState>(state.raw);
      state.is(amqp::descriptor::transactional_state) && enlisted) {
    answered.outcome = Outcome::accepted;
    return answered;
  }
  if (const auto declared = amqp::decode_composite<amqp::Declared>(state.raw);
      state.is(amqp::descriptor::declared) && declared) {
    answered.outcome = Outcome::accepted;
    answered.transaction = as_text(declared->txn_id);
    return answered;
  }
  if (state.is(amqp::descriptor::rejected)) {
    const auto rejected = amqp::decode_composite<amqp::Rejected>(state.raw);
    const auto error = rejected ? amqp::decode_condition(rejected->error) : std::nullopt;
    if (!error) {
      answered.outcome = Outcome::accepted;  // the echo of a dead-letter
      return answered;
    }
    answered.condition = error->name;
    answered.outcome = outcome_of(error->name);
    return answered;
  }
  answered.outcome = state.is_outcome() ? Outcome::accepted : Outcome::unknown;
  return answered;
}

SimClient::SimClient(World& world, SimBroker& broker, const Scenario& scenario, History& history,
                     std::string name)
    : world_(world), broker_(broker), scenario_(scenario), history_(history), name_(std::move(name)) {}

SimClient::~SimClient() {
  if (wire_) wire_->vanish(Wire::Side::client, Nanos{0});
}

void SimClient::start() {
  world_.after(world_.between(Nanos{0}, 100ms), life_, [this] { connect(); });
}

void SimClient::finish() {
  is_finished_ = true;
  if (!engine_) return;
  wire_->vanish(Wire::Side::client, Nanos{0});
  drop();
}

void SimClient::connect() {
  if (is_finished_ || engine_) return;
  wire_ = broker_.connect(*this);
  if (!wire_) {
    world_.after(world_.between(50ms, 1s), life_, [this] { connect(); });
    return;
  }
  connected_ = begin_life();
  amqp::ConnectionOptions options;
  options.side = amqp::ConnectionOptions::Side::client;
  options.container_id = name_;
  options.hostname = "localhost";
  options.idle_time_out = 60s;
  options.sasl_mechanisms = {"PLAIN"};
  options.sasl_response =
      std::string{'\0'} + std::string{auth::default_rule_name} + '\0' + std::string{sim_key};
  amqp::Handler& handler = *this;
  engine_ = std::make_unique<amqp::Connection>(options, handler);
  engine_->start(world_.tick());
  flush();
  tick();
}

void SimClient::drop() {
  engine_->lost();
  connected_.reset();
  timer_.reset();
  engine_.reset();
  pairs_.clear();
  questions_.clear();
  session_ = nullptr;
  wire_.reset();
  on_disconnected();
  if (!is_finished_) world_.after(world_.between(10ms, 3s), life_, [this] { connect(); });
}

void SimClient::break_off() {
  if (!engine_) return;
  wire_->vanish(Wire::Side::client, world_.between(Nanos{0}, 1s));
  drop();
}

void SimClient::on_bytes(Bytes bytes) {
  if (!engine_) return;
  engine_->receive(bytes, world_.tick());
  flush();
  if (engine_ && engine_->finished()) {
    wire_->close(Wire::Side::client);
    drop();
  }
}

void SimClient::on_lost() {
  if (engine_) drop();
}

void SimClient::tick() {
  if (!engine_) return;
  const auto next = engine_->tick(world_.tick());
  flush();
  if (engine_->finished()) {
    wire_->close(Wire::Side::client);
    return drop();
  }
  timer_ = begin_life();
  const Tick due = next.value_or(world_.tick() + 10s);
  world_.at(std::max(due, world_.tick() + 1ms), timer_, [this] { tick(); });
}

void SimClient::flush() {
  if (!engine_) return;
  std::string bytes;
  while (engine_->has_output()) {
    iovec parts[16];
    const std::size_t count = engine_->gather(parts);
    std::size_t written = 0;
    for (std::size_t i = 0; i < count; ++i) {
      bytes.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
      written += parts[i].iov_len;
    }
    if (written == 0) break;
    engine_->wrote(written, world_.tick());
  }
  wire_->send(Wire::Side::client, std::move(bytes));
}

void SimClient::later(Nanos wait, Task task) {
  world_.after(wait, connected_, [this, task = std::move(task)]() mutable {
    task();
    flush();
  });
}

void SimClient::later_on(amqp::Link& link, Nanos wait, Task task) {
  world_.after(wait, of(link).life, [this, task = std::move(task)]() mutable {
    task();
    flush();
  });
}

Nanos SimClient::think() { return world_.between(Nanos{0}, scenario_.think * 2); }

Event& SimClient::note(Do what) {
  Event& event = history_.emplace_back();
  event.t = world_.moment();
  event.who = name_;
  event.what = what;
  return event;
}

Event& SimClient::note_settled(const SimLink& link, const HeldDelivery& held, const Answered& answered) {
  Event& event = note(Do::settled);
  event.id = held.id;
  event.entity = link.address;
  event.seq = held.seq;
  event.how = held.how;
  event.result = answered.outcome;
  event.note = answered.condition;
  return event;
}

void SimClient::on_sasl_outcome(const amqp::SaslOutcome& outcome) {
  if (outcome.code != 0) return;
  session_ = &engine_->begin();
  on_ready();
}

amqp::Link& SimClient::attach(amqp::Role role, const std::string& address, const AttachWith& with,
                              const std::string& own) {
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
  request.name = fmt::format("{} {} {}", name_, address, ++last_link_);
  request.role = role;
  request.snd_settle_mode = with.snd;
  request.rcv_settle_mode = with.rcv;
  request.properties = {properties};
  request.source = {source_bytes};
  request.target = {target_bytes};
  amqp::Link& link = session_->attach(request);
  auto mine = std::make_unique<SimLink>();
  mine->address = address;
  mine->deletes = with.snd == amqp::SenderSettle::settled;
  link.attachment = std::move(mine);
  return link;
}

bool SimClient::ask(const std::string& address, std::string_view operation,
                    std::vector<std::pair<amqp::Value, amqp::Value>> body, OnReply on_reply) {
  if (!session_) return false;
  Pair& pair = pairs_[address];
  const std::string own = "reply " + address;
  if (!pair.request || !pair.response) {
    const std::string node = address + "/$management";
    if (!pair.request) pair.request = &attach(amqp::Role::sender, node, {});
    if (!pair.response) pair.response = &attach(amqp::Role::receiver, node, {}, own);
    of(*pair.request).is_management = of(*pair.response).is_management = true;
    return false;
  }
  if (!of(*pair.request).is_ready || !of(*pair.response).is_ready || !pair.request->sendable()) return false;
  amqp::MessageBuilder builder;
  const auto id = amqp::encode(amqp::Value{++last_question_});
  const auto reply_to = amqp::encode(amqp::Value{own});
  builder.properties().message_id = {id};
  builder.properties().reply_to = {reply_to};
  builder.application_property("operation", amqp::Value{operation});
  builder.body(amqp::Value::map(std::move(body)));
  questions_.emplace(last_question_, std::move(on_reply));
  amqp::Outgoing outgoing;
  outgoing.tag = as_bytes("t");
  outgoing.settled = true;
  pair.request->send(outgoing, builder.build());
  return true;
}

bool SimClient::take_reply(amqp::Link& link, amqp::Delivery& delivery) {
  if (!of(link).is_management) return false;
  if (!delivery.settled) link.disposition(delivery.id, amqp::State::accepted());
  link.grant(1);
  const auto view = amqp::MessageView::parse(delivery.payload);
  if (!view) return true;
  const auto property = [&](std::string_view key) {
    const auto raw = view->application_property(key);
    return raw ? amqp::decode_value(*raw).value_or(amqp::Value{}) : amqp::Value{};
  };
  const auto properties = view->properties();
  const auto id =
      properties ? amqp::decode_value(properties->correlation_id) : Result<amqp::Value>{amqp::Value{}};
  const auto found = questions_.find(id ? id->as_unsigned().value_or(0) : 0);
  if (found == questions_.end()) return true;
  Reply reply;
  reply.status = property("statusCode").as_integer().value_or(0);
  reply.condition = property("errorCondition").as_text().value_or("");
  reply.outcome = reply.status / 100 == 2 ? Outcome::accepted : outcome_of(reply.condition);
  std::vector<std::uint8_t> scratch;
  reply.body = amqp::decode_value(view->body_value(scratch)).value_or(amqp::Value{});
  OnReply on_reply = std::move(found->second);
  questions_.erase(found);
  on_reply(reply);
  return true;
}

void SimClient::on_attached(amqp::Link& link, const amqp::Attach& attach) {
  of(link).is_ready = !(link.role() == amqp::Role::sender ? attach.target : attach.source).is_null();
  if (of(link).is_management && of(link).is_ready && link.role() == amqp::Role::receiver) link.grant(100);
}

void SimClient::on_link_gone(amqp::Link& link) {
  of(link).is_ready = false;
  if (!of(link).is_management) return;
  for (auto& [address, pair] : pairs_) {
    if (pair.request == &link) pair.request = nullptr;
    if (pair.response == &link) pair.response = nullptr;
  }
}

}  // namespace omnibus::sim
