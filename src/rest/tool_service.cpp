#include "rest/tool_service.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "admin/admin_values.hpp"
#include "auth/faults.hpp"
#include "base/text.hpp"
#include "links/address.hpp"
#include "links/partitioned_management.hpp"
#include "rest/header_values.hpp"
#include "rest/rest_message.hpp"

namespace omnibus::rest {
namespace {

constexpr std::string_view prefix = "/$omnibus/";
constexpr std::uint32_t top_usual = 100;
constexpr std::uint32_t top_max = 1000;
// As far as the clock goes: dates have four digits for the year.
constexpr Instant latest{std::chrono::sys_days{std::chrono::year{9998} / 1 / 1}};

struct ToolPath {
  std::string word{};
  std::string entity{};  // with its slash, not decoded; empty: none
};
std::optional<ToolPath> parse_tool_path(std::string_view target) {
  target = target.substr(0, target.find_first_of("?#"));
  const auto begins = [&](std::string_view with) { return starts_with_ignoring_case(target, with); };
  if (!begins(prefix) && !begins("/%24omnibus/")) return std::nullopt;
  target.remove_prefix(target.find('/', 1) + 1);
  const auto end = std::min(target.find('/'), target.size());
  ToolPath path{ascii_lower(target.substr(0, end)), std::string(target.substr(end))};
  constexpr std::string_view words[] = {"purge", "reset", "messages", "partitions", "clock"};
  if (std::ranges::find(words, path.word) == std::end(words)) return std::nullopt;
  return path;
}

template <class Number>
Result<Number> number_of(std::string_view target, std::string_view name, Number otherwise) {
  const auto text = query_value(target, name);
  if (!text) return otherwise;
  Number number{};
  const auto [end, wrong] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (wrong != std::errc{} || end != text->data() + text->size())
    return fail(Errc::argument_error, "'{}' is not a number that can be used", name);
  return number;
}

Result<std::vector<broker::SubQueue>> sub_queues_of(std::string_view target, broker::SubQueue otherwise) {
  using enum broker::SubQueue;
  const auto text = query_value(target, "subqueue");
  if (!text) return std::vector{otherwise};
  if (equals_ignoring_case(*text, "active")) return std::vector{active};
  if (equals_ignoring_case(*text, "deadletter")) return std::vector{dead_letter};
  if (equals_ignoring_case(*text, "transfer")) return std::vector{transfer_dead_letter};
  if (equals_ignoring_case(*text, "all"))
    return std::vector{active, dead_letter, transfer_dead_letter, transfer};
  return fail(Errc::argument_error, "'subqueue' has to be active, deadletter, transfer or all");
}

boost::json::value json_of(const amqp::Value& value) {
  if (value.is_null()) return nullptr;
  if (const auto flag = value.as_bool()) return *flag;
  if (const auto* text = value.get_if<std::string>(); text && is_utf8(*text))
    return boost::json::value(*text);
  if (const auto* number = value.get_if<double>(); number && std::isfinite(*number)) return *number;
  if (!value.get_if<amqp::Timestamp>()) {
    if (const auto number = value.as_integer()) return *number;
    if (const auto number = value.as_unsigned()) return *number;
  }
  const auto header = header_from_value(value);
  if (!header) return boost::json::value(amqp::to_text(value));
  boost::system::error_code error;
  auto parsed = boost::json::parse(*header, error);
  return error ? boost::json::value(*header) : parsed;
}

// In the form of a batch, so that it can be put in again.
boost::json::object json_of(const Shown& shown) {
  boost::json::object out;
  const bool is_text = is_utf8(shown.body);
  out["Body"] = is_text ? shown.body : base64_encode(as_bytes(shown.body));
  out["IsBodyBase64"] = !is_text;
  out["BrokerProperties"] = shown.broker_properties;
  if (shown.content_type) out["BrokerProperties"].get_object()["ContentType"] = *shown.content_type;
  boost::json::object user;
  for (const auto& [name, value] : shown.user_properties)
    if (is_utf8(name)) user[name] = json_of(value);
  out["UserProperties"] = std::move(user);
  return out;
}

}  // namespace

// One request, until it is answered.
struct ToolService::Call {
  net::HttpRequest request;
  net::HttpReply reply;
  ToolPath path{};
  links::Now now{};
  std::string who{};
  std::string shown{};        // the entity
  std::string_view action{};  // of a change, for the log
  broker::SubQueue sub_queue = broker::SubQueue::active;
};

struct ToolService::Purging {
  std::vector<Step> steps{};
  std::size_t at = 0;
  std::uint64_t purged = 0;
  std::move_only_function<void(Result<std::uint64_t>)> done{};
};

struct ToolService::Resetting {
  std::vector<std::string> names{};  // queues, topics, subscriptions
  std::vector<std::string> to_delete{};
  std::uint64_t deleted = 0;
};

bool ToolService::is_tool(const net::HttpRequest& request) {
  return parse_tool_path(request.target).has_value();
}

void ToolService::handle(net::HttpRequest request, net::HttpReply reply, links::Now now) {
  auto call = std::make_shared<Call>(Call{std::move(request), std::move(reply)});
  ++under_way_;
  call->path = parse_tool_path(call->request.target).value_or(ToolPath{});
  call->now = now;
  name_change(*call);
  if (settings_.require_tls && !call->request.tls)
    return refuse(*call, {401, 40101}, "The request must use TLS.");
  if (under_way_ > settings_.requests_max)
    return refuse(*call, {503, 50004}, "Too many requests are under way.");
  if (const auto allowed = authorize(*call, now.wall); !allowed) return refuse(*call, allowed.error());
  dispatch(call);
  rest_.context().entities.flush();
}

void ToolService::name_change(Call& call) const {
  const std::string& word = call.path.word;
  if (call.request.method != "POST" || word == "partitions") return;
  call.action = word == "clock"      ? "move-clock"
                : word == "messages" ? "inject"
                : word == "purge"    ? "purge"
                                     : "reset";
  const bool is_of_all = word == "clock" || word == "reset";
  if (is_of_all || call.path.entity.empty())
    call.shown = settings_.name_space;
  else
    call.shown = auth::shown(percent_decode(call.path.entity.substr(1)).value_or(""));
}

Result<void> ToolService::authorize(Call& call, Instant now) const {
  if (settings_.auth_off) {
    call.who = "anyone";
    return {};
  }
  const std::string* header = call.request.header("Authorization");
  if (header == nullptr || header->empty()) return admin::missing_token();
  const auto grant = validator_.validate_authorization(*header, call.request.target, now);
  if (!grant) return fail(grant.error());
  call.who = grant->holder;
  if (!grant->rights.has(auth::Right::manage))
    return fail(Errc::unauthorized_access, "Manage is required for this operation.");
  return {};
}

void ToolService::dispatch(const CallPtr& call) {
  const std::string& method = call->request.method;
  const std::string& word = call->path.word;
  const bool reads = method == "GET" || method == "HEAD";
  const bool posts = method == "POST";
  if (word == "clock" && reads) return read_clock(call);
  if (word == "clock" && posts) return move_clock(call);
  if (word == "reset" && posts) return reset(call);
  if (word == "purge" && posts) return purge(call);
  if (word == "messages" && reads) return look(call);
  if (word == "messages" && posts) return put_in(call);
  if (word == "partitions" && reads) return count_partitions(call);
  refuse(*call, {405, 40000}, "This method is not allowed here.");
}

Result<std::shared_ptr<const links::EntityFacts>> ToolService::entity_of(Call& call) const {
  if (call.path.entity.size() < 2) return fail(Errc::argument_error, "The address names no entity.");
  auto& entities = rest_.context().entities;
  const auto address =
      links::resolve_address(call.path.entity, [&](std::string_view name) { return entities.find(name); });
  if (!address) return fail(Errc::argument_error, "{}", address.error().detail);
  call.shown = auth::shown(address->path);
  if (!address->facts || address->node != links::Address::Node::entity || address->routing_key)
    return fail(links::entity_not_found(call.shown));
  call.sub_queue = address->sub_queue;
  return address->facts;
}

// Purge and reset

void ToolService::purge(const CallPtr& call) {
  const auto entity = entity_of(*call);
  if (!entity) return refuse(*call, entity.error());
  auto sub_queues = sub_queues_of(call->request.target, call->sub_queue);
  if (!sub_queues) return refuse(*call, sub_queues.error());
  auto purge_names = [this, call,
                      sub_queues = *std::move(sub_queues)](Result<std::vector<std::string>> names) {
    if (!names) return refuse(*call, names.error());
    purge_all(*names, sub_queues, [this, call](Result<std::uint64_t> purged) {
      if (!purged) return refuse(*call, purged.error());
      answer(*call, 200, fmt::format(R"({{"purged":{}}})", *purged));
    });
  };
  const std::string& name = (*entity)->name;
  if ((*entity)->kind != links::EntityKind::topic) return purge_names(std::vector{name});
  list_subscriptions({name}, 0, {name}, std::move(purge_names));
}

void ToolService::purge_all(const std::vector<std::string>& names,
                            const std::vector<broker::SubQueue>& sub_queues,
                            std::move_only_function<void(Result<std::uint64_t>)> done) {
  auto purging = std::make_shared<Purging>();
  purging->done = std::move(done);
  for (const std::string& name : names) {
    const auto entity = rest_.context().entities.find(name);
    if (!entity) continue;  // gone meanwhile
    auto routes = entity->partitions;
    if (routes.empty()) routes.push_back(entity->route);
    for (const auto& route : routes)
      for (const auto sub_queue : sub_queues)
        if (links::has_sub_queue(*entity, sub_queue)) purging->steps.push_back({route, sub_queue});
  }
  purge_next(purging);
}

void ToolService::purge_next(const std::shared_ptr<Purging>& purging) {
  if (purging->at == purging->steps.size()) return purging->done(purging->purged);
  const Step& step = purging->steps[purging->at];
  auto& entities = rest_.context().entities;
  broker::Purge command;
  command.sub_queue = step.sub_queue;
  command.request = entities.expect([this, purging](broker::Answer& answer, links::Now) {
    if (const auto* refused = std::get_if<broker::Refused>(&answer.effect)) {
      if (refused->error.code != Errc::not_found) return purging->done(fail(refused->error));
      ++purging->at;  // the entity is gone, and its messages with it
    } else {
      const auto& deleted = std::get<broker::Deleted>(answer.effect);
      purging->purged += deleted.count;
      if (deleted.count == 0) ++purging->at;
    }
    purge_next(purging);
  });
  entities.send(step.route, command);
}

void ToolService::list(admin::AdminPort::Listing listing, std::vector<std::string> so_far, Names done) {
  port_.list(listing, [this, listing, so_far = std::move(so_far),
                       done = std::move(done)](Result<admin::Page<admin::Entity>> page) mutable {
    if (!page) return done(fail(page.error()));
    for (const auto& entity : page->items) so_far.push_back(entity.name);
    if (!page->more) return done(std::move(so_far));
    listing.skip += static_cast<std::uint32_t>(page->items.size());
    list(std::move(listing), std::move(so_far), std::move(done));
  });
}

void ToolService::list_subscriptions(std::vector<std::string> topics, std::size_t at,
                                     std::vector<std::string> so_far, Names done) {
  if (at == topics.size()) return done(std::move(so_far));
  std::string topic = topics[at];
  list({.kind = admin::EntityKind::subscription, .topic = std::move(topic)}, std::move(so_far),
       [this, topics = std::move(topics), at,
        done = std::move(done)](Result<std::vector<std::string>> names) mutable {
         // A topic that went meanwhile has no subscriptions either; what was found so far is lost with the
         // error, so this is told rather than half done.
         if (!names) return done(std::move(names));
         list_subscriptions(std::move(topics), at + 1, *std::move(names), std::move(done));
       });
}

void ToolService::reset(const CallPtr& call) {
  const auto entities = query_value(call->request.target, "entities");
  if (entities && !equals_ignoring_case(*entities, "delete"))
    return refuse(*call, {400, 40000}, "'entities' can only be 'delete'.");
  auto resetting = std::make_shared<Resetting>();
  auto listed = [this, call, resetting,
                 deletes = entities.has_value()](Result<std::vector<std::string>> names) {
    if (!names) return refuse(*call, names.error());
    for (std::string& name : *names) {
      const bool stays = !deletes || settings_.configured.contains(ascii_lower(name));
      (stays ? resetting->names : resetting->to_delete).push_back(std::move(name));
    }
    delete_next(call, resetting);
  };
  list({.kind = admin::EntityKind::queue}, {},
       [this, call, listed = std::move(listed)](Result<std::vector<std::string>> queues) mutable {
         if (!queues) return refuse(*call, queues.error());
         list({.kind = admin::EntityKind::topic}, {},
              [this, call, queues = *std::move(queues),
               listed = std::move(listed)](Result<std::vector<std::string>> topics) mutable {
                if (!topics) return refuse(*call, topics.error());
                queues.insert(queues.end(), topics->begin(), topics->end());
                list_subscriptions(*std::move(topics), 0, std::move(queues), std::move(listed));
              });
       });
}

void ToolService::delete_next(const CallPtr& call, const std::shared_ptr<Resetting>& resetting) {
  if (resetting->to_delete.empty()) {
    using enum broker::SubQueue;
    return purge_all(resetting->names, {active, dead_letter, transfer_dead_letter, transfer},
                     [this, call, resetting](Result<std::uint64_t> purged) {
                       if (!purged) return refuse(*call, purged.error());
                       answer(*call, 200,
                              fmt::format(R"({{"purged":{},"deleted":{}}})", *purged, resetting->deleted));
                     });
  }
  const std::string name = std::move(resetting->to_delete.back());
  resetting->to_delete.pop_back();
  const bool is_subscription = admin::split_subscription(name).has_value();
  port_.remove(name, is_subscription, [this, call, resetting, name](const Result<void>& removed) {
    // It went meanwhile, a subscription with its topic: that is told of whoever removed it.
    const bool went = !removed && removed.error().code == Errc::not_found;
    if (!went)
      port_.audit({call->who, "delete", admin::split_subscription(name) ? "subscription" : "entity",
                   auth::shown(name), call->request.peer,
                   removed ? 200 : admin::fault_of(removed.error()).status});
    if (!removed && !went) return refuse(*call, removed.error());
    if (removed) ++resetting->deleted;
    delete_next(call, resetting);
  });
}

// Messages

void ToolService::look(const CallPtr& call) {
  const auto entity = entity_of(*call);
  if (!entity) return refuse(*call, entity.error());
  const auto sub_queues = sub_queues_of(call->request.target, call->sub_queue);
  if (!sub_queues) return refuse(*call, sub_queues.error());
  if (sub_queues->size() > 1)
    return refuse(*call, {400, 40000}, "Only one sub-queue can be looked into at a time.");
  const auto from = number_of<std::int64_t>(call->request.target, "from", 0);
  if (!from) return refuse(*call, from.error());
  const auto top = number_of<std::uint32_t>(call->request.target, "top", top_usual);
  if (!top) return refuse(*call, top.error());
  if (*top == 0 || *top > top_max)
    return refuse(*call, {400, 40000}, fmt::format("'top' has to be from 1 to {}.", top_max));
  broker::Peek peek;
  peek.sub_queue = sub_queues->front();
  peek.from = *from;
  peek.count = *top;
  auto on_answer = [this, call](broker::Answer& answered, links::Now) {
    if (const auto* refused = std::get_if<broker::Refused>(&answered.effect))
      return refuse(*call, refused->error);
    const auto& held = std::get<broker::Messages>(answered.effect).messages;
    boost::json::array list;
    for (std::size_t i = 0; i < held.size(); ++i) {
      if (answered.messages[i].empty()) continue;  // damaged: told where it was read
      const auto shown = show(answered.messages[i], held[i]);
      if (!shown) return refuse(*call, shown.error());
      list.push_back(json_of(*shown));
    }
    boost::json::object out;
    out["value"] = std::move(list);
    if (!held.empty()) out["next"] = held.back().status.sequence + 1;
    answer(*call, 200, boost::json::serialize(out));
  };
  auto& context = rest_.context();
  if ((*entity)->is_partitioned())
    return links::ask_partitions(std::move(peek), *entity, context, std::move(on_answer));
  peek.request = context.entities.expect(std::move(on_answer));
  context.entities.send((*entity)->route, std::move(peek));
}

// The management API has no word for it, and the sizes that it shows are sums over all of them.
void ToolService::count_partitions(const CallPtr& call) {
  const auto entity = entity_of(*call);
  if (!entity) return refuse(*call, entity.error());
  answer(*call, 200,
         fmt::format(R"({{"partitions":{}}})", std::max<std::size_t>((*entity)->partitions.size(), 1)));
}

void ToolService::put_in(const CallPtr& call) {
  const auto entity = entity_of(*call);
  if (!entity) return refuse(*call, entity.error());
  // Counted before it is sent, so that the answer can say it.
  const auto batch = read_batch(call->request.body);
  if (!batch) return refuse(*call, batch.error());
  net::HttpResponse success{.status = 201,
                            .headers = {{"Content-Type", "application/json; charset=utf-8"}},
                            .body = fmt::format(R"({{"accepted":{}}})", batch->size())};
  // The answer comes back through this service: for the log, and to count who is under way.
  net::HttpReply reply([this, call](net::HttpResponse response) { finish(*call, std::move(response)); },
                       [call] { return call->reply.wanted(); });
  net::HttpRequest request = call->request;
  rest_.send_batch(std::move(request), std::move(reply), call->path.entity, std::move(success), call->now);
}

// The clock

void ToolService::read_clock(const CallPtr& call) {
  if (clock_ == nullptr)
    return refuse(*call, {404, 40400},
                  "There is no clock to be moved: the broker runs without --test-clock.");
  answer(*call, 200,
         fmt::format(R"({{"now":"{}","offset_ms":{}}})", admin::to_date(clock_->now()),
                     clock_->ahead().count()));
}

void ToolService::move_clock(const CallPtr& call) {
  if (clock_ == nullptr) return read_clock(call);
  const auto json = parse_json(call->request.body, "the body");
  if (!json) return refuse(*call, json.error());
  const auto text = [&](const char* name) -> std::optional<std::string_view> {
    const auto* object = json->if_object();
    const auto* member = object ? object->if_contains(name) : nullptr;
    if (!member || !member->is_string()) return std::nullopt;
    return std::string_view{member->get_string().data(), member->get_string().size()};
  };
  const Instant now = clock_->now();
  std::optional<std::chrono::milliseconds> by;
  if (const auto span = text("advance")) by = admin::from_iso_duration(*span);
  if (const auto date = text("set"))
    if (const auto to = admin::from_date(*date)) by = *to - now;
  if (!by)
    return refuse(*call, {400, 40000},
                  R"(The body has to be {"advance": "PT5M"} or {"set": "2030-01-01T00:00:00Z"}.)");
  if (by->count() < 0) return refuse(*call, {400, 40000}, "The clock only goes forward.");
  if (*by > latest - now) return refuse(*call, {400, 40000}, "The clock ends before the year 9998.");
  clock_->advance(*by, [this, call] { read_clock(call); });
}

// Answers

void ToolService::answer(Call& call, int status, std::string json) {
  finish(call, {.status = status,
                .headers = {{"Content-Type", "application/json; charset=utf-8"}},
                .body = std::move(json)});
}

void ToolService::refuse(Call& call, const Error& error) {
  refuse(call, admin::fault_of(error), error.detail);
}

void ToolService::refuse(Call& call, admin::HttpFault fault, std::string_view detail) {
  finish(call, admin::error_response(fault, detail, settings_.name_space + ":" + call.shown, call.now.wall,
                                     random_));
}

void ToolService::finish(Call& call, net::HttpResponse response) {
  --under_way_;
  if (!call.action.empty())
    port_.audit({call.who, call.action, "messages", call.shown, call.request.peer, response.status});
  call.reply.send(std::move(response));
}

}  // namespace omnibus::rest
