#include "admin/management_service.hpp"

#include <algorithm>

#include "admin/document_answers.hpp"
#include "admin/entity_name.hpp"
#include "admin/rule_descriptions.hpp"
#include "auth/faults.hpp"
#include "auth/sas_token.hpp"
#include "base/text.hpp"

namespace omnibus::admin {
namespace {

constexpr std::size_t host_bytes_max = 300;

std::string_view kind_word(const AdminPath& path) {
  switch (path.kind) {
    case AdminPath::Kind::subscription:
      return "subscription";
    case AdminPath::Kind::rule:
    case AdminPath::Kind::rules:
      return "rule";
    default:
      return "entity";
  }
}

std::string not_found_text(std::string_view name) {
  return fmt::format("The messaging entity '{}' could not be found.", auth::shown(name));
}

}  // namespace

std::string host_of(const net::HttpRequest& request) {
  const std::string* host = request.header("Host");
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == ':' || c == '[' || c == ']';
  };
  if (host == nullptr || host->empty() || host->size() > host_bytes_max ||
      !std::ranges::all_of(*host, is_good))
    return "localhost";
  return ascii_lower(*host);
}

bool is_management(const net::HttpRequest& request) {
  const std::string_view target = request.target;
  const auto path = target.substr(0, target.find('?'));
  if (path != "/health" && path != "/cert") return true;
  return request.header("Authorization") != nullptr || target.contains("api-version=");
}

void ManagementService::handle(net::HttpRequest request, net::HttpReply reply, Instant now) {
  auto call = std::make_shared<Call>(Call{std::move(request), std::move(reply)});
  ++under_way_;
  call->base.view.host = host_of(call->request);
  call->base.url = fmt::format("{}://{}", call->request.tls ? "https" : "http", call->base.view.host);
  call->base.name_space = settings_.name_space.name;
  call->base.now = now;
  auto path = parse_admin_path(call->request.target);
  if (path) call->path = *path;
  call->base.view.api_version = call->path.api_version;
  using enum AdminPath::Kind;
  call->speaks_json =
      call->path.kind == exchanges || call->path.kind == scripts ||
      ((call->path.kind == entity || call->path.kind == subscription) && is_about_document(call->request));
  name_change(*call);
  if (settings_.require_tls && !call->request.tls)
    return refuse(*call, {401, 40101}, "The request must use TLS.");
  if (under_way_ > settings_.requests_max)
    return refuse(*call, {503, 50004}, "Too many requests are under way.");
  if (!path) return refuse(*call, path.error());
  // It tells nothing, and everybody may read it.
  const bool reads = call->request.method == "GET" || call->request.method == "HEAD";
  if (call->path.kind == root && reads) return finish(*call, empty_feed(call->base, random_));
  if (const auto allowed = authorize(*call); !allowed) return refuse(*call, allowed.error());
  dispatch(call);
}

void ManagementService::name_change(Call& call) {
  const AdminPath& path = call.path;
  using enum AdminPath::Kind;
  if (path.kind != entity && path.kind != subscription && path.kind != rule && path.kind != rules) return;
  call.kind = kind_word(path);
  if (call.request.method == "DELETE" && path.kind != rules) call.action = "delete";
  if (call.request.method != "PUT") return;
  call.action = call.request.header("If-Match") != nullptr ? "update" : "create";
  if (!call.speaks_json) return;
  call.action = "put";
  call.kind = path.subscription.empty() ? "exchange" : "subscription";
}

Result<void> ManagementService::authorize(Call& call) {
  const std::string* header = call.request.header("Authorization");
  if (settings_.auth_off) {
    call.who = "anyone";
    return {};
  }
  if (header == nullptr || header->empty()) return missing_token();
  const auto grant = validator_.validate_authorization(*header, call.request.target, call.base.now);
  if (!grant) return fail(grant.error());
  call.who = grant->holder;
  if (call.path.kind == AdminPath::Kind::namespace_info) return {};
  if (!grant->rights.has(auth::Right::manage))
    return fail(Errc::unauthorized_access, "Manage is required for this operation.");
  return {};
}

Result<void> ManagementService::authorize_forward(const Call& call, std::string_view header,
                                                  const std::string& target) const {
  const std::string* value = call.request.header(header);
  if (value == nullptr || value->empty() || target.empty() || settings_.auth_off) return {};
  // JavaScript signs the bare name of our host, without a scheme: it stands for the whole namespace.
  const auto grant = validator_.validate_authorization(*value, "/" + auth::percent_encode(target),
                                                       call.base.now, call.base.view.host);
  if (!grant) return fail(grant.error());
  if (!grant->rights.has(auth::Right::send))
    return fail(Errc::unauthorized_access, "Send is required on the forwarding target '{}'.", target);
  return {};
}

