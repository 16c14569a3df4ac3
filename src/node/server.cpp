#include "node/server.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "admin/admin_values.hpp"
#include "admin/entity_request.hpp"
#include "admin/health.hpp"
#include "admin/http_admin.hpp"
#include "admin/management_service.hpp"
#include "auth/key_file.hpp"
#include "base/check.hpp"
#include "journal/posix_disk.hpp"
#include "net/certificates.hpp"
#include "net/listener.hpp"
#include "net/reactor.hpp"
#include "net/tls.hpp"
#include "node/admin_desk.hpp"
#include "node/data_folder.hpp"
#include "node/metrics_desk.hpp"
#include "node/namespaces.hpp"
#include "node/shard.hpp"
#include "node/shard_http.hpp"
#include "node/store_folders.hpp"
#include "node/store_host.hpp"
#include "node/store_list.hpp"
#include "node/store_register.hpp"

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;

// A shard that has not run its loop for so long is stuck.
constexpr auto shard_pulse_max = 10s;
// Connections past the limit that are still told so; beyond that they are dropped.
constexpr std::size_t told_past_limit = 100;
// While stores recover, a line for the log each time, and how often somebody may change his mind.
constexpr auto recovery_line_every = 5s;
constexpr auto recovery_look_every = 50ms;
// The destructor waits so long for stores to close; what is not closed then is recovered at the next start.
constexpr auto closing_longest = 10s;

bool is_loopback(std::string_view address) {
  const auto parsed = net::parse_host_port(address);
  if (!parsed) return false;
  return parsed->host == "localhost" || parsed->host == "::1" || parsed->host.starts_with("127.");
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(in), {}};
  if (!in) return fail(Errc::io, "cannot read '{}'", path);
  return content;
}

std::uint64_t new_seed() {
  std::random_device entropy;
  return (std::uint64_t{entropy()} << 32) | entropy();
}

// Thousands of connections need as many file handles; the soft limit is often 1024.
void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) spdlog::warn("the limit of open files could not be raised");
}

}  // namespace

struct Server::Impl final : net::ConnectionHandler {
  ServeOptions options;
  std::unique_ptr<DataFolder> folder;
  Policy policy;
  auth::DefaultKey key;
  bool only_loopback = true;
  bool default_rule_configured = false;
  admin::Health health;
  admin::Health::Plane* listeners_plane = nullptr;
  std::unique_ptr<admin::HttpAdmin> http;
  std::unique_ptr<AuditLog> audit_log;  // null: none is wanted
  std::unique_ptr<net::ShardPool> pool;
  std::vector<std::unique_ptr<Shard>> shards;  // as the pool's
  Roads roads;
  KnownStores known_stores;  // at the start
  std::vector<std::unique_ptr<StoreHost>> stores;
  std::unique_ptr<Namespaces> namespaces;
  auth::AccessRules default_rules;  // of the default namespace
  ShardHttp::Settings http_settings;
  std::vector<std::unique_ptr<ShardHttp>> https;  // by shard
  std::unique_ptr<MetricsDesk> metrics;
  std::vector<std::unique_ptr<MetricsDoor>> metrics_doors;  // by shard
  std::promise<Result<void>> stores_ready;
  std::unique_ptr<net::Listener> listener;
  bool running = false;
  bool closing_stores = false;
  std::atomic<std::size_t> stores_left{0};

  Result<void> prepare();
  Result<void> prepare_stores();
  Result<std::shared_ptr<StoreDoor>> door_of(std::uint16_t number, const std::string& path);
  Result<void> write_known_stores();
  Result<void> prepare_namespaces();
  Result<Instant> namespace_created();
  Result<void> open_stores();
  Result<void> listen(std::shared_ptr<net::TlsContext> tls);
  void close_stores();
  Result<void> prepare_auth();
  Result<std::shared_ptr<net::TlsContext>> prepare_tls(std::string& ca_pem);
  Result<void> write_listen_file();
  // Null: there is none.
  [[nodiscard]] StoreHost* find_store(std::uint16_t number) const {
    return number < roads.stores.size() ? roads.stores[number] : nullptr;
  }
  // Nothing: the request is about something else, or this is not switched on.
  std::optional<net::HttpResponse> switch_store(const net::HttpRequest& request);

