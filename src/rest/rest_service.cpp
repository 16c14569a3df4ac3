#include "rest/rest_service.hpp"

#include <algorithm>

#include "admin/management_service.hpp"
#include "auth/faults.hpp"
#include "auth/sas_token.hpp"
#include "base/check.hpp"
#include "base/text.hpp"
#include "links/address.hpp"
#include "links/partitioned_management.hpp"
#include "links/sender_end.hpp"
#include "rest/header_values.hpp"
#include "rest/rest_message.hpp"
#include "rest/rest_work.hpp"

namespace omnibus::rest {
namespace {

admin::HttpFault fault_of(const Error& error, const RestPath& path) {
  switch (error.code) {
    case Errc::message_size_exceeded:
      return {403, 40300};
    case Errc::message_lock_lost:
    case Errc::message_not_found:
      return {404, 40400};
    case Errc::not_found:
      if (path.kind == RestPath::Kind::lock) return {410, 41000};
      return {404, 40400};
    default:
      return admin::fault_of(error);
  }
}

// Whether a path is another one or below it.
bool is_under(std::string_view path, std::string_view parent) {
  return starts_with_ignoring_case(path, parent) &&
         (path.size() == parent.size() || path[parent.size()] == '/');
}

}  // namespace

RestService::RestService(const RestSettings& settings, const auth::TokenValidator& validator,
                         links::EntityPort& port, std::uint32_t connection, Random& random,
                         links::ConnectionObserver& observer)
    : settings_(settings),
      validator_(validator),
      random_(random),
      entities_(port, connection),
      transactions_(no_transactions_, random),
      context_{entities_, random, observer, transactions_} {}

RestService::~RestService() = default;

bool RestService::is_rest(const net::HttpRequest& request) {
  const auto path = parse_rest_path(request.method, request.target);
  return !path || path->has_value();
}

void RestService::handle(net::HttpRequest request, net::HttpReply reply, links::Now now) {
  Call call{std::move(request), std::move(reply)};
  auto path = parse_rest_path(call.request.method, call.request.target);
  if (!path) return refuse(call, path.error(), now);
  check(path->has_value(), "a request of the data plane");
  call.path = **std::move(path);
  if (settings_.require_tls && !call.request.tls)
    return refuse(call, {401, 40101}, "The request must use TLS.", now);
  if (auto found = find_entity(call, now); !found) return refuse(call, found.error(), now);
  switch (call.path.kind) {
    case RestPath::Kind::messages: {
      const bool has_batch = is_batch(call.request);
      send(std::move(call), has_batch, now);
      break;
    }
    case RestPath::Kind::head:
      receive(std::move(call), now);
      break;
    case RestPath::Kind::lock:
      settle(std::move(call), now);
      break;
  }
  entities_.flush();
  sweep();
}

void RestService::send_batch(net::HttpRequest request, net::HttpReply reply, std::string entity,
                             net::HttpResponse success, links::Now now) {
  Call call{std::move(request), std::move(reply)};
  call.path.entity = std::move(entity);
  call.is_authorized = true;
  call.success = std::move(success);
  if (auto found = find_entity(call, now); !found) return refuse(call, found.error(), now);
  send(std::move(call), true, now);
  entities_.flush();
  sweep();
}

Result<void> RestService::authorize(const Call& call, auth::Right right, std::string_view path,
                                    Instant now) const {
  if (settings_.auth_off || call.is_authorized) return {};
  const std::string* header = call.request.header("Authorization");
  if (header == nullptr || header->empty()) return admin::missing_token();
  // A token may be for the very address that is asked for. But an exchange has other names too, and who may
  // use an entity called "exchanges" may not use every exchange by it.
  std::string_view target = call.request.target;
  target = target.substr(0, target.find_first_of("?#"));
  const auto decoded = percent_decode(target);
  const bool is_plain = decoded && is_under(*decoded, fmt::format("/{}", path));
  const auto grant = validator_.validate_authorization(
      *header, is_plain ? std::string(target) : "/" + auth::percent_encode(path), now);
  if (!grant) return fail(grant.error());
  if (!grant->rights.has(right))
    return fail(Errc::unauthorized_access, "{} is required for this operation.", auth::name_of(right));
  return {};
}

Result<void> RestService::find_entity(Call& call, links::Now now) {
  auto address = links::resolve_address(call.path.entity,
                                        [this](std::string_view name) { return entities_.find(name); });
  if (!address) return fail(Errc::argument_error, "{}", address.error().detail);
  call.shown = auth::shown(address->path);
  const auto right = call.path.kind == RestPath::Kind::messages ? auth::Right::send : auth::Right::listen;
  if (auto allowed = authorize(call, right, address->path, now.wall); !allowed) return fail(allowed.error());
  if (!address->facts || address->node != links::Address::Node::entity)
    return fail(links::entity_not_found(call.shown));
  call.entity = std::move(address->facts);
  call.sub_queue = address->sub_queue;
  call.routing_key = std::move(address->routing_key);
  const bool sends = call.path.kind == RestPath::Kind::messages;
  const bool is_subscription = call.entity->kind == links::EntityKind::subscription;
  if (sends && (is_subscription || call.sub_queue != broker::SubQueue::active))
    return fail(Errc::not_allowed, "'{}' cannot be sent to, only received from.", call.shown);
  if (!sends && (call.entity->kind == links::EntityKind::topic || call.routing_key))
    return fail(Errc::not_allowed, "'{}' cannot be received from, only its subscriptions can.", call.shown);
  return {};
}

void RestService::send(Call call, bool has_batch, links::Now now) {
  if (requests_ >= settings_.requests_max || bytes_ >= settings_.bytes_max)
    return refuse(call, {503, 50004}, "Too many requests are under way.", now);
  const links::EntityFacts& entity = *call.entity;
  if (!broker::may_send(entity.status))
    return refuse(call, {Errc::entity_disabled, fmt::format("sending to '{}' is disabled", entity.name)},
                  now);
  std::uint64_t bytes_max = entity.message_bytes_max;
  std::vector<Draft> drafts;
  if (has_batch) {
    bytes_max = std::min<std::uint64_t>(bytes_max, links::SenderEnd::batch_bytes_max);
    auto batch = read_batch(call.request.body);
    if (!batch) return refuse(call, batch.error(), now);
    drafts = *std::move(batch);
    call.request.body = {};
  } else {
    auto draft = read_single(call.request);
    if (!draft) return refuse(call, draft.error(), now);
    drafts.push_back(*std::move(draft));
  }
  auto messages = read_drafts(drafts, bytes_max, now.of_messages(), random_);
  if (!messages) return refuse(call, messages.error(), now);
  drafts.clear();
  std::uint64_t bytes = 0;
  for (const auto& message : *messages) bytes += message.bytes.size();
  const std::uint64_t id = ++last_id_;
  ++requests_;
  Send& one = *sends_.emplace(id, std::make_unique<Send>(*this, id, std::move(call))).first->second;
  one.start(*std::move(messages), bytes, now);
}

void RestService::receive(Call call, links::Now now) {
  if (call.entity->requires_session && call.sub_queue == broker::SubQueue::active)
    return refuse(call, {400, 40000},
                  fmt::format("'{}' has sessions, which cannot be received over HTTP.", call.shown), now);
  // Of several partitions one that is away is passed over; of one, "nothing there" would be a guess.
  if (!call.entity->is_partitioned() && !entities_.available(call.entity->route))
    return refuse(call, {Errc::server_busy, fmt::format("the store of '{}' is not available", call.shown)},
                  now);
  if (polls_.size() >= settings_.polls_max)
    return refuse(call, {503, 50004}, "Too many requests wait for messages.", now);
  const std::uint64_t id = ++last_id_;
  const Tick deadline = now.tick + call.path.timeout;
  call.reply.when_gone([this, id, now, life = std::weak_ptr(life_)] {
    if (life.expired()) return;
    if (const auto found = polls_.find(id); found != polls_.end()) found->second->on_gone(now);
    sweep();
  });
  Poll& poll =
      *polls_.emplace(id, std::make_unique<Poll>(*this, id, std::move(call), deadline)).first->second;
  deadlines_.emplace(deadline, id);
  poll.start(now);
}

void RestService::settle(Call call, links::Now now) {
  if (requests_ >= settings_.requests_max)
    return refuse(call, {503, 50004}, "Too many requests are under way.", now);
  broker::Command command;
  if (call.request.method == "POST") {
    command = broker::RenewLocks{{}, {call.path.lock}};
  } else {
    broker::Settle settle;
    settle.tokens = {call.path.lock};
    if (call.request.method == "PUT") settle.outcome = broker::Abandon{};
    command = std::move(settle);
  }
  ++requests_;
  const auto entity = call.entity;
  auto on_answer = [this, call = std::move(call)](broker::Answer& answer, links::Now then) mutable {
    --requests_;
    settled(call, answer, then);
  };
  if (entity->is_partitioned())
    return links::ask_partitions(std::move(command), entity, context_, std::move(on_answer));
  const auto request = entities_.expect(std::move(on_answer));
  std::visit(
      [&](auto& one) {
        if constexpr (requires { one.request; }) one.request = request;
      },
      command);
  entities_.send(entity->route, std::move(command));
}

void RestService::settled(Call& call, const broker::Answer& answer, links::Now now) {
  if (const auto* refused = std::get_if<broker::Refused>(&answer.effect))
    return refuse(call, refused->error, now);
  net::HttpResponse response{.status = 200};
  if (const auto* renewed = std::get_if<broker::LocksRenewed>(&answer.effect))
    response.headers.push_back({"BrokerProperties", fmt::format(R"({{"LockedUntilUtc":"{}"}})",
                                                                to_http_date(renewed->locked_until.at(0)))});
  call.reply.send(std::move(response));
}

void RestService::deliver(broker::Answer& answer, links::Now now) {
  entities_.deliver(answer, now);
  sweep();
}

void RestService::give_up(std::uint16_t store, links::Now now) {
  entities_.give_up(store, now);
  sweep();
}

std::optional<Tick> RestService::next_tick() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

void RestService::tick(links::Now now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now.tick) {
    const std::uint64_t id = deadlines_.begin()->second;
    deadlines_.erase(deadlines_.begin());
    if (const auto found = polls_.find(id); found != polls_.end()) found->second->on_deadline();
  }
  sweep();
}

