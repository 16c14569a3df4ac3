#include "node/rest_shard.hpp"

#include <spdlog/spdlog.h>

namespace omnibus::node {

void RestShard::Log::link_refused(std::string_view address, std::string_view status, std::string_view text) {
  spdlog::debug("http entity='{}' refused with {}: {}", address, status, text);
}

void RestShard::Log::message_unreadable(std::string_view entity, std::int64_t sequence_number,
                                        const Error& why) {
  spdlog::error("http entity='{}' message {} cannot be sent: {}", entity, sequence_number, why.detail);
}

RestShard::RestShard(Shard& shard, std::shared_ptr<Space> space, admin::AdminPort& admin,
                     const rest::RestSettings& settings, const rest::ToolSettings& tool_settings,
                     Clock* clock, const Roads& roads, std::uint64_t seed)
    : shard_(shard),
      random_(seed),
      number_(shard.enter(*this)),
      port_(shard, number_, std::move(space)),
      rest_(settings, port_.space().validator(), port_, number_, random_, log_),
      tools_(tool_settings, port_.space().validator(), admin, rest_,
             clock ? &clock_.emplace(*clock, roads, shard) : nullptr, random_),
      timer_(shard.reactor()) {}

RestShard::~RestShard() { shard_.leave(number_); }

bool RestShard::handle(net::HttpRequest& request, net::HttpReply& reply) {
  if (rest::ToolService::is_tool(request))
    tools_.handle(std::move(request), std::move(reply), shard_.now());
  else if (rest::RestService::is_rest(request))
    rest_.handle(std::move(request), std::move(reply), shard_.now());
  else
    return false;
  follow_up();
  return true;
}

void RestShard::deliver(broker::Answer& answer, links::Now now) { rest_.deliver(answer, now); }

void RestShard::on_room() {
  rest_.on_room();
  follow_up();
}

void RestShard::follow_up() {
  const auto next = rest_.next_tick();
  if (!next) return timer_.cancel();
  timer_.arm(*next, [this] {
    rest_.tick(shard_.now());
    follow_up();
  });
}

}  // namespace omnibus::node
