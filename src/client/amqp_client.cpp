#include "client/amqp_client.hpp"

#include <unistd.h>
#include <array>

#include "amqp/codec/message.hpp"
#include "client/conditions.hpp"

namespace omnibus::client {
namespace {

using namespace std::chrono_literals;
using amqp::Value;

constexpr std::uint32_t reply_credit = 100;
constexpr std::size_t write_bytes_max = 64 * 1024;

Result<Reply> read_reply(const Payload& payload, std::string& correlation) {
  const auto view = amqp::MessageView::parse(payload);
  if (!view) return fail(view.error());
  const auto properties = view->properties();
  if (!properties) return fail(properties.error());
  const auto id = amqp::decode_value(properties->correlation_id);
  if (!id) return fail(id.error());
  correlation = id->as_text().value_or("");
  const auto said = amqp::decode_value(view->application_properties());
  if (!said) return fail(said.error());
  const auto find = [&](std::initializer_list<std::string_view> names) -> const Value* {
    for (const auto name : names)
      if (const Value* found = said->find(name)) return found;
    return nullptr;
  };
  Reply reply;
  if (const Value* status = find({"statusCode", "status-code"}))
    reply.status = static_cast<int>(status->as_integer().value_or(0));
  if (const Value* text = find({"statusDescription", "status-description"}))
    reply.description = text->as_text().value_or("");
  if (const Value* condition = find({"errorCondition", "error-condition"}))
    reply.condition = condition->as_text().value_or("");
  std::vector<std::uint8_t> scratch;
  auto body = amqp::decode_value(view->body_value(scratch));
  if (!body) return fail(body.error());
  reply.body = *std::move(body);
  return reply;
}

std::string container_id() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return fmt::format("omnibus-cli-{}-{}", host.data(), ::getpid());
}

}  // namespace

Error error_of(const Reply& reply) {
  const Errc code = reply.condition.empty() && reply.status == 401   ? Errc::auth_failed
                    : reply.condition.empty() && reply.status == 404 ? Errc::not_found
                    : reply.status == 501                            ? Errc::not_implemented
                                                                     : code_of_condition(reply.condition);
  amqp::Condition condition;
  condition.description =
      reply.description.empty() ? fmt::format("status {}", reply.status) : reply.description;
  return {code, error_of(condition).detail};
}

// $cbs or a $management node: a link there, one back, and who waits for which answer.
class AmqpClient::RequestNode {
 public:
  struct Requests final : LinkUser {};
  struct Replies final : LinkUser {
    void on_transfer(amqp::Delivery& delivery) override {
      if (!delivery.settled) link->disposition(delivery.id, amqp::State::accepted());
      if (link->credit() <= reply_credit / 2) link->grant(reply_credit - link->credit());
      std::string correlation;
      auto reply = read_reply(delivery.payload, correlation);
      if (!reply) reply = Reply{.status = 500, .description = reply.error().detail};
      if (on_reply) on_reply(correlation, *std::move(reply));
    }
    std::function<void(const std::string&, Reply)> on_reply;
  };

  explicit RequestNode(std::string reply_to) : reply_to_(std::move(reply_to)) {
    replies.on_reply = [this](const std::string& id, Reply reply) {
      if (id.starts_with("renew-")) {
        if (reply.status >= 300 && !failed_renewal) failed_renewal = error_of(reply);
      } else {
        answers_[id] = std::move(reply);
      }
    };
  }
  [[nodiscard]] const std::string& reply_to() const { return reply_to_; }
  [[nodiscard]] bool may_send() const { return requests.link && requests.link->sendable(); }

  std::string send(amqp::MessageBuilder& message, std::string_view prefix) {
    std::string id = fmt::format("{}{}", prefix, ++last_);
    const auto encoded_id = amqp::encode(Value{std::string_view{id}});
    const auto encoded_reply_to = amqp::encode(Value{std::string_view{reply_to_}});
    message.properties().message_id = {encoded_id};
    message.properties().reply_to = {encoded_reply_to};
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes(id);
    outgoing.settled = true;
    requests.link->send(outgoing, message.build());
    return id;
  }
  [[nodiscard]] bool has_answer(const std::string& id) const { return answers_.contains(id); }
  Reply take_answer(const std::string& id) { return std::move(answers_.extract(id).mapped()); }

  Requests requests;
  Replies replies;
  std::optional<Error> failed_renewal;

