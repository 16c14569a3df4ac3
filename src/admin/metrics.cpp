#include "admin/metrics.hpp"

#include <dirent.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <utility>

namespace omnibus::admin {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

// One family after the other.
class Families {
 public:
  MetricFamily& gauge(std::string name, std::string help) {
    return add(std::move(name), std::move(help), MetricType::Gauge);
  }
  MetricFamily& counter(std::string name, std::string help) {
    return add(std::move(name), std::move(help), MetricType::Counter);
  }
  MetricFamily& histogram(std::string name, std::string help) {
    return add(std::move(name), std::move(help), MetricType::Histogram);
  }
  [[nodiscard]] const std::vector<MetricFamily>& all() const { return all_; }

 private:
  MetricFamily& add(std::string name, std::string help, MetricType type) {
    all_.push_back({std::move(name), std::move(help), type, {}});
    return all_.back();
  }
  std::vector<MetricFamily> all_;
};

// Counters and gauges look the same here: what it is, its family knows.
void put(MetricFamily& family, double value, Labels labels = {}) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  metric.counter.value = metric.gauge.value = value;
}
void put(MetricFamily& family, std::uint64_t value, Labels labels = {}) {
  put(family, static_cast<double>(value), std::move(labels));
}

// Every step from 2^first to 2^last, in units of `unit`.
void put(MetricFamily& family, const Spread& values, std::size_t first, std::size_t last, double unit,
         Labels labels) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  metric.histogram.sample_count = values.count();
  metric.histogram.sample_sum = static_cast<double>(values.sum()) * unit;
  for (std::size_t step = first; step <= last; ++step)
    metric.histogram.bucket.push_back(
        {values.up_to(step), static_cast<double>(std::uint64_t{1} << step) * unit});
}

Labels of_store(const StoreMetrics& store) { return {{"store", std::to_string(store.number)}}; }

void put_process(Families& to, const Metrics& metrics) {
  const ProcessMetrics& process = metrics.process;
  put(to.gauge("omnibus_info", "Which broker this is; always 1."), 1.0, {{"version", process.version}});
  put(to.gauge("omnibus_uptime_seconds", "Since the process started."), process.uptime);
  put(to.gauge("process_start_time_seconds", "When it started, in seconds since 1970."), process.started);
  put(to.counter("process_cpu_seconds_total", "User and system time."), process.cpu_seconds);
  put(to.gauge("process_resident_memory_bytes", "Resident memory."), process.resident_bytes);
  put(to.gauge("process_virtual_memory_bytes", "Virtual memory."), process.virtual_bytes);
  put(to.gauge("process_open_fds", "Open files and sockets."), process.open_files);
  put(to.gauge("process_max_fds", "How many may be open."), process.open_files_max);
  put(to.gauge("omnibus_shards", "Threads that own connections and stores."), metrics.shards);
  put(to.gauge("omnibus_scrape_complete", "1 when every shard and store answered in time."),
      metrics.complete ? 1.0 : 0.0);
  put(to.gauge("omnibus_scrape_gather_seconds", "How long gathering these numbers took."),
      metrics.gather_seconds);
}

void put_each(MetricFamily& family, const std::map<std::string, std::uint64_t>& by, const char* label) {
  for (const auto& [value, count] : by) put(family, count, {{label, value}});
}

void put_connections(Families& to, const Metrics& metrics) {
  const ConnectionMetrics& one = metrics.connections;
  put(to.gauge("omnibus_connections", "Connections of any protocol."), metrics.listening_connections);
  put(to.gauge("omnibus_amqp_connections", "AMQP connections."), one.connections);
  put(to.gauge("omnibus_amqp_sessions", "AMQP sessions."), one.sessions);
  put(to.gauge("omnibus_amqp_links", "AMQP links."), one.links);
  put(to.counter("omnibus_amqp_connections_opened_total", "AMQP connections that were opened."), one.opened);
  put(to.counter("omnibus_amqp_received_bytes_total", "Bytes from AMQP clients."), one.bytes_in);
  put(to.counter("omnibus_amqp_sent_bytes_total", "Bytes to AMQP clients."), one.bytes_out);
  put(to.counter("omnibus_authentication_failures_total", "SASL exchanges that failed."),
      one.authentications_failed);
  put(to.counter("omnibus_tokens_refused_total", "Tokens that were refused."), one.tokens_refused);
  put_each(to.counter("omnibus_links_refused_total", "Links that were refused, by condition."),
           one.links_refused, "condition");
  put_each(to.counter("omnibus_links_detached_total", "Links that the broker detached, by condition."),
           one.links_detached, "condition");
  put(to.gauge("omnibus_http_requests_under_way", "HTTP requests that wait for their answer."),
      one.http_under_way);
  put_each(to.counter("omnibus_http_responses_total", "HTTP answers, by the class of their status."),
           one.http, "code");
}

