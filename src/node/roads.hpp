// The ways between connections and stores, and the numbers by which an answer finds its asker.
//
// A connection's number has its shard in the upper bits, so that a store needs no table to send an answer
// home. It is the upper half of every request and receiver id; with the highest bit set it is a store that
// asks: one that forwards a message, or whoever administers entities.
#pragma once

#include <cstdint>
#include <vector>

#include "node/clock.hpp"
#include "store/store_roads.hpp"

namespace omnibus::node {

class AuditLog;
class Namespaces;
class Shard;
class StoreHost;

inline constexpr std::size_t shards_max = 256;
inline constexpr unsigned serial_bits = 23;
inline constexpr std::uint32_t serial_max = (1u << serial_bits) - 1;
static_assert(shards_max << serial_bits <= 1u << 31);

// `serial` is 1..serial_max, so that no number is 0.
[[nodiscard]] constexpr std::uint32_t connection_number(std::size_t shard, std::uint32_t serial) {
  return static_cast<std::uint32_t>(shard) << serial_bits | serial;
}
[[nodiscard]] constexpr std::size_t shard_of(std::uint32_t connection) { return connection >> serial_bits; }

inline constexpr std::uint32_t store_asks = 0x8000'0000;
// Administration asks, by way of the store's own host.
inline constexpr std::uint32_t desk_asks = 0xc000'0000;

using store::asker_of;
using store::ConnectionAnswer;
using store::StoreCommand;

// All ends of roads; made before the shards run and not changed after.
struct Roads {
  std::vector<Shard*> shards{};
  std::vector<StoreHost*> stores{};  // by number; null where there is none
  Namespaces* namespaces = nullptr;
  Clock clock{};                  // of messages
  AuditLog* audit_log = nullptr;  // of changes; null: none
};

}  // namespace omnibus::node