 private:
  std::string reply_to_;
  std::uint64_t last_ = 0;
  std::map<std::string, Reply> answers_;
};

AmqpClient::AmqpClient(ConnectionString where, AmqpOptions options, std::unique_ptr<Wire> wire)
    : where_(std::move(where)), options_(std::move(options)), wire_(std::move(wire)) {}

Result<std::unique_ptr<AmqpClient>> AmqpClient::connect(ConnectionString where, AmqpOptions options) {
  auto wire = Wire::connect(where.amqp(), options.trust, tick_now() + options.patience);
  if (!wire) return fail(wire.error());
  std::unique_ptr<AmqpClient> client(new AmqpClient(std::move(where), std::move(options), *std::move(wire)));
  auto opened = client->open();
  if (!opened) return fail(opened.error());
  return client;
}

Result<void> AmqpClient::open() {
  amqp::ConnectionOptions options;
  options.side = amqp::ConnectionOptions::Side::client;
  options.container_id = container_id();
  options.hostname = where_.host;
  options.sasl_mechanisms = {"ANONYMOUS"};
  options.idle_time_out = 120s;
  amqp::Handler& handler = *this;
  engine_ = std::make_unique<amqp::Connection>(std::move(options), handler);
  engine_->start(tick_now());
  auto opened = expect([this] { return is_open_; }, "the answer to our greeting");
  if (!opened) {
    if (opened.error().code != Errc::io && opened.error().code != Errc::timeout) return fail(opened.error());
    return fail(opened.error().code, "{} (is {} a port for AMQP{}?)", opened.error().detail,
                where_.amqp().text(), where_.amqp().tls ? " in TLS" : " in the clear");
  }
  session_ = &engine_->begin();
  return {};
}

AmqpClient::~AmqpClient() {
  if (engine_ && is_open_ && !broken_) {
    is_closing_ = true;
    engine_->close();
    (void)until([this] { return engine_->finished() && !engine_->has_output(); }, tick_now() + 2s);
  }
  for (auto& [link, user] : users_) user->link = nullptr;
  users_.clear();
}

Result<void> AmqpClient::write_output() {
  while (engine_->has_output()) {
    // Together, so that small frames do not become small packets.
    std::array<iovec, 64> parts;
    const std::size_t count = engine_->gather(parts);
    out_.clear();
    for (std::size_t i = 0; i < count && out_.size() < write_bytes_max; ++i) {
      const auto* begin = static_cast<const std::uint8_t*>(parts[i].iov_base);
      out_.insert(out_.end(), begin, begin + std::min(parts[i].iov_len, write_bytes_max - out_.size()));
    }
    if (out_.empty()) return {};
    auto sent = wire_->write(out_);
    if (!sent) {
      // The reason may stand in what came before the end.
      if (broken_) return fail(*broken_);
      return fail(sent.error());
    }
    if (*sent == 0) return {};
    engine_->wrote(*sent, tick_now());
  }
  return {};
}

Result<void> AmqpClient::turn(Tick deadline) {
  if (const auto next = engine_->tick(tick_now())) deadline = std::min(deadline, *next);
  renew_tokens();
  auto ready = wire_->wait(engine_->has_output(), deadline);
  if (!ready) return fail(ready.error());
  std::array<std::uint8_t, 64 * 1024> piece;
  auto got = wire_->read(piece);
  if (!got) {
    if (is_closing_ && engine_->finished()) return {};
    if (!broken_) broken_ = got.error();
    engine_->lost();
    return {};
  }
  if (*got > 0) engine_->receive(Bytes{piece.data(), *got}, tick_now());
  return {};
}

LinkUser* AmqpClient::user_of(amqp::Link& link) {
  const auto found = users_.find(&link);
  return found == users_.end() ? nullptr : found->second;
}

