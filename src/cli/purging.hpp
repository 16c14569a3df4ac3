// Emptying an entity.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cli/target.hpp"
#include "client/message.hpp"

namespace omnibus::cli {

// What there is before something is removed, by partition: a sequence number has its partition above so many
// bits.
struct Extent {
  static constexpr int partition_bits = 48;

  std::map<std::int64_t, std::int64_t> newest{};  // partition: sequence number
  Instant before{};                               // all of it was enqueued before that, by the broker's clock

  void reach(const client::Message& message);
  // A message came out of the entity; whether it came after the beginning. What is older in its partition
  // came before it, so that one leaves the extent.
  bool pass(const client::Message& message);
};

// Asks first unless `yes`, empties `entity` (a queue, subscription or dead-letter queue), says how many, and
// gives the exit code. `named` is what the user called it.
int purge(const Target& target, const std::string& entity, const std::string& named, bool yes);

}  // namespace omnibus::cli