  std::unique_ptr<net::StreamHandler> on_amqp(net::Stream& stream, bool over_limit) override {
    for (const auto& shard : shards)
      if (&shard->reactor() == &stream.reactor()) return shard->serve(stream, over_limit);
    check(false, "a stream lives on one of our shards");
    return nullptr;
  }
  [[nodiscard]] std::size_t index_of(const net::Reactor* reactor) const {
    std::size_t i = 0;
    while (i < shards.size() && &shards[i]->reactor() != reactor) ++i;
    check(i < shards.size(), "a request comes to one of our shards");
    return i;
  }
  net::HttpResponse refusal(int status, net::Reactor& shard) override {
    return https[index_of(&shard)]->refusal(status);
  }
  void on_http(net::HttpRequest request, net::HttpReply came) override {
    const std::size_t i = index_of(request.reactor);
    net::HttpReply reply = shards[i]->counted(std::move(came));
    if (auto switched = switch_store(request)) return reply.send(*std::move(switched));
    if (is_metrics(request)) return metrics_doors[i]->answer(request, std::move(reply), wall_now());
    if (!admin::is_management(request))
      return reply.send(http->answer(request, {tick_now(), wall_now()}, https[i]->random()));
    https[i]->handle(std::move(request), std::move(reply));
  }
  void on_trouble(const Error& what) override { spdlog::error("listener: {}", what.detail); }
};

Result<void> Server::Impl::prepare() {
  if (options.listen.empty()) options.listen = options.config.listen;
  if (options.listen.empty())
    options.listen.assign(std::begin(default_addresses), std::end(default_addresses));
  only_loopback = std::ranges::all_of(options.listen, is_loopback);

  auto opened = options.ephemeral ? DataFolder::temporary() : DataFolder::open(options.data);
  if (!opened) return fail(opened.error());
  folder = *std::move(opened);
  folder->remove_file("listen.json");

  if (auto done = prepare_auth(); !done) return fail(done.error());
  std::string ca_pem;
  auto tls = prepare_tls(ca_pem);
  if (!tls) return fail(tls.error());
  http = std::make_unique<admin::HttpAdmin>(health, ca_pem, options.config.require_tls);

  const Config& config = options.config;
  policy.connection.max_frame_size = config.frame_bytes_max;
  policy.connection.links_max = config.links_per_connection_max;
  policy.connection.idle_time_out = config.idle_time_out;
  policy.connection.token_wait = config.auth_on ? config.token_wait : 0s;
  policy.connection.no_link_wait = config.no_link_wait;
  policy.connection.idle_connection = config.idle_connection;
  policy.connection.idle_link = config.idle_link;
  const auto quota = [](std::uint32_t limit) { return limit != 0 ? limit : UINT32_MAX; };
  policy.connection.transactions.open_max = quota(config.transactions_per_connection_max);
  policy.connection.transactions.messages_max = quota(config.messages_per_transaction_max);
  policy.connection.transactions.operations_max = quota(config.operations_per_transaction_max);
  policy.connection.transactions.numbers_max = config.reserved_numbers_max;
  policy.connection.transactions.time_out = config.transaction_time;

  raise_file_limit();
  pool = std::make_unique<net::ShardPool>(std::min<std::size_t>(config.shards, shards_max));
  listeners_plane = &health.add("listeners");
  for (std::size_t i = 0; i < pool->size(); ++i) {
    auto& plane = health.add(fmt::format("shard {}", i), shard_pulse_max);
    shards.push_back(std::make_unique<Shard>((*pool)[i], ShardPlace{i, &roads, options.storage.answers_max},
                                             policy, new_seed(), plane));
    roads.shards.push_back(shards.back().get());
  }
  if (auto done = prepare_stores(); !done) return fail(done.error());
  if (auto done = prepare_namespaces(); !done) return fail(done.error());

  pool->start();
  running = true;
  for (const auto& shard : shards) shard->post([&shard] { shard->start_pulse(); });
  if (auto done = open_stores(); !done) return fail(done.error());
  return listen(*std::move(tls));
}