Result<void> ManagementService::check_forwards(const Call& call, const Entity& entity) const {
  if (entity.kind == EntityKind::topic) return {};
  if (auto good = authorize_forward(call, "ServiceBusSupplementaryAuthorization", entity.queue.forward_to);
      !good)
    return good;
  return authorize_forward(call, "ServiceBusDlqSupplementaryAuthorization",
                           entity.queue.forward_dead_letters_to);
}

void ManagementService::dispatch(const CallPtr& call) {
  const std::string& method = call->request.method;
  const bool reads = method == "GET" || method == "HEAD";
  using enum AdminPath::Kind;
  switch (call->path.kind) {
    case unknown:
      return refuse(*call, {404, 40400}, "There is nothing at this address.");
    case root:
    case namespace_info:
    case queues:
    case topics:
    case subscriptions:
      if (!reads) return refuse(*call, {405, 40000}, "Only GET is allowed here.");
      return get(call);
    case exchanges:
      if (!reads) return refuse(*call, {405, 40000}, "Only GET is allowed here.");
      return list_documents(call);
    case scripts:
      // Nothing runs them yet, so nothing keeps them: better no than a yes that means nothing.
      return refuse(*call, {501, 50100},
                    "Scripts are not supported yet: handlers do not run in this broker.");
    case rules:
      if (method == "PUT") return put(call);
      if (!reads) return refuse(*call, {405, 40000}, "Only GET and PUT are allowed here.");
      return get(call);
    case entity:
    case subscription:
    case rule:
      if (reads) return call->speaks_json ? get_document(call) : get(call);
      if (method == "PUT") return call->speaks_json ? put_document(call) : put(call);
      if (method == "DELETE") return remove(call);
      return refuse(*call, {405, 40000}, "Only GET, PUT and DELETE are allowed here.");
  }
}

void ManagementService::get(const CallPtr& call) {
  const AdminPath& path = call->path;
  using enum AdminPath::Kind;
  switch (path.kind) {
    case namespace_info:
      return finish(*call, namespace_response(settings_.name_space, call->base));
    case queues:
    case topics:
    case subscriptions: {
      const auto kind = path.kind == queues   ? EntityKind::queue
                        : path.kind == topics ? EntityKind::topic
                                              : EntityKind::subscription;
      return port_.list({kind, path.entity, path.skip, path.top}, [this, call](Result<Page<Entity>> page) {
        if (!page) return refuse(*call, page.error());
        finish(*call, entity_feed(*page, call->path, call->base));
      });
    }
    case rules:
      return port_.list_rules(path.whole_name(), path.skip, path.top,
                              [this, call](Result<Page<rules::Rule>> page) {
                                if (!page) return refuse(*call, page.error());
                                finish(*call, rule_feed(*page, call->path, call->base));
                              });
    case rule:
      return port_.find_rule(path.whole_name(), path.rule, [this, call](Result<rules::Rule> found) {
        if (!found) return refuse(*call, found.error());
        finish(*call, rule_response(200, call->path.whole_name(), *found, call->base));
      });
    case entity:
    case subscription:
      return port_.find(path.whole_name(), [this, call](Result<Entity> found) {
        // The service has no 404 for queues and topics: it lists what is public, which is nothing.
        if (!found && found.error().code == Errc::not_found && call->path.kind == AdminPath::Kind::entity)
          return finish(*call, empty_feed(call->base, random_));
        if (!found) return refuse(*call, found.error());
        finish(*call, entry_response(200, *found, call->base));
      });
    default:
      return refuse(*call, {404, 40400}, "There is nothing at this address.");
  }
}

void ManagementService::put(const CallPtr& call) {
  const auto entry = parse_xml(call->request.body);
  if (!entry) return refuse(*call, entry.error());
  const auto description = content_of(*entry);
  if (!description) return refuse(*call, description.error());
  if (call->path.kind == AdminPath::Kind::rule || call->path.kind == AdminPath::Kind::rules)
    return put_rule(call, **description);
  put_entity(call, **description);
}

