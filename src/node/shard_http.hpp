// The HTTP requests of one shard: administration, data and tools, each in the namespace its host names.
//
// What serves a namespace is made when it is first asked for, and kept until the namespace is gone and its
// last request is answered. Touched by the shard's thread alone.
#pragma once

#include <map>
#include <memory>

#include "admin/management_service.hpp"
#include "base/random.hpp"
#include "net/http.hpp"
#include "node/namespace_service.hpp"
#include "node/rest_shard.hpp"
#include "node/shard.hpp"

namespace omnibus::node {

class ShardHttp {
 public:
  // For all namespaces and shards; what is special to a namespace is filled in for it.
  struct Settings {
    admin::ManagementSettings management{};
    rest::RestSettings rest{};
    rest::ToolSettings tools{};
    NamespaceService::Settings namespaces{};
    bool test_clock = false;
  };
  // All outlive it. Made before the shard runs.
  ShardHttp(const Settings& settings, Namespaces& namespaces, Roads& roads, Shard& shard, std::uint64_t seed);
  ~ShardHttp();
  ShardHttp(const ShardHttp&) = delete;
  ShardHttp& operator=(const ShardHttp&) = delete;

  void handle(net::HttpRequest request, net::HttpReply reply);
  // In the form of the management API, to what never became a request.
  [[nodiscard]] net::HttpResponse refusal(int status);
  [[nodiscard]] Random& random() { return random_; }

 private:
  struct Desk;
  [[nodiscard]] Desk& desk_of(const std::shared_ptr<Space>& space);

  const Settings& settings_;
  Roads& roads_;
  Shard& shard_;
  Random random_;
  NamespaceService namespaces_;
  std::map<std::uint32_t, std::unique_ptr<Desk>> desks_;  // by number of their namespace
};

}  // namespace omnibus::node
