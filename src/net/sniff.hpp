// What a peer speaks, told from its first bytes. A pure function; at most 8 bytes decide.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace omnibus::net {

inline constexpr std::size_t sniff_bytes_max = 8;

struct Sniffed {
  enum class Kind : std::uint8_t {
    need_more,  // a prefix of something known
    amqp,       // a whole 8-byte AMQP header
    tls,        // a TLS hello
    http,       // a request line
    garbage,
  };
  Kind kind = Kind::need_more;
  // For amqp: 0 plain, 2 TLS upgrade, 3 SASL; and whether the version is 1.0.0.
  std::uint8_t protocol_id = 0;
  bool version_known = false;

  bool operator==(const Sniffed&) const = default;
};

// `first` is everything received so far, from the first byte on.
[[nodiscard]] Sniffed sniff(Bytes first);

}  // namespace omnibus::net
