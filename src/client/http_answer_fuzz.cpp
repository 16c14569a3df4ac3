// Any bytes as the answer of an HTTP server, cut anywhere: it is read, or refused, in the same way however it
// is cut, and never holds more than it may. The first byte says how it is cut.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/check.hpp"
#include "client/http_answer.hpp"

namespace omnibus::client {
namespace {

std::optional<HttpAnswerReader::Whole> read(Bytes bytes, std::size_t step) {
  HttpAnswerReader reader;
  while (!bytes.empty() && !reader.is_done()) {
    const auto part = bytes.first(step == 0 ? bytes.size() : std::min(step, bytes.size()));
    // A copy of its own, so that reading past the end is seen.
    const std::vector<std::uint8_t> piece(part.begin(), part.end());
    if (const auto taken = reader.take(piece); !taken) {
      check(taken.error().code == Errc::decode_error && !taken.error().detail.empty());
      return std::nullopt;
    }
    bytes = bytes.subspan(part.size());
  }
  if (!reader.is_done()) reader.end();
  if (!reader.is_done()) return std::nullopt;
  auto whole = reader.release();
  // What waits behind the answer is seen only when it came along with it.
  whole.keeps_connection = whole.keeps_connection && bytes.empty();
  return whole;
}

}  // namespace
}  // namespace omnibus::client

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus;
  if (size < 2) return 0;
  const Bytes bytes{data + 1, size - 1};
  const auto at_once = client::read(bytes, 0);
  const auto in_pieces = client::read(bytes, data[0]);
  check(at_once.has_value() == in_pieces.has_value(), "how it is cut does not matter");
  if (!at_once) return 0;
  check(at_once->answer.status == in_pieces->answer.status && at_once->answer.body == in_pieces->answer.body);
  check(at_once->answer.content_type == in_pieces->answer.content_type);
  check(at_once->answer.body.size() <= client::HttpAnswerReader::answer_bytes_max);
  check(at_once->answer.status >= 0 && at_once->answer.status <= 999, "a status has three digits");
  return 0;
}