Result<void> Server::Impl::prepare_stores() {
  const Config& config = options.config;
  std::size_t wished = options.storage.stores != 0 ? options.storage.stores : config.stores;
  if (wished == 0) wished = std::max(pool->size(), config.store_folders.size());
  if (!options.ephemeral) {
    auto known = load_store_register(folder->path());
    if (!known) return fail(known.error());
    known_stores = *std::move(known);
  }
  if (!options.ephemeral)
    for (std::size_t i = 0; i < config.store_folders.size(); ++i)
      if (auto done = place_store(folder->path(), static_cast<std::uint16_t>(i), config.store_folders[i],
                                  known_stores.contains(static_cast<std::uint16_t>(i)));
          !done)
        return fail(done.error());
  std::set<std::uint16_t> numbers;
  for (std::size_t i = 0; i < std::min<std::size_t>(wished, stores_max); ++i)
    numbers.insert(static_cast<std::uint16_t>(i));
  if (!options.ephemeral) {
    const auto there = list_stores(folder->path());
    if (!there) return fail(there.error());
    for (const auto& store : *there) numbers.insert(store.number);
    for (const auto& [number, identity] : known_stores) numbers.insert(number);
  }
  roads.stores.resize(*numbers.rbegin() + std::size_t{1});
  for (const std::uint16_t number : numbers) {
    StoreHostSettings settings;
    settings.number = number;
    settings.commands_max = options.storage.commands_max;
    settings.segment_bytes = options.storage.segment_bytes;
    settings.rule_limits = {options.config.sql_filters_per_topic_max,
                            options.config.correlation_filters_per_topic_max};
    settings.receivers_max = options.config.receivers_per_entity_max;
    settings.stall_time = options.config.store_stall_time;
    settings.cache_bytes_max = (std::uint64_t{options.config.payload_cache_mb} << 20) / numbers.size();
    settings.start_patience = options.storage.start_patience;
    settings.reopen_longest = options.storage.reopen_longest;
    const auto path = store_path(folder->path(), number);
    settings.shown = path.string();
    if (!options.ephemeral) {
      auto door = door_of(number, path.string());
      if (!door) return fail(door.error());
      settings.door = *std::move(door);
      auto list = load_store_list(folder->path(), number, settings.door->identity());
      if (list)
        settings.remembered = *std::move(list);
      else if (!settings.door->is_new())
        spdlog::warn("store={} {}: only the store itself knows what it has", number, list.error().detail);
    }
    auto& plane = health.add(fmt::format("store {}", number));
    plane.fails("recovering");
    stores.push_back(
        std::make_unique<StoreHost>(std::move(settings), roads, *shards[number % shards.size()], plane));
    roads.stores[number] = stores.back().get();
  }
  return {};
}

// A store that was there before is looked at by nobody here, so that the start waits for no disk. With one
// that is new, or that nobody has written down yet, what is wrong is wrong from the beginning.
Result<std::shared_ptr<StoreDoor>> Server::Impl::door_of(std::uint16_t number, const std::string& path) {
  const auto& open = options.storage.open_folder;
  if (const auto known = known_stores.find(number); known != known_stores.end())
    return std::make_shared<StoreDoor>(path, known->second, false, open);
  const auto opened = open(path);
  if (!opened) return fail(opened.error());
  if (const auto free = ReadLock::take(path); !free) return fail(free.error());
  const auto found = store_identity(**opened);
  if (!found) return fail(found.error().code, "'{}': {}", path, found.error().detail);
  std::uint64_t identity = *found;
  while (identity == 0) identity = new_seed();
  return std::make_shared<StoreDoor>(path, identity, *found == 0, open);
}

// Before the first message is taken: from now on they are not made anew.
Result<void> Server::Impl::write_known_stores() {
  if (options.ephemeral) return {};
  KnownStores all = known_stores;
  for (const auto& store : stores) {
    if (store->is_new())
      return fail(Errc::io, "'{}' is new and cannot be made: the log says why", store->shown());
    all.emplace(store->number(), store->identity());
  }
  if (all == known_stores) return {};
  const auto written = folder->write_durable(store_register_file, write_store_register(all));
  // A disk that is full needs a broker whose messages can be taken away.
  if (!written) spdlog::error("{}: a store that is lost would be made anew", written.error().detail);
  return {};
}

