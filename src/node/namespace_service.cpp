#include "node/namespace_service.hpp"

#include <fmt/format.h>

#include "admin/feeds.hpp"
#include "auth/faults.hpp"
#include "base/text.hpp"

namespace omnibus::node {
namespace {

constexpr std::string_view all_of_them = "/$omnibus/namespaces";

// The path without its query, decoded; "" when it cannot be.
std::string path_of(const net::HttpRequest& request) {
  const std::string_view target = request.target;
  return percent_decode(target.substr(0, target.find('?'))).value_or("");
}

net::HttpResponse json(int status, std::string body) {
  return {.status = status, .headers = {{"Content-Type", "application/json"}}, .body = std::move(body)};
}

}  // namespace

struct NamespaceService::Call {
  net::HttpRequest request;
  net::HttpReply reply;
  Instant now{};
  std::string name{};  // empty: all of them
  std::string who{};
  std::string_view action{};  // of a change, for the log
};

bool NamespaceService::is_for(const net::HttpRequest& request) {
  const std::string path = path_of(request);
  return starts_with_ignoring_case(path, all_of_them) &&
         (path.size() == all_of_them.size() || path[all_of_them.size()] == '/');
}

template <class T, class Then>
Namespaces::Answer<T> NamespaceService::at_home(CallPtr call, Then then) {
  return [this, &home = home_, life = std::weak_ptr(life_), call = std::move(call),
          then = std::move(then)](Result<T> result) mutable {
    home.post(
        [this, life, call = std::move(call), then = std::move(then), result = std::move(result)]() mutable {
          if (life.expired()) return;
          if (!result) return refuse(*call, result.error());
          then(*call, result);
        });
  };
}

void NamespaceService::handle(net::HttpRequest request, net::HttpReply reply, const Space& space,
                              Instant now) {
  auto call = std::make_shared<Call>(Call{std::move(request), std::move(reply), now});
  ++under_way_;
  const std::string path = path_of(call->request);
  if (path.size() > all_of_them.size()) call->name = path.substr(all_of_them.size() + 1);
  while (call->name.ends_with('/')) call->name.pop_back();
  const std::string& method = call->request.method;
  // Known before it is judged, so that a refusal is told too. As with entities, a condition makes a PUT a
  // change of what is there.
  if (!call->name.empty() && method == "PUT")
    call->action = call->request.header("If-Match") ? "update" : "create";
  if (!call->name.empty() && method == "DELETE") call->action = "delete";
  if (settings_.require_tls && !call->request.tls)
    return refuse(*call, {Errc::unauthorized_access, "The request must use TLS."});
  if (under_way_ > settings_.requests_max)
    return refuse(*call, {Errc::server_busy, "Too many requests are under way."});
  if (const auto allowed = authorize(*call, space); !allowed) return refuse(*call, allowed.error());
  if (call->name.empty() && method == "GET") return list(call);
  if (!call->name.empty() && method == "GET") return get(call);
  if (!call->name.empty() && method == "PUT") return put(call);
  if (!call->name.empty() && method == "DELETE") return remove(call);
  finish(*call,
         admin::error_response({405, 40000}, "Only GET, and of one namespace PUT and DELETE, are allowed.",
                               call->name, call->now, random_));
}

// A key of another namespace is good for that one alone, its host names included.
Result<void> NamespaceService::authorize(Call& call, const Space& space) const {
  if (space.facts().number != 0)
    return fail(Errc::not_found, "Namespaces are managed at the host names of the default one.");
  if (settings_.auth_off) {
    call.who = "anyone";
    return {};
  }
  const std::string* header = call.request.header("Authorization");
  if (header == nullptr || header->empty())
    return fail(Errc::auth_failed, "MissingToken: the request has no authorization");
  const auto grant = space.validator().validate_authorization(*header, call.request.target, call.now);
  if (!grant) return fail(grant.error());
  call.who = grant->holder;
  if (!grant->rights.has(auth::Right::manage))
    return fail(Errc::unauthorized_access, "Manage is required for this operation.");
  return {};
}

void NamespaceService::list(const CallPtr& call) {
  using All = std::vector<NamespaceView>;
  namespaces_.list(at_home<All>(call, [this](Call& asked, const Result<All>& all) {
    finish(asked, json(200, write_namespaces(*all)));
  }));
}

void NamespaceService::get(const CallPtr& call) {
  namespaces_.find(call->name,
                   at_home<NamespaceView>(call, [this](Call& asked, const Result<NamespaceView>& one) {
                     finish(asked, json(200, write_namespace(*one, settings_.port)));
                   }));
}

void NamespaceService::put(const CallPtr& call) {
  const std::string* condition = call->request.header("If-Match");
  if (condition && *condition != "*")
    return refuse(*call, {Errc::argument_error, "If-Match can only be '*'."});
  auto document = read_namespace_document(call->request.body);
  if (!document) return refuse(*call, document.error());
  auto done = at_home<Namespaces::Made>(call, [this](Call& asked, const Result<Namespaces::Made>& made) {
    finish(asked, json(made->is_new ? 201 : 200, write_namespace(made->view, settings_.port)));
  });
  if (condition)
    namespaces_.update(call->name, *std::move(document), std::move(done));
  else
    namespaces_.create(call->name, *std::move(document), std::move(done));
}

void NamespaceService::remove(const CallPtr& call) {
  namespaces_.drop(call->name, at_home<void>(call, [this](Call& asked, const Result<void>&) {
                     finish(asked, {.status = 200});
                   }));
}

void NamespaceService::refuse(Call& call, const Error& error) {
  admin::HttpFault fault = admin::fault_of(error);
  if (error.code == Errc::auth_failed && error.detail.starts_with("MissingToken")) fault.sub_code = 40102;
  if (settings_.require_tls && !call.request.tls) fault = {401, 40101};
  finish(call, admin::error_response(fault, error.detail, auth::shown(call.name), call.now, random_));
}

void NamespaceService::finish(Call& call, net::HttpResponse response) {
  --under_way_;
  if (!call.action.empty()) {
    const std::string name = auth::shown(call.name);
    tell_audit(audit_log_,
               {call.who, call.action, "namespace", name, call.request.peer, response.status, name});
  }
  call.reply.send(std::move(response));
}

}  // namespace omnibus::node
