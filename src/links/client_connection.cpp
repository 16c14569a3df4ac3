#include "links/client_connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "links/cbs.hpp"
#include "links/conditions.hpp"
#include "links/coordinator_end.hpp"
#include "links/management.hpp"
#include "links/management_body.hpp"
#include "links/partitioned_receiver.hpp"
#include "links/receiver_end.hpp"
#include "links/sender_end.hpp"

namespace omnibus::links {
namespace {

amqp::ConnectionOptions engine_options(const ConnectionSettings& settings, const ClientInfo& info,
                                       const auth::SaslPolicy& sasl, Random& random) {
  amqp::ConnectionOptions options;
  options.side = amqp::ConnectionOptions::Side::server;
  // The cloud's form: 32 hex digits, _G and a number.
  options.container_id = new_tracking_id(random) + "_G" + std::to_string(random.below(64));
  options.max_frame_size = settings.max_frame_size;
  options.channel_max = settings.channel_max;
  options.links_max = settings.links_max;
  options.idle_time_out = settings.idle_time_out;
  for (const auto mechanism : sasl.mechanisms(info.sasl)) options.sasl_mechanisms.emplace_back(mechanism);
  return options;
}

// The address of the broker's side of a link, and what forbids it.
Result<std::string> node_address(const amqp::Attach& attach) {
  const auto text = [](const amqp::RawValue& address) -> Result<std::string> {
    if (address.is_null())
      return fail(Errc::invalid_field, "the link has no address; an anonymous terminus is not offered");
    amqp::Decoder in{address.bytes};
    const auto value = in.read_text();
    if (!value) return fail(Errc::invalid_field, "the address is no string");
    return std::string(*value);
  };
  const bool client_sends = !attach.role;
  const amqp::RawValue& terminus = client_sends ? attach.target : attach.source;
  if (terminus.is_null())
    return fail(Errc::invalid_field, "the link has no {}; an anonymous terminus is not offered",
                client_sends ? "target" : "source");
  if (client_sends) {
    const auto target = amqp::decode_composite<amqp::Target>(terminus);
    if (!target) return fail(Errc::invalid_field, "{}", target.error().detail);
    if (target->dynamic.value_or(false))
      return fail(Errc::not_implemented, "dynamic nodes are not available");
    return text(target->address);
  }
  const auto source = amqp::decode_composite<amqp::Source>(terminus);
  if (!source) return fail(Errc::invalid_field, "{}", source.error().detail);
  if (source->dynamic.value_or(false)) return fail(Errc::not_implemented, "dynamic nodes are not available");
  return text(source->address);
}

// A message session is in one partition; everything else is in all of them, and those of one store are one.
std::unique_ptr<ReceiverLink> make_receiver(LinkEnd::Claim claim, LinkContext& context,
                                            const Address& address) {
  const bool has_sessions = address.facts->requires_session && address.sub_queue == broker::SubQueue::active;
  if (by_store(address.facts->partitions).size() > 1 && !has_sessions)
    return std::make_unique<PartitionedReceiver>(std::move(claim), context, address.facts, address.sub_queue);
  return std::make_unique<ReceiverEnd>(std::move(claim), context, address.facts, address.sub_queue);
}

LinkEnd* end_of(amqp::Link& link) { return static_cast<LinkEnd*>(link.attachment.get()); }

}  // namespace

ClientConnection::ClientConnection(const ConnectionSettings& settings, ClientInfo info,
                                   const auth::SaslPolicy& sasl, const auth::TokenValidator& validator,
                                   Random& random, ConnectionObserver& observer, EntityPort& port,
                                   std::uint32_t number)
    : settings_(settings),
      info_(std::move(info)),
      realm_{&sasl, &validator},
      random_(random),
      observer_(observer),
      grants_(std::make_unique<auth::ConnectionGrants>()),
      port_(port),
      entities_(port, number),
      transactions_(settings.transactions, random_),
      context_{entities_, random_, observer_, transactions_},
      cbs_(RequestNode::make([this](const Request& request, const Responder& responder) {
        wants_tick_ = recheck_links_ = true;  // a token brings its end with it, or fewer rights
        responder.answer(serve_cbs(request, *realm_.validator, *grants_, observer_));
      })),
      namespace_management_(RequestNode::make([](const Request& request, const Responder& responder) {
        responder.answer(unknown_operation(request));
      })),
      engine_(engine_options(settings, info_, sasl, random), *this) {}

ClientConnection::~ClientConnection() = default;

void ClientConnection::start(Now now) {
  now_ = now;
  started_ = last_link_gone_ = now.tick;
  host_named_ = !info_.server_name.empty();
  if (host_named_) enter(info_.server_name);
  engine_.start(now.tick);
}

void ClientConnection::receive(Bytes input, Now now) {
  now_ = now;
  engine_.receive(input, now.tick);
  engine_.awaits_rest() ? entities_.flush_amid_input() : entities_.flush();
}

// ---- authentication ----

amqp::SaslStep ClientConnection::on_sasl_init(const amqp::SaslInit& init) {
  mechanism_ = init.mechanism.text;
  if (init.hostname && !init.hostname->empty()) {
    host_named_ = true;
    enter(*init.hostname);
  }
  return decide(init.initial_response);
}

amqp::SaslStep ClientConnection::on_sasl_response(Bytes response) { return decide(response); }

amqp::SaslStep ClientConnection::decide(std::optional<Bytes> response) {
  const auth::SaslDecision decision = realm_.sasl->decide(mechanism_, response, info_.sasl);
  if (decision.needs_challenge) return {amqp::SaslStep::Kind::challenge, 0, {}};
  if (mechanism_ == "PLAIN" && response) credentials_ = as_text(*response);
  // Some clients name their host not before `open`: the rule may be one of that host's namespace, and is
  // looked for there. Nothing but $cbs is open to them until then.
  if (decision.code != auth::SaslCode::ok && !host_named_ && !credentials_.empty() && port_.has_namespaces())
    return {amqp::SaslStep::Kind::outcome, 0, "Welcome!"};
  if (decision.code != auth::SaslCode::ok) {
    observer_.authentication_failed(mechanism_, decision.identity);
    return {amqp::SaslStep::Kind::outcome, static_cast<std::uint8_t>(decision.code), {}};
  }
  is_decided_ = true;
  grant_base(decision);
  return {amqp::SaslStep::Kind::outcome, 0, "Welcome!"};
}

bool ClientConnection::enter(std::string_view host) {
  const auto realm = port_.enter(host);
  if (!realm) return false;
  realm_ = *realm;
  return true;
}

bool ClientConnection::decide_at_open() {
  const auto decision = mechanism_.empty()
                            ? realm_.sasl->decide_without_sasl()
                            : realm_.sasl->decide(mechanism_, as_bytes(credentials_), info_.sasl);
  if (decision.code == auth::SaslCode::ok) {
    grant_base(decision);
    return true;
  }
  grants_ = std::make_unique<auth::ConnectionGrants>();
  observer_.authentication_failed(mechanism_, decision.identity);
  close_with(Errc::unauthorized_access, "The namespace of this host name knows no such rule or key.");
  return false;
}

void ClientConnection::grant_base(const auth::SaslDecision& decision) {
  grants_ = std::make_unique<auth::ConnectionGrants>(decision.base);
  identity_ = decision.identity;
  observer_.authenticated(mechanism_, decision.identity);
}

void ClientConnection::on_open(amqp::Connection&, const amqp::Open& open) {
  wants_tick_ = true;
  observer_.opened(open.container_id, open.hostname.value_or(""));
  const std::string_view host = open.hostname.value_or("");
  const bool moved = !host.empty() && enter(host);
  if ((moved || !is_decided_) && !decide_at_open()) return;
  credentials_.clear();
  if (info_.over_limit)
    close_with(Errc::resource_limit_exceeded, "The broker has as many connections as its limit allows.");
}

Result<void> ClientConnection::authorize(const LinkEnd::Claim& claim) const {
  const auto until = [&] {
    if (!claim.path) return grants_->allowed_somewhere(auth::Rights::all(), now_.wall);
    if (!claim.right) return grants_->allowed_any(*claim.path, now_.wall);
    return grants_->allowed(*claim.path, *claim.right, now_.wall);
  }();
  if (!until) return fail(until.error());
  if (claim.also) return authorize({claim.also, claim.right});
  return {};
}

// ---- links ----

void ClientConnection::on_attach(amqp::Link& link, const amqp::Attach& attach) {
  std::string address;
  had_link_ = true;
  links_.emplace(&link, LinkFacts{now_.tick, {}, ++links_seen_});
  const auto attached = attach_to_node(link, attach, address);
  if (attached) {
    observer_.link_attached(address, link.role() == amqp::Role::receiver);
    if (const auto found = links_.find(&link); found != links_.end())
      found->second.address = std::move(address);
    return;
  }
  const amqp::Condition condition = tracked(attached.error());
  observer_.link_refused(address, condition.name, condition.description);
  link.refuse(condition);
}

Result<void> ClientConnection::attach_to_node(amqp::Link& link, const amqp::Attach& attach,
                                              std::string& shown_address) {
  if (link.role() == amqp::Role::receiver && amqp::decode_composite<amqp::Coordinator>(attach.target)) {
    shown_address = "(coordinator)";
    attach_to_coordinator(link);
    return {};
  }
  auto text = node_address(attach);
  if (!text) return fail(text.error());
  shown_address = *std::move(text);
  const auto address =
      resolve_address(shown_address, [this](std::string_view name) { return entities_.find(name); });
  if (!address) return fail(address.error());

  if (address->node == Address::Node::cbs) {
    cbs_->attach(link, std::nullopt);
    return {};
  }
  LinkEnd::Claim claim;
  if (address->node == Address::Node::management) {
    // Clients put a token for the management node itself or for its entity: both cover this path. The
    // namespace's own node asks for any valid token; each operation then has its right.
    if (!address->path.empty()) claim.path = address->path + "/$management";
  } else {
    claim.path = address->path;
    claim.right = link.role() == amqp::Role::receiver ? auth::Right::send : auth::Right::listen;
  }
  // Before anything is said about the entity: who has no right learns no names.
  if (const auto allowed = authorize(claim); !allowed) return fail(allowed.error());
  if (!claim.path) {
    namespace_management_->attach(link, std::move(claim));
    return {};
  }
  if (!address->facts) return fail(entity_not_found(address->path));
  if (address->node == Address::Node::management)
    return attach_to_management(link, *address, std::move(claim));
  return attach_to_entity(link, attach, *address, std::move(claim));
}

Result<void> ClientConnection::attach_to_entity(amqp::Link& link, const amqp::Attach& attach,
                                                const Address& address, LinkEnd::Claim claim) {
  if (link.role() == amqp::Role::receiver) return attach_sender(link, attach, address, std::move(claim));
  const EntityFacts& entity = *address.facts;
  if (entity.kind == EntityKind::topic)
    return fail(Errc::not_allowed, "'{}' cannot be received from, only its subscriptions can", address.path);
  auto end = make_receiver(std::move(claim), context_, address);
  ReceiverLink& receiver = *end;
  link.attachment = std::move(end);
  return receiver.start(link, attach, now_);
}

Result<void> ClientConnection::attach_sender(amqp::Link& link, const amqp::Attach& attach,
                                             const Address& address, LinkEnd::Claim claim) {
  const EntityFacts& entity = *address.facts;
  if (address.sub_queue != broker::SubQueue::active || entity.kind == EntityKind::subscription)
    return fail(Errc::not_allowed, "'{}' cannot be sent to, only received from", address.path);
  if (!broker::may_send(entity.status))
    return fail(Errc::entity_disabled, "sending to '{}' is disabled", entity.name);
  std::string via;
  const auto destination = destination_of(attach, via);
  if (!destination) return fail(destination.error());
  // A topic has no place for what it only keeps: every send would be refused, so the link is.
  if (*destination && entity.kind == EntityKind::topic)
    return fail(Errc::not_implemented, "Messages are sent via a queue only, and '{}' is a topic.",
                address.path);
  if (*destination) claim.also = (*destination)->path;
  auto end = *destination ? std::make_unique<SenderEnd>(std::move(claim), context_, address.facts,
                                                        *(*destination)->facts, std::move(via))
                          : std::make_unique<SenderEnd>(std::move(claim), context_, address.facts,
                                                        address.routing_key);
  SenderEnd& sender = *end;
  link.attachment = std::move(end);
  sender.accept(link);
  return {};
}

Result<std::optional<Address>> ClientConnection::destination_of(const amqp::Attach& attach,
                                                                std::string& shown_address) {
  const auto properties = amqp::decode_value(attach.properties);
  const amqp::Value* named =
      properties ? properties->find("com.microsoft:transfer-destination-address") : nullptr;
  if (!named || named->is_null()) return std::optional<Address>{};
  const auto text = named->as_text();
  if (!text) return fail(Errc::invalid_field, "the destination of a transfer is no string");
  shown_address = *text;
  auto address = resolve_address(*text, [this](std::string_view name) { return entities_.find(name); });
  if (!address) return fail(address.error());
  if (address->node != Address::Node::entity)
    return fail(Errc::not_allowed, "'{}' cannot be the destination of a transfer", *text);
  if (const auto allowed = authorize({address->path, auth::Right::send}); !allowed)
    return fail(allowed.error());
  if (!address->facts) return fail(entity_not_found(address->path));
  if (address->sub_queue != broker::SubQueue::active || address->facts->kind == EntityKind::subscription)
    return fail(Errc::not_allowed, "'{}' cannot be sent to, only received from", address->path);
  if (address->routing_key)
    return fail(Errc::not_implemented, "The destination of a transfer has no routing key: '{}'.", *text);
  return std::optional{*std::move(address)};
}

void ClientConnection::attach_to_coordinator(amqp::Link& link) {
  auto end = std::make_unique<CoordinatorEnd>(context_);
  CoordinatorEnd& coordinator = *end;
  link.attachment = std::move(end);
  coordinator.accept(link);
}

Result<void> ClientConnection::attach_to_management(amqp::Link& link, const Address& address,
                                                    LinkEnd::Claim claim) {
  // Nodes go with their last link; what is left of them here is swept out now and then.
  if (management_.size() > 2 * links_.size() + 16)
    std::erase_if(management_, [](const auto& one) { return one.second.expired(); });
  std::weak_ptr<RequestNode>& known = management_[ascii_lower(address.path)];
  auto node = known.lock();
  if (!node) {
    const std::uint64_t request_bytes_max =
        std::max<std::uint64_t>(address.facts->message_bytes_max, 3u << 20) + (1u << 20);
    node = RequestNode::make(
        [this, path = address.path, name = address.entity, sub_queue = address.sub_queue, claim](
            const Request& request, Responder responder) {
          serve_entity(request, std::move(responder), {path, name, sub_queue}, claim);
        },
        request_bytes_max);
    known = node;
  }
  node->attach(link, std::move(claim));
  return {};
}

void ClientConnection::serve_entity(const Request& request, Responder responder, const ManagedNode& node,
                                    const LinkEnd::Claim& claim) {
  touch_associated_link(request);
  // Looked up each time: the entity may have been deleted or changed since the link came.
  auto entity = entities_.find(node.entity);
  if (!entity || !has_sub_queue(*entity, node.sub_queue))
    return responder.answer(failed(entity_not_found(node.path)));
  serve_management(
      request, std::move(responder), {std::move(entity), node.sub_queue},
      [&](auth::Right right) { return authorize({claim.path, right}); },
      [&](auth::Right right) {
        const std::string_view path = claim.path ? std::string_view{*claim.path} : std::string_view{};
        return std::string(grants_->holder(path, right, now_.wall).value_or(identity_));
      },
      context_);
}

void ClientConnection::touch_associated_link(const Request& request) {
  if (settings_.idle_link.count() == 0) return;
  const auto raw = request.message.application_property("associated-link-name");
  if (!raw || raw->is_null()) return;
  amqp::Decoder in{raw->bytes};
  const auto name = in.read_text();
  for (auto& [link, facts] : links_)
    if (name && link->name() == *name) facts.moved = now_.tick;
}

void ClientConnection::deliver(broker::Answer& answer, Now now) {
  now_ = now;
  entities_.deliver(answer, now);
}

void ClientConnection::on_room(Now now) {
  now_ = now;
  entities_.on_room();
}

void ClientConnection::give_up(std::uint16_t store, Now now) {
  now_ = now;
  entities_.give_up(store, now);
}

void ClientConnection::on_detach(amqp::Link& link, bool, const amqp::Condition* condition) {
  if (condition)
    observer_.link_detached(address_of(link), link.name(), condition->name, condition->description);
}

std::string_view ClientConnection::address_of(amqp::Link& link) const {
  const auto found = links_.find(&link);
  return found == links_.end() ? std::string_view{} : found->second.address;
}

void ClientConnection::detach(amqp::Link& link, const Error& why) {
  const amqp::Condition condition = tracked(why);
  observer_.link_detached(address_of(link), link.name(), condition.name, condition.description);
  link.detach(condition);
}

void ClientConnection::detach_in_order(std::vector<Parting> partings) {
  std::ranges::sort(partings, {}, &Parting::number);
  for (const auto& [number, link, why] : partings) detach(*link, why);
}

void ClientConnection::on_link_gone(amqp::Link& link) {
  if (LinkEnd* end = end_of(link)) end->on_gone(link);
  links_.erase(&link);
  wants_tick_ = true;
  last_link_gone_ = now_.tick;
}

void ClientConnection::on_credit(amqp::Link& link) {
  if (LinkEnd* end = end_of(link)) end->on_credit(link, now_);
}

void ClientConnection::on_transfer(amqp::Link& link, amqp::Delivery& delivery) {
  if (const auto found = links_.find(&link); found != links_.end()) found->second.moved = now_.tick;
  if (LinkEnd* end = end_of(link)) end->on_transfer(link, delivery, now_);
}

void ClientConnection::on_disposition(amqp::Link& link, const amqp::DispositionOf& disposition) {
  if (const auto found = links_.find(&link); found != links_.end()) found->second.moved = now_.tick;
  if (LinkEnd* end = end_of(link)) end->on_disposition(link, disposition, now_);
}

// Settling twice is told as the cloud does: the lock is gone [contract 4.4].
amqp::State ClientConnection::on_late_outcome() {
  return amqp::State::rejected(tracked({Errc::message_lock_lost, "the delivery was settled already"}));
}

// ---- who is dropped when ----

std::optional<Tick> ClientConnection::tick(Now now) {
  now_ = now;
  wants_tick_ = false;
  had_token_ = had_token_ || grants_->has_any_valid(now.wall);
  std::optional<Tick> next;
  const auto at = [&](Tick when) { next = next ? std::min(*next, when) : when; };
  // Runs `action` once `wait` has passed since `since`; until then asks to be called at that time.
  const auto after = [&](std::chrono::milliseconds wait, Tick since, const auto& action) {
    if (wait.count() == 0 || !engine_.is_open()) return;
    if (now.tick >= since + wait)
      action();
    else
      at(since + wait);
  };

  if (!had_token_) {
    after(settings_.token_wait, started_, [&] {
      close_with(Errc::unauthorized_access,
                 fmt::format("no valid token was put within {} ms", settings_.token_wait.count()));
    });
  }
  if (!had_link_) {
    after(settings_.no_link_wait, started_, [&] { close_for_inactivity(settings_.no_link_wait); });
  } else if (links_.empty()) {
    after(settings_.idle_connection, last_link_gone_,
          [&] { close_for_inactivity(settings_.idle_connection); });
  }
  if (recheck_links_ || now.wall >= next_expiry_) {
    recheck_links_ = false;
    drop_expired_links();
    next_expiry_ = grants_->next_expiry(now.wall).value_or(auth::never);
  }
  drop_idle_links();
  if (const auto transaction_ends = transactions_.tick(now.tick)) at(*transaction_ends);
  if (next_expiry_ != auth::never) at(now.tick + (next_expiry_ - now.wall));
  if (settings_.idle_link.count() > 0)
    for (const auto& [link, facts] : links_) at(facts.moved + settings_.idle_link);
  if (const auto engine_next = engine_.tick(now.tick)) at(*engine_next);
  return next;
}

void ClientConnection::drop_expired_links() {
  std::vector<Parting> expired;
  for (const auto& [link, facts] : links_) {
    const LinkEnd* end = end_of(*link);
    if (!end || !end->claim()) continue;
    if (const auto allowed = authorize(*end->claim()); !allowed)
      expired.push_back({facts.number, link, allowed.error()});
  }
  detach_in_order(std::move(expired));
}

void ClientConnection::entities_changed(std::span<const std::string> names, Now now) {
  now_ = now;
  std::vector<Parting> closing;
  for (const auto& [link, facts] : links_) {
    const LinkEnd* end = end_of(*link);
    if (end == nullptr || end->sends_to().empty() || link->state() != amqp::Link::State::attached) continue;
    const std::string name = ascii_lower(end->sends_to());
    if (std::ranges::find(names, name) == names.end()) continue;
    const auto entity = entities_.find(name);
    if (!entity)
      closing.push_back({facts.number, link, entity_not_found(end->sends_to())});
    else if (!broker::may_send(entity->status))
      closing.push_back({facts.number,
                         link,
                         {Errc::entity_disabled, fmt::format("sending to '{}' is disabled", entity->name)}});
  }
  detach_in_order(std::move(closing));
  wants_tick_ = true;
}

void ClientConnection::drop_idle_links() {
  if (settings_.idle_link.count() == 0) return;
  std::vector<Parting> idle;
  for (const auto& [link, facts] : links_) {
    if (now_.tick < facts.moved + settings_.idle_link || link->state() != amqp::Link::State::attached)
      continue;
    idle.push_back({facts.number,
                    link,
                    {Errc::detach_forced,
                     fmt::format("The link '{}' is force detached: its idle timer expired after {} ms.",
                                 link->name(), settings_.idle_link.count())}});
  }
  detach_in_order(std::move(idle));
}

void ClientConnection::close_for_inactivity(std::chrono::milliseconds limit) {
  close_with(
      Errc::connection_forced,
      fmt::format("The connection was inactive for more than the allowed {} milliseconds and is closed by "
                  "container 'LinkTracker'.",
                  limit.count()));
}

void ClientConnection::close(const Error& why, Now now) {
  now_ = now;
  close_with(why.code, why.detail);
}

void ClientConnection::lost(Now now) {
  now_ = now;
  engine_.lost();
}

void ClientConnection::close_with(Errc code, std::string detail) {
  const amqp::Condition condition = tracked({code, std::move(detail)});
  wants_tick_ = true;
  engine_.close(condition);
}

void ClientConnection::on_closed(amqp::Connection&, const amqp::Condition* condition) {
  observer_.closed(condition ? condition->name : "", condition ? condition->description : "");
}

amqp::Condition ClientConnection::tracked(const Error& error) {
  return to_condition(error, new_tracking_id(random_), now_.wall);
}

}  // namespace omnibus::links