Result<void> Server::Impl::prepare_namespaces() {
  const Config& config = options.config;
  auto created = namespace_created();
  if (!created) return fail(created.error());
  if (!config.audit_log.empty()) {
    auto opened = AuditLog::open(
        config.audit_log,
        {.bytes_max = std::uint64_t{config.audit_log_mb} * 1024 * 1024, .files_max = config.audit_log_files});
    if (!opened) return fail(opened.error());
    audit_log = *std::move(opened);
    roads.audit_log = audit_log.get();
  }
  namespaces = std::make_unique<Namespaces>(Namespaces::Setting{.roads = roads,
                                                                .reactor = (*pool)[0],
                                                                .config = config,
                                                                .folder = *folder,
                                                                .default_rules = default_rules,
                                                                .default_created = *created,
                                                                .only_loopback = only_loopback});
  roads.namespaces = namespaces.get();
  if (auto done =
          namespaces->prepare([this](Result<void> result) { stores_ready.set_value(std::move(result)); });
      !done)
    return done;

  const bool is_premium = config.profile == Config::Profile::premium;
  auto& management = http_settings.management;
  management.name_space.is_premium = is_premium;
  if (!is_premium) management.defaults = {.message_bytes_max = 256 * 1024, .message_size_settable = false};
  management.defaults.partition_count = config.partition_count;
  const auto judge = [&](auto& settings) {
    settings.auth_off = !config.auth_on;
    settings.require_tls = config.require_tls;
  };
  judge(management);
  judge(http_settings.rest);
  judge(http_settings.tools);
  judge(http_settings.namespaces);
  management.requests_max = config.http_requests_max != 0 ? config.http_requests_max : SIZE_MAX;
  http_settings.rest.polls_max = config.long_polls_max;
  http_settings.test_clock = options.test_clock;
  if (options.test_clock)
    spdlog::warn(
        "--test-clock: whoever may manage a namespace can move the time of messages; for tests only");
  for (const auto& shard : shards)
    https.push_back(std::make_unique<ShardHttp>(http_settings, *namespaces, roads, *shard, new_seed()));
  metrics = std::make_unique<MetricsDesk>(roads, (*pool)[0],
                                          MetricsSettings{.entities_max = config.metrics_entities_max});
  const MetricsAccess access{!config.auth_on, config.require_tls, config.metrics_open};
  for (const auto& shard : shards)
    metrics_doors.push_back(std::make_unique<MetricsDoor>(*metrics, *shard, access));
  return {};
}

// Since when there is this namespace: the first start with this folder.
Result<Instant> Server::Impl::namespace_created() {
  const std::string name = "namespace.created";
  const auto path = folder->path() / name;
  if (std::filesystem::exists(path)) {
    const auto text = read_file(path.string());
    if (!text) return fail(text.error());
    std::string_view date = *text;
    date = date.substr(0, date.find('\n'));
    if (const auto time = admin::from_date(date)) return *time;
    return fail(Errc::io, "'{}' has no date in it", path.string());
  }
  const Instant now = wall_now();
  if (auto written = folder->write_file(name, admin::to_date(now) + "\n"); !written)
    return fail(written.error());
  return now;
}

// Until every store is open or given up, and what was missing is made.
Result<void> Server::Impl::open_stores() {
  for (const auto& store : stores) store->open();
  auto ready = stores_ready.get_future();
  Tick next_line = tick_now() + recovery_line_every;
  while (ready.wait_for(recovery_look_every) != std::future_status::ready) {
    if (options.give_up && options.give_up()) return fail(Errc::io, "told to stop while stores were opening");
    if (tick_now() < next_line) continue;
    next_line += recovery_line_every;
    std::uint64_t records = 0;
    for (const auto& store : stores) records += store->records_read();
    spdlog::info("stores are opening: {} records read so far", records);
  }
  if (auto done = ready.get(); !done) return done;
  return write_known_stores();
}