void put_stores(Families& to, const Metrics& metrics) {
  const auto each = [&](MetricFamily& family, auto member) {
    for (const StoreMetrics& store : metrics.stores)
      put(family, std::uint64_t{store.*member}, of_store(store));
  };
  each(to.gauge("omnibus_store_up", "1 when the store is open and serves."), &StoreMetrics::up);
  auto& state = to.gauge("omnibus_store_state", "1 for the state that the store is in.");
  for (const StoreMetrics& store : metrics.stores)
    put(state, 1.0, {{"store", std::to_string(store.number)}, {"state", store.state}});
  each(to.gauge("omnibus_store_full", "1 when the disk has no room: no new messages."), &StoreMetrics::full);
  each(to.gauge("omnibus_store_partitions", "Partitions in the store."), &StoreMetrics::partitions);
  each(to.gauge("omnibus_store_disk_bytes", "What its segments take on the disk."),
       &StoreMetrics::disk_bytes);
  each(to.gauge("omnibus_store_live_bytes", "Of these, messages that are still there."),
       &StoreMetrics::live_bytes);
  each(to.gauge("omnibus_store_segments", "Segment files."), &StoreMetrics::segments);
  each(to.gauge("omnibus_store_replay_bytes", "What a start would have to replay after the last checkpoint."),
       &StoreMetrics::bytes_since_checkpoint);
  each(to.gauge("omnibus_store_gathered_bytes", "Appended, not yet handed to the disk."),
       &StoreMetrics::gathered_bytes);
  each(to.gauge("omnibus_store_commands_waiting", "Commands in the mailbox of the store."),
       &StoreMetrics::commands_waiting);
  each(to.gauge("omnibus_store_cache_bytes", "Message bytes kept in memory."), &StoreMetrics::cache_bytes);
  each(to.counter("omnibus_store_cache_hits_total", "Messages found in memory."), &StoreMetrics::cache_hits);
  each(to.counter("omnibus_store_cache_misses_total", "Messages read back from the disk."),
       &StoreMetrics::cache_misses);
  each(to.counter("omnibus_store_checkpoints_total", "Checkpoints."), &StoreMetrics::checkpoints);
  each(to.counter("omnibus_store_recoveries_total", "Times it was opened, the first included."),
       &StoreMetrics::recoveries);
  each(to.gauge("omnibus_store_damaged_records", "Records that could not be read."),
       &StoreMetrics::damaged_records);
  each(to.gauge("omnibus_store_reads_failing", "Records that cannot be read for now and are tried again."),
       &StoreMetrics::reads_failing);
  each(to.counter("omnibus_store_cut_bytes_total", "Bytes cut off at the end of the log when it was opened."),
       &StoreMetrics::cut_bytes);
  each(to.counter("omnibus_journal_syncs_total", "Syncs."), &StoreMetrics::syncs);
  each(to.counter("omnibus_journal_records_total", "Records that were written."),
       &StoreMetrics::records_written);
  each(to.counter("omnibus_journal_bytes_total", "Bytes that were written."), &StoreMetrics::bytes_written);
  // From 16 microseconds to 16 seconds.
  auto& sync = to.histogram("omnibus_journal_sync_seconds", "Write and sync of one batch.");
  for (const StoreMetrics& store : metrics.stores) put(sync, store.sync_us, 4, 24, 1e-6, of_store(store));
  auto& records = to.histogram("omnibus_journal_batch_records", "Records that shared one sync.");
  for (const StoreMetrics& store : metrics.stores)
    put(records, store.batch_records, 0, 14, 1, of_store(store));
  auto& bytes = to.histogram("omnibus_journal_batch_bytes", "Bytes that shared one sync.");
  for (const StoreMetrics& store : metrics.stores) put(bytes, store.batch_bytes, 6, 26, 1, of_store(store));
  auto& refused = to.counter("omnibus_requests_refused_total", "Requests that stores refused, by condition.");
  for (const StoreMetrics& store : metrics.stores)
    for (const auto& [condition, count] : store.refused)
      put(refused, count, {{"store", std::to_string(store.number)}, {"condition", condition}});
}

