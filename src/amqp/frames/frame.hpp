// Frames and protocol headers [AMQP §2.2, §2.3].
//
//   0        4    5    6         8          doff*4          size
//   +--------+----+----+---------+----------+----------------+
//   | size   |doff|type| channel | extended | body           |
//   +--------+----+----+---------+----------+----------------+
#pragma once

#include <array>
#include <cstdint>

#include "amqp/codec/wire.hpp"

namespace omnibus::amqp {

inline constexpr std::size_t frame_header_bytes = 8;
inline constexpr std::uint32_t min_max_frame_size = 512;  // no peer may ask for less [AMQP §2.7.1]
inline constexpr std::uint8_t frame_type_amqp = 0;
inline constexpr std::uint8_t frame_type_sasl = 1;

enum class ProtocolId : std::uint8_t { amqp = 0, tls = 2, sasl = 3 };

using ProtocolHeader = std::array<std::uint8_t, 8>;
constexpr ProtocolHeader protocol_header(ProtocolId id) {
  return {'A', 'M', 'Q', 'P', static_cast<std::uint8_t>(id), 1, 0, 0};
}

struct FrameHeader {
  std::uint32_t size;
  std::uint8_t doff;
  std::uint8_t type;
  std::uint16_t channel;
};
// `at` has frame_header_bytes bytes.
inline FrameHeader read_frame_header(const std::uint8_t* at) {
  return {load_be<std::uint32_t>(at), at[4], at[5], load_be<std::uint16_t>(at + 6)};
}
inline void put_frame_header(std::uint8_t* at, std::uint32_t size, std::uint8_t type, std::uint16_t channel) {
  store_be(at, size);
  at[4] = 2;
  at[5] = type;
  store_be(at + 6, channel);
}

}  // namespace omnibus::amqp
