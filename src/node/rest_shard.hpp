// Data and test tools over HTTP, of one namespace on one shard: what RestService and ToolService need of it.
#pragma once

#include <optional>

#include "net/reactor.hpp"
#include "node/admin_desk.hpp"
#include "node/connection_log.hpp"
#include "node/connection_port.hpp"
#include "node/shard.hpp"
#include "node/test_clock.hpp"
#include "rest/rest_service.hpp"
#include "rest/tool_service.hpp"

namespace omnibus::node {

class RestShard final : public Asker {
 public:
  // `clock` is null where nobody may move it. All outlive this.
  RestShard(Shard& shard, std::shared_ptr<Space> space, admin::AdminPort& admin,
            const rest::RestSettings& settings, const rest::ToolSettings& tool_settings, Clock* clock,
            const Roads& roads, std::uint64_t seed);
  ~RestShard() override;
  RestShard(const RestShard&) = delete;
  RestShard& operator=(const RestShard&) = delete;

  // False: the request is for somebody else, and untouched.
  [[nodiscard]] bool handle(net::HttpRequest& request, net::HttpReply& reply);

  // Nobody waits for an answer.
  [[nodiscard]] bool is_quiet() const {
    return rest_.requests() == 0 && rest_.polls() == 0 && tools_.under_way() == 0;
  }

  void deliver(broker::Answer& answer, links::Now now) override;
  void delivered() override { follow_up(); }
  void on_room() override;
  void give_up(std::uint16_t store, links::Now now) override { rest_.give_up(store, now); }

 private:
  // Refused requests, for those who look at the log closely.
  struct Log final : links::ConnectionObserver {
    void link_refused(std::string_view address, std::string_view status, std::string_view text) override;
    void message_unreadable(std::string_view entity, std::int64_t sequence_number, const Error& why) override;
  };
  void follow_up();

  Shard& shard_;
  Random random_;
  Log log_;
  const std::uint32_t number_;
  ConnectionPort port_;
  rest::RestService rest_;
  std::optional<TestClock> clock_;
  rest::ToolService tools_;
  net::Timer timer_;
};

}  // namespace omnibus::node
