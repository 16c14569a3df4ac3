// What /metrics says: numbers of one moment, and how they are written for Prometheus.
//
// The numbers are gathered elsewhere and owned by whoever renders; nothing here is shared or kept. Counters
// begin at 0 with the process, those of entities also when their store opens again, which readers of counters
// expect. Names are `omnibus_*`, those of the process the usual `process_*`. One series per number and entity
// for the entities that were gathered by name; what the others have is one series, entity="_other".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/spread.hpp"
#include "broker/queue.hpp"
#include "broker/totals.hpp"

namespace omnibus::admin {

struct EntityMetrics {
  std::string name;
  std::string kind;          // "queue", "topic", "subscription"; "" for others together
  std::string name_space{};  // "": the default one, whose series have no label for it
  broker::QueueCounts counts{};
  broker::Totals totals{};

  void add(const broker::QueueCounts& more);
};

struct StoreMetrics {
  std::uint16_t number = 0;
  std::string state = "unknown";  // also when it did not answer in time
  bool up = false;                // open, and not taken down
  bool full = false;
  std::uint64_t partitions = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t segments = 0;
  std::uint64_t syncs = 0;
  std::uint64_t records_written = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t bytes_since_checkpoint = 0;
  std::uint64_t gathered_bytes = 0;
  Spread sync_us{};
  Spread batch_records{};
  Spread batch_bytes{};
  std::uint64_t cache_bytes = 0;
  std::uint64_t cache_hits = 0;
  std::uint64_t cache_misses = 0;
  std::uint64_t checkpoints = 0;
  std::uint64_t recoveries = 0;
  std::uint64_t damaged_records = 0;
  std::uint64_t reads_failing = 0;
  std::uint64_t cut_bytes = 0;
  std::uint64_t commands_waiting = 0;
  std::map<std::string, std::uint64_t> refused{};  // requests, by what they were answered with
};

// Of all shards together.
struct ConnectionMetrics {
  std::uint64_t connections = 0;  // AMQP
  std::uint64_t sessions = 0;
  std::uint64_t links = 0;
  std::uint64_t opened = 0;  // since the start
  std::uint64_t authentications_failed = 0;
  std::uint64_t tokens_refused = 0;
  std::map<std::string, std::uint64_t> links_refused{};   // by condition
  std::map<std::string, std::uint64_t> links_detached{};  // by us, by condition
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::uint64_t http_under_way = 0;
  std::map<std::string, std::uint64_t> http{};  // answers by the class of their status: "2xx"

  ConnectionMetrics& operator+=(const ConnectionMetrics& more);
};

struct ProcessMetrics {
  std::string version;
  double started = 0;  // seconds since 1970
  double uptime = 0;
  double cpu_seconds = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t virtual_bytes = 0;
  std::uint64_t open_files = 0;
  std::uint64_t open_files_max = 0;
};
// What the operating system says of this process; reads /proc, so not on a shard. `version` and the times are
// the caller's.
void read_process(ProcessMetrics& into);

struct Metrics {
  ProcessMetrics process{};
  std::uint64_t listening_connections = 0;  // of any protocol
  ConnectionMetrics connections{};
  std::uint64_t shards = 0;
  std::uint64_t shards_answered = 0;
  std::vector<StoreMetrics> stores{};
  std::vector<EntityMetrics> entities{};  // those with series of their own
  EntityMetrics others{};
  std::uint64_t others_count = 0;
  bool complete = true;  // every shard and store answered in time
  double gather_seconds = 0;
};

// The text format, version 0.0.4.
[[nodiscard]] std::string to_prometheus(const Metrics& metrics);
inline constexpr const char* metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace omnibus::admin
