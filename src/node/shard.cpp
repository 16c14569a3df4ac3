#include "node/shard.hpp"

#include <vector>

#include "node/amqp_stream.hpp"

namespace omnibus::node {

using namespace std::chrono_literals;

Shard::Shard(net::Reactor& reactor, const Policy& policy, std::uint64_t seed, admin::Health::Plane& plane)
    : reactor_(reactor),
      policy_(policy),
      rules_(policy.rules),
      sasl_(policy.sasl, rules_),
      validator_({.auth_off = policy.sasl.auth_off}, rules_, *policy.issuers),
      random_(seed),
      plane_(plane),
      pulse_(reactor) {}

Shard::~Shard() = default;

void Shard::start_pulse() {
  plane_.serves(true);
  plane_.pulse(reactor_.now());
  pulse_.arm(reactor_.now() + 1s, [this] { start_pulse(); });
}

std::unique_ptr<net::StreamHandler> Shard::serve(net::Stream& stream, bool over_limit) {
  if (leaving_) return nullptr;
  return std::make_unique<AmqpStream>(*this, stream, over_limit);
}

void Shard::say_goodbye() {
  leaving_ = true;
  plane_.serves(false);
  // Closing may end a stream at once, which takes it out of the set.
  const std::vector<AmqpStream*> streams(streams_.begin(), streams_.end());
  for (AmqpStream* stream : streams) stream->close({Errc::connection_forced, "The broker is shutting down."});
}

}  // namespace omnibus::node
