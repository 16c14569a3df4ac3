// What tests need beside the data plane, under `/$omnibus/`: purge, reset, look, put in, and the clock.
//
//   POST /$omnibus/purge/{entity}[?subqueue=deadletter|transfer|all]     {"purged": 3}
//   POST /$omnibus/reset[?entities=delete]                               {"purged": 3, "deleted": 1}
//   GET  /$omnibus/messages/{entity}[?from=N][&top=N][&subqueue=...]     {"value": [...], "next": N}
//   POST /$omnibus/messages/{entity}, a batch as the data plane has it   {"accepted": 2}
//   GET  /$omnibus/partitions/{entity}                                   {"partitions": 16}
//   GET  /$omnibus/clock, POST {"advance": "PT5M"} or {"set": "..."}     {"now": "...", "offset_ms": 300000}
//
// The right to Manage the namespace is needed; errors look as those of the management API. One per shard, on
// its core; what it is given outlives it and every answer.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "admin/admin_port.hpp"
#include "rest/rest_service.hpp"

namespace omnibus::rest {

// The time of messages, which a test may move ahead. Tokens and connections go by the real one.
class ClockPort {
 public:
  virtual ~ClockPort() = default;
  [[nodiscard]] virtual Instant now() const = 0;
  [[nodiscard]] virtual std::chrono::milliseconds ahead() const = 0;
  // `done` comes on this core when every store has acted on the new time.
  virtual void advance(std::chrono::milliseconds by, std::move_only_function<void()> done) = 0;
};

struct ToolSettings {
  std::string name_space{};
  bool auth_off = false;
  bool require_tls = false;
  std::set<std::string> configured{};  // entities that a reset never deletes: whole names in lower case
  std::size_t requests_max = 100;      // under way
};

class ToolService {
 public:
  // `clock` is null where there is none to be moved.
  ToolService(const ToolSettings& settings, const auth::TokenValidator& validator, admin::AdminPort& port,
              RestService& rest, ClockPort* clock, Random& random)
      : settings_(settings),
        validator_(validator),
        port_(port),
        rest_(rest),
        clock_(clock),
        random_(random) {}

  [[nodiscard]] static bool is_tool(const net::HttpRequest& request);
  void handle(net::HttpRequest request, net::HttpReply reply, links::Now now);
  [[nodiscard]] std::size_t under_way() const { return under_way_; }

 private:
  struct Call;
  using CallPtr = std::shared_ptr<Call>;
  struct Step {
    links::Route route;
    broker::SubQueue sub_queue = broker::SubQueue::active;
  };
  struct Purging;
  struct Resetting;
  using Names = std::move_only_function<void(Result<std::vector<std::string>>)>;

  // Says in the call what it is to change, if anything: before it is judged, so that a refusal is told too.
  void name_change(Call& call) const;
  [[nodiscard]] Result<void> authorize(Call& call, Instant now) const;
  void dispatch(const CallPtr& call);
  void purge(const CallPtr& call);
  void reset(const CallPtr& call);
  void look(const CallPtr& call);
  void put_in(const CallPtr& call);
  void count_partitions(const CallPtr& call);
  void read_clock(const CallPtr& call);
  void move_clock(const CallPtr& call);

  // Everything that is in these, and how many messages that was.
  void purge_all(const std::vector<std::string>& names, const std::vector<broker::SubQueue>& sub_queues,
                 std::move_only_function<void(Result<std::uint64_t>)> done);
  void purge_next(const std::shared_ptr<Purging>& purging);
  // Names of a kind, page by page.
  void list(admin::AdminPort::Listing listing, std::vector<std::string> so_far, Names done);
  void list_subscriptions(std::vector<std::string> topics, std::size_t at, std::vector<std::string> so_far,
                          Names done);
  void delete_next(const CallPtr& call, const std::shared_ptr<Resetting>& resetting);
  [[nodiscard]] Result<std::shared_ptr<const links::EntityFacts>> entity_of(Call& call) const;

  void answer(Call& call, int status, std::string json);
  void refuse(Call& call, const Error& error);
  void refuse(Call& call, admin::HttpFault fault, std::string_view detail);
  void finish(Call& call, net::HttpResponse response);

  const ToolSettings& settings_;
  const auth::TokenValidator& validator_;
  admin::AdminPort& port_;
  RestService& rest_;
  ClockPort* const clock_;
  Random& random_;
  std::size_t under_way_ = 0;
};

}  // namespace omnibus::rest