// POST /$stores/3/down and /up: a store that is away, without having to break a disk. Whoever reaches the
// port may do it, which is why the configuration has to say so.
std::optional<net::HttpResponse> Server::Impl::switch_store(const net::HttpRequest& request) {
  constexpr std::string_view begin = "/$stores/";
  std::string_view path = request.target;
  if (!options.config.store_switch || request.method != "POST" || !path.starts_with(begin))
    return std::nullopt;
  path.remove_prefix(begin.size());
  std::uint16_t number = 0;
  const auto [end, wrong] = std::from_chars(path.data(), path.data() + path.size(), number);
  const std::string_view what{end, path.data() + path.size()};
  StoreHost* store = wrong == std::errc{} ? find_store(number) : nullptr;
  if (store == nullptr || (what != "/down" && what != "/up"))
    return net::HttpResponse{.status = 404, .headers = {}, .body = ""};
  what == "/down" ? store->take_down() : store->bring_back();
  return net::HttpResponse{.status = 202, .headers = {}, .body = ""};
}

Result<void> Server::Impl::listen(std::shared_ptr<net::TlsContext> tls) {
  const Config& config = options.config;
  net::ListenerSettings settings;
  settings.addresses = options.listen;
  settings.tls = std::move(tls);
  settings.require_tls = config.require_tls;
  settings.connections_max = config.connections_max ? config.connections_max : SIZE_MAX;
  settings.connections_hard_max =
      config.connections_max ? config.connections_max + told_past_limit : SIZE_MAX;
  settings.greeting_timeout = config.greeting_wait;
  settings.write_timeout = config.write_wait;
  auto listening = net::Listener::open(*pool, std::move(settings), *this);
  if (!listening) return fail(listening.error());
  listener = *std::move(listening);
  if (const auto first = net::parse_host_port(listener->addresses().front()))
    http_settings.namespaces.port = first->port;
  listeners_plane->serves(true);
  return write_listen_file();
}

void Server::Impl::close_stores() {
  if (std::exchange(closing_stores, true)) return;
  stores_left = stores.size();
  for (const auto& store : stores) store->close([this] { --stores_left; });
}

Result<void> Server::Impl::prepare_auth() {
  const Config& config = options.config;
  const Instant now = wall_now();
  if (!config.namespaces.empty()) {
    const NamespaceSettings& first = config.namespaces.front();
    if (auto put = put_configured_rules(first, now, default_rules); !put) return put;
    default_rule_configured = std::ranges::any_of(
        first.rules, [](const auto& rule) { return rule.key_name == auth::default_rule_name; });
  }
  if (!default_rule_configured) {
    auto made = auth::default_key(only_loopback, folder->path() / "root.key");
    if (!made) return fail(made.error());
    key = *std::move(made);
    if (key.readable_by_others)
      spdlog::warn("'{}' can be read by other users", (folder->path() / "root.key").string());
    auto rule = auth::make_default_rule(key.key, now);
    if (!rule) return fail(rule.error());
    if (auto put = default_rules.put("", *std::move(rule)); !put) return fail(put.error());
  }
  auto issuers = std::make_shared<auth::JwtIssuers>();
  for (const auto& issuer : config.jwt_issuers)
    if (auto added = issuers->add(issuer); !added) return fail(added.error());
  policy.issuers = std::move(issuers);
  policy.sasl.auth_off = !config.auth_on;
  policy.sasl.client_certificates = !config.tls.client_ca_file.empty();
  policy.sasl.certificate_rights = config.client_certificates;
  if (!config.auth_on) spdlog::warn("authentication is off: every client may do everything");
  return {};
}

Result<std::shared_ptr<net::TlsContext>> Server::Impl::prepare_tls(std::string& ca_pem) {
  const TlsSettings& tls = options.config.tls;
  net::TlsContext::Server server{tls.certificate_file, tls.key_file, tls.client_ca_file};
  if (server.certificate_file.empty()) {
    const auto local = net::ensure_local_certificates(folder->path() / "tls", tls.names, wall_now());
    if (!local) return fail(local.error());
    if (local->made_ca) spdlog::info("made a local certificate authority: {}", local->ca_file);
    server.certificate_file = local->certificate_file;
    server.key_file = local->key_file;
    auto pem = read_file(local->ca_file);
    if (!pem) return fail(pem.error());
    ca_pem = *std::move(pem);
  }
  return net::TlsContext::make_server(server);
}

