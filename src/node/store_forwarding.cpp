// The messages that queues of a store forward: to a queue, topic or exchange of the same store or of another.
#include "base/check.hpp"
#include "node/shard.hpp"
#include "node/store_host.hpp"

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;

// A target that cannot take a forwarded message now is asked again after this.
constexpr auto forward_retry = 1s;

}  // namespace

// Queues, topics and exchanges take messages; a subscription has them from its topic alone. [HTTP 12]
Result<Facts> StoreHost::forward_target(const store::ForwardRequest& request) const {
  const auto space = home_.spaces().find(request.name_space);
  auto target = space ? space->directory().find(request.target) : nullptr;
  if (!target) return fail(Errc::not_found, "The forwarding target '{}' is gone.", request.target);
  if (target->kind == links::EntityKind::subscription)
    return fail(Errc::not_allowed, "The forwarding target '{}' is a subscription.", request.target);
  if (request.walk && !target->exchange)
    return fail(Errc::not_allowed, "The alternate exchange '{}' is no exchange.", request.target);
  return target;
}

Result<links::Route> StoreHost::route_to(const links::EntityFacts& target,
                                         std::span<broker::IncomingMessage> messages) {
  if (!target.is_partitioned()) return target.route;
  const auto keyed = links::keyed_partition(target, messages);
  if (!keyed) return fail(keyed.error());
  if (*keyed) return target.partitions[**keyed];
  const auto any = choice_.next(target, [&](std::uint16_t index) {
    return roads_.stores.at(target.partitions[index].store)->is_available();
  });
  return target.partitions[any.value_or(0)];
}

Result<std::optional<store::PartitionId>> StoreHost::on_forward(store::ForwardRequest& request) {
  const auto target = forward_target(request);
  if (!target) return fail(target.error());
  links::Route route = (*target)->route;
  if ((*target)->is_partitioned()) {
    auto command = store::forward_command(request, broker::RequestId::none, random_);
    if (!command) return fail(command.error());
    const auto chosen = route_to(**target, command->messages);
    if (!chosen) return fail(chosen.error());
    route = *chosen;
  }
  if (route.store == settings_.number) return std::optional{store::PartitionId{route.partition}};
  forwards_.push_back(std::move(request));
  if (!std::exchange(forwards_posted_, true)) post([this] { send_forwards(); });
  return std::optional<store::PartitionId>{};
}

void StoreHost::send_forwards() {
  forwards_posted_ = false;
  const std::size_t before = forwards_.size();
  while (!forwards_.empty() && send_forward(forwards_.front())) forwards_.pop_front();
  if (before != 0) end_turn(now());
}

// False: the road is full; the request waits and send_forwards() comes again.
bool StoreHost::send_forward(store::ForwardRequest& request) {
  const auto refused = [&](const Error& error) {
    store_->forwarded(now(), request.from, request.sequence, error);
    return true;
  };
  const auto target = forward_target(request);
  if (!target) return refused(target.error());
  do ++last_forward_;
  while (last_forward_ == 0 || forwards_under_way_.contains(last_forward_));
  const auto id =
      static_cast<broker::RequestId>(std::uint64_t{store_asks | settings_.number} << 32 | last_forward_);
  auto command = store::forward_command(request, id, random_);
  if (!command) return refused(command.error());
  const auto route = route_to(**target, command->messages);
  if (!route) return refused(route.error());
  auto& road = roads_.stores.at(route->store)->commands();
  if (!road.try_push({store::PartitionId{route->partition}, std::move(*command)})) {
    if (!std::exchange(forwards_posted_, true))
      road.on_space(reactor_, while_alive(life_, [this] { send_forwards(); }));
    return false;
  }
  forwards_under_way_.emplace(last_forward_, std::move(request));
  return true;
}

void StoreHost::forward_answered(const broker::Effect& effect) {
  const auto* accepted = std::get_if<broker::Accepted>(&effect);
  const auto* refused = std::get_if<broker::Refused>(&effect);
  const auto* unrouted = std::get_if<broker::Unrouted>(&effect);
  check(accepted || refused || unrouted, "a forwarded message is accepted, refused or matches nothing");
  const auto id = accepted ? accepted->request : refused ? refused->request : unrouted->request;
  const auto found = forwards_under_way_.find(static_cast<std::uint32_t>(id));
  if (found == forwards_under_way_.end()) return;  // of before a failure; asked again since
  store::ForwardRequest request = std::move(found->second);
  forwards_under_way_.erase(found);
  // A store that recovers, or one that failed while it wrote, says nothing about the message: a dead letter
  // would be wrong. It may come twice by this, never not at all.
  if (refused && (refused->error.code == Errc::server_busy || refused->error.code == Errc::internal_error)) {
    forwards_later_.push_back(std::move(request));
    if (!retry_.armed())
      retry_.arm(reactor_.now() + forward_retry, [this] {
        for (auto& one : std::exchange(forwards_later_, {})) forwards_.push_back(std::move(one));
        if (!std::exchange(forwards_posted_, true)) send_forwards();
      });
    return;
  }
  store::ForwardEnd end;
  if (refused) end.error = refused->error;
  if (unrouted) {
    auto ended = store::walk_on(request, *unrouted);
    if (!ended) {
      // The next exchange may be in this store again; by the road it is all the same.
      forwards_.push_back(std::move(request));
      if (!std::exchange(forwards_posted_, true)) post([this] { send_forwards(); });
      return;
    }
    end = std::move(*ended);
  }
  const Instant now = this->now();
  store_->forwarded(now, request.from, request.sequence, std::move(end.error));
  end_turn(now);
}

}  // namespace omnibus::node
