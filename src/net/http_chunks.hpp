// What Beast's parsers need to know of a chunked body that comes in pieces.
#pragma once

#include <cstddef>
#include <string_view>

namespace omnibus::net {

/// Whether so few bytes of a chunked body have to wait for more: Beast asserts that it has a whole last chunk
/// when it sees the beginning of one a second time, and every chunked body has at least that to come.
template <typename Parser>
bool waits_for_last_chunk(const Parser& parser, std::size_t bytes) {
  constexpr std::string_view last_chunk = "0\r\n\r\n";
  return parser.is_header_done() && parser.chunked() && bytes < last_chunk.size();
}

}  // namespace omnibus::net