Result<void> Server::Impl::write_listen_file() {
  std::string entries;
  for (const std::string& address : listener->addresses()) {
    const auto parsed = net::parse_host_port(address);
    if (!parsed) return fail(parsed.error());
    entries += fmt::format("{}{{\"host\":\"{}\",\"port\":{}}}", entries.empty() ? "" : ",", parsed->host,
                           parsed->port);
  }
  const auto written = folder->write_file("listen.json", fmt::format("{{\"listen\":[{}]}}\n", entries));
  if (written) return {};
  // Only tools read it. A disk that is full needs a broker whose messages can be taken away.
  spdlog::error("{}: the addresses are only in this log", written.error().detail);
  folder->remove_file("listen.json");
  return {};
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Server>> Server::start(ServeOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  std::unique_ptr<Server> server(new Server(std::move(impl)));
  if (auto prepared = server->impl_->prepare(); !prepared) return fail(prepared.error());
  return server;
}

Server::~Server() {
  if (impl_->listener) impl_->listener->stop_accepting();
  if (impl_->running) {
    impl_->close_stores();
    const Tick deadline = tick_now() + closing_longest;
    while (!stores_closed() && tick_now() < deadline) std::this_thread::sleep_for(1ms);
    if (!stores_closed()) spdlog::warn("{} stores did not close in time", impl_->stores_left.load());
  }
  // The pool closes streams on its way out; they still look at their shard and at stores.
  if (impl_->pool) impl_->pool->stop();
  impl_->listener.reset();
  // What the metrics' thread still writes is told to doors, which pass it to loops that have ended.
  impl_->metrics.reset();
  impl_->metrics_doors.clear();
  impl_->https.clear();
  impl_->namespaces.reset();
  impl_->stores.clear();
  impl_->shards.clear();
  impl_->pool.reset();
  if (impl_->folder) impl_->folder->remove_file("listen.json");
}

const std::vector<std::string>& Server::addresses() const { return impl_->listener->addresses(); }

const std::filesystem::path& Server::data() const { return impl_->folder->path(); }

std::string Server::connection_string() const {
  const auto first = net::parse_host_port(addresses().front());
  const std::string port = first && first->port != 5672 ? fmt::format(":{}", first->port) : "";
  const bool shown = impl_->only_loopback || impl_->key.newly_generated;
  return fmt::format("Endpoint=sb://{}{};SharedAccessKeyName={};SharedAccessKey={};{}",
                     impl_->only_loopback ? "localhost" : "HOST", port, auth::default_rule_name,
                     shown && !impl_->default_rule_configured ? impl_->key.key : "KEY",
                     "UseDevelopmentEmulator=true;");
}

std::string Server::key_hint() const {
  if (impl_->default_rule_configured) return "the key is the one in the configuration";
  if (impl_->only_loopback) return "";
  const std::string file = (impl_->folder->path() / "root.key").string();
  if (impl_->key.newly_generated) return fmt::format("this key is shown once; it is kept in {}", file);
  return fmt::format("the key is in {}", file);
}

bool Server::take_down(std::uint16_t store) {
  StoreHost* host = impl_->find_store(store);
  if (host != nullptr) host->take_down();
  return host != nullptr;
}

bool Server::bring_back(std::uint16_t store) {
  StoreHost* host = impl_->find_store(store);
  if (host != nullptr) host->bring_back();
  return host != nullptr;
}

bool Server::serves(std::uint16_t store) const {
  const StoreHost* host = impl_->find_store(store);
  return host != nullptr && host->is_available();
}

bool Server::ask_store(std::uint16_t store, StoreCommand& command) {
  return impl_->roads.stores.at(store)->commands().try_push(std::move(command));
}

void Server::reopen_logs() {
  if (impl_->audit_log) impl_->audit_log->reopen();
}

void Server::begin_shutdown() {
  impl_->listeners_plane->serves(false);
  impl_->listener->stop_accepting();
  for (const auto& shard : impl_->shards) shard->post([&shard] { shard->say_goodbye(); });
}

void Server::close_stores() { impl_->close_stores(); }

bool Server::stores_closed() const { return impl_->closing_stores && impl_->stores_left == 0; }

bool Server::drained() const {
  // Only AMQP has a goodbye to wait for; idle HTTP connections are simply closed.
  return std::ranges::all_of(impl_->shards, [](const auto& shard) { return shard->connections() == 0; });
}

}  // namespace omnibus::node