void put_entities(Families& to, const Metrics& metrics) {
  const auto each = [&](MetricFamily& family, auto value_of) {
    family.metric.reserve(metrics.entities.size() + 1);
    for (const EntityMetrics& entity : metrics.entities) {
      Labels labels{{"entity", entity.name}, {"kind", entity.kind}};
      if (!entity.name_space.empty()) labels.push_back({"namespace", entity.name_space});
      put(family, std::uint64_t{value_of(entity)}, std::move(labels));
    }
    if (metrics.others_count > 0)
      put(family, std::uint64_t{value_of(metrics.others)}, {{"entity", "_other"}, {"kind", ""}});
  };
  const auto count = [&](const char* name, const char* help, std::uint64_t broker::QueueCounts::* member) {
    each(to.gauge(name, help), [member](const EntityMetrics& entity) { return entity.counts.*member; });
  };
  const auto total = [&](const char* name, const char* help, std::uint64_t broker::Totals::* member) {
    each(to.counter(name, help), [member](const EntityMetrics& entity) { return entity.totals.*member; });
  };
  put(to.gauge("omnibus_entities", "Queues, topics and subscriptions."),
      std::uint64_t{metrics.entities.size()} + metrics.others_count);
  put(to.gauge("omnibus_entities_without_series", "Of these, those that are summed as _other."),
      metrics.others_count);
  using broker::QueueCounts;
  using broker::Totals;
  count("omnibus_messages_active", "Messages that wait or are locked.", &QueueCounts::active);
  count("omnibus_messages_dead_letter", "Dead letters.", &QueueCounts::dead_letter);
  count("omnibus_messages_transfer_dead_letter", "Dead letters of transfers.",
        &QueueCounts::transfer_dead_letter);
  count("omnibus_messages_scheduled", "Scheduled messages.", &QueueCounts::scheduled);
  count("omnibus_messages_deferred", "Deferred messages.", &QueueCounts::deferred);
  count("omnibus_messages_locked", "Locked messages of all sub-queues.", &QueueCounts::locked);
  count("omnibus_entity_bytes", "What the size quota is compared with.", &QueueCounts::size_bytes);
  count("omnibus_entity_receivers", "Links that receive.", &QueueCounts::receivers);
  count("omnibus_entity_sessions", "Message sessions with messages, state or a holder.",
        &QueueCounts::sessions);
  total("omnibus_messages_received_total", "Messages taken in.", &Totals::received);
  total("omnibus_messages_delivered_total", "Messages given to a receiver.", &Totals::delivered);
  total("omnibus_messages_completed_total", "Messages settled as done, or received and deleted.",
        &Totals::completed);
  total("omnibus_messages_abandoned_total", "Messages abandoned.", &Totals::abandoned);
  total("omnibus_messages_released_total", "Messages given back without counting an attempt.",
        &Totals::released);
  total("omnibus_messages_deferred_total", "Messages deferred.", &Totals::deferred);
  total("omnibus_messages_dead_lettered_total", "Messages dead-lettered.", &Totals::dead_lettered);
  total("omnibus_messages_expired_total", "Messages whose time to live was over.", &Totals::expired);
  total("omnibus_message_locks_expired_total", "Locks that ran out.", &Totals::locks_expired);
  total("omnibus_messages_duplicate_total", "Messages dropped as duplicates.", &Totals::duplicates);
}

}  // namespace

void EntityMetrics::add(const broker::QueueCounts& more) {
  counts.active += more.active;
  counts.deferred += more.deferred;
  counts.scheduled += more.scheduled;
  counts.dead_letter += more.dead_letter;
  counts.transfer_dead_letter += more.transfer_dead_letter;
  counts.transfer += more.transfer;
  counts.locked += more.locked;
  counts.sessions += more.sessions;
  counts.receivers += more.receivers;
  counts.size_bytes += more.size_bytes;
}

ConnectionMetrics& ConnectionMetrics::operator+=(const ConnectionMetrics& more) {
  connections += more.connections;
  sessions += more.sessions;
  links += more.links;
  opened += more.opened;
  authentications_failed += more.authentications_failed;
  tokens_refused += more.tokens_refused;
  bytes_in += more.bytes_in;
  bytes_out += more.bytes_out;
  http_under_way += more.http_under_way;
  for (const auto& [condition, count] : more.links_refused) links_refused[condition] += count;
  for (const auto& [condition, count] : more.links_detached) links_detached[condition] += count;
  for (const auto& [code, count] : more.http) http[code] += count;
  return *this;
}

void read_process(ProcessMetrics& into) {
  std::uint64_t pages = 0;
  std::uint64_t resident = 0;
  if (std::ifstream statm("/proc/self/statm"); statm >> pages >> resident) {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    into.virtual_bytes = pages * page;
    into.resident_bytes = resident * page;
  }
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0)
    into.cpu_seconds = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                       static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
  if (rlimit limit{}; ::getrlimit(RLIMIT_NOFILE, &limit) == 0) into.open_files_max = limit.rlim_cur;
  if (DIR* files = ::opendir("/proc/self/fd")) {
    std::uint64_t entries = 0;
    while (::readdir(files) != nullptr) ++entries;
    ::closedir(files);
    into.open_files = entries > 3 ? entries - 3 : 0;  // ".", ".." and the one that was just read from
  }
}

std::string to_prometheus(const Metrics& metrics) {
  Families families;
  put_process(families, metrics);
  put_connections(families, metrics);
  put_stores(families, metrics);
  put_entities(families, metrics);
  return prometheus::TextSerializer{}.Serialize(families.all());
}

}  // namespace omnibus::admin