void RestService::refuse(Call& call, const Error& error, links::Now now) {
  const auto fault = fault_of(error, call.path);
  if (error.code == Errc::not_found && error.detail.empty())
    return refuse(call, fault, links::entity_not_found(call.shown).detail, now);
  refuse(call, fault, error.detail, now);
}

void RestService::refuse(Call& call, admin::HttpFault fault, std::string_view detail, links::Now now) {
  context_.observer.link_refused(call.shown, fmt::format("{}", fault.status), detail);
  const std::string about = settings_.name_space + ":" + call.shown;
  auto response = admin::error_response(fault, detail, about, now.wall, random_);
  if (fault.status == 503) response.headers.push_back({"Retry-After", "1"});
  call.reply.send(std::move(response));
}

void RestService::end(Send& send) {
  --requests_;
  bytes_ -= send.bytes();
  const auto found = sends_.find(send.id());
  ended_sends_.push_back(std::move(found->second));
  sends_.erase(found);
}

void RestService::end(Poll& poll) {
  const auto [first, last] = deadlines_.equal_range(poll.deadline());
  for (auto one = first; one != last; ++one)
    if (one->second == poll.id()) {
      deadlines_.erase(one);
      break;
    }
  const auto found = polls_.find(poll.id());
  ended_polls_.push_back(std::move(found->second));
  polls_.erase(found);
}

void RestService::sweep() {
  ended_sends_.clear();
  ended_polls_.clear();
}

}  // namespace omnibus::rest
