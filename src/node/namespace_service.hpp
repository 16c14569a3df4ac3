// /$omnibus/namespaces: namespaces come and go over HTTP, for those who may manage the default one.
//
// One per shard; judges by what the shard knows and asks Namespaces, which is on the first. Answers come on
// the shard of the request. Errors have the bodies of the management API.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "auth/token_validator.hpp"
#include "base/random.hpp"
#include "net/http.hpp"
#include "net/reactor.hpp"
#include "node/audit_log.hpp"
#include "node/life.hpp"
#include "node/namespaces.hpp"

namespace omnibus::node {

class NamespaceService {
 public:
  struct Settings {
    bool auth_off = false;
    bool require_tls = false;
    // For connection strings; known once there is a listener, which is when requests come.
    std::atomic<std::uint16_t> port{0};
    std::size_t requests_max = 1000;  // under way
  };
  // All outlive it; there may be no `audit_log`.
  NamespaceService(const Settings& settings, Namespaces& namespaces, net::Reactor& home, Random& random,
                   AuditLog* audit_log)
      : settings_(settings), namespaces_(namespaces), home_(home), random_(random), audit_log_(audit_log) {}

  // Whether a request is about namespaces at all.
  [[nodiscard]] static bool is_for(const net::HttpRequest& request);
  // `space` is what the request's host chose.
  void handle(net::HttpRequest request, net::HttpReply reply, const Space& space, Instant now);

 private:
  struct Call;
  using CallPtr = std::shared_ptr<Call>;
  [[nodiscard]] Result<void> authorize(Call& call, const Space& space) const;
  void list(const CallPtr& call);
  void get(const CallPtr& call);
  void put(const CallPtr& call);
  void remove(const CallPtr& call);
  // The same answer, given at home: it holds the right to answer a client of this shard.
  template <class T, class Then>
  [[nodiscard]] Namespaces::Answer<T> at_home(CallPtr call, Then then);
  void refuse(Call& call, const Error& error);
  void finish(Call& call, net::HttpResponse response);

  const Settings& settings_;
  Namespaces& namespaces_;
  net::Reactor& home_;
  Random& random_;
  AuditLog* const audit_log_;
  const Life life_ = begin_life();
  std::size_t under_way_ = 0;
};

}  // namespace omnibus::node
