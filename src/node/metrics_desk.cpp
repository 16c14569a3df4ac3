#include "node/metrics_desk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "node/namespaces.hpp"

namespace omnibus::node {
namespace {

std::string_view kind_text(store::PartitionKind kind) {
  switch (kind) {
    case store::PartitionKind::queue:
      return "queue";
    case store::PartitionKind::topic:
      return "topic";
    case store::PartitionKind::subscription:
      break;
  }
  return "subscription";
}

bool is_loopback_peer(std::string_view peer) {
  return peer.starts_with("127.") || peer.starts_with("[::1]:") || peer.starts_with("[::ffff:127.");
}

}  // namespace

// Touched on the first shard alone, until it is handed to the writer as a whole.
struct MetricsDesk::Gathering {
  admin::Metrics metrics{};
  Tick began{};
  std::size_t missing = 0;
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::size_t> whose{};  // entity by store and partition
  bool over = false;
};

MetricsDesk::MetricsDesk(const Roads& roads, net::Reactor& first, MetricsSettings settings)
    : roads_(roads), reactor_(first), settings_(std::move(settings)), patience_(first) {}

void MetricsDesk::gather(std::move_only_function<void(Text)> done) {
  post([this, done = std::move(done)]() mutable {
    waiting_.push_back(std::move(done));
    if (!under_way_) begin();
  });
}

void MetricsDesk::name_entities(Gathering& gathering,
                                std::vector<std::vector<store::PartitionId>>& by_store) {
  auto& entities = gathering.metrics.entities;
  std::size_t count = 0;
  roads_.namespaces->for_each([&](const std::string& name, const Catalogue& catalogue) {
    const auto& all = catalogue.entities();
    count += all.size();
    for (auto one = all.begin(); one != all.end() && entities.size() < settings_.entities_max; ++one) {
      const auto& info = one->second.info();
      for (const auto& part : one->second.parts) {
        if (!part) continue;
        by_store.at(part->store).push_back(part->info.id);
        gathering.whose[{part->store, static_cast<std::uint32_t>(part->info.id)}] = entities.size();
      }
      const bool is_standard = &catalogue == &roads_.namespaces->standard();
      entities.push_back({.name = info.name,
                          .kind = std::string{kind_text(info.kind)},
                          .name_space = is_standard ? "" : name});
    }
  });
  gathering.metrics.others_count = count - entities.size();
  for (auto& ids : by_store) std::ranges::sort(ids);
}

void MetricsDesk::begin() {
  auto gathering = std::make_shared<Gathering>();
  under_way_ = gathering;
  gathering->began = reactor_.now();
  gathering->metrics.shards = roads_.shards.size();
  std::vector<std::vector<store::PartitionId>> by_store(roads_.stores.size());
  name_entities(*gathering, by_store);
  for (const StoreHost* store : roads_.stores) {
    if (store == nullptr) continue;
    gathering->metrics.stores.emplace_back().number = store->number();
    ++gathering->missing;
  }
  gathering->missing += roads_.shards.size();
  // Answers come later even from this shard: posts are never run at once.
  for (StoreHost* store : roads_.stores)
    if (store != nullptr)
      store->measure(std::move(by_store.at(store->number())),
                     [this, gathering](StoreHost::Measured measured) {
                       post([this, gathering, measured = std::move(measured)]() mutable {
                         store_measured(gathering, std::move(measured));
                       });
                     });
  for (Shard* shard : roads_.shards)
    shard->post([this, gathering, shard] {
      post([this, gathering, numbers = shard->measure()] {
        if (gathering->over) return;
        gathering->metrics.connections += numbers;
        ++gathering->metrics.shards_answered;
        one_answered(gathering);
      });
    });
  patience_.arm(reactor_.now() + settings_.patience, [this] {
    if (under_way_) end(under_way_);
  });
}

void MetricsDesk::store_measured(const std::shared_ptr<Gathering>& gathering, StoreHost::Measured measured) {
  if (gathering->over) return;
  admin::Metrics& metrics = gathering->metrics;
  const auto place = std::ranges::find(metrics.stores, measured.store.number, &admin::StoreMetrics::number);
  for (const auto& numbers : measured.named) {
    const auto whose = gathering->whose.find({measured.store.number, static_cast<std::uint32_t>(numbers.id)});
    if (whose == gathering->whose.end()) continue;
    admin::EntityMetrics& entity = metrics.entities.at(whose->second);
    entity.add(numbers.queue);
    entity.counts.scheduled += numbers.topic.scheduled;
    entity.counts.size_bytes += numbers.topic.size_bytes;
    entity.totals += numbers.totals;
  }
  metrics.others.add(measured.others.counts);
  metrics.others.totals += measured.others.totals;
  *place = std::move(measured.store);
  one_answered(gathering);
}

void MetricsDesk::one_answered(const std::shared_ptr<Gathering>& gathering) {
  if (--gathering->missing == 0) end(gathering);
}

void MetricsDesk::end(const std::shared_ptr<Gathering>& gathering) {
  patience_.cancel();
  gathering->over = true;
  under_way_.reset();
  admin::Metrics metrics = std::move(gathering->metrics);
  metrics.complete = gathering->missing == 0;
  metrics.gather_seconds = std::chrono::duration<double>(reactor_.now() - gathering->began).count();
  for (Shard* shard : roads_.shards) metrics.listening_connections += shard->reactor().connections();
  metrics.process.version = OMNIBUS_VERSION;
  metrics.process.started = std::chrono::duration<double>(started_at_.time_since_epoch()).count();
  metrics.process.uptime = std::chrono::duration<double>(reactor_.now() - started_).count();
  writer_.run([metrics = std::move(metrics), waiting = std::exchange(waiting_, {})]() mutable {
    admin::read_process(metrics.process);
    const auto text = std::make_shared<const std::string>(admin::to_prometheus(metrics));
    for (auto& done : waiting) done(text);
  });
}

bool is_metrics(const net::HttpRequest& request) {
  const std::string_view target = request.target;
  return target.substr(0, target.find('?')) == "/metrics" &&
         (request.method == "GET" || request.method == "HEAD") && !target.contains("api-version=");
}

std::optional<net::HttpResponse> MetricsDoor::refusal(const net::HttpRequest& request, Instant now) const {
  const auto refused = [](int status, std::string detail) {
    net::HttpResponse response{.status = status, .headers = {{"Content-Type", "text/plain"}}};
    response.body = std::move(detail) + "\n";
    return response;
  };
  if (access_.require_tls && !request.tls) return refused(401, "40101: The request must use TLS.");
  if (access_.auth_off || access_.open.value_or(is_loopback_peer(request.peer))) return std::nullopt;
  const std::string* header = request.header("Authorization");
  if (header == nullptr || header->empty()) return refused(401, "The request has no authorization.");
  // For the namespace as a whole: a right on a queue that happens to be called like this is none.
  const auto grant = home_.spaces().of_host("")->validator().validate_authorization(*header, "/", now);
  if (!grant) return refused(401, grant.error().detail);
  if (!grant->rights.has(auth::Right::manage) && !grant->rights.has(auth::Right::listen))
    return refused(403, "Listen or Manage is required for this operation.");
  return std::nullopt;
}

void MetricsDoor::answer(const net::HttpRequest& request, net::HttpReply reply, Instant now) {
  if (auto refused = refusal(request, now)) return reply.send(*std::move(refused));
  if (!scrapes_.add(std::move(reply))) return;
  desk_.gather([this](MetricsDesk::Text text) {
    home_.reactor().post(while_alive(life_, [this, text = std::move(text)] { scrapes_.answer_all(*text); }));
  });
}

bool Scrapes::add(net::HttpReply reply) {
  if (waiting_.size() >= waiting_max) {
    reply.send({.status = 503,
                .headers = {{"Content-Type", "text/plain"}, {"Retry-After", "1"}},
                .body = "Too many requests wait for metrics.\n"});
    return false;
  }
  waiting_.push_back(std::move(reply));
  return waiting_.size() == 1;
}

void Scrapes::answer_all(const std::string& text) {
  std::vector<net::HttpReply> replies;
  replies.swap(waiting_);
  for (auto& reply : replies)
    reply.send({.status = 200, .headers = {{"Content-Type", admin::metrics_content_type}}, .body = text});
}

}  // namespace omnibus::node