void ManagementService::put_entity(const CallPtr& call, const XmlElement& description) {
  const bool is_subscription = call->path.kind == AdminPath::Kind::subscription;
  if (auto good = check_entity_name(call->path.entity); !good) return refuse(*call, good.error());
  if (is_subscription)
    if (auto good = check_subscription_name(call->path.subscription); !good)
      return refuse(*call, good.error());
  auto request = read_entity_request(description, call->base.now);
  if (!request) return refuse(*call, request.error());
  if (is_subscription != (request->kind == EntityKind::subscription))
    return refuse(*call, {400, 40000}, "The content does not describe what the address names.");
  if (!is_subscription) call->kind = request->kind == EntityKind::queue ? "queue" : "topic";
  if (call->action == "update") return update_entity(call, *std::move(request));
  create_entity(call, *std::move(request));
}

void ManagementService::create_entity(const CallPtr& call, EntityRequest request) {
  auto entity = new_entity(request, call->path.whole_name(), settings_.defaults, call->base.now);
  if (!entity) return refuse(*call, entity.error());
  if (auto good = check_forwards(*call, *entity); !good) return refuse(*call, good.error());
  std::vector<rules::Rule> with;
  if (request.default_rule) {
    if (request.default_rule->name.empty()) request.default_rule->name = rules::default_rule_name;
    if (const auto compiled = rules::compile(*request.default_rule); !compiled)
      return refuse(*call, compiled.error());
    with.push_back(*std::move(request.default_rule));
  }
  port_.create(*std::move(entity), std::move(with), [this, call](Result<Entity> made) {
    if (!made) return refuse(*call, made.error());
    finish(*call, entry_response(201, *made, call->base));
  });
}

void ManagementService::update_entity(const CallPtr& call, EntityRequest request) {
  port_.find(call->path.whole_name(), [this, call, request = std::move(request)](Result<Entity> present) {
    if (!present) return refuse(*call, present.error());
    auto entity = changed_entity(request, *present, settings_.defaults, call->base.now);
    if (!entity) return refuse(*call, entity.error());
    if (auto good = check_forwards(*call, *entity); !good) return refuse(*call, good.error());
    port_.update(*std::move(entity), [this, call](Result<Entity> updated) {
      if (!updated) return refuse(*call, updated.error());
      finish(*call, entry_response(200, *updated, call->base));
    });
  });
}

void ManagementService::put_rule(const CallPtr& call, const XmlElement& description) {
  if (description.name != "RuleDescription")
    return refuse(*call, {400, 40000}, "The content does not describe a rule.");
  auto rule = read_rule(description, call->base.now);
  if (!rule) return refuse(*call, rule.error());
  // The address decides; where it names none, the description does.
  if (!call->path.rule.empty()) rule->name = call->path.rule;
  if (rule->name.empty()) rule->name = rules::default_rule_name;
  call->path.rule = rule->name;
  if (const auto compiled = rules::compile(*rule); !compiled) return refuse(*call, compiled.error());
  port_.put_rule(call->path.whole_name(), *std::move(rule), call->action == "update",
                 [this, call](Result<rules::Rule> put) {
                   if (!put) return refuse(*call, put.error());
                   const int status = call->action == "update" ? 200 : 201;
                   finish(*call, rule_response(status, call->path.whole_name(), *put, call->base));
                 });
}

void ManagementService::remove(const CallPtr& call) {
  auto answer = [this, call](const Result<void>& removed) {
    if (!removed) return refuse(*call, removed.error());
    // Exactly 200: two clients take nothing else.
    finish(*call, {.status = 200});
  };
  if (call->path.kind == AdminPath::Kind::rule)
    return port_.remove_rule(call->path.whole_name(), call->path.rule, std::move(answer));
  port_.remove(call->path.whole_name(), call->path.kind == AdminPath::Kind::subscription, std::move(answer));
}

void ManagementService::refuse(Call& call, const Error& error) {
  const HttpFault fault = fault_of(error);
  const std::string name = call.path.whole_name();
  if (error.code == Errc::not_found && error.detail.empty()) return refuse(call, fault, not_found_text(name));
  refuse(call, fault, error.detail);
}

void ManagementService::refuse(Call& call, HttpFault fault, std::string_view detail) {
  if (call.speaks_json) return finish(call, document_error(fault, detail));
  const std::string about = settings_.name_space.name + ":" + auth::shown(call.path.whole_name());
  finish(call, error_response(fault, detail, about, call.base.now, random_));
}

void ManagementService::finish(Call& call, net::HttpResponse response) {
  --under_way_;
  if (!call.action.empty()) {
    std::string name = call.path.whole_name();
    if (!call.path.rule.empty()) name += "/Rules/" + call.path.rule;
    port_.audit({call.who, call.action, call.kind, auth::shown(name), call.request.peer, response.status});
  }
  call.reply.send(std::move(response));
}

}  // namespace omnibus::admin