Result<void> AmqpClient::attach(LinkUser& user, const LinkWish& wish) {
  const bool sends = wish.role == amqp::Role::sender;
  const auto filter = amqp::encode(wish.filter);
  const auto properties = amqp::encode(wish.properties);
  const auto address = amqp::encode(Value{std::string_view{wish.address}});
  amqp::AttachRequest request;
  request.name = fmt::format("{}-{}", wish.address, ++links_);
  const auto own =
      amqp::encode(Value{std::string_view{wish.own_address.empty() ? request.name : wish.own_address}});
  amqp::Source source;
  source.address = {sends ? own : address};
  if (!wish.filter.is_null()) source.filter = {filter};
  amqp::Target target;
  target.address = {sends ? address : own};
  const auto source_bytes = amqp::encode_composite(source);
  const auto target_bytes = amqp::encode_composite(target);
  request.role = wish.role;
  request.snd_settle_mode = wish.snd_settle_mode;
  request.rcv_settle_mode = wish.rcv_settle_mode;
  request.source = {source_bytes};
  request.target = {target_bytes};
  if (!wish.properties.is_null()) request.properties = {properties};
  user.link = &session_->attach(request);
  users_[user.link] = &user;
  auto came = until([&] { return user.is_attached || user.trouble || !user.link; },
                    tick_now() + options_.patience + wish.extra_patience);
  if (came && *came && user.is_attached && !user.trouble) return {};
  if (user.trouble) {
    forget(user);
    return fail(*user.trouble);
  }
  forget(user);
  if (!came) return fail(came.error());
  return fail(Errc::timeout, "no answer about '{}' in time", wish.address);
}

void AmqpClient::forget(LinkUser& user) {
  if (!user.link) return;
  users_.erase(user.link);
  user.link->detach();
  user.link = nullptr;
}

Result<AmqpClient::RequestNode*> AmqpClient::node(const std::string& address) {
  auto& made = nodes_[address];
  if (made && made->requests.link && made->replies.link) return made.get();
  if (made) {
    forget(made->requests);
    forget(made->replies);
  }
  made = std::make_unique<RequestNode>(fmt::format("{}-reply-{}", address, ++links_));
  LinkWish wish;
  wish.role = amqp::Role::receiver;
  wish.address = address;
  wish.snd_settle_mode = amqp::SenderSettle::settled;
  wish.own_address = made->reply_to();
  auto attached = attach(made->replies, wish);
  if (!attached) return fail(attached.error());
  made->replies.link->grant(reply_credit);
  wish.role = amqp::Role::sender;
  wish.own_address.clear();
  attached = attach(made->requests, wish);
  if (!attached) return fail(attached.error());
  auto credit = expect([&] { return made->may_send() || !made->requests.link; }, "leave to ask");
  if (!credit) return fail(credit.error());
  if (!made->requests.link) return fail(Errc::detach_forced, "'{}' takes no requests", address);
  return made.get();
}

Result<Reply> AmqpClient::put_token(const std::string& audience) {
  auto cbs = node("$cbs");
  if (!cbs) return fail(cbs.error());
  amqp::MessageBuilder message;
  message.application_property("operation", Value{"put-token"});
  message.application_property("type", Value{"servicebus.windows.net:sastoken"});
  message.application_property("name", Value{std::string_view{audience}});
  const std::string token = where_.token(audience, wall_now() + token_life);
  message.body(Value{std::string_view{token}});
  auto may = expect([&] { return (*cbs)->may_send(); }, "leave to put a token");
  if (!may) return fail(may.error());
  const std::string id = (*cbs)->send(message, "put-");
  auto came = expect([&] { return (*cbs)->has_answer(id); }, "the answer to our token");
  if (!came) return fail(came.error());
  return (*cbs)->take_answer(id);
}

Result<void> AmqpClient::authorize(const std::string& entity) {
  const std::string audience = fmt::format("sb://{}/{}", where_.host_in_uri(), entity);
  if (renewals_.contains(audience)) return {};
  auto reply = put_token(audience);
  if (!reply) return fail(reply.error());
  if (reply->status < 200 || reply->status >= 300) {
    const Error why = error_of(*reply);
    if (reply->status == 404) return fail(Errc::not_found, "{}", why.detail);
    return fail(Errc::auth_failed, "{} does not open '{}' on {}: {}", where_.credentials_text(), entity,
                where_.amqp().text(), why.detail);
  }
  renewals_[audience] = tick_now() + renew_after;
  return {};
}

// Without waiting: this runs inside of somebody's wait. A token that was made elsewhere cannot be made again.
void AmqpClient::renew_tokens() {
  const auto cbs = nodes_.find("$cbs");
  if (cbs == nodes_.end() || !where_.signature.empty()) return;
  if (cbs->second->failed_renewal && !broken_) broken_ = cbs->second->failed_renewal;
  const Tick now = tick_now();
  for (auto& [audience, due] : renewals_) {
    if (due > now || !cbs->second->may_send()) continue;
    amqp::MessageBuilder message;
    message.application_property("operation", Value{"put-token"});
    message.application_property("type", Value{"servicebus.windows.net:sastoken"});
    message.application_property("name", Value{std::string_view{audience}});
    const std::string token = where_.token(audience, wall_now() + token_life);
    message.body(Value{std::string_view{token}});
    cbs->second->send(message, "renew-");
    due = now + renew_after;
  }
}

