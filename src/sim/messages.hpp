// Messages of simulated clients: what they send, and what they make of what they get.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "amqp/codec/value.hpp"
#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "sim/history.hpp"

namespace omnibus::sim {

struct NewMessage {
  std::string id{};
  std::uint32_t filler = 0;  // bytes behind the id
  std::string mid{};
  std::optional<std::string> session{};
  std::optional<std::string> key{};
  std::optional<Instant> at{};
  std::optional<std::chrono::milliseconds> ttl{};
};
[[nodiscard]] std::string encode_message(const NewMessage& message);
[[nodiscard]] std::string encode_batch(const std::vector<std::string>& messages);

struct GotMessage {
  std::string id{};  // "damaged ..." when the body is not what was sent
  std::int64_t seq = 0;
  std::int64_t count = 0;
  std::optional<Moment> until{};
  std::string session{};
  std::string dead{};
  bool is_scheduled = false;
  bool is_deferred = false;
};
[[nodiscard]] GotMessage read_got(const Payload& message);

}  // namespace omnibus::sim
