#include "node/shard_http.hpp"

#include "admin/feeds.hpp"

namespace omnibus::node {

// All that serves one namespace on this shard.
struct ShardHttp::Desk {
  Desk(const Settings& all, std::shared_ptr<Space> of, Roads& roads, Shard& shard, std::uint64_t seed)
      : space(std::move(of)),
        management(all.management),
        rest_settings(all.rest),
        tool_settings(all.tools),
        random(seed),
        door(*space->facts().desk, shard.reactor(), roads.audit_log, space->facts().name),
        service(management, space->validator(), door, random),
        rest(shard, space, door, rest_settings, tool_settings, all.test_clock ? &roads.clock : nullptr, roads,
             random.next()) {
    const SpaceFacts& facts = space->facts();
    management.name_space.name = rest_settings.name_space = tool_settings.name_space = facts.name;
    management.name_space.created = facts.created;
    tool_settings.configured = facts.configured;
  }

  [[nodiscard]] bool is_quiet() const { return service.under_way() == 0 && rest.is_quiet(); }

  const std::shared_ptr<Space> space;
  admin::ManagementSettings management;
  rest::RestSettings rest_settings;
  rest::ToolSettings tool_settings;
  Random random;
  AdminDoor door;
  admin::ManagementService service;
  RestShard rest;
};

ShardHttp::ShardHttp(const Settings& settings, Namespaces& namespaces, Roads& roads, Shard& shard,
                     std::uint64_t seed)
    : settings_(settings),
      roads_(roads),
      shard_(shard),
      random_(seed),
      namespaces_(settings.namespaces, namespaces, shard.reactor(), random_, roads.audit_log) {}

ShardHttp::~ShardHttp() = default;

void ShardHttp::handle(net::HttpRequest request, net::HttpReply reply) {
  const std::string* host = request.header("Host");
  const auto space = shard_.spaces().of_host(host ? *host : "");
  if (NamespaceService::is_for(request))
    return namespaces_.handle(std::move(request), std::move(reply), *space, wall_now());
  Desk& desk = desk_of(space);
  if (desk.rest.handle(request, reply)) return;
  desk.service.handle(std::move(request), std::move(reply), wall_now());
}

net::HttpResponse ShardHttp::refusal(int status) {
  const auto text = [status]() -> std::string_view {
    switch (status) {
      case 408:
        return "The request did not come in time.";
      case 413:
        return "The body of the request is too large.";
      case 431:
        return "The header of the request is too large.";
      case 503:
        return "There are too many connections.";
      default:
        return "This is no HTTP request.";
    }
  }();
  const std::string& name_space = shard_.spaces().of_host("")->facts().name;
  return admin::error_response({status, status == 503 ? 50004 : 40000}, text, name_space, wall_now(),
                               random_);
}

ShardHttp::Desk& ShardHttp::desk_of(const std::shared_ptr<Space>& space) {
  const auto [found, is_new] = desks_.try_emplace(space->facts().number);
  if (!is_new) return *found->second;
  found->second = std::make_unique<Desk>(settings_, space, roads_, shard_, random_.next());
  Desk& made = *found->second;
  // A good moment to let go of those whose namespace went.
  std::erase_if(desks_,
                [&](const auto& one) { return one.second->is_quiet() && !shard_.spaces().find(one.first); });
  return made;
}

}  // namespace omnibus::node