Result<Reply> AmqpClient::manage(const std::string& entity, std::string_view operation, Value body) {
  auto authorized = authorize(entity);
  if (!authorized) return fail(authorized.error());
  auto management = node(entity + "/$management");
  if (!management) return fail(management.error());
  amqp::MessageBuilder message;
  message.application_property("operation", Value{operation});
  message.application_property("com.microsoft:server-timeout",
                               Value{static_cast<std::uint32_t>(options_.patience.count())});
  message.body(body);
  auto may =
      expect([&] { return (*management)->may_send() || !(*management)->requests.link; }, "leave to ask");
  if (!may) return fail(may.error());
  if (!(*management)->requests.link)
    return fail((*management)->requests.trouble.value_or(Error{Errc::detach_forced, "the link is gone"}));
  const std::string id = (*management)->send(message, "ask-");
  auto came = expect([&] { return (*management)->has_answer(id) || !(*management)->replies.link; },
                     fmt::format("the answer to {}", operation));
  if (!came) return fail(came.error());
  if (!(*management)->has_answer(id))
    return fail((*management)->replies.trouble.value_or(Error{Errc::detach_forced, "the link is gone"}));
  return (*management)->take_answer(id);
}

void AmqpClient::on_sasl_outcome(const amqp::SaslOutcome& outcome) {
  if (outcome.code != 0)
    broken_ = Error{Errc::auth_failed, fmt::format("{} does not let clients in by token (SASL ANONYMOUS)",
                                                   where_.amqp().text())};
}

void AmqpClient::on_attached(amqp::Link& link, const amqp::Attach& attach) {
  LinkUser* user = user_of(link);
  if (!user) return;
  const bool sends = link.role() == amqp::Role::sender;
  // A null terminus: a detach with the reason follows.
  user->is_attached = !(sends ? attach.target : attach.source).is_null();
  user->remote_source.assign(attach.source.bytes.begin(), attach.source.bytes.end());
  user->remote_properties.assign(attach.properties.bytes.begin(), attach.properties.bytes.end());
}

void AmqpClient::on_detach(amqp::Link& link, bool, const amqp::Condition* condition) {
  LinkUser* user = user_of(link);
  if (!user) return;
  user->trouble = condition ? error_of(*condition) : Error{Errc::detach_forced, "the peer ended the link"};
}

void AmqpClient::on_end(amqp::Session&, const amqp::Condition* condition) {
  if (!is_closing_ && !broken_)
    broken_ = condition ? error_of(*condition) : Error{Errc::connection_forced, "the peer ended the session"};
}

void AmqpClient::on_link_gone(amqp::Link& link) {
  LinkUser* user = user_of(link);
  if (!user) return;
  user->link = nullptr;
  if (!user->trouble) user->trouble = broken_.value_or(Error{Errc::detach_forced, "the link is gone"});
  users_.erase(&link);
}

void AmqpClient::on_credit(amqp::Link& link) {
  if (LinkUser* user = user_of(link)) user->on_credit();
}
void AmqpClient::on_transfer(amqp::Link& link, amqp::Delivery& delivery) {
  if (LinkUser* user = user_of(link)) user->on_transfer(delivery);
}
void AmqpClient::on_disposition(amqp::Link& link, const amqp::DispositionOf& disposition) {
  if (LinkUser* user = user_of(link)) user->on_disposition(disposition);
}
void AmqpClient::on_drained(amqp::Link& link) {
  if (LinkUser* user = user_of(link)) user->on_drained();
}

void AmqpClient::on_closed(amqp::Connection&, const amqp::Condition* condition) {
  if (is_closing_ || broken_) return;
  if (!condition) {
    broken_ = Error{Errc::connection_forced, fmt::format("{} closed the connection", where_.amqp().text())};
    return;
  }
  Error error = error_of(*condition);
  error.detail = fmt::format("{} closed the connection: {}", where_.amqp().text(), error.detail);
  broken_ = std::move(error);
}

}  // namespace omnibus::client
