// Pairs of one sender and one receiver on queues of a broker of their own, and what they see.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/histogram.hpp"

namespace omnibus::bench {

// Config.json of a namespace with these queues, each written as its JSON object; `omnibus` are our own
// settings besides, as `"Key": value` members.
[[nodiscard]] std::string config_of(const std::vector<std::string>& queues, const std::string& omnibus = {});
// A queue that does not fill up. `more` are further properties, as `"Key": value` members.
[[nodiscard]] std::string queue_of(const std::string& name, const std::string& more = {});

// What a long run is like comes after this: the journal writes where it has written before.
inline constexpr std::chrono::seconds warm_up{4};
// At 1,000 messages per second the journal moves to its first written segment after 4,128 batches. That
// belongs to the beginning; later it changes segments every 50 seconds.
inline constexpr std::chrono::seconds paced_warm_up{6};

struct Flow {
  double received_per_second = 0;
  double per_cpu_second = 0;  // of the broker
  double cores = 0;           // that broker and load kept busy together
  double busiest = 0;         // the share of a core that the busiest shard took
  double shards = 0;          // the shares of all shards
  double waiting = 0;         // messages that were accepted and not received at the end
};
// One pair for each address, `window` messages under way at most in each, measured after `warm_up`.
// `shard_share`: the part of a core that each shard of the broker may take.
[[nodiscard]] Flow measure_flow(const std::string& config, const std::vector<std::string>& addresses,
                                std::uint32_t window, double seconds, std::optional<double> shard_share = {});

struct Latency {
  double p50 = 0;  // milliseconds, from send to receipt
  double p99 = 0;
  double outcome_p99 = 0;
  double per_cpu_second = 0;
  Histogram all{};  // from send to receipt
};
[[nodiscard]] Latency measure_latency(const std::string& config, const std::string& address, double seconds,
                                      double rate);

// The same a slice at a time, so that something else can be measured in between: a pair that rests from slice
// to slice, while its broker goes on.
class PacedPair {
 public:
  // Returns after `paced_warm_up`.
  PacedPair(const std::string& config, const std::string& address, double rate);
  ~PacedPair();
  void run(double seconds);
  // Of all slices.
  [[nodiscard]] Latency seen();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Of every message here.
inline constexpr std::uint32_t body_bytes = 1024;

}  // namespace omnibus::bench
