// Where numbers are gathered when somebody scrapes /metrics: on the first shard, beside the catalogues.
//
// Every shard and every store keeps its own numbers; the desk asks each by a post and waits, but no longer
// than its patience: what has not answered by then is told as unknown, a store as down. Several scrapes at
// once share one gathering. The text is written by a thread of its own, so that no shard stands still for a
// long one. MetricsDoor is the way to it from a shard: it judges who may ask, and keeps the right to answer
// where it belongs, on the shard of the request.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admin/metrics.hpp"
#include "journal/io_thread.hpp"
#include "net/http.hpp"
#include "net/reactor.hpp"
#include "node/life.hpp"
#include "node/roads.hpp"
#include "node/shard.hpp"
#include "node/store_host.hpp"

namespace omnibus::node {

struct MetricsSettings {
  std::size_t entities_max = 1000;  // with series of their own; the first by name
  std::chrono::milliseconds patience{2000};
};

class MetricsDesk {
 public:
  // All outlive the desk, which goes after every loop has ended and before the reactors.
  MetricsDesk(const Roads& roads, net::Reactor& first, MetricsSettings settings);

  using Text = std::shared_ptr<const std::string>;
  // `done` comes on some thread, and may only post. Any thread.
  void gather(std::move_only_function<void(Text)> done);

 private:
  struct Gathering;
  void begin();
  void name_entities(Gathering& gathering, std::vector<std::vector<store::PartitionId>>& by_store);
  void store_measured(const std::shared_ptr<Gathering>& gathering, StoreHost::Measured measured);
  void one_answered(const std::shared_ptr<Gathering>& gathering);
  void end(const std::shared_ptr<Gathering>& gathering);
  void post(net::Task task) { reactor_.post(while_alive(life_, std::move(task))); }

  const Roads& roads_;
  net::Reactor& reactor_;
  const MetricsSettings settings_;
  const Tick started_ = tick_now();
  const Instant started_at_ = wall_now();
  const Life life_ = begin_life();
  net::Timer patience_;
  std::vector<std::move_only_function<void(Text)>> waiting_;
  std::shared_ptr<Gathering> under_way_;
  journal::IoThread writer_;  // last: what it still writes looks at nothing above
};

struct MetricsAccess {
  bool auth_off = false;
  bool require_tls = false;
  // Without a token: everybody, nobody, or (nothing) whoever asks from this machine.
  std::optional<bool> open{};
};

// Requests that wait for the same numbers. One more than there may be is told to come again.
class Scrapes {
 public:
  static constexpr std::size_t waiting_max = 100;

  // Whether it is the first of those that wait: numbers have to be asked for.
  [[nodiscard]] bool add(net::HttpReply reply);
  void answer_all(const std::string& text);

 private:
  std::vector<net::HttpReply> waiting_;
};

class MetricsDoor {
 public:
  // Lives on that shard. Rights are those on the default namespace.
  MetricsDoor(MetricsDesk& desk, Shard& home, const MetricsAccess& access)
      : desk_(desk), home_(home), access_(access) {}

  void answer(const net::HttpRequest& request, net::HttpReply reply, Instant now);

 private:
  [[nodiscard]] std::optional<net::HttpResponse> refusal(const net::HttpRequest& request, Instant now) const;

  MetricsDesk& desk_;
  Shard& home_;
  const MetricsAccess access_;
  const Life life_ = begin_life();
  Scrapes scrapes_;
};

// Whether a request is for /metrics, and not for an entity that has this name.
[[nodiscard]] bool is_metrics(const net::HttpRequest& request);

}  // namespace omnibus::node
