#include "net/sniff.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace omnibus::net {
namespace {

constexpr std::string_view amqp = "AMQP";
constexpr std::array<std::string_view, 9> methods = {"GET ",     "PUT ",   "POST ",  "HEAD ",   "DELETE ",
                                                     "OPTIONS ", "PATCH ", "TRACE ", "CONNECT "};

enum class Match : std::uint8_t { no, partly, yes };

Match match(std::string_view seen, std::string_view expected) {
  const auto common = std::min(seen.size(), expected.size());
  if (seen.substr(0, common) != expected.substr(0, common)) return Match::no;
  return seen.size() >= expected.size() ? Match::yes : Match::partly;
}

}  // namespace

Sniffed sniff(Bytes first) {
  using Kind = Sniffed::Kind;
  if (first.empty()) return {};
  if (first[0] == 0x16) {  // TLS handshake record; the second byte is the major version of all of TLS
    if (first.size() < 2) return {};
    return {.kind = first[1] == 0x03 ? Kind::tls : Kind::garbage};
  }
  const std::string_view seen = as_text(first);
  const Match header = match(seen, amqp);
  if (header == Match::yes && first.size() >= sniff_bytes_max)
    return {.kind = Kind::amqp,
            .protocol_id = first[4],
            .version_known = first[5] == 1 && first[6] == 0 && first[7] == 0};
  if (header != Match::no) return {};
  Match best = Match::no;
  for (const auto method : methods) best = std::max(best, match(seen, method));
  if (best == Match::yes) return {.kind = Kind::http};
  return {.kind = best == Match::partly ? Kind::need_more : Kind::garbage};
}

}  // namespace omnibus::net
