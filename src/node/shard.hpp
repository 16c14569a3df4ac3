// What one core owns: its copy of the access rules, and its AMQP connections.
//
// Everything here is touched by the reactor's thread alone, but for the count of connections. The rules are
// copies, so that judging a token never waits for another core.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_set>

#include "admin/health.hpp"
#include "auth/access_rules.hpp"
#include "auth/jwt.hpp"
#include "auth/sasl.hpp"
#include "auth/token_validator.hpp"
#include "base/random.hpp"
#include "links/client_connection.hpp"
#include "net/reactor.hpp"
#include "net/stream.hpp"

namespace omnibus::node {

class AmqpStream;

// What all shards obey; made before they run and not changed after.
struct Policy {
  links::ConnectionSettings connection;
  auth::AccessRules rules;
  auth::SaslSettings sasl;
  std::shared_ptr<const auth::JwtIssuers> issuers;
};

class Shard {
 public:
  Shard(net::Reactor& reactor, const Policy& policy, std::uint64_t seed, admin::Health::Plane& plane);
  ~Shard();

  void start_pulse();
  [[nodiscard]] std::unique_ptr<net::StreamHandler> serve(net::Stream& stream, bool over_limit);
  // Asks every client to go: close frames leave, their answers are awaited.
  void say_goodbye();
  // AMQP connections, those on their way out included. Any thread.
  [[nodiscard]] std::size_t connections() const { return connections_.load(std::memory_order_relaxed); }

  [[nodiscard]] net::Reactor& reactor() { return reactor_; }
  [[nodiscard]] links::Now now() const { return {reactor_.now(), wall_now()}; }

 private:
  friend class AmqpStream;

  net::Reactor& reactor_;
  const Policy& policy_;
  const auth::AccessRules rules_;
  const auth::SaslPolicy sasl_;
  const auth::TokenValidator validator_;
  Random random_;
  admin::Health::Plane& plane_;
  net::Timer pulse_;
  std::unordered_set<AmqpStream*> streams_;
  std::atomic<std::size_t> connections_{0};  // the size of streams_, for other threads
  bool leaving_ = false;
};

}  // namespace omnibus::node
